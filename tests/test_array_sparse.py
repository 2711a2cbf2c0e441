"""Sparse arrays: construction, access in user order, bad input, conversions."""

import copy
import pickle
import re

import numpy as np
import pytest

import orion
import orion.arrays as oa
from orion.errors import ArgumentError, DataFormatError, OrionError

U, J, R = np.array([2, 0, 2, 1]), np.array([0, 3, 1, 1]), np.array([4.0, 3.5, 5.0, 1.0], dtype="float32")


def small():
    return oa.sparse((U, J), R)


def test_properties():
    s = small()
    assert s.shape == s.extents == (3, 4)
    assert (s.ndim, s.nnz, len(s)) == (2, 4, 4)
    assert s.dtype == np.float32
    assert s.value_dtypes == (np.dtype("float32"),)
    assert s.key_dtype == np.int32
    assert not s.values_are_tuple
    assert s.nbytes == 4 * (4 + 4 + 4)
    assert repr(s) == "SparseArray(shape=(3, 4), nnz=4, dtype=float32)"
    np.testing.assert_array_equal(s.coords, (U, J))
    np.testing.assert_array_equal(s.values, R)


def test_a_given_shape_may_be_larger_than_the_keys():
    s = oa.sparse((U, J), R, shape=(10, 4))
    assert s.shape == (10, 4)
    assert s.extents == (3, 4)
    assert s.histogram(0).tolist() == [1, 1, 2, 0, 0, 0, 0, 0, 0, 0]


def test_tuples_of_values():
    weights = np.arange(4)
    s = oa.sparse((U, J), (R, weights))
    assert s.values_are_tuple
    assert s.value_dtypes == (np.dtype("float32"), np.dtype("int64"))
    assert s.dtype == np.dtype([("f0", "float32"), ("f1", "int64")])
    assert next((k, (float(r), int(w))) for k, (r, w) in s) == ((0, 3), (3.5, 1))
    np.testing.assert_array_equal(s.values[1], weights)
    assert oa.sparse((U, J), (R,)).values_are_tuple


def test_iteration_gives_what_a_plain_loop_needs():
    elements = list(small())
    assert [k for k, _ in elements] == sorted(zip(U.tolist(), J.tolist(), strict=True))
    assert [r for _, r in elements] == [3.5, 1.0, 4.0, 5.0]
    assert all(type(r) is np.float32 for _, r in elements)
    assert all(type(i) is int for (i, _), _ in elements)


def test_iteration_past_one_batch():
    n = 140_000
    s = oa.sparse((np.arange(n),), np.arange(n))
    assert [(i, int(v)) for (i,), v in s] == [(i, i) for i in range(n)]


@pytest.mark.parametrize("kind", ["int8", "uint8", ">i4", "uint64", "int64"])
def test_keys_of_any_integer_type_become_int32(kind):
    s = oa.sparse((U.astype(kind), J.astype(kind)), R)
    assert s.key_dtype == np.int32
    np.testing.assert_array_equal(s.coords, (U, J))


def test_large_keys_stay_int64():
    s = oa.sparse(([0, 2**31], [1, 1]), [1.0, 2.0], shape=(2**31 + 1, 2))
    assert s.key_dtype == np.int64
    assert s.extents == (2**31 + 1, 2)
    assert oa.sparse(([0, 2**31 - 1],), [1.0, 2.0], shape=(2**31,)).key_dtype == np.int32


def test_keys_far_above_the_number_of_elements_need_a_shape():
    coords, values = ([1, 0, 2**31, 2**32], [1, 2, 3, 4]), np.ones(4)
    with pytest.raises(DataFormatError, match=r"\[0\]\[2\] is 2147483648\n.*4,294,967,297 indices for 4 el") as error:
        oa.sparse(coords, values)
    shape = re.search(r"say shape=(\(.*?\)) if", str(error.value))[1]
    assert shape == "(4294967297, 5)"
    assert oa.sparse(coords, values, shape=eval(shape)).shape == (2**32 + 1, 5)
    counted = tuple(np.unique(keys, return_inverse=True)[1] for keys in coords)
    assert oa.sparse(counted, values).shape == (4, 4)
    assert oa.sparse(([0, 2**24 - 1],), [1.0, 2.0]).shape == (2**24,)


@orion.parallel_for
def sum_of_values(ratings):
    total = 0.0
    for (_i, _j), r in ratings:
        total += r
    return total


@pytest.mark.parametrize("workers", [1, 2])
def test_a_loop_over_a_long_dimension_takes_no_memory_for_it(workers):
    keys = np.array([2**40, 5, 2**40 - 7, 5, 0])
    ratings = oa.sparse((keys, keys[::-1].copy()), np.arange(5.0), shape=(2**41, 2**41))
    empty = oa.sparse(([], []), [], shape=(2**41, 2**41))
    with orion.session(workers=workers, force_parallel=True):
        assert sum_of_values(ratings) == 10.0
        assert sum_of_values(empty) == 0.0
        assert sorted(sum_of_values.plan(ratings).serial_order()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("blocks", [1, 2, 3, 8])
def test_blocks_of_a_long_dimension_hold_as_many_elements_as_those_of_a_short_one(blocks):
    keys = np.random.default_rng(blocks).integers(0, 40, 200)
    short = oa.sparse((keys,), np.ones(200))
    long = oa.sparse((keys * 2**30,), np.ones(200), shape=(2**40,))
    found, wanted = long.balanced_bounds(0, blocks), short.balanced_bounds(0, blocks)
    assert (found[0], found[-1]) == (0, 2**40)
    counts = [np.histogram(a.coords[0], cuts)[0].tolist() for a, cuts in ((long, found), (short, wanted))]
    assert counts[0] == counts[1]


def test_what_was_given_is_copied_and_what_is_returned_is_read_only():
    i, r = U.astype("int32"), R.copy()
    s = oa.sparse((i, J), r)
    i[0], r[0] = 99, -1.0
    assert s.coords[0][0] == 2
    assert s.values[0] == 4.0
    with pytest.raises(ValueError, match="read-only"):
        s.coords[0][0] = 99
    with pytest.raises(ValueError, match="read-only"):
        s.values[0] = 0.0


@pytest.mark.parametrize("kind", [">f4", "bool", "int16", "complex64"])
def test_values_of_any_numeric_type(kind):
    s = oa.sparse((U, J), R.astype(kind))
    assert s.dtype.isnative
    np.testing.assert_array_equal(s.values, R.astype(kind))


@pytest.mark.parametrize(("coords", "shape"), [(([], []), (0, 0)), ((np.zeros(0, int), np.zeros(0, int)), (0, 0))])
def test_zero_elements(coords, shape):
    s = oa.sparse(coords, [])
    assert s.shape == shape
    assert len(s) == 0
    assert list(s) == []
    assert s.histogram(0).tolist() == []
    assert s.unique_keys
    assert oa.sparse(coords, [], shape=(3, 4)).to_numpy().tolist() == np.zeros((3, 4)).tolist()


NAN = np.array([1.0, 2.0, np.nan, np.nan])
BAD = [
    ("no coords", lambda: oa.sparse((), R), "needs keys"),
    ("no values", lambda: oa.sparse((U, J), ()), "needs values"),
    ("keys differ in length", lambda: oa.sparse((U, J[:3]), R), r"coords\[1\] has 3 entries.*4(.|\n)*element 3"),
    ("values too short", lambda: oa.sparse((U, J), R[:2]), r"values has 2 entries.*4(.|\n)*element 2"),
    ("second value too long", lambda: oa.sparse((U, J), (R, np.ones(5))), r"values\[1\] has 5 entries"),
    ("fractional key", lambda: oa.sparse((U, [0.0, 1.0, 1.5, 2.0]), R), r"coords\[1\]\[2\] is 1.5, not an integer"),
    ("NaN key", lambda: oa.sparse((U, NAN), R), r"coords\[1\]\[2\] is nan, not an integer"),
    ("float keys", lambda: oa.sparse((U, J.astype(float)), R), r"float64.*integers(.|\n)*dtype=np.int64\)"),
    ("text keys", lambda: oa.sparse((U, list("0123")), R), r"coords\[1\]\[0\] is 0, not an integer"),
    ("bool keys", lambda: oa.sparse((U, J > 0), R), r"coords\[1\]\[0\] is False, not an integer"),
    ("negative key", lambda: oa.sparse((U, [0, 1, 2, -3]), R), r"coords\[1\]\[3\] is -3, a negative key"),
    ("key outside shape", lambda: oa.sparse((U, J), R, shape=(3, 3)), r"coords\[1\]\[1\] is 3, outside of the shape"),
    ("key past int64", lambda: oa.sparse((np.array([2**63 + 5], "uint64"),), [1.0]), "too large"),
    ("shape of other rank", lambda: oa.sparse((U, J), R, shape=(9, 9, 9)), "3 dimensions, the keys have 2"),
    ("two-dimensional keys", lambda: oa.sparse((U.reshape(2, 2), J), R), "2 dimensions, not 1"),
    ("two-dimensional values", lambda: oa.sparse((U, J), R.reshape(2, 2)), "2 dimensions, not 1"),
    ("NaN value", lambda: oa.sparse((U, J), NAN), r"values\[2\] is NaN(.|\n)*allow_nan=True"),
    ("NaN in the second value", lambda: oa.sparse((U, J), (R, NAN)), r"values\[1\]\[2\] is NaN"),
    ("object values", lambda: oa.sparse((U, J), np.array([None] * 4)), "elements of type object"),
    ("text values", lambda: oa.sparse((U, J), list("abcd")), "elements of type <U1"),
]


@pytest.mark.parametrize(("make", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_names_the_first_position(make, message):
    with pytest.raises(DataFormatError, match=message) as caught:
        make()
    assert isinstance(caught.value, OrionError)
    assert isinstance(caught.value, ValueError)


def test_nan_is_kept_where_asked_for():
    s = oa.sparse((U, J), NAN, allow_nan=True)
    np.testing.assert_array_equal(s.values, NAN)


def test_histogram():
    s = small()
    assert s.histogram(0).tolist() == [1, 1, 2]
    assert s.histogram(1).tolist() == [1, 2, 0, 1]
    assert s.histogram(1, bins=2).tolist() == [3, 1]
    assert oa.sparse(([0, 9],), [1, 1]).histogram(0, bins=3).tolist() == [1, 0, 1]
    with pytest.raises(ArgumentError, match="dimension 2"):
        s.histogram(2)


@pytest.mark.parametrize(
    ("coords", "unique"),
    [
        (([0, 0, 1], [0, 1, 0]), True),
        (([0, 1, 0], [0, 1, 0]), False),
        (([3], [4]), True),
        (([2**62, 2**62, 0], [2**62, 1, 5]), True),
        (([2**62, 0, 2**62], [2**62, 5, 2**62]), False),
    ],
)
def test_unique_keys(coords, unique):
    shape = (2**63 - 1,) * len(coords)
    assert oa.sparse(coords, np.ones(len(coords[0])), shape).unique_keys is unique


def test_to_numpy_adds_up_elements_with_the_same_key():
    s = oa.sparse(([0, 1, 0], [2, 0, 2]), np.array([1.0, 5.0, 2.0]))
    assert s.to_numpy().tolist() == [[0.0, 0.0, 3.0], [5.0, 0.0, 0.0]]
    with pytest.raises(ArgumentError, match="one value per element"):
        oa.sparse((U, J), (R, R)).to_numpy()


def test_to_and_from_scipy():
    sp = pytest.importorskip("scipy.sparse")
    s = small()
    matrix = s.to_scipy()
    assert matrix.shape == s.shape
    np.testing.assert_array_equal(matrix.toarray(), s.to_numpy())
    matrix.data[0] = 99
    assert s.values[0] == 4.0
    for kind in (sp.coo_array, sp.csr_array, sp.csc_matrix, sp.dok_array, sp.lil_matrix):
        back = oa.from_scipy(kind(s.to_scipy()))
        assert back.shape == s.shape
        np.testing.assert_array_equal(back.to_numpy(), s.to_numpy())
    with pytest.raises(ArgumentError, match="two dimensions"):
        oa.sparse((U, J, J), R).to_scipy()
    with pytest.raises(DataFormatError, match="ndarray is not a SciPy"):
        oa.from_scipy(np.eye(3))


def test_from_scipy_keeps_duplicates_and_stored_zeros():
    sp = pytest.importorskip("scipy.sparse")
    s = oa.from_scipy(sp.coo_array((np.array([1.0, 2.0, 0.0]), ([0, 0, 1], [1, 1, 0])), shape=(5, 5)))
    assert s.nnz == 3
    assert s.shape == (5, 5)
    assert not s.unique_keys
    with pytest.raises(DataFormatError, match=r"values\[0\] is NaN"):
        oa.from_scipy(sp.csr_array(np.array([[np.nan]])))


TABLE = {"user": [0, 1, 1], "item": [2, 0, 1], "stars": [5.0, 3.5, 1.0], "when": [7, 8, 9]}


def frames():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    chunked = pyarrow.concat_tables([pyarrow.table(TABLE).slice(0, 1), pyarrow.table(TABLE).slice(1)])
    return {
        "pandas": (oa.from_pandas, pandas.DataFrame(TABLE)),
        "pandas nullable": (oa.from_pandas, pandas.DataFrame(TABLE).convert_dtypes()),
        "arrow": (oa.from_arrow, chunked),
    }


@pytest.mark.parametrize("source", ["pandas", "pandas nullable", "arrow"])
def test_from_tables(source):
    convert, table = frames()[source]
    s = convert(table, keys=["user", "item"], values="stars")
    assert s.shape == (2, 3)
    assert s.values.tolist() == TABLE["stars"]
    both = convert(table, keys=["item", "user"], values=["stars", "when"], shape=(4, 4))
    assert both.shape == (4, 4)
    assert both.values_are_tuple
    assert both.values[1].tolist() == [7, 8, 9]
    for bad, message in [
        ({"keys": ["user", "nobody"], "values": "stars"}, "no column 'nobody'(.|\n)*user, item, stars, when"),
        ({"keys": ["user", "stars"], "values": "when"}, "column 'stars'.* is 3.5, not an integer"),
        ({"keys": ["user", "item"], "values": "stars", "shape": (2, 2)}, "outside of the shape"),
    ]:
        with pytest.raises(DataFormatError, match=message):
            convert(table, **bad)


def gaps(source):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    data = {"user": [0, None, 1], "item": [0, 1, 2], "stars": [1.0, 2.0, None], "n": [1, None, 2]}
    if source == "arrow":
        return oa.from_arrow, pyarrow.table(data)
    return oa.from_pandas, pandas.DataFrame(data).convert_dtypes()


@pytest.mark.parametrize("source", ["pandas", "arrow"])
def test_missing_entries_of_tables(source):
    convert, table = gaps(source)
    with pytest.raises(DataFormatError, match="column 'user' has no entry at position 1"):
        convert(table, keys=["user", "item"], values="item")
    with pytest.raises(DataFormatError, match="column 'stars' has no entry at position 2"):
        convert(table, keys="item", values="stars")
    with pytest.raises(DataFormatError, match="column 'n' has no entry at position 1"):
        convert(table, keys="item", values="n", allow_nan=source == "pandas")
    kept = convert(
        table.select(["item", "stars"]) if source == "arrow" else table[["item", "stars"]].astype({"stars": "float64"}),
        keys="item",
        values="stars",
        allow_nan=True,
    )
    assert np.isnan(kept.values).tolist() == [False, False, True]


def test_a_column_named_twice():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[0, 1, 2.0]], columns=["a", "a", "r"])
    with pytest.raises(DataFormatError, match="more than one column 'a'"):
        oa.from_pandas(frame, keys="a", values="r")


def test_sparse_arrays_pickle_and_copy():
    """Also those that are not computed yet, and those that a loop has in tiles."""

    @orion.parallel_for
    def rows(R, out):
        for (i, _), v in R:
            out[i] += v

    R = orion.sparse(([0, 1, 1], [1, 2, 0]), np.array([1.0, 2.0, 5.0]))
    rows(R, np.zeros(2))
    for array in (R, R.map(lambda v: v + 1), R.filter(lambda key, v: v > 1), R.group_by(0)[1]):
        for other in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)):
            assert list(other) == list(array)
            assert other.shape == array.shape
            out = np.zeros(2)
            rows(other, out)
            np.testing.assert_array_equal(out, sums_of(array))
            other[1, 0] = 9.0
            assert array[1, 0] != 9.0


def sums_of(array):
    found = np.zeros(2)
    for (i, _), v in array:
        found[i] += v
    return found
