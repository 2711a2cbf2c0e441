"""Reading text by a function for each line: what is taken, what is refused, and where it says so."""

import gzip
import traceback

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orion
from orion.arrays.files import text
from orion.errors import ArgumentError, DataFormatError


def write(folder, content, name="data.txt"):
    path = folder / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def parse(line):
    if line.startswith("#"):
        return None
    i, j, v = line.split(",")
    return (int(i), int(j)), float(v)


PLAIN = "0,2,5.0\n# a remark\n3,0,3.5\n1,1,1.0\n"
FILES = {
    "plain": PLAIN,
    "no last line end": PLAIN.rstrip(),
    "Windows line ends": PLAIN.replace("\n", "\r\n"),
    "old line ends": PLAIN.replace("\n", "\r"),
    "blank lines": PLAIN.replace("\n", "\n\n"),
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
@pytest.mark.parametrize("name", ["data.txt", "data.log.gz"])
def test_files(tmp_path, content, name):
    s = orion.text_file(write(tmp_path, content, name), parse)
    assert s.shape == (4, 3)
    assert s.dtype == np.float64
    assert s.key_dtype == np.int32
    assert np.transpose(s.coords).tolist() == [[0, 2], [3, 0], [1, 1]]
    assert s.values.tolist() == [5.0, 3.5, 1.0]
    assert not s.values_are_tuple


def test_what_a_parser_may_return(tmp_path):
    path = write(tmp_path, "7\n2\n")
    one = orion.text_file(path, lambda line: (int(line), np.float32(line)))
    assert (one.shape, one.dtype) == ((8,), np.float32)
    three = orion.text_file(path, lambda line: ((1, np.int8(2), int(line)), (int(line), line == "7")), shape=(2, 3, 9))
    assert three.values_are_tuple
    assert three.shape == (2, 3, 9)
    assert three.value_dtypes == (np.dtype("int64"), np.dtype(bool))
    assert orion.text_file(path, lambda line: ((2**40,), 1.0), shape=(2**41,)).key_dtype == np.int64
    mixed = orion.text_file(path, lambda line: (0, np.float32(1.5) if line == "7" else 2))
    assert mixed.dtype == np.float32


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n"])
def test_no_elements(tmp_path, content):
    path = write(tmp_path, content)
    assert orion.text_file(path, parse).shape == (0,)
    s = orion.text_file(path, parse, shape=(3, 4))
    assert (len(s), s.shape, s.dtype) == (0, (3, 4), np.float64)


def test_an_error_of_the_parser_is_the_cause_and_names_the_line(tmp_path):
    path = write(tmp_path, "0,2,5.0\n\n3,zero,3.5\n")
    with pytest.raises(DataFormatError) as caught:
        orion.text_file(path, parse)
    assert str(caught.value).startswith(f"{path}, line 3: `parse` raises ValueError: invalid literal for int()")
    assert "\n    | 3,zero,3.5" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__cause__.__traceback__)]
    assert lines[-1] == "return (int(i), int(j)), float(v)"
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 1


def returning(result):
    return lambda line: result if line == "b" else (1, 2.0)


BAD = [
    (returning(3), "returns 3\n(.|\n)*return \\(keys, value\\), or None"),
    (returning((1, 2, 3)), r"returns \(1, 2, 3\)"),
    (returning([1, 2]), r"returns \[1, 2\]"),
    (returning((1.0, 2.0)), "the key 1.0 is a float, not an integer"),
    (returning((True, 2.0)), "the key True is a bool, not an integer"),
    (returning(("1", 2.0)), "the key '1' is a str, not an integer"),
    (returning((-1, 2.0)), "-1 is a negative key"),
    (returning((2**64, 2.0)), "18446744073709551616 is too large for a key"),
    (returning((1, "x")), "'x' is a str, not a number"),
    (returning((1, None)), "None is a NoneType, not a number"),
    (returning((1, float("nan"))), "the value is NaN"),
    (returning(((1, 2), 2.0)), "line 1 gives 1 keys, and a number as value"),
    (returning((1, (2.0,))), "line 1 gives 1 keys, and a number as value"),
    (returning((2**30, 1.0)), r"the key of dimension 0 is 1073741824\n(.|\n)*say shape=\(1073741825,\)"),
]


@pytest.mark.parametrize(("parser", "message"), BAD)
def test_results_that_are_refused(tmp_path, parser, message):
    path = write(tmp_path, "a\nb\nc\n")
    with pytest.raises(DataFormatError, match=f"data.txt, line 2: (.|\n)*{message}"):
        orion.text_file(path, parser)


def test_shapes_are_held_against_lines(tmp_path):
    path = write(tmp_path, PLAIN)
    with pytest.raises(DataFormatError, match=r"line 3: the key 3 of dimension 0 lies outside of the shape \(3, 3\)"):
        orion.text_file(path, parse, shape=(3, 3))
    with pytest.raises(DataFormatError, match=r"line 1: (.|\n)*\(3, 3, 3\) has 3 dimensions"):
        orion.text_file(path, parse, (3, 3, 3))
    with pytest.raises(ArgumentError, match="negative dimension"):
        orion.text_file(path, parse, (3, -3))


def test_other_errors(tmp_path):
    latin = write(tmp_path, "0,0,1.0\n# caf\xe9\n".encode("latin-1"))
    with pytest.raises(DataFormatError, match=r"line 2: it is not text in utf-8(.|\n)*encoding="):
        orion.text_file(latin, parse)
    assert len(orion.text_file(latin, parse, encoding="latin-1")) == 1
    with pytest.raises(DataFormatError, match="there is no file"):
        orion.text_file(tmp_path / "none", parse)
    with pytest.raises(ArgumentError, match="'sep' is no function"):
        orion.text_file(latin, "sep")
    with pytest.raises(ArgumentError, match="'nonsense' is no encoding"):
        orion.text_file(latin, parse, encoding="nonsense")
    with pytest.raises(DataFormatError, match="packed by gzip"):
        orion.text_file(write(tmp_path, gzip.compress(b"1")), parse)
    with pytest.raises(KeyboardInterrupt):
        orion.text_file(write(tmp_path, PLAIN), interrupted)
    nan = write(tmp_path, "0,0,nan\n")
    assert np.isnan(orion.text_file(nan, parse, allow_nan=True).values).all()
    assert len(orion.text_file(write(tmp_path, "head\n" + PLAIN), parse, skip_lines=1)) == 3


def interrupted(line):
    raise KeyboardInterrupt


NUMBERS = st.one_of(st.integers(-5, 5), st.floats(width=32, allow_nan=False, allow_infinity=False))
ELEMENTS = st.lists(st.tuples(st.integers(0, 50), NUMBERS))


@given(ELEMENTS, st.integers(1, 5))
def test_the_same_elements_however_many_are_read_at_once(tmp_path_factory, elements, at_once):
    path = write(tmp_path_factory.mktemp("text"), "".join(f"{k} {v!r}\n" for k, v in elements))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "AT_ONCE", at_once)
        s = orion.text_file(path, lambda line: (int(line.split()[0]), eval(line.split()[1])))
    assert s.coords[0].tolist() == [k for k, _ in elements]
    assert s.values.tolist() == [v for _, v in elements]
    if elements:
        assert s.dtype == np.array([v for _, v in elements]).dtype


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-le", "cp500"])
def test_encodings_whose_lines_end_otherwise_are_refused(tmp_path, encoding):
    (tmp_path / "a.txt").write_text("0 1 2\n", encoding=encoding)
    with pytest.raises(ArgumentError, match=f"(?s){encoding}.*write the file anew in UTF-8"):
        orion.text_file(tmp_path / "a.txt", lambda line: ((0, 1), 2.0), encoding=encoding)
