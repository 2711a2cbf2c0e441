"""What only fills arrays is no reason to share out a loop around it, nor to call that parallel."""

from __future__ import annotations

import numpy as np
import pytest

import orion


def handed_on(lab, ptr, idx, count):
    carry = 0.5
    for v in range(len(lab)):
        count[:] = 0.0
        for p in range(ptr[v], ptr[v + 1]):
            count[lab[idx[p]]] += 1
        carry = 0.5 * carry + count[0]
        lab[v] = int(carry)


def handed_on_by_new_arrays(lab, ptr, idx, count):
    carry = 0.5
    for v in range(len(lab)):
        counts = np.zeros(8)
        for p in range(ptr[v], ptr[v + 1]):
            counts[lab[idx[p]]] += 1
        carry = 0.5 * carry + counts[0]
        lab[v] = int(carry)


@pytest.mark.parametrize("function", [handed_on, handed_on_by_new_arrays])
@pytest.mark.parametrize("n", [1000, 300_000])
def test_a_serial_loop_around_a_fill_is_not_parallel(function, n):
    ptr, rng = np.arange(n + 1) * 2, np.random.default_rng(0)
    arguments = rng.integers(0, 8, n), ptr, rng.integers(0, n, 2 * n), np.zeros(8)
    with orion.session(workers=2):
        plan = orion.parallel_for(function).plan(*arguments)
        assert plan.strategy == "serial"
        assert not plan.is_parallel
        with pytest.raises(orion.NotParallelError):
            orion.parallel_for(require_parallel=True)(function)(*arguments)
