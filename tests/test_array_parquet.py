"""Reading Parquet files: row groups, folders, types, and where bad ones are wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.errors import ArgumentError, DataFormatError
from tests.trials import ALL, times

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DATA = {"user": [0, 3, 1], "item": [2, 0, 1], "stars": [5.0, 3.5, 1.0], "n": [7, 8, 300]}
NAMES = {"keys": ["user", "item"], "values": "stars"}


def write(path, data=None, rows=None, **types):
    columns = {name: pa.array(column, types.get(name)) for name, column in (DATA if data is None else data).items()}
    pq.write_table(pa.table(columns), path, row_group_size=rows)
    return path


def test_one_file(tmp_path):
    path = write(tmp_path / "r.parquet")
    for options in (NAMES, {}, {"keys": (0, "item"), "values": 2}):
        s = orion.read_parquet(path, **options)
        assert (s.shape, s.dtype, s.key_dtype) == ((4, 3), np.float64, np.int32)
        assert np.transpose(s.coords).tolist() == [[0, 2], [3, 0], [1, 1]]
        assert s.values.tolist() == DATA["stars"]
    both = orion.read_parquet(path, keys="user", values=["stars", "n"], dtype=("float32", None), shape=(9,))
    assert both.shape == (9,)
    assert both.value_dtypes == (np.dtype("float32"), np.dtype("int64"))
    assert orion.read_parquet(path, keys="n", values="item", one_based=True).coords[0].tolist() == [6, 7, 299]


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_folders_and_several_files_in_the_order_of_their_names(tmp_path, rows):
    first, n = (1000, 2500) if rows > 2 or ALL else (100, 250)
    parts = {"part-1.parquet": (0, first), "part-2.PARQUET": (first, first + 1), "sub/part.pq": (first + 1, n)}
    (tmp_path / "sub").mkdir()
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "_old").mkdir()
    for name, (begin, end) in {**parts, "_old/x.parquet": (0, 9), ".x.parquet": (0, 9), "rest.txt": (0, 9)}.items():
        write(tmp_path / name, {"i": np.arange(begin, end), "v": np.arange(begin, end) % 7}, rows)
    for path in (tmp_path, str(tmp_path), [tmp_path / name for name in parts]):
        s = orion.read_parquet(path, "i", "v")
        np.testing.assert_array_equal(s.coords[0], np.arange(n))
        np.testing.assert_array_equal(s.values, np.arange(n) % 7)
    twice = orion.read_parquet([tmp_path / "part-2.PARQUET", tmp_path / "part-1.parquet"], "i", "v")
    assert twice.coords[0][:2].tolist() == [first, 0]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_types_of_integers(tmp_path, kind):
    path = write(tmp_path / "r.parquet", user=kind, item=kind, n="int64")
    table = pq.read_table(path)
    coded = table.append_column("coded", table.column("item").dictionary_encode())
    pq.write_table(coded, path)
    for keys, values in (("user", "item"), ("user", "coded"), ("coded", "user")):
        s = orion.read_parquet(path, keys, values)
        assert s.key_dtype == np.int32
        assert s.dtype == np.dtype(kind)
        assert s.values.tolist() == DATA[values.replace("coded", "item")]


def test_large_ids_truth_values_and_missing_floats(tmp_path):
    data = {"i": [2**40, 1], "b": [True, False], "f": [None, 2.0]}
    path = write(tmp_path / "r.parquet", data, f="float32")
    s = orion.read_parquet(path, "i", "b", shape=(2**41,))
    assert (s.key_dtype, s.dtype, s.extents) == (np.int64, np.bool_, (2**40 + 1,))
    kept = orion.read_parquet(path, "i", "f", shape=(2**41,), allow_nan=True)
    assert kept.dtype == np.float32
    np.testing.assert_array_equal(kept.values, np.array([np.nan, 2.0], "float32"))
    whole = write(tmp_path / "w.parquet", {"i": [0, 1], "v": [1.0, 3.0]})
    assert orion.read_parquet(whole, "i", "v", "uint8").values.tolist() == [1, 3]


def test_no_rows(tmp_path):
    empty = pa.table({"i": pa.array([], "int16"), "v": pa.array([], "float32")})
    pq.write_table(empty, tmp_path / "a.parquet")
    with pq.ParquetWriter(tmp_path / "b.parquet", empty.schema):
        pass
    write(tmp_path / "c.parquet", {"i": [4], "v": [2.0]}, i="int16", v="float32")
    for name in ("a.parquet", "b.parquet"):
        s = orion.read_parquet(tmp_path / name, "i", "v")
        assert (len(s), s.shape, s.dtype, s.key_dtype) == (0, (0,), np.float32, np.int32)
    assert orion.read_parquet(tmp_path, "i", "v").values.tolist() == [2.0]


def refused(path, message, kind=DataFormatError, **options):
    with pytest.raises(kind, match=message):
        orion.read_parquet(path, **{**NAMES, **options})


BAD = [
    ({"user": [0, -2, 1]}, {}, r"row 1, column 'user': the id -2 is negative"),
    ({"user": [0, None, 1]}, {}, r"row 1, column 'user': there is no entry"),
    ({"user": [0.0, 1.0, 2.0]}, {}, r"column 'user' is of type double, keys are integers"),
    ({"user": ["a", "b", "c"]}, {}, r"column 'user' is of type string, keys are integers"),
    ({"user": [0, 1, 0]}, {"one_based": True}, r"row 0, column 'user': the id is 0, ids count from 1"),
    ({"item": [0, 1, 7]}, {"shape": (9, 7)}, r"row 2, column 'item': the id 7 lies outside of the shape"),
    ({"item": [0, 2**30, 7]}, {}, r"row 1, column 'item': the id is 1073741824\n(.|\n)*say shape=\(4, 1073741825\)"),
    ({"item": [0, 2**63 - 1, 7]}, {}, r"row 1, column 'item': the id 9223372036854775807 is too large"),
    ({"stars": [1.0, None, 2.0]}, {}, r"row 1, column 'stars': there is no entry"),
    ({"stars": [1, None, 2]}, {"allow_nan": True}, r"row 1, column 'stars': there is no entry"),
    ({"stars": [1.0, 2.0, float("nan")]}, {}, r"row 2, column 'stars': the value is NaN"),
    ({"stars": ["a", "b", "c"]}, {}, r"column 'stars' is of type string, whose entries are not numbers"),
    ({"stars": [[1], [2], [3]]}, {}, r"column 'stars' is of type list"),
    ({}, {"values": "n", "dtype": "int8"}, r"row 2, column 'n': 300 does not fit dtype=int8"),
    ({}, {"dtype": "int32"}, r"row 1, column 'stars': 3.5 does not fit dtype=int32"),
    ({"stars": [1.0, 1e300, 2.0]}, {"dtype": "float32"}, r"row 1, column 'stars': 1e\+300 does not fit dtype=float32"),
    ({}, {"keys": ["user", "nobody"]}, r"no column 'nobody'\n(.|\n)*user, item, stars, n"),
    ({}, {"values": 4}, "no column at position 4: there are 4, counted from 0"),
]


@pytest.mark.parametrize(("change", "options", "message"), BAD)
@pytest.mark.parametrize("rows", [1, 3])
def test_bad_files_name_file_row_and_column(tmp_path, change, options, message, rows):
    path = write(tmp_path / "r.parquet", {**DATA, **change}, rows)
    refused(path, rf"r.parquet(.|\n)*{message}", **options)


def test_files_that_are_none(tmp_path):
    refused(tmp_path / "nowhere.parquet", "there is no file")
    refused(tmp_path, "no file in the folder .* whose name ends in .parquet")
    (tmp_path / "r.csv").write_text("0,1,2\n")
    refused(tmp_path / "r.csv", "damaged, or no Parquet file(.|\n)*orion.read_csv")
    data = write(tmp_path / "r.parquet").read_bytes()
    (tmp_path / "short.parquet").write_bytes(data[:-20])
    refused(tmp_path / "short.parquet", "damaged, or no Parquet file")
    with pytest.raises(DataFormatError, match=r"a Parquet file, not text(.|\n)*orion.read_parquet"):
        orion.read_csv(tmp_path / "r.parquet", sep=",")


def test_files_of_different_types(tmp_path):
    paths = [write(tmp_path / "a.parquet"), write(tmp_path / "b.parquet", stars="float32", user="int8")]
    refused(paths, "b.parquet: column 'stars' is of type float, in .*a.parquet of type double(.|\n)*say dtype=")
    s = orion.read_parquet(paths, **NAMES, dtype="float32")
    assert (s.dtype, len(s)) == (np.float32, 6)
    refused([paths[0], write(tmp_path / "c.parquet", {"user": [1]})], "c.parquet has no column 'item'")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": ()}, "do not name different columns"),
        ({"values": "user"}, "do not name different columns"),
        ({"shape": (1, 2, 3)}, "3 dimensions, there are 2 keys"),
        ({"dtype": ("float32", "float32")}, "2 dtypes for 1 value"),
        ({"dtype": object}, "cannot hold"),
    ],
)
def test_bad_calls(tmp_path, options, message):
    refused(write(tmp_path / "r.parquet"), message, ArgumentError, **options)
    refused([], "no path", ArgumentError)


ROWS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.floats(width=32, allow_nan=False)), max_size=30)


@settings(deadline=None, max_examples=times(100, 40))
@given(ROWS, st.integers(1, 10), st.integers(0, 30))
def test_the_same_elements_however_they_are_divided(tmp_path_factory, rows, group, cut):
    folder = tmp_path_factory.mktemp("parquet")
    for name, part in (("a.parquet", rows[:cut]), ("b.parquet", rows[cut:])):
        columns = [[row[at] for row in part] for at in range(3)]
        write(folder / name, dict(zip("ijv", columns, strict=True)), group, i="int32", j="int64", v="float32")
    s = orion.read_parquet(folder, ("i", "j"), "v")
    assert list(zip(*(k.tolist() for k in s.coords), s.values.tolist(), strict=True)) == rows
