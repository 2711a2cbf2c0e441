"""Kernels that the interpreter runs in place of machine code: which these are, and that they do the same."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from orion.errors import OutOfBoundsError
from orion.kernel.build import compile as compiling
from tests import uncompiled
from tests.loop_text import defined

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


@pytest.fixture
def never_compiled(monkeypatch):
    """Of no kernel that the interpreter can run there is machine code."""
    monkeypatch.setattr(uncompiled, "ONE_IN", 2**40)
    monkeypatch.setattr(uncompiled, "compile_kernel", None)
    monkeypatch.setattr(uncompiled, "follow", None)


def wavefront(A, n):
    for i in range(1, n):
        for j in range(1, n):
            A[i, j] = A[i - 1, j] + 2.0 * A[i, j - 1]


def smooth(a, b, n):
    for _ in range(n):
        for i in range(1, a.shape[0] - 1):
            b[i] = a[i - 1] + a[i + 1]
        for i in range(1, a.shape[0] - 1):
            a[i] = 0.5 * b[i]


def rows(A, B, x):
    for i in range(A.shape[0]):
        A[i] = B[i] - 0.5 * A[i]
        B[i] = x


def search(a, n):
    for i in range(n):
        if a[i] > 7:
            return i
    return -1


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_wait_for_each_other(workers, never_compiled):
    mine, theirs = np.ones((12, 12)), np.ones((12, 12))
    with orion.session(workers=workers, force_parallel=True):
        orion.parallel_for(wavefront)(mine, 12)
    wavefront(theirs, 12)
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("workers", [1, 2])
def test_rounds_follow_each_other(workers, never_compiled):
    given = [(np.arange(20.0) ** 2, np.zeros(20), 5) for _ in range(2)]
    with orion.session(workers=workers, force_parallel=True):
        orion.parallel_for(smooth)(*given[0])
    smooth(*given[1])
    np.testing.assert_array_equal(given[0][0], given[1][0])


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_take_tiles_of_each_other(workers, never_compiled):
    mine, theirs = np.ones((12, 12)), np.ones((12, 12))
    with orion.session(workers=workers, force_parallel=True):
        looped = orion.parallel_for(schedule="dynamic")(wavefront)
        looped(mine, 12)
        assert looped.plan(mine, 12).loops[0].takes_tiles
    wavefront(theirs, 12)
    np.testing.assert_array_equal(mine, theirs)


def test_rows_in_registers_are_arrays(never_compiled):
    given = [(np.ones((5, 40)), np.arange(200.0).reshape(5, 40) / 3) for _ in range(2)]
    with orion.session(workers=2, force_parallel=True):
        looped = orion.parallel_for(rows)
        looped(*given[0], 2.5)
        assert "load_row(" in looped.kernel_source(*given[0], 2.5)
    rows(*given[1], 2.5)
    for mine, theirs in zip(*given, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_one_ends_a_loop_for_all(never_compiled):
    with orion.session(workers=3, force_parallel=True):
        assert orion.parallel_for(search)(np.arange(40), 40) == 8


def test_a_subscript_that_leaves_its_array_is_told(never_compiled):
    function = orion.parallel_for(defined("def f(a, p, n):\n    for i in range(n):\n        a[p[i]] = 1.0\n"))
    with orion.session(workers=2), pytest.raises(OutOfBoundsError, match=r"`p\[1\]` is 9"):
        function(np.zeros(5), np.array([0, 9, 1]), 3)


def numbered(k):
    text = f"def f(a, n):\n    for i in range(n):\n        a[i] += {k}.0\n"
    return orion.parallel_for(defined(text))


class Counted:
    """`compile_kernel`, with the names of the kernels that it was called for."""

    def __init__(self, monkeypatch):
        self.compile_kernel, self.names = uncompiled.compile_kernel, []
        monkeypatch.setattr(uncompiled, "compile_kernel", self)

    def __call__(self, source):
        self.names.append(source.name)
        return self.compile_kernel(source)


@pytest.mark.parametrize(
    ("is_all", "size", "loops", "least", "most"),
    [(False, 5, 50, 1, 15), (True, 5, 12, 12, 12), (False, uncompiled.MOST + 1, 12, 12, 12)],
    ids=["some", "all if all is asked for", "all that are large"],
)
def test_how_many_are_compiled(is_all, size, loops, least, most, monkeypatch):
    monkeypatch.setattr(uncompiled, "ALL", is_all)
    compiled = Counted(monkeypatch)
    with uncompiled.mostly_uncompiled(), orion.session(workers=1):
        for k in range(loops):
            array = np.zeros(size)
            numbered(k)(array, size)
            assert (array == k).all()
    assert least <= len(compiled.names) <= most


def test_files_that_say_so_run_most_kernels_so():
    assert (compiling.compile_kernel is uncompiled.kernel) == (not uncompiled.ALL)
