"""Lists in functions that run as they are: what Numba would make of them, against Python."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion
from orion import SerialLoopWarning, UnsupportedLoopError
from tests.alike import alike


def kept(n):
    out = []
    for i in range(n):
        out.append(i * 2.0)
    return out, np.array(out), len(out), out[:2]


def comprehended(n):
    out = [i * 2.0 for i in range(n)]
    a = np.array(out)
    out.append(3.0)
    return a, out


def two_types(n):
    out = []
    for i in range(n):
        out.append(i * 2.0)
    a = np.array(out)
    b = np.array(out, dtype=np.float32)
    return a, b, out[0]


def read_after(n):
    out = []
    for i in range(n):
        out.append(i * 2.0)
    a = np.array(out)
    total = 0.0
    for v in out:
        total += v
    return a, total


def of_lists(n):
    out = []
    for i in range(n):
        row = []
        for j in range(i):
            row.append(i * j)
        out.append(sum(row))
    return np.array(out), out


def nested(n):
    return np.array([[i * j for j in range(n)] for i in range(3)])


def nested_of_a_type(n):
    return np.array([[float(i * j) for j in range(n)] for i in range(3)], dtype=np.float32)


def rows_kept(n):
    rows = []
    for i in range(n):
        rows.append([i, i * i])
    return np.array(rows), rows


def from_below(n):
    out = [i + 1 for i in range(2 - n, n)]
    return np.array(out, dtype=np.int64), out, out.pop()


FUNCTIONS = [kept, comprehended, two_types, read_after, of_lists, nested, nested_of_a_type, rows_kept, from_below]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_an_array_made_of_a_list_leaves_it_a_list(function):
    looped = orion.parallel_for(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        for n in (7, 2):
            alike(looped(n), function(n))


@pytest.mark.parametrize("function", [comprehended, nested_of_a_type], ids=lambda f: f.__name__)
def test_a_range_below_zero_has_no_items(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        alike(orion.parallel_for(function)(-2), function(-2))


def added_up(x):
    found = [v for v in x if v > 3]
    return sum(found)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32])
def test_the_sum_of_a_list_of_narrow_numbers_is_refused(dtype):
    with pytest.raises(UnsupportedLoopError) as caught:
        orion.parallel_for(added_up)(np.array([5, 2, 127], dtype))
    assert any(f"`sum` of {np.dtype(dtype)} may have another type" in note for note in caught.value.__notes__)


def of_complex_numbers(x):
    out, found = np.zeros(len(x), complex), []
    for i in range(len(x)):
        if abs(x[i]) > 2:
            found.append(i)
            out[i] = complex(x[i].real, 2)
    return out, found, np.zeros(2, dtype=complex)


def test_the_dtype_complex_is_known():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        alike(orion.parallel_for(of_complex_numbers)(np.arange(6) + 1j), of_complex_numbers(np.arange(6) + 1j))


def breadth_first(indptr, indices, seen):
    current = [0]
    while len(current) > 0:
        following = []
        for u in current:
            for p in range(indptr[u], indptr[u + 1]):
                if not seen[indices[p]]:
                    seen[indices[p]] = True
                    following.append(indices[p])
        current = following


def test_where_numba_gives_no_reason_wider_integers_are_told():
    looped, seen = orion.parallel_for(breadth_first), np.zeros(3, bool)
    indptr, indices = np.array([0, 1, 2, 2], np.int32), np.array([1, 2], np.int32)
    with pytest.raises(UnsupportedLoopError) as caught:
        looped(indptr, indices, seen)
    (note,) = caught.value.__notes__
    assert note.endswith(
        "either: it gives no reason; with integers of 64 bits it may, "
        "`indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)` before the call"
    )
    with pytest.warns(SerialLoopWarning):
        looped(indptr.astype(np.int64), indices.astype(np.int64), seen)
    np.testing.assert_array_equal(seen, [False, True, True])


def counts(tokens):
    found = {}
    for t in tokens:
        found[t] = found.get(t, 0) + 1
    return found


def test_what_numba_says_is_told_to_its_end_and_without_its_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnsupportedLoopError) as caught:
            orion.parallel_for(counts)(np.arange(3))
    (note,) = caught.value.__notes__
    assert note.endswith("either: `get` of a dict, int64 and an integer is not supported")
