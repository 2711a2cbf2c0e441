"""What messages about arguments say to write, done as printed: it runs, and the user holds what the loop wrote."""

import re

import numpy as np
import pytest

import orion

pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")


@orion.parallel_for
def double(x):
    for i in range(x.shape[0]):
        x[i] = 2 * x[i]


@orion.parallel_for
def double_rows(x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = 2 * x[i, j]


@orion.parallel_for
def add(x, y):
    for i in range(x.shape[0]):
        x[i] += y[i]


@orion.parallel_for
def add_to_both(x, y):
    for i in range(x.shape[0]):
        x[i] += 1
        y[i] += 2


@orion.parallel_for
def first_times(a, x):
    for i in range(a.shape[0]):
        a[i] = a[i] * x


@orion.parallel_for
def sum_of_elements(x):
    total = 0.0
    for (i,), value in x:
        total += i * value
    return total


def spans(call, error=orion.ArgumentError):
    """What stands between backticks in the help of the message that a call gives."""
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value).partition("  help: ")[2]
    assert text, "there is help"
    return re.findall("`([^`]+)`", text)


def is_assignment(span):
    return re.fullmatch(r"[\w, \[\]':]+ = .*", span) is not None


def cured(function, x, error=orion.ArgumentError):
    """What the user holds as `x` after doing what the message says: assignments that come before the span that is
    passed are made before the call, the others after it. Where nothing is named to be passed, `x` is."""
    found = spans(lambda: function(x), error)
    held = {"x": x, "np": np, "orion": orion}
    assignments = [span for span in found if is_assignment(span)]
    expressions = [span for span in found if not is_assignment(span)]
    if assignments:
        exec(assignments[0], held)
        function(eval(expressions[0] if expressions and expressions[0].startswith("x_") else "x", held))
        for span in assignments[1:]:
            exec(span, held)
    else:
        function(eval(expressions[0], held))
    return held["x"]


class Subclass(np.ndarray):
    pass


def foreign():
    return np.arange(3, dtype=">f8")


def read_only():
    x = np.arange(3.0)
    x.setflags(write=False)
    return x


HELD = {
    "a list": lambda: [0.0, 1.0, 2.0],
    "a list of integers": lambda: [0, 1, 2],
    "a tuple": lambda: (0.0, 1.0, 2.0),
    "a range": lambda: range(3),
    "a Series": lambda: pandas.Series([0.0, 1.0, 2.0]),
    "a Series with another index": lambda: pandas.Series([0.0, 1.0, 2.0], index=[5, 3, 4]),
    "a nullable Series": lambda: pandas.Series([0.0, 1.0, 2.0], dtype="Float64"),
    "an array in foreign byte order": foreign,
    "an array of objects": lambda: np.arange(3.0).astype(object),
    "a half-precision array": lambda: np.arange(3, dtype=np.float16),
    "a long array": lambda: np.arange(3, dtype=np.longdouble),
    "a masked array": lambda: np.ma.arange(3.0),
    "an array of dates": lambda: np.arange(3).astype("timedelta64[D]"),
    "a subclass": lambda: np.arange(3.0).view(Subclass),
    "an index": lambda: pandas.Index([0.0, 1.0, 2.0]),
    "an Arrow array": lambda: pyarrow.array([0.0, 1.0, 2.0]),
}


@pytest.mark.parametrize("make", HELD.values(), ids=HELD.keys())
def test_the_user_holds_what_the_loop_wrote(make):
    x = make()
    found = cured(double, x)
    assert [float(v.astype(int) if isinstance(v, np.timedelta64) else v) for v in found] == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("kind", ["a list", "a Series", "an array of dates", "a masked array"])
def test_the_very_object_is_changed_where_that_can_be(kind):
    x = HELD[kind]()
    assert cured(double, x) is x


def test_a_read_only_array():
    np.testing.assert_array_equal(cured(double, read_only(), orion.UnsupportedLoopError), [0.0, 2.0, 4.0])
    x = read_only()
    found = spans(lambda: double(x), orion.UnsupportedLoopError)
    exec(found[1], {"x": x})
    double(x)
    np.testing.assert_array_equal(x, [0.0, 2.0, 4.0])


TABLES = {
    "a frame": lambda: pandas.DataFrame({"a": [0.0, 1.0], "b": [2.0, 3.0]}),
    "nested lists": lambda: [[0.0, 2.0], [1.0, 3.0]],
    "a matrix": lambda: np.matrix([[0.0, 2.0], [1.0, 3.0]]),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_tables(make):
    x = make()
    assert cured(double_rows, x) is x
    np.testing.assert_array_equal(np.asarray(x), [[0.0, 4.0], [2.0, 6.0]])


def test_a_frame_with_columns_of_several_types():
    x = pandas.DataFrame({"stars": [0.0, 1.5], "name": ["a", "b"]})
    assert cured(double, x) is x
    assert x["stars"].tolist() == [0.0, 3.0]


def test_a_column_of_a_frame_is_brought_back():
    frame = pandas.DataFrame({"stars": [0.0, 1.5], "n": [1, 2]})
    first, _, _, last = spans(lambda: double(frame["stars"]))
    held = {"x": frame["stars"], "frame": frame, "np": np}
    exec(first, held)
    double(held["x_array"])
    exec(last, held)
    assert frame["stars"].tolist() == [0.0, 3.0]


def test_fields_of_records_are_the_same_memory():
    x = np.zeros(3, [("a", float), ("b", int)])
    x["a"] = 1.5
    assert cured(double, x) is x
    assert x["a"].tolist() == [3.0, 3.0, 3.0]


def test_what_is_masked_is_said():
    x = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    data, mask = spans(lambda: double(x))
    assert eval(mask, {"x": x, "np": np}).tolist() == [False, True, False]
    double(eval(data, {"x": x}))
    assert x.data.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize(
    "x",
    [np.array(["b", "a", "b"]), np.array([b"b", b"a", b"b"]), pandas.Series(["b", "a", "b"]),
     pandas.Series(["b", "a", "b"], dtype="category")],
    ids=["array", "bytes", "Series", "categories"],
)  # fmt: skip
def test_texts_are_numbered(x):
    first, passed = spans(lambda: double(x))
    held = {"x": x, "np": np}
    exec(first, held)
    assert held["x_texts"][held[passed]].tolist() == x.tolist()
    double(held[passed])
    assert held[passed].tolist() == [2, 0, 2]


def test_rows_of_different_lengths():
    x = [[1.0, 2.0], [3.0]]
    first, part, row = spans(lambda: double(x))
    held = {"x": x, "np": np, "i": 1}
    exec(first, held)
    assert eval(part, held).tolist() == eval(row, held)
    double(held["x_array"])
    assert held["x_array"].tolist() == [2.0, 4.0, 6.0]
    assert held["x_starts"].tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("x", "number"),
    [(np.array(3.0), 3.0), (orion.array(3.0), 3.0), (np.float16(3), 3.0), (np.longdouble(3), 3.0),
     (np.timedelta64(3, "D"), 3)],
    ids=["0-d", "0-d dense", "float16", "longdouble", "days"],
)  # fmt: skip
def test_numbers(x, number):
    a = np.ones(2)
    (passed, *_) = spans(lambda: first_times(a, x))
    first_times(a, eval(passed, {"x": x, "np": np}))
    assert a.tolist() == [number, number]


def test_what_has_no_order():
    x = {"a": 1.0, "b": 2.0}
    (passed,) = spans(lambda: double(x))
    held = eval(passed, {"x": x, "np": np})
    double(held)
    assert held.tolist() == [2.0, 4.0]
    for value in ("text", None, object(), np.str_("text"), {1, 2}):
        with pytest.raises(orion.ArgumentError, match=r"  help: pass (a number|the numbers|`np.frombuffer)"):
            double(value)


def test_sparse_ones():
    matrix = pytest.importorskip("scipy.sparse").coo_array(np.eye(3))
    made, *_ = spans(lambda: sum_of_elements(matrix))
    assert eval(made, {"x": matrix, "orion": orion}).nnz == 3


def refused(call):
    return spans(call, orion.DataFormatError)


@pytest.mark.parametrize(
    "values",
    [np.array([1, 2, 3], object), ["1", "2.5", "3"], np.arange(3, dtype=np.float16), ["a", "b", "a"],
     np.arange(3).astype("datetime64[D]")],
    ids=["objects", "digits", "half precision", "texts", "dates"],
)  # fmt: skip
def test_values_of_sparse_arrays(values):
    coords = ([0, 2, 1],)
    for given in (values, (values, [1.0, 2.0, 3.0])):
        (cure,) = refused(lambda given=given: orion.sparse(coords, given))
        held = {"values": given, "np": np}
        if is_assignment(cure):
            exec(cure, held)
            made = held["numbers"]
        else:
            made = eval(cure, held)
        assert orion.sparse(coords, made).nnz == 3


KEYS = [[0.0, 2.0, 1.0], ["a", "c", "b"], np.array([0, 2, 1], object), ["0", "2", "1"]]


@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_keys_of_sparse_arrays(keys):
    coords = ([5, 5, 5], keys)
    (cure,) = refused(lambda: orion.sparse(coords, np.ones(3)))
    held = {"coords": coords, "np": np}
    if is_assignment(cure):
        exec(cure, held)
    made = held["numbers"] if is_assignment(cure) else eval(cure, held)
    assert orion.sparse((coords[0], made), np.ones(3)).coords[1].tolist() == [0, 2, 1]


@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_columns_of_frames(keys):
    held = {"frame": pandas.DataFrame({"i": [5, 5, 5], "j": keys, "v": ["x", "y", "x"]}), "np": np}
    for _ in range(2):
        exec(refused(lambda: orion.from_pandas(held["frame"], keys=["i", "j"], values="v"))[0], held)
    array = orion.from_pandas(held["frame"], keys=["i", "j"], values="v")
    assert array.coords[1].tolist() == [0, 2, 1]
    assert array.values.tolist() == [0, 1, 0]


def test_missing_entries_of_tables():
    table = {"i": [0, None, 2], "v": [1.0, 2.0, 3.0]}
    frame = pandas.DataFrame(table)
    held = {"frame": frame}
    exec(refused(lambda: orion.from_pandas(frame, keys="i", values="v"))[0], held)
    exec(refused(lambda: orion.from_pandas(held["frame"], keys="i", values="v"))[0], held)  # with gaps they were floats
    assert orion.from_pandas(held["frame"], keys="i", values="v").values.tolist() == [1.0, 3.0]
    arrow = pyarrow.table(table)
    (made,) = refused(lambda: orion.from_arrow(arrow, keys="i", values="v"))
    assert orion.from_arrow(eval(made, {"table": arrow}), keys="i", values="v").values.tolist() == [1.0, 3.0]


def test_memory_that_two_arguments_share():
    x = np.arange(4.0)
    passed, *_ = spans(lambda: add(x[:3], x[1:]), orion.AliasError)
    add(x[:3], eval(passed, {"y": x[1:]}))
    assert x.tolist() == [1.0, 3.0, 5.0, 3.0]


def test_memory_that_two_written_arguments_share():
    x = np.zeros(3)
    first, *_ = spans(lambda: add_to_both(x, x), orion.AliasError)
    held = {"y": x}
    exec(first, held)
    add_to_both(x, held["y"])
    assert (x.tolist(), held["y"].tolist()) == ([1.0] * 3, [2.0] * 3)


def test_memory_that_an_array_shares_with_itself():
    x = np.lib.stride_tricks.as_strided(np.arange(4.0), (3, 2), (8, 8))
    np.testing.assert_array_equal(cured(double_rows, x, orion.AliasError), [[0.0, 2.0], [2.0, 4.0], [4.0, 6.0]])
