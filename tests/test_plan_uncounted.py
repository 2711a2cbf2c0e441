"""Neighbouring loops whose iterations nobody can count when the plan is made."""

import numpy as np
import pytest

import orion


def doubled(k, a, w):
    n = int(k[0])
    for i in range(n):
        w[i] = a[i] * 2
    for i in range(n):
        a[i] = w[i]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("size", [40, 2_000_000])
def test_are_not_run_as_one(size, force):
    a, w = np.ones(size), np.zeros(size)
    with orion.session(workers=2, force_parallel=force):
        orion.parallel_for(doubled).plan(np.array([30]), a, w).check()
        orion.parallel_for(doubled)(np.array([30]), a, w)
    assert a.sum() == size + 30
