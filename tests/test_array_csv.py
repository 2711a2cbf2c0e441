"""Reading ratings files: formats, and where bad ones are wrong."""

import bz2
import gzip
import itertools
import lzma
import os
import re
from pathlib import Path

import numpy as np
import pytest

import orion.arrays as oa
from orion.arrays.files.lines import _Replacing
from orion.errors import ArgumentError, DataFormatError
from tests.trials import combined, one_in

DATA = Path(__file__).parents[1] / ".." / "shared" / "data"

KEYS = [[0, 2], [3, 0], [1, 1]]
STARS = [5.0, 3.5, 1.0]


def write(folder, name, text):
    path = folder / name
    data = text if isinstance(text, bytes) else text.encode()
    if name.endswith(".gz"):
        data = gzip.compress(data)
    elif name.endswith(".bz2"):
        data = bz2.compress(data)
    elif name.endswith((".zst", ".lz4")):
        pyarrow = pytest.importorskip("pyarrow")
        with pyarrow.output_stream(path) as stream:
            stream.write(data)
        return path
    path.write_bytes(data)
    return path


PLAIN = "0,2,5.0\n3,0,3.5\n1,1,1.0\n"
FILES = {
    "plain": ("r.csv", PLAIN, {}),
    "header found": ("r.csv", "user,item,stars\n" + PLAIN, {}),
    "header said": ("r.csv", "1,2,3\n" + PLAIN, {"header": True}),
    "no header said": ("r.csv", PLAIN, {"header": False}),
    "by name": (
        "r.csv",
        "item,user,x,stars\n2,0,a,5.0\n0,3,b,3.5\n1,1,c,1.0\n",
        {"keys": ["user", "item"], "values": "stars"},
    ),
    "by position": ("r.csv", "a,0,b,2,5.0\nc,3,d,0,3.5\ne,1,f,1,1.0\n", {"keys": (1, 3), "values": 4}),
    "tsv": ("r.tsv", PLAIN.replace(",", "\t"), {}),
    "upper case ending": ("R.TSV", PLAIN.replace(",", "\t"), {}),
    "MovieLens": ("ratings.dat", "0::2::5.0::97\n3::0::3.5::98\n1::1::1.0::99\n", {}),
    "spaces": ("r.txt", PLAIN.replace(",", " "), {"sep": " "}),
    "long separator": ("r.txt", PLAIN.replace(",", " <> "), {"sep": " <> "}),
    "separator outside ASCII": ("r.txt", PLAIN.replace(",", "§"), {"sep": "§"}),
    "gz": ("r.csv.gz", PLAIN, {}),
    "bz2": ("r.csv.bz2", PLAIN, {}),
    "zst": ("r.tsv.zst", PLAIN.replace(",", "\t"), {}),
    "dat.gz": ("r.dat.gz", PLAIN.replace(",", "::"), {}),
    "Windows line ends": ("r.csv", PLAIN.replace("\n", "\r\n"), {}),
    "Windows line ends, MovieLens": ("r.dat", PLAIN.replace("\n", "\r\n").replace(",", "::"), {}),
    "no last line end": ("r.csv", PLAIN.rstrip(), {}),
    "blank lines": ("r.csv", "\n" + PLAIN.replace("\n", "\n\n") + "\n", {}),
    "blank line before header": ("r.csv", "\nuser,item,stars\n\n" + PLAIN, {}),
    "byte order mark": ("r.csv", b"\xef\xbb\xbf" + PLAIN.encode(), {}),
    "byte order mark, header": ("r.csv", b"\xef\xbb\xbfu,i,s\n" + PLAIN.encode(), {"keys": ["u", "i"], "values": "s"}),
    "quoted": ("r.csv", '"u","i","s"\n"0","2","5.0"\n3,0,3.5\n1,1,1.0\n', {"keys": ["u", "i"], "values": "s"}),
    "one-based": ("r.csv", "1,3,5.0\n4,1,3.5\n2,2,1.0\n", {"one_based": True}),
    "lines left out": ("r.csv", "3\n# three ratings\n" + PLAIN, {"skip_lines": 2}),
    "lines left out, header": ("r.csv", "3\nu,i,s\n" + PLAIN, {"skip_lines": 1}),
    "spaces around": ("r.csv", PLAIN.replace(",", " , "), {}),
    "text in other columns": ("r.csv", b"0,2,5.0,caf\xe9\n3,0,3.5,x\n1,1,1.0,y\n", {}),
}


@pytest.mark.parametrize(("name", "text", "options"), FILES.values(), ids=FILES.keys())
def test_formats(tmp_path, name, text, options):
    s = oa.read_csv(write(tmp_path, name, text), **options)
    assert s.dtype == np.float32
    assert s.key_dtype == np.int32
    assert s.shape == (4, 3)
    np.testing.assert_array_equal(np.transpose(s.coords), KEYS)
    assert s.values.tolist() == STARS


def test_dtypes_and_tuples(tmp_path):
    path = write(tmp_path, "r.csv", "u,i,s,t\n0,1,2.5,7\n1,0,3.5,9\n")
    s = oa.read_csv(path, values=[2, "t"], dtype=("float64", "int64"), shape=(5, 5))
    assert s.shape == (5, 5)
    assert s.values_are_tuple
    assert s.value_dtypes == (np.dtype("float64"), np.dtype("int64"))
    assert s.values[1].tolist() == [7, 9]
    assert oa.read_csv(path, keys=0, values="i", dtype="bool").values.tolist() == [True, False]
    assert oa.read_csv(path, keys="i", values=["s"]).values_are_tuple


def test_large_ids(tmp_path):
    s = oa.read_csv(write(tmp_path, "r.csv", "5000000000,1,2\n1,1,3\n"), shape=(5_000_000_001, 2))
    assert s.key_dtype == np.int64
    assert s.extents == (5_000_000_001, 2)


@pytest.mark.parametrize("one_based", [False, True])
def test_ids_far_above_the_number_of_lines_need_a_shape(tmp_path, one_based):
    """A loop would ask for memory for each of them: 16 GiB for an id of 2**31."""
    lines = [f"{n},1,2\n" for n in range(1, 70_001)]
    lines[60_000:60_000] = ["\n", "7,2147483648,5\n"]
    lines.append("5,4294967296,5\n")
    path = write(tmp_path, "r.csv", "user,item,stars\n" + "".join(lines))
    with pytest.raises(DataFormatError) as error:
        oa.read_csv(path, one_based=one_based)
    length = 2**32 if one_based else 2**32 + 1
    assert "r.csv, line 60003, column 2 ('item'): the id is 2147483648\n" in str(error.value)
    assert f"dimension 1 would have {length:,} indices for 70,002 elements" in str(error.value)
    shape = re.search(r"say shape=(\(.*?\)) if", str(error.value))[1]
    assert oa.read_csv(path, one_based=one_based, shape=eval(shape)).shape[1] == length


@pytest.mark.parametrize("one_based", [False, True])
def test_the_longest_dimension_without_a_shape(tmp_path, one_based):
    largest = 2**24 - 1 + one_based
    text = "{},1,1\n1,1,1\n"
    s = oa.read_csv(write(tmp_path, "r.csv", text.format(largest)), one_based=one_based)
    assert s.shape[0] == 2**24
    with pytest.raises(DataFormatError, match="line 1, column 1: the id is "):
        oa.read_csv(write(tmp_path, "r.csv", text.format(largest + 1)), one_based=one_based)


@pytest.mark.parametrize("text", ["user,item,stars\n", "user,item,stars"])
def test_a_header_without_ratings_is_an_array_without_elements(tmp_path, text):
    s = oa.read_csv(write(tmp_path, "r.csv", text))
    assert len(s) == 0
    assert s.shape == (0, 0)
    assert s.dtype == np.float32


def test_a_file_of_several_blocks(tmp_path):
    n = 200_000
    lines = "".join(f"{i}::{i % 77}::{i % 5}::978300760\n" for i in range(n))
    s = oa.read_csv(write(tmp_path, "r.dat", lines))
    np.testing.assert_array_equal(s.coords, (np.arange(n), np.arange(n) % 77))
    np.testing.assert_array_equal(s.values, np.arange(n) % 5)
    broken = lines.replace("\n150000::", "\n15000x::")
    with pytest.raises(DataFormatError, match=r"line 150001, column 1: '15000x' is not an integer"):
        oa.read_csv(write(tmp_path, "b.dat", broken))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100, -1])
@pytest.mark.parametrize("data", [b"1::2::3\n4:5::6\n", b"::::", b":", b"", b"a:::b\n", b"a::"])
def test_separators_are_replaced_across_blocks(data, size):
    import io

    stream, result = _Replacing(io.BytesIO(data), b"::", b"\x1f"), b""
    while block := stream.read(size):
        result += block
    assert result == data.replace(b"::", b"\x1f")


HEADED = "user,item,stars\n0,2,5.0\n"
HEADED4 = "user,item,stars,x\n0,2,5.0,a\n"
BROKEN = "the line ends inside quotation marks"
BAD = {
    "too few columns": ("0,2,5.0\n3,0\n1,1,1\n", {}, r"line 2: 2 columns, where the first line has 3\n    \| 3,0\n"),
    "too many columns": ("0,2,5.0\n3,0,1,9\n", {}, r"line 2: 4 columns, where the first line has 3"),
    "text in an id": (
        HEADED + "abc,2,5\n",
        {},
        r"line 3, column 1 \('user'\): 'abc' is not an integer\n    \| abc,2,5",
    ),
    "fractional id": (HEADED + "0,1.5,5\n", {}, r"line 3, column 2 \('item'\): '1.5' is not an integer"),
    "whole float id": ("0,2,5\n0,1.0,5\n", {}, r"line 2, column 2: '1.0' is not an integer"),
    "negative id": (HEADED + "0,-2,5\n", {}, r"line 3, column 2 \('item'\): the id -2 is negative"),
    "empty id": (HEADED + ",2,5\n", {}, r"line 3, column 1 \('user'\): an id is missing"),
    "NA id": (HEADED + "NA,2,5\n", {}, r"line 3, column 1 \('user'\): 'NA' is not an integer"),
    "huge id": ("0,99999999999999999999,5\n", {}, r"line 1, column 2: the id 9+ is too large"),
    "id 0, one-based": ("1,2,3\n0,1,5\n", {"one_based": True}, r"line 2, column 1: the id is 0, with one_based"),
    "id outside shape": ("1,2,3\n9,1,5\n", {"shape": (9, 9)}, r"line 2, column 1: the id 9 lies outside of the shape"),
    "one bad id in line 1": ("x,2,5\n1,1,5\n", {}, r"line 1, column 1: 'x' is not an integer"),
    "NaN rating": (HEADED + "1,1,NaN\n", {}, r"line 3, column 3 \('stars'\): the value is NaN"),
    "nan rating": (HEADED + "1,1,-nan\n", {}, r"line 3, column 3 \('stars'\): the value is NaN"),
    "empty rating": (HEADED + "1,1,\n", {}, r"line 3, column 3 \('stars'\): a value is missing"),
    "blank rating": (HEADED + "1,1,  \n", {}, r"line 3, column 3 \('stars'\): a value is missing"),
    "text rating": (HEADED + "1,1,good\n", {}, r"line 3, column 3 \('stars'\): 'good' is not a number"),
    "N/A rating": (HEADED + "1,1,N/A\n", {}, r"line 3, column 3 \('stars'\): 'N/A' is not a number"),
    "infinite rating": (HEADED + "1,1,inf\n", {}, r"line 3, column 3 \('stars'\): inf is infinite"),
    "rating too large": (HEADED + "1,1,1e50\n", {}, r"1e50 is infinite, or too large for dtype=float32"),
    "decimal comma": ("0;1;2.5\n0;1;2,5\n", {"sep": ";"}, r"line 2, column 3: '2,5' is not a number"),
    "digits grouped": (HEADED + "1,1,1_0\n", {}, r"'1_0' is not a number"),
    "fraction as int": ("0,2,5\n1,1,2.5\n", {"dtype": "int32"}, r"'2.5' is not an integer, as dtype=int32 asks for"),
    "too large as int": ("0,2,5\n1,1,300\n", {"dtype": "uint8"}, r"300 is out of range for dtype=uint8"),
    "missing as int": ("0,2,5\n1,1,\n", {"dtype": "int32", "allow_nan": True}, r"line 2, column 3.*is missing"),
    "neither true nor false": ("0,2,1\n1,1,maybe\n", {"dtype": "bool"}, r"'maybe' is not a bool"),
    "text with allow_nan": (HEADED + "1,1,good\n", {"allow_nan": True}, r"'good' is not a number"),
    "blank lines are counted": ("0,2,5\n\n\n3,0,x\n", {}, r"line 4, column 3: 'x'"),
    "lines left out are counted": ("a\nb\n0,2,5\n3,0,x\n", {"skip_lines": 2}, r"line 4, column 3: 'x'"),
    "Windows lines are counted": ("0,2,5\r\n\r\n3,0,x\r\n", {}, r"line 3, column 3: 'x'"),
    "quoted line break": ('3,0,x\n0,2,"5\n"\n', {}, r"line 1, column 3: 'x'"),
    "quoted line break in the first line": ('0,2,5,"a\nb"\n3,0,x,c\n', {}, rf"line 1, column 4: {BROKEN}"),
    "quoted line break in the header": ('u,"i\ni",s\n3,0,x\n', {}, rf"line 1, column 2: {BROKEN}"),
    "quoted line break in another column": (HEADED4 + '0,2,5,"a\nb"\n', {}, rf"line 3, column 4 \('x'\): {BROKEN}"),
    "quote left open": ('0,2,5\n"3,0,4\n1,1,1\n', {}, rf"line 2, column 1: {BROKEN}"),
    "quote left open in another column": (HEADED4 + '0,2,5,"b\n1,1,1,c\n', {}, rf"line 3, column 4 \('x'\): {BROKEN}"),
    "quote left open at the end": (HEADED4 + '0,2,5,"b', {}, rf"line 3, column 4 \('x'\): {BROKEN}(.|\n)*quoted=False"),
    "quote left open beyond the columns": ('0,2,5\n3,0,4,"a', {}, rf"line 2, column 4: {BROKEN}"),
    "thousands of digits": ("0,2,5\n1" + 5000 * "0" + ",1,1\n", {}, r"line 2, column 1: the id 10+… of 5,001 char"),
    "thousands of digits as int": (
        "0,2,5\n0,1,1" + 5000 * "0" + "\n",
        {"dtype": "int64"},
        r"line 2, column 3: 10+… of 5,001 characters is out of",
    ),
    "thousands of digits as float": ("0,2,5\n0,1,1" + 5000 * "0" + "\n", {}, r"line 2, column 3: 10+.* is infinite"),
    "thousands of zeros before a negative id": ("-" + 5000 * "0" + "3,2,5\n", {}, r"line 1, .* is negative"),
    "a form feed": ("0,2,5\n0,1,\x0c.5\n", {}, r"line 2, column 3: '\\x0c.5' is not a number"),
    "a space outside ASCII": ("0,2,5\n0,1,\xa05\n", {}, r"line 2, column 3: '\\xa05' is not a number"),
    "digits outside ASCII": ("0,2,5\n0,1,٣\n", {}, r"line 2, column 3: '٣' is not a number"),
    "a plus sign in an id": ("0,2,5\n+1,1,1\n", {}, r"line 2, column 1: '\+1' is not an integer"),
    "mixed case truth": ("0,2,1\n0,1,tRuE\n", {"dtype": "bool"}, r"line 2: it cannot be read: .*tRuE"),
    "an entry of 200,000 characters": ("0,2,5,x\n3,0,y," + 200_000 * "x" + "\n", {}, r"line 2, column 3: 'y'"),
    "a line of more than a megabyte": (
        "0,2,5,x\n3,0,4," + (1 << 21) * "x" + "\n",
        {},
        r"line 2 has more than 1,048,576 bytes\n    \| 3,0,4,x",
    ),
    "a first line of more than a megabyte": ((1 << 21) * "x", {}, r"line 1 has more than 1,048,576 bytes"),
    "the stand-in for a separator": ("0::2::5\n0::1\x1f2::3\n", {"sep": "::"}, r"line 2, column 2: '1\\x1f2' is not"),
    "wrong separator": ("0\t2\t5\n", {}, r"line 1: no column at position 1: its lines have 1(.|\n)*say sep="),
    "column position": ("0,2,5\n", {"values": 3}, r"no column at position 3: its lines have 3, counted from 0"),
    "column name": (HEADED, {"values": "rating"}, r"line 1: no column 'rating'\n    \| user,item,stars"),
    "column name twice": ("a,a,b\n1,2,3\n", {"keys": "a", "values": "b"}, r"more than one column 'a'"),
    "empty file": ("", {}, "is empty"),
    "only line ends": ("\n\n", {}, "is empty"),
    "all lines left out": ("a\nb\n", {"skip_lines": 2}, "is empty after the 2 lines left out"),
    "binary": (b"\x00\x01\x02,\xff\n\x00", {}, r"line 1: no column at position 2"),
}


@pytest.mark.parametrize(("line", "name"), [*combined([10, 50_000, 100_000, 199_998, 199_999], ["r.csv", "r.csv.gz"])])
def test_no_row_is_lost_after_a_stray_quotation_mark_in_another_column(tmp_path, line, name):
    lines = [f"{n},{n % 77},{n % 5},text\n" for n in range(200_000)]
    lines[line] = lines[line].replace("text", '"text')
    path = write(tmp_path, name, "".join(lines))
    with pytest.raises(DataFormatError, match=rf"line {line + 1}, column 4: {BROKEN}"):
        oa.read_csv(path)
    s = oa.read_csv(path, quoted=False)
    np.testing.assert_array_equal(s.coords[0], np.arange(200_000))


def test_entries_of_200_000_characters_are_passed_over(tmp_path):
    lines = [f"{n},{n},1,{'x' * 200_000}\n" for n in range(20)]
    s = oa.read_csv(write(tmp_path, "r.csv", "".join(lines)))
    assert s.coords[1].tolist() == list(range(20))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n\n"])
def test_a_quotation_mark_is_found_wherever_blocks_end(tmp_path, end, monkeypatch):
    """The parser says nothing of the last line of a block."""
    lines = [f"{n * 37 % 1000},{n % 77},{n % 5},{'text' * (n % 3)}" for n in range(12)]
    for block, wrong in one_in(3, [*itertools.product((26, 29, 31, 37, 41, 47, 53, 64), range(1, 12))]):
        for place in ("csv", "lines", "errors"):
            monkeypatch.setattr(f"orion.arrays.files.{place}.BLOCK", block)
        broken = lines.copy()
        broken[wrong] = broken[wrong][: broken[wrong].rindex(",") + 1] + '"t'
        path = write(tmp_path, "r.csv", end.join(broken))
        number = wrong * (3 if end == "\n\n\n" else 1) + 1
        with pytest.raises(DataFormatError, match=rf"line {number}, column 4: {BROKEN}"):
            oa.read_csv(path)
        assert oa.read_csv(path, quoted=False).nnz == 12


@pytest.mark.parametrize(("text", "options", "message"), BAD.values(), ids=BAD.keys())
def test_bad_files_name_line_column_and_text(tmp_path, text, options, message):
    path = write(tmp_path, "ratings.csv", text)
    with pytest.raises(DataFormatError, match=message) as caught:
        oa.read_csv(path, **options)
    assert str(path) in str(caught.value)


def test_missing_and_damaged_files(tmp_path):
    lines = "".join(f"{i},{i},3\n" for i in range(50_000)).encode()
    (tmp_path / "short.csv.gz").write_bytes(gzip.compress(lines)[:5000])
    (tmp_path / "fake.csv.gz").write_bytes(lines)
    for name, message in [
        ("nowhere.csv", "there is no file"),
        ("short.csv.gz", "cannot be read: Truncated"),
        ("fake.csv.gz", "cannot be read"),
    ]:
        with pytest.raises(DataFormatError, match=message):
            oa.read_csv(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataFormatError, match="is a folder, not a file"):
        oa.read_csv(tmp_path / "folder.csv")


LINES = b"0,1,2.0\n1,1,3.0\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(LINES), "packed by gzip, which its name does not say"),
        (bz2.compress(LINES), "packed by bzip2, which its name does not say"),
        (lzma.compress(LINES), "packed by xz, which is not unpacked here"),
        (LINES.decode().encode("utf-16"), "text in UTF-16"),
        (b"PK\x03\x04\x14\0", "an archive or a workbook"),
    ],
    ids=["gzip", "bzip2", "xz", "UTF-16", "archive"],  # gzip writes the time: the data are no names of tests
)
def test_a_file_that_is_no_text_is_called_what_it_is(tmp_path, data, message):
    (tmp_path / "ratings.csv").write_bytes(data)
    with pytest.raises(DataFormatError, match=message):
        oa.read_csv(tmp_path / "ratings.csv")


def test_names_of_columns_that_begin_as_packed_files_do(tmp_path):
    path = write(tmp_path, "r.csv", "PAR1,BZh9,PK\n0,1,2.0\n")
    assert oa.read_csv(path, keys=["PAR1", "BZh9"], values="PK").nnz == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes that have names")
def test_a_pipe_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataFormatError, match="a pipe or a device, which cannot be read twice"):
        oa.read_csv(tmp_path / "pipe.csv")


def test_hexadecimal_ids_are_integers(tmp_path):
    assert oa.read_csv(write(tmp_path, "r.csv", "0x10,1,2.0\n3,1,2.0\n")).shape == (17, 2)


def test_missing_values_are_kept_where_asked_for(tmp_path):
    s = oa.read_csv(write(tmp_path, "r.csv", "0,1,\n1,0,nan\n2,2,inf\n3,3,4\n"), allow_nan=True)
    np.testing.assert_array_equal(s.values, np.array([np.nan, np.nan, np.inf, 4], "float32"))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ratings", {}, "does not say what separates"),
        ("ratings.txt.gz", {}, "does not say what separates"),
        ("r.csv", {"sep": ""}, "cannot separate columns"),
        ("r.csv", {"sep": "\n"}, "cannot separate columns"),
        ("r.csv", {"keys": ()}, "do not name different columns"),
        ("r.csv", {"keys": (0, 2)}, "do not name different columns"),
        ("r.csv", {"keys": ("u", "i"), "header": False}, "header=False"),
        ("r.csv", {"dtype": "complex64"}, "complex"),
        ("r.csv", {"dtype": ("float32", "float32")}, "2 dtypes for 1 value"),
        ("r.csv", {"dtype": object}, "cannot hold"),
        ("r.csv", {"shape": (3, 3, 3)}, "3 dimensions, there are 2 keys"),
    ],
)
def test_bad_calls(tmp_path, name, options, message):
    with pytest.raises(ArgumentError, match=message):
        oa.read_csv(write(tmp_path, name, PLAIN), **options)


@pytest.mark.data
def test_real_ratings():
    path = DATA / "anime" / "ratings.tsv.gz"
    if not path.exists():
        pytest.skip("the anime ratings are not there")
    s = oa.read_csv(path, keys=["User_ID", "Anime_ID"], values="Feedback")
    assert len(s) == 419_943
    assert s.shape[0] > 4_714 - 1
    assert set(np.unique(s.values)) <= set(range(1, 11))
    counted = oa.read_csv(path, one_based=True)
    assert counted.shape == tuple(n - 1 for n in s.shape)
    assert np.count_nonzero(counted.histogram(0)) == 4_714
    assert np.count_nonzero(counted.histogram(1)) == 7_157


@pytest.mark.data
def test_real_bag_of_words():
    path = DATA / "kos" / "docword.kos.txt.gz"
    if not path.exists():
        pytest.skip("the bag of words is not there")
    s = oa.read_csv(path, sep=" ", skip_lines=3, one_based=True, dtype=np.int32)
    assert len(s) == 353_160
    assert s.shape == (3_430, 6_906)
    assert s.values.sum() == 467_714
    assert s.unique_keys
