"""Every trap gives the serial result on 1, 2 and 4 workers, by a legal parallel plan or serially with a reason."""

import warnings

import numpy as np
import pytest

import orion
from tests.trap_loops import TRAPS


@pytest.mark.parametrize("function", TRAPS, ids=lambda f: f.__name__)
def test_trap(function):
    make, strategies = TRAPS[function]
    expected = make()
    returned = function(*expected)
    compiled = orion.parallel_for(function)
    plan = compiled.plan(*make())
    assert [loop.strategy for loop in plan.loops] == strategies
    assert all(loop.reasons for loop in plan.loops if not loop.is_parallel)
    for workers in (1, 2, 4):
        arguments = make()
        with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
            warnings.simplefilter("ignore", orion.SerialLoopWarning)
            assert compiled(*arguments) == returned
        for mine, theirs in zip(arguments, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_two_views_of_one_array_are_seen():
    """`a` and `b` overlap: the write of `a[i + 1]` is read as `b[i + 1]` in the next iteration."""

    @orion.parallel_for
    def shifted(a, b):
        for i in range(a.shape[0] - 1):
            a[i + 1] = b[i] * 2

    block = np.ones(100)
    with pytest.raises(orion.AliasError, match="share memory"):
        shifted(block[:50], block[25:75])
    np.testing.assert_array_equal(block, np.ones(100))


def test_elements_whose_rows_share_columns_lose_no_update():
    """Row by row in parallel, two rows could update one column at once."""

    @orion.parallel_for
    def column_sums(matrix, sums):
        for (_i, j), v in matrix:
            sums[j] += v

    rng = np.random.default_rng(0)
    keys = rng.integers(0, 300, 20_000), rng.integers(0, 5, 20_000)
    values = rng.integers(-5, 6, 20_000).astype(np.float64)
    sums = np.zeros(5)
    with orion.session(workers=4, force_parallel=True):
        assert column_sums.plan(orion.sparse(keys, values), sums).strategy == "1d"
        column_sums(orion.sparse(keys, values), sums)
    np.testing.assert_array_equal(sums, np.bincount(keys[1], values, 5))

