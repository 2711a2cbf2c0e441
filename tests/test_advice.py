"""What errors say to write instead works: the statements that they give are run, and the call is made with that."""

import re

import numpy as np
import pytest

import orion

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def help_of(compiled, *arguments, error=orion.OrionError):
    with pytest.raises(error) as caught:
        compiled(*arguments)
    return str(caught.value).partition("  help: ")[2]


def followed(help_text, **names):
    """The names after the first statement that a help gives."""
    statement = re.search(r"`([^`]* = [^`]*)`", help_text)
    assert statement is not None, help_text
    exec(statement[1], {"np": np}, names)
    return names


# ---------------------------------------------------------------- arrays of objects, lists


@orion.parallel_for
def by_label(lab, x, s):
    for i in range(x.shape[0]):
        s[lab[i]] += x[i]


@orion.parallel_for
def by_named_label(lab, x, s):
    for i in range(x.shape[0]):
        k = lab[i]
        s[k] += x[i]


@orion.parallel_for
def added(lab, x, s):
    for i in range(x.shape[0]):
        s[i] = lab[i] + x[i]


@orion.parallel_for
def at_halves(lab, x, s):
    for i in range(x.shape[0]):
        s[int(2 * lab[i])] += x[i]


@pytest.mark.parametrize(
    ("compiled", "items", "dtype"),
    [
        (by_label, [0, 1, 1], "np.int64"),
        (by_label, [0.0, 1.0, 1.0], "np.int64"),
        (by_named_label, [0.0, 1.0, 1.0], "np.int64"),
        (added, [0, 1, 1], "np.int64"),
        (added, [0.5, 1, 1], "float"),
        (added, [None, 1, 1], "float"),
        (added, [True, False, True], "bool"),
        (added, [1j, 1, 1], "complex"),
        (at_halves, [0.5, 1.0, 1.0], "float"),
        (at_halves, [0.0, 1.0, 1.0], "float"),
    ],
)
def test_arrays_of_objects(compiled, items, dtype):
    lab, x, s = np.array(items, object), np.ones(3), np.zeros(3, complex if dtype == "complex" else float)
    told = help_of(compiled, lab, x, s)
    assert told == f"write `lab = lab.astype({dtype})` before the call"
    compiled(followed(told, lab=lab)["lab"], x, s)
    assert s.any()


def test_arrays_of_texts_and_of_others():
    told = help_of(by_label, np.array(["a", "b", "a"], object), np.ones(3), np.zeros(3))
    s = np.zeros(3)
    by_label(followed(told, lab=np.array(["a", "b", "a"], object))["lab_array"], np.ones(3), s)
    np.testing.assert_array_equal(s, [2, 1, 0])
    told = help_of(by_label, np.array([object(), "b"], object), np.ones(2), np.zeros(3))
    assert told.startswith("pass the numbers that its elements hold")


@orion.parallel_for
def degrees(adj, out):
    for i in range(out.shape[0]):
        for k in range(len(adj[i])):
            out[i] += adj[i][k]


@orion.parallel_for
def degrees_in_one(adj, starts, x, out):
    for i in range(out.shape[0]):
        for j in adj[starts[i] : starts[i + 1]]:
            out[i] += x[j]


def object_array(rows):
    found = np.empty(len(rows), object)
    found[:] = rows
    return found


@pytest.mark.parametrize(
    "adj",
    [
        [[1, 2], [0], [0, 1, 2]],
        [[1, 2], [], [0]],
        [np.array([1, 2]), np.array([0]), np.array([0, 1, 2])],
        object_array([[1, 2], [0], [0, 1]]),
        object_array([np.array([1, 2]), np.array([], int), np.array([0])]),
        object_array([{1, 2}, {0}, {0, 1}]),
        [{1, 2}, {0}, {0, 1}],
    ],
    ids=str,
)
def test_rows_of_their_own_lengths(adj):
    told = help_of(degrees, adj, np.zeros(3))
    assert "`adj_array[adj_starts[i]:adj_starts[i + 1]]` is then `adj[i]`" in told
    names, out = followed(told, adj=adj), np.zeros(3)
    degrees_in_one(names["adj_array"], names["adj_starts"], np.arange(3), out)
    np.testing.assert_array_equal(out, [sum(row) for row in adj])


@orion.parallel_for
def between(ptr, out):
    for i in range(out.shape[0]):
        for _ in range(ptr[i], ptr[i + 1]):
            out[i] += 1


@orion.parallel_for
def doubled(out):
    for i in range(len(out)):
        out[i] *= 2


def doubles(x):
    for i in range(len(x)):
        x[i] *= 2


@orion.parallel_for
def doubled_by_a_helper(out):
    doubles(out)


def test_lists_that_are_only_read_are_not_brought_back():
    told = help_of(between, [0, 1, 3], np.zeros(2))
    assert told == "write `ptr_array = np.array(ptr)` before the call and pass `ptr_array`"
    out = np.zeros(2)
    between(followed(told, ptr=[0, 1, 3])["ptr_array"], out)
    np.testing.assert_array_equal(out, [1, 2])


@pytest.mark.parametrize("compiled", [doubled, doubled_by_a_helper])
def test_lists_that_are_written_are_brought_back(compiled):
    assert "`out[:] = out_array.tolist()` then brings back" in help_of(compiled, [0, 1, 3])
