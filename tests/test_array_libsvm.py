"""Reading LIBSVM's format: what is taken, and where bad lines are wrong."""

import bz2
import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.arrays.files import libsvm
from orion.errors import ArgumentError, DataFormatError


def write(folder, content, name="data.txt"):
    path = folder / name
    data = content if isinstance(content, bytes) else content.encode()
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(name[name.rindex(".") :], bytes)
    path.write_bytes(pack(data))
    return path


PLAIN = "+1 1:0.5 4:-2\n-1 2:1e-1\n0.5\n"
FILES = {
    "plain": PLAIN,
    "no last line end": PLAIN.rstrip(),
    "Windows line ends": PLAIN.replace("\n", "\r\n"),
    "old line ends": PLAIN.replace("\n", "\r"),
    "blank lines": "\n\n" + PLAIN.replace("\n", "\n \t\n"),
    "remarks": "# 1:2\n" + PLAIN.replace("\n", " # it's 7:8 # and\n"),
    "remarks without a space": PLAIN.replace("\n", "#7:8\n#\n"),
    "spaces": "  " + PLAIN.replace(" ", " \t ").replace("\n", "  \n  "),
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "from 0": PLAIN.replace("4:", "3:").replace("1:0", "0:0").replace("2:", "1:"),
    "other signs": PLAIN.replace(":0", ":+0").replace("e-1", "e-01").replace("+1", "1e+0"),
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
@pytest.mark.parametrize("name", ["data.txt", "data.gz", "data.svm.bz2"])
def test_files(tmp_path, content, name):
    X, labels = orion.read_libsvm(write(tmp_path, content, name))
    assert (X.shape, X.dtype, X.key_dtype) == ((3, 4), np.float32, np.int32)
    assert [k.tolist() for k in X.coords] == [[0, 0, 1], [0, 3, 1]]
    assert X.values.tolist() == np.float32([0.5, -2.0, 0.1]).tolist()
    assert labels.dtype == np.float64
    assert labels.tolist() == [1.0, -1.0, 0.5]


@pytest.mark.parametrize(
    ("zero_based", "first", "shape"),
    [("auto", 1, (1, 3)), (True, 1, (1, 4)), (False, 1, (1, 3)), ("auto", 0, (1, 4)), (True, 0, (1, 4))],
)
def test_where_indices_begin(tmp_path, zero_based, first, shape):
    X, _ = orion.read_libsvm(write(tmp_path, f"1 {first}:1 3:1\n"), zero_based=zero_based)
    assert X.shape == shape
    wider, _ = orion.read_libsvm(write(tmp_path, f"1 {first}:1 3:1\n"), 9, zero_based=zero_based)
    assert wider.shape == (1, 9)
    np.testing.assert_array_equal(wider.coords, X.coords)


def test_labels_alone_and_other_options(tmp_path):
    X, labels = orion.read_libsvm(write(tmp_path, "1\n2\n"))
    assert (X.shape, labels.tolist()) == ((2, 0), [1.0, 2.0])
    X, labels = orion.read_libsvm(write(tmp_path, "nan 5000000000:NaN 6000000000:\n"), 7 * 10**9, "f8", allow_nan=True)
    assert (X.dtype, X.key_dtype, X.extents) == (np.float64, np.int64, (1, 6 * 10**9))
    assert np.isnan([*X.values, *labels]).all()


@orion.parallel_for
def scores(out, indptr, indices, values, w):
    for s in range(out.size):
        for p in range(indptr[s], indptr[s + 1]):
            out[s] += w[indices[p]] * values[p]


def test_loops_over_rows(tmp_path):
    X, labels = orion.read_libsvm(write(tmp_path, PLAIN))
    rows, out = X.lines(0), np.zeros(len(labels))
    scores(out, rows.indptr, rows.indices, rows.values[0], np.arange(1.0, 5.0))
    np.testing.assert_allclose(out, X.to_numpy() @ np.arange(1.0, 5.0))
    csr = X.to_scipy().tocsr()
    np.testing.assert_array_equal(csr.indptr, rows.indptr)


BAD = [
    ("x 1:2\n", {}, r"line 2, column 1: of the label, 'x' is not a number"),
    ("1,2 1:2\n", {}, r"line 2, column 1: of the label, '1,2' is not a number\n(.|\n)*several labels"),
    ("  1:2 3:4\n", {}, r"line 2, column 3: of the label, '1:2' is not a number"),
    ("nan 1:2\n", {}, r"line 2, column 1: of the label, the value is NaN"),
    ("+ 1:2\n", {}, r"line 2, column 1: there is no label"),
    ("+-1 1:2\n", {}, r"line 2, column 1: of the label, '\+-1' is not a number"),
    ("++1 1:2\n", {}, r"line 2, column 1: of the label, '\+\+1' is not a number"),
    ("1 3\n", {}, r"line 2, column 3: '3' is no pair `index:value`"),
    ("1 2:\n", {}, r"line 2, column 5: a value is missing"),
    ("1 :2\n", {}, r"line 2, column 3: the index '' is not an integer"),
    ("1 2: 3\n", {}, r"line 2, column 5: a value is missing"),
    ("1 1:2:3\n", {}, r"line 2, column 5: '2:3' is not a number"),
    ("1 qid:3 1:2\n", {}, r"line 2, column 3: the index 'qid' is not an integer\n(.|\n)*orion.text_file"),
    ("1 1.5:3\n", {}, r"line 2, column 3: the index '1.5' is not an integer"),
    ("1 99999999999999999999:3\n", {}, r"line 2, column 3: the index 9+ is too large"),
    ("1 -4:3\n", {}, r"line 2, column 3: the index -4 is below"),
    ("1 0:3\n", {"zero_based": False}, r"line 2, column 3: the index 0 is below 1, the first one\n(.|\n)*zero_based=T"),
    ("1 1:3 3:4\n", {"features": 2}, r"line 2, column 7: the index 3 is too large for 2 features that count from 1"),
    ("1 1:3 99999999:4\n", {}, r"line 2, column 7: the index is 99999999: there would be 99,999,999 columns for 4 el"),
    ("1 1:x\n", {}, r"line 2, column 5: 'x' is not a number\n    \| 1 1:x"),
    ("1 1:inf\n", {}, r"line 2, column 5: inf is infinite"),
    ("1 1:1e99\n", {}, r"line 2, column 5: 1e99 is infinite, or too large for dtype=float32"),
    ("1 2:1 1:1\n", {}, r"line 2, column 7: the index 1 comes after 2"),
    ("1 2:1 2:1\n", {}, r"line 2, column 7: the index 2 comes after 2"),
    ("1 1:\xe9\n", {}, r"line 2, column 5: 'é' is not a number"),
    ("1 1:2\x0c\n", {}, r"line 2, column 5: '2\\x0c' is not a number"),
    ("1 1:2" + " " * 300 + "x\n", {}, r"line 2, column 306: 'x' is no pair(.|\n)*\| …  +x"),
    ("1 1:2 " + "x" * (1 << 21) + "\n", {}, r"line 2, column 7: 'x+… of 2,097,152 characters' is no pair"),
]


@pytest.mark.parametrize(("line", "options", "message"), BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_bad_lines_name_line_and_column(tmp_path, line, options, message, end):
    path = write(tmp_path, f"1 1:2\n{line}1 1:3\n".replace("\n", end))
    with pytest.raises(DataFormatError, match=message) as caught:
        orion.read_libsvm(path, **options)
    assert str(path) in str(caught.value)


def test_other_errors(tmp_path):
    for content in ("", "\n# nothing\n"):
        with pytest.raises(DataFormatError, match="is empty"):
            orion.read_libsvm(write(tmp_path, content))
    with pytest.raises(DataFormatError, match="there is no file"):
        orion.read_libsvm(tmp_path / "none")
    with pytest.raises(DataFormatError, match="packed by gzip, which its name does not say"):
        orion.read_libsvm(write(tmp_path, gzip.compress(PLAIN.encode())))
    (tmp_path / "short.gz").write_bytes(gzip.compress(PLAIN.encode() * 1000)[:-30])
    with pytest.raises(DataFormatError, match="cannot be read"):
        orion.read_libsvm(tmp_path / "short.gz")
    path = write(tmp_path, PLAIN)
    for options, message in [
        ({"dtype": "int32"}, "read as floats, not as int32"),
        ({"zero_based": "yes"}, "zero_based='yes'"),
        ({"features": -1}, "features=-1 is no number"),
        ({"features": 2.0}, "features=2.0 is no number"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            orion.read_libsvm(path, **options)


ENDS = ["\n", "\r\n", "\r", "\n\n", " # 1:2\n"]
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
ROWS = st.lists(st.tuples(FLOATS, st.dictionaries(st.integers(1, 50), FLOATS, max_size=6)), min_size=1, max_size=12)


@settings(deadline=None)
@given(
    ROWS,
    st.sampled_from(["\n", "\r\n", "\r", "\n\n", " # 1:2\n"]),
    st.sampled_from([" ", "\t", "  "]),
    st.integers(1, 99),
)
def test_the_same_elements_in_pieces_of_any_length(tmp_path_factory, rows, end, space, piece):
    lines = [space.join([repr(label), *(f"{k}:{v!r}" for k, v in sorted(pairs.items()))]) for label, pairs in rows]
    path = write(tmp_path_factory.mktemp("libsvm"), end.join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libsvm, "PIECE", piece)
        X, labels = orion.read_libsvm(path, zero_based=True)
    assert labels.tolist() == [label for label, _ in rows]
    wanted = [(row, k, v) for row, (_, pairs) in enumerate(rows) for k, v in sorted(pairs.items())]
    assert list(zip(*(k.tolist() for k in X.coords), X.values.tolist(), strict=True)) == wanted
    assert X.shape[0] == len(rows)


TEXTS = st.text(alphabet="01:+-. #\n\r\tx", max_size=30)


@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_any_text_is_read_as_a_plain_reader_does_or_named(tmp_path_factory, content):
    path = write(tmp_path_factory.mktemp("libsvm"), content.encode())
    try:
        wanted = plain(content)
    except ValueError:
        wanted = None
    if wanted:
        X, labels = orion.read_libsvm(path, zero_based=True, allow_nan=False)
        assert labels.tolist() == [label for label, _ in wanted]
        assert X.values.tolist() == [np.float32(v) for _, pairs in wanted for _, v in pairs]
        assert X.coords[1].tolist() == [k for _, pairs in wanted for k, _ in pairs]
    else:
        with pytest.raises(DataFormatError, match=r"line \d+, column \d+|is empty"):
            orion.read_libsvm(path, zero_based=True)


def plain(content):
    """The rows of a text by Python's own means."""
    rows = []
    for line in content.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        words = line.partition("#")[0].split()
        if words:
            pairs = [tuple(word.split(":")) for word in words[1:]]
            rows.append((float(words[0]), [(int(k), float(v)) for k, v in pairs]))
            keys = [k for k, _ in rows[-1][1]]
            if keys != sorted(set(keys)) or any(k < 0 for k in keys):
                raise ValueError
    return rows
