"""Sparse arrays made of others: what `map`, `map_keys`, `filter`, `shuffle_keys`, `group_by` give, and refuse."""

import copy
import re
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import orion
from orion.arrays import lazy
from orion.errors import ArgumentError, DataFormatError, MissingKeyError

U, J, R = np.array([2, 0, 2, 1]), np.array([0, 3, 1, 1]), np.array([4.0, 3.5, 5.0, 1.0], dtype="float32")


def small():
    return orion.sparse((U, J), R)


def pairs():
    return orion.sparse((U, J), (R, np.arange(4)))


def elements(array):
    """The elements of an array in the order given, as plain Python's."""
    values = array.values if isinstance(array.values, tuple) else (array.values,)
    return list(
        zip(zip(*(k.tolist() for k in array.coords), strict=True), zip(*map(list, values), strict=True), strict=True)
    )


# ---------------------------------------------------------------- map


@pytest.mark.parametrize(
    ("f", "dtype"),
    [
        (lambda v: v * 2, "float32"),
        (lambda v: v * np.float64(2), "float64"),
        (float, "float64"),
        (int, "int64"),
        (lambda v: v > 2, "bool"),
        (lambda v: complex(0, v), "complex128"),
        (np.int8, "int8"),
        (lambda v: v if v > 2 else 0, "float32"),
        (lambda v: np.int8(1) if v > 2 else 100, "int8"),
        (lambda v: np.float32(v) if v > 2 else np.int64(1), "float64"),
        (lambda v: True if v > 2 else 0.5, "float64"),
    ],
)
def test_dtypes_are_those_of_what_is_returned(f, dtype):
    s = small().map(f)
    assert (s.dtype, s.shape) == (np.dtype(dtype), (3, 4))
    np.testing.assert_array_equal(s.coords, (U, J))
    assert s.values.tolist() == [f(v) for v in R]


def test_tuples_of_values():
    s = small().map(lambda v: (v, int(v), v > 2))
    assert s.values_are_tuple
    assert s.value_dtypes == (np.dtype("float32"), np.dtype("int64"), np.dtype("bool"))
    assert pairs().map(lambda r, w: r + np.float32(w)).values.tolist() == [4.0, 4.5, 7.0, 4.0]
    assert pairs().map(lambda *both: both).values_are_tuple
    assert orion.sparse((U, J), (R,)).map(lambda v: v).values_are_tuple is False
    assert small().map(lambda v: (v,)).values_are_tuple


def test_nan_and_infinity_are_kept():
    s = orion.sparse(([0, 1],), np.array([np.nan, 1.0]), allow_nan=True)
    assert np.isnan(s.map(lambda v: v * 2).values).tolist() == [True, False]
    assert np.isinf(s.map(lambda v: v * np.inf).values).tolist() == [False, True]
    assert len(s.filter(lambda key, v: v == v)) == 1


# ---------------------------------------------------------------- map_keys, filter


def test_other_keys():
    s = small().map_keys(lambda i, j: (j, i, i + j))
    assert s.shape == (4, 3, 4)
    assert elements(s) == [((0, 2, 2), (4.0,)), ((3, 0, 3), (3.5,)), ((1, 2, 3), (5.0,)), ((1, 1, 2), (1.0,))]
    assert small().map_keys(lambda i, j: (j, i), shape=[9, 9]).shape == (9, 9)
    flat = small().map_keys(lambda i, j: np.int16(i % 2))
    assert (flat.shape, flat.values.tolist()) == ((2,), R.tolist())
    assert flat.map_keys(lambda i: (i, 2**40), shape=(2, 2**41)).key_dtype == np.int64
    assert not flat.unique_keys


def test_some_elements():
    kept = small().filter(lambda key, v: key[0] == 2 or v == 1)
    assert (kept.shape, kept.dtype, len(kept)) == ((3, 4), np.float32, 3)
    assert elements(kept) == [((2, 0), (4.0,)), ((2, 1), (5.0,)), ((1, 1), (1.0,))]
    assert len(pairs().filter(lambda key, value: value[1] > 1)) == 2
    assert len(small().filter(lambda key, v: np.bool_(False))) == 0


def test_no_elements():
    for empty in (orion.sparse(([], []), np.zeros(0, "int16"), shape=(3, 4)), small().filter(lambda key, v: False)):
        for made in (empty.map(refuse), empty.filter(refuse_two), empty.shuffle_keys((0, 1), 3)):
            assert (len(made), made.shape, made.dtype) == (0, (3, 4), empty.dtype)
        assert empty.map_keys(refuse_two).shape == (0, 0)
        assert empty.map_keys(refuse_two, shape=(1, 2, 3)).shape == (1, 2, 3)
        assert len(empty.group_by(0)) == 0
    late = small().map(lambda v: (v, 1)).filter(lambda key, v: False)
    assert late.value_dtypes == (np.dtype("float32"), np.dtype("int64"))


def refuse(v):
    raise AssertionError


def refuse_two(i, j):
    raise AssertionError


# ---------------------------------------------------------------- shuffle_keys


def test_shuffled_keys_and_the_way_back():
    keys = np.arange(50)
    s = orion.sparse((keys, keys[::-1], keys), np.arange(50.0), shape=(60, 50, 50))
    mixed = s.shuffle_keys([0, 2], seed=5)
    rows, others = s.key_permutation(0, seed=5), s.key_permutation(2, 5)
    assert sorted(rows.tolist()) == list(range(60))
    assert rows[:50].tolist() != keys.tolist()
    assert rows[:50].tolist() != others.tolist()
    np.testing.assert_array_equal(mixed.coords, (rows[keys], keys[::-1], others[keys]))
    np.testing.assert_array_equal(mixed.values, s.values)
    assert mixed.shape == s.shape
    np.testing.assert_array_equal(s.shuffle_keys(0, 5).coords[0], rows[keys])
    back = np.argsort(rows)
    np.testing.assert_array_equal(mixed.map_keys(lambda i, j, k: (back[i], j, k)).coords[0], keys)
    assert s.key_permutation(0, seed=6).tolist() != rows.tolist()


def test_permutations_stay_what_they_are():
    s = orion.sparse(([7],), [1.0])
    assert s.key_permutation(0, seed=0).tolist() == [0, 4, 5, 1, 7, 3, 6, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.shuffle_keys(2, 1), "dimension 2 of an array with 2 dimensions"),
        (lambda s: s.shuffle_keys([0, 0], 1), "occurs twice"),
        (lambda s: s.shuffle_keys(-1, 1), "dimension -1"),
        (lambda s: s.shuffle_keys("0", 1), "dimension '0'"),
        (lambda s: s.shuffle_keys(0, -1), "a seed is an integer from 0 on, not -1"),
        (lambda s: s.shuffle_keys(0, None), "a seed is an integer from 0 on, not None"),
        (lambda s: s.key_permutation(3, 1), "dimension 3"),
        (lambda s: s.map_keys(lambda i, j: (i, j)).shuffle_keys(2, 1), "dimensions"),
        (
            lambda s: orion.sparse(([1],), [1.0], shape=(2**40,)).shuffle_keys(0, 1),
            "1,099,511,627,776 indices for 1 el",
        ),
        (lambda s: orion.sparse(([1],), [1.0], shape=(2**40,)).key_permutation(0, 1), "too far apart"),
        (lambda s: s.group_by(2), "dimension 2 of an array with 2 dimensions"),
    ],
)
def test_shuffles_and_groups_that_are_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(small()).materialize()


# ---------------------------------------------------------------- group_by


def test_groups():
    groups = small().group_by(0)
    assert list(groups) == [0, 1, 2]
    assert (len(groups), groups.sizes.tolist(), groups.dim) == (3, [1, 1, 2], 0)
    assert elements(groups[2]) == [((2, 0), (4.0,)), ((2, 1), (5.0,))]
    assert groups[np.int8(2)].shape == (3, 4)
    assert 1 in groups
    assert 7 not in groups
    assert "1" not in groups
    assert groups.get(7) is None
    for key in (7, -1, 2**70, "a"):
        with pytest.raises(MissingKeyError, match="no element has the key"):
            groups[key]
    assert [len(own) for own in pairs().group_by(1).values()] == [1, 2, 1]
    wide = orion.sparse(([2**40, 5, 2**40],), [1, 2, 3], shape=(2**41,)).group_by(0)
    assert {key: own.values.tolist() for key, own in wide.items()} == {5: [2], 2**40: [1, 3]}


@orion.parallel_for
def total(ratings):
    found = 0.0
    for (_i, _j), r in ratings:
        found += r
    return found


def test_loops_run_over_what_is_made():
    assert total(small().filter(lambda key, v: v > 3)) == 12.5
    assert [total(own) for own in small().group_by(1).values()] == [4.0, 6.0, 3.5]
    lazily = small().map(lambda v: v + 1)
    assert total.plan(lazily).is_parallel is total.plan(small()).is_parallel
    assert total(lazily) == 17.5


# ---------------------------------------------------------------- when it is computed


def counted(f):
    calls = []

    def counting(*args):
        calls.append(args)
        return f(*args)

    return counting, calls


def test_nothing_is_computed_before_it_is_used_and_then_once():
    f, calls = counted(lambda v: v * 2)
    g, more = counted(lambda key, v: v > 2)
    s = small().map(f).filter(g)
    groups = s.group_by(0)
    assert "not computed yet: map, filter of SparseArray(shape=(3, 4)" in repr(s)
    assert "not computed yet" in s._repr_html_()
    assert not calls
    assert len(s) == 3
    assert (len(calls), len(more)) == (4, 4)
    assert len(groups) == 2
    assert s.to_numpy().sum() == 25.0
    assert repr(s) == "SparseArray(shape=(3, 4), nnz=3, dtype=float32)"
    assert "<caption>" in s._repr_html_()
    assert len(calls) == 4
    assert calls[0] == (4.0,)
    assert type(calls[0][0]) is np.float32
    assert more[0] == ((2, 0), 8.0)
    assert type(more[0][0][0]) is int


USES = {
    "len": len,
    "shape": lambda s: s.shape,
    "dtype": lambda s: s.dtype,
    "nnz": lambda s: s.nnz,
    "iteration": list,
    "to_numpy": lambda s: s.to_numpy(),
    "to_scipy": lambda s: s.to_scipy(),
    "histogram": lambda s: s.histogram(0),
    "coords": lambda s: s.coords,
    "values": lambda s: s.values,
    "subscript": lambda s: s[2, 0],
    "store": lambda s: s.__setitem__((2, 0), 1.0),
    "nbytes": lambda s: s.nbytes,
    "lines": lambda s: s.lines(0),
    "unique_keys": lambda s: s.unique_keys,
    "key_permutation": lambda s: s.key_permutation(0, 1),
    "loop": total,
    "layout": lambda s: s.layout(([0, 3], [0, 2, 4]), "ascending"),
    "materialize": lambda s: s.materialize(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_every_use_computes_it(use):
    f, calls = counted(lambda v: v * 2)
    s = small().map(f)
    use(s)
    assert len(calls) == 4
    use(s)
    assert len(calls) == 4


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copies_are_arrays_like_any_other(make):
    f, calls = counted(lambda v: v * 2)
    s = small().map(f)
    first, second = make(s), make(s)
    assert type(first) is type(small())
    assert second.values.tolist() == (R * 2).tolist()
    assert len(calls) == 4


def test_it_is_computed_once_by_several_threads():
    f, calls = counted(lambda v: time.sleep(0.01) or v * 2)
    s = small().map(f)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(len, [s] * 8)) == [4] * 8
    assert len(calls) == 4
    assert type(s) is type(small())


def test_saving(tmp_path):
    small().map(lambda v: v * 2).save(tmp_path / "x.npz")
    assert orion.load(tmp_path / "x.npz").values.tolist() == (R * 2).tolist()


def test_names_are_looked_up_when_it_is_computed_and_the_function_when_it_is_given():
    scale = 2.0

    def f(v):
        return v * scale

    s = small().map(f)
    scale = 3.0
    f = None
    assert s.values.tolist() == [12.0, 10.5, 15.0, 3.0]
    scale = 5.0
    assert s.values.tolist() == [12.0, 10.5, 15.0, 3.0]


def test_arrays_in_closures():
    codes = np.array([10, 20, 30], np.int32)
    s = small().map_keys(lambda i, j: (codes[i], j))
    codes[2] = 7
    assert s.coords[0].tolist() == [7, 10, 7, 20]


def test_values_that_are_stored_in_between():
    a = small()
    lazily, groups, early = a.map(lambda v: v * 2), a.group_by(0), a.map(lambda v: v * 2).materialize()
    chain = lazily.filter(lambda key, v: True)
    a[2, 0] = 9.0
    for use in (lambda: lazily.shape, lambda: len(chain), lambda: groups[2]):
        with pytest.raises(ArgumentError, match=r"have been changed since `(map|group_by)` was called"):
            use()
    assert early.values.tolist() == [8.0, 7.0, 10.0, 2.0]
    assert a.map(lambda v: v).values.tolist() == [9.0, 3.5, 5.0, 1.0]
    made = a.map(lambda v: v)
    made[2, 0] = 1.0
    assert a[2, 0] == 9.0


def test_results_share_no_memory_with_what_they_are_made_of():
    a = small()
    for made in (a.filter(lambda key, v: True), a.map_keys(lambda i, j: (i, j)), a.shuffle_keys((), 1)):
        for new, old in zip((*made.coords, made.values), (*a.coords, a.values), strict=True):
            assert not np.may_share_memory(new, old)


# ---------------------------------------------------------------- errors


def nth(line):
    """A pattern for this file and a line of it."""
    return re.escape(f"{__file__}:{line}")


def test_an_error_of_the_function_names_element_and_line():
    def inverse(v):
        return 1 // (int(v) - 5)

    line = inverse.__code__.co_firstlineno + 1
    s = small().map(inverse)
    with pytest.raises(ZeroDivisionError) as caught:
        s.materialize()
    text = str(caught.value)
    assert re.search(rf"{nth(line)}: integer division or modulo by zero\n    \| return 1 // \(int\(v\) - 5\)", text)
    assert re.search(r"`map` has called `inverse` .* for the element with the key \(2, 1\) and the value 5.0", text)
    assert [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)] == [__file__]
    with pytest.raises(ZeroDivisionError, match="key \\(2, 1\\)"):
        len(s)  # it is as it was


def test_errors_of_other_kinds_keep_their_class():
    class OwnError(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

    def f(*_):
        raise OwnError(1, 2)

    for made in (pairs().map(f), pairs().map_keys(f), pairs().filter(f)):
        with pytest.raises(OwnError) as caught:
            len(made)
        (note,) = caught.value.__notes__
        assert "for the element with the key (2, 0) and the value (4.0, 0)" in note
        assert f"{__file__}:" in note
    with pytest.raises(AttributeError, match="nothing"):
        _ = small().map(lambda v: v.nothing).shape
    with pytest.raises(KeyError):
        _ = small().map(lambda v: {}[v]).dtype
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = small().map(lambda v: v).nothing


WRONG = [
    (
        lambda s: s.map(lambda v: "x"),
        r"returns 'x' for the element with the key \(2, 0\) and the value 4.0\n(.|\n)*a str",
    ),
    (lambda s: s.map(lambda v: None), r"None is a NoneType, not a number"),
    (lambda s: s.map(lambda v: [1, 2]), r"\[1, 2\] is a list, not a number\n(.|\n)*return a number, or a tuple"),
    (lambda s: s.map(lambda v: R), "is a ndarray, not a number"),
    (lambda s: s.map(np.float16), "4.0 is a float16, not a number"),
    (lambda s: s.map(lambda v: 2**64 if v > 4 else 1), r"\(2, 1\)(.|\n)*18446744073709551616 does not fit int64"),
    (lambda s: s.map(lambda v: ()), r"returns \(\) for"),
    (lambda s: s.map(lambda v: (1, 2) if v > 4 else 3), r"\(2, 1\)(.|\n)*for other elements it returns one number"),
    (
        lambda s: s.map(lambda v: (1, 2) if v > 4 else (3,)),
        r"\(2, 1\)(.|\n)*for other elements it returns a tuple of 1",
    ),
    (lambda s: s.map(lambda v: (1, "b")), r"'b' is a str"),
    (lambda s: s.map(lambda v: np.int8(1) if v > 4 else 300), r"300 does not fit int8"),
    (
        lambda s: s.map_keys(lambda i, j: 1.0),
        r"`map_keys`: the lambda .* returns 1.0 for (.|\n)*is a float, not an integer",
    ),
    (lambda s: s.map_keys(lambda i, j: (i, True)), r"the key True is a bool"),
    (lambda s: s.map_keys(lambda i, j: (i,) if i else (i, j)), r"\(0, 3\)(.|\n)*\(0, 3\) has 2 numbers, others have 1"),
    (lambda s: s.map_keys(lambda i, j: ()), r"at least one key"),
    (lambda s: s.map_keys(lambda i, j: (i, j), shape=(9,)), r"\(2, 0\) has 2 numbers, others have 1"),
    (lambda s: s.filter(lambda key, v: 1), r"returns 1 for(.|\n)*an int, not a truth value"),
    (lambda s: s.filter(lambda key, v: None), r"a NoneType, not a truth value"),
    (lambda s: s.map(lambda a, b: a), r"with the value of an element, f\(v\); the lambda .* takes \(a, b\)"),
    (lambda s: pairs().map(lambda v: v), r"with the 2 values of an element, f\(v1, v2\)"),
    (lambda s: s.map_keys(lambda key: key), r"with the 2 keys of an element, f\(i, j\)"),
    (lambda s: s.filter(lambda v: True), r"with the key and the value of an element, f\(key, value\)"),
    (lambda s: s.map(3), "`map` takes a function, and is given 3, an int"),
    (lambda s: s.map(lambda v: (v, v)).map(None), "`map` takes a function, and is given None"),
    (lambda s: s.map(lambda v: (v, v)).map(lambda v: v), r"with the 2 values of an element"),
    (lambda s: s.map_keys(lambda i, j: i, shape=()), "at least one dimension"),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("at_once", [1, 3, 1 << 16])
def test_results_that_are_refused(make, message, at_once, monkeypatch):
    monkeypatch.setattr(lazy, "AT_ONCE", at_once)
    with pytest.raises(ArgumentError, match=message):
        make(small()).materialize()


BAD_KEYS = [
    (lambda s: s.map_keys(lambda i, j: (i - 1, j)), r"returns \(-1, 3\) for .*key \(0, 3\)(.|\n)*-1 is a negative key"),
    (lambda s: s.map_keys(lambda i, j: (i, 2**63)), r"9223372036854775808 is too large for a key"),
    (
        lambda s: s.map_keys(lambda i, j: (i, j), shape=(9, 2)),
        r"key \(0, 3\)(.|\n)*3 lies outside of the shape \(9, 2\)",
    ),
    (lambda s: s.map_keys(lambda i, j: (i, 2**30)), r"dimension 1 would have 1,073,741,825 indices(.|\n)*say shape="),
]


@pytest.mark.parametrize(("make", "message"), BAD_KEYS, ids=range(len(BAD_KEYS)))
def test_keys_that_are_refused(make, message):
    with pytest.raises(DataFormatError, match=message):
        make(small()).materialize()


def test_a_dimension_that_turns_out_not_to_be_there():
    groups = small().map_keys(lambda i, j: i).group_by(1)
    with pytest.raises(ArgumentError, match="dimension 1 of an array with 1 dimension"):
        len(groups)
