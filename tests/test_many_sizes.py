"""Functions that are called with other integers each time: the results are right, bounds are looked at anew, and
kernels are made once for many values."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from orion.errors import OutOfBoundsError
from orion.prepare import KEPT_LARGE, Preparation
from orion.prepared_call import Options


def shift(a, b, first, end, by):
    for i in range(first, end):
        for j in range(a.shape[1]):
            a[i, j] = b[i + by, j] * 0.5


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_right_for_each_value(workers):
    decorated, rng = orion.parallel_for(shift), np.random.default_rng(0)
    with orion.session(workers=workers, force_parallel=True):
        for _ in range(60):
            first, end, by = [*sorted(rng.integers(0, 50, 2).tolist()), int(rng.integers(-3, 4))]
            mine, b = rng.random((50, 3)), rng.random((50, 3))
            theirs, wrong = mine.copy(), None
            try:
                shift(theirs, b, first, end, by)
            except IndexError as error:
                wrong = error
            if wrong is not None:
                with pytest.raises(OutOfBoundsError):
                    decorated(mine, b, first, end, by)
            else:
                decorated(mine, b, first, end, by)
                np.testing.assert_array_equal(mine, theirs)


def test_a_loop_that_is_empty_leaves_no_array():
    decorated = orion.parallel_for(shift)
    a, b = np.ones((4, 3)), np.ones((4, 3))
    decorated(a, b, 3, 4, 0)
    decorated(a, b, 4, 2, 100)  # nothing is reached
    with pytest.raises(OutOfBoundsError, match="leaves `b`"):
        decorated(a, b, 3, 4, 1)
    decorated(a, b, 4, 4, 1)


def test_kernels_are_made_once_for_values_of_as_many_bits():
    preparation = Preparation(shift, Options())
    a, b = np.ones((2000, 3)), np.ones((2000, 3))
    texts, kernels = set(), set()
    for first in range(512, 1000, 7):
        arguments = {"a": a, "b": b, "first": first, "end": first + 900, "by": 1}
        prepared = preparation.prepare(arguments, 1, False)
        kernels |= {id(loop.kernel) for loop in prepared.program.loops}
        texts |= {loop.kernel.text for loop in prepared.program.loops}
        assert prepared.plan.inside
    assert len(texts) == 1
    assert len(kernels) <= 2  # `first + 900` has 11 bits, or 10 with a few of the first values


def test_a_loop_is_long_or_short_at_its_sizes():
    """The kernel of a long loop looks whether it is to be left, that of a short one does not."""
    preparation = Preparation(shift, Options())
    a = np.ones((2000, 3))

    def text(first, end):
        arguments = {"a": a, "b": a.copy(), "first": first, "end": end, "by": 0}
        return [kernel.text for kernel in preparation.kernels(arguments, 1, False)]

    assert text(0, 10) == text(0, 15)
    assert text(0, 1024) == text(0, 2000)


def add_up(out, at, x):
    for i in range(len(x)):
        out[at[i]] += x[i]


def test_sizes_that_come_again_are_planned_once():
    preparation = Preparation(shift, Options())

    def prepared():
        given = [{"a": np.ones((n, 3)), "b": np.ones((n, 3)), "first": 0, "end": n, "by": 0} for n in range(10, 60)]
        return [preparation.prepare(one, 1, False) for one in given]

    assert all(one is other for one, other in zip(prepared(), prepared(), strict=True))


def test_few_programs_with_large_memory_are_kept():
    preparation = Preparation(add_up, Options())
    for n in range(500, 520):
        given = {"out": np.zeros(n), "at": np.arange(n) // 2, "x": np.ones(n)}
        assert preparation.prepare(given, 2, True).is_large
    assert len(preparation._prepared) == KEPT_LARGE
