"""Lists that loops make item by item: those of one item an iteration are arrays; see also `test_counted_lists`."""

from __future__ import annotations

import math
import warnings
from types import ModuleType

import numpy as np
import pytest

import orion
from tests.alike import alike
from tests.loop_text import defined


def losses(x, k):
    w, found = 0.0, []
    for _ in range(k):
        g, loss = 0.0, 0.0
        for i in range(len(x)):
            r = w * x[i] - 3 * x[i]
            g += r * x[i]
            loss += r * r
        w -= 0.5 * g / len(x)
        found.append(loss / len(x))
    return w, found


def of_items(x, k):
    out = []
    for v in x:
        t = 0.0
        for j in range(1, k):
            t += math.cos(v * j)
        out.append(t)
    return np.array(out)


def comprehension(x, k):
    return np.array([np.sqrt(v) * k for v in x])


def with_its_own_name(x, k):
    v = 7.0
    y = np.asarray([v * v for v in x])
    for i in range(len(y)):
        y[i] += v
    return y


def of_its_own_iterable(x, k):
    total = 0.0
    y = np.array([x + k for x in x])
    for i in range(len(x)):
        total += x[i]
    return y, total


def in_steps(x, k):
    down, up = [], []
    for i in range(len(x) - 1, -1, -3):
        down.append(x[i])
        up.append(i * 1.5)
    for j in range(k, 20, k):
        x[0] += j
    return down, up


def pairs(x, k):
    near = []
    for i, (a, b) in enumerate(zip(x[1:], x, strict=False)):
        near.append(abs(a - b) + i)
    return np.mean(near), len(near), near


def python_floats(x, k):
    halves: list[float] = []
    for i in range(k):
        halves.append(i / 2)
    return halves


def integers(x, k):
    found = []
    for v in x:
        found.append(int(v * 10))
    return found, np.array(found)


def truth(x, k):
    large = []
    for v in x:
        large.append(v > 0.5)
    return np.array(large), large


def narrow(x, k):
    small = []
    for v in x:
        small.append(np.float32(v))
    return np.asarray(small)


def in_rounds(x, k):
    total = 0.0
    for _ in range(k):
        ranks = []
        for v in x:
            ranks.append(v + total)
        total += np.max(ranks) - np.sum(ranks) / len(ranks)
    return total


def used_twice(x, k):
    y = []
    for v in x:
        y.append(v * v)
    a, b = np.array(y), np.array(y)
    a[0] = -1.0
    return a, b, y


def made_of_itself(x, k):
    for _ in range(k):
        x = np.array([v * 2 for v in x])
    return x


def of_lists_of_rounds(x, k):
    best = []
    for t in range(k):
        items, twice = [], np.array([v * 2 for v in x])
        for v in x:
            items.append(v)
        best.append(np.max(items) + twice[0] + twice.sum() * t)
    return best


def turned(x, k):
    y = []
    for v in x:
        y.append(v * k)
    z = np.flip(y)
    z[0] = -1.0
    return y, z


def none(x, k):
    y = []
    for i in range(k, 0):
        y.append(x[i] * 1.0)
    return np.array(y), y


def named_as_its_array(x, k):
    total = 0.0
    for t in range(k):
        items = []
        for v in x:
            items.append(v * t)
        items = np.array(items)
        items[0] += 1.0
        total += items.sum()
    labels = []
    for v in x:
        labels.append(v > 0.5)
    labels = np.asarray(labels)
    return labels, total


TAKEN = [
    losses, of_items, comprehension, with_its_own_name, of_its_own_iterable, in_steps, pairs, python_floats, integers,
    truth, narrow, in_rounds, used_twice, made_of_itself, of_lists_of_rounds, turned, none, named_as_its_array,
]  # fmt: skip


def given(n=40):
    return np.random.default_rng(n).random(n), 3


def assert_same(found, want):
    alike(found, want, rtol=1e-12)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("function", TAKEN, ids=lambda function: function.__name__)
def test_is_what_python_gives(function, workers):
    with orion.session(workers=workers, force_parallel=workers > 1), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        decorated = orion.parallel_for(function)
        plan = decorated.plan(*given())  # it is analysed
        plan.check()
        for n in (40, 1):
            mine, its = given(n), given(n)
            assert_same(decorated(*mine), function(*its))
            np.testing.assert_array_equal(mine[0], its[0])


@pytest.mark.parametrize("function", [of_items, comprehension, integers, truth], ids=lambda function: function.__name__)
def test_is_shared_out(function):
    with orion.session(workers=2, force_parallel=True):
        assert orion.parallel_for(function, require_parallel=True).plan(*given()).is_parallel


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_is_what_python_gives_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for function in (losses, comprehension, integers, used_twice):
            assert_same(orion.parallel_for(function)(*given()), function(*given()))


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32"])
@pytest.mark.parametrize("function", [made_of_itself, of_lists_of_rounds], ids=lambda function: function.__name__)
def test_items_keep_their_dtype(function, dtype):
    x = np.array([100, 3] if dtype == "int8" else [2**58 + 1, 3]).astype(dtype)
    with np.errstate(over="ignore"):
        want = function(x.copy(), 1)
    assert_same(orion.parallel_for(function)(x.copy(), 1), want)


def as_subscripts(at, found, k):
    for _ in range(k):
        at = np.array([(j + 1) % 4 for j in at])
        for i in range(len(at)):
            found[at[i]] += 1
    return found


def test_items_may_be_subscripts():
    assert_same(
        orion.parallel_for(as_subscripts)(np.arange(7) % 4, np.zeros(4), 2),
        as_subscripts(np.arange(7) % 4, np.zeros(4), 2),
    )


def by_number(n):
    y = []
    for v in np.arange(n):
        y.append(v + 0.5)
    return y, np.arange(n)


@pytest.mark.parametrize("n", [3, 0])
def test_ranges_by_number(n):
    assert_same(orion.parallel_for(by_number)(n), by_number(n))


def test_ranges_of_negative_lengths_are_refused():
    with pytest.raises(orion.ArgumentError, match="would have a negative length"):
        orion.parallel_for(by_number)(-2)


def greatest(x, y):
    for i in range(len(y)):
        y[i] = max(x) - min(x)
    return y


def test_the_greatest_of_nothing_is_an_error_with_words():
    assert greatest(np.array([1.0, 4.0]), np.zeros(3))[0] == 3
    with pytest.raises(ValueError, match="max\\(\\) arg is an empty sequence"):
        orion.parallel_for(greatest)(np.zeros(0), np.zeros(3))


def test_an_array_of_an_empty_list_has_the_type_of_its_items():
    found = orion.parallel_for(integers)(np.zeros(0), 3)
    assert found[0] == []
    assert found[1].dtype == np.int64
    assert integers(np.zeros(0), 3)[1].dtype == np.float64  # told in docs/reference/differences.md


def twice(items):
    return items * 2


def with_a_helper(x, k):
    y = []
    for v in x:
        y.append(v)
    return helpers.twice(y)


helpers = ModuleType("helpers")
helpers.twice = twice


def test_helpers_are_given_lists():
    """`items * 2` is another thing for an array."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        try:
            found = orion.parallel_for(with_a_helper)(*given())
        except orion.UnsupportedLoopError:
            return
    np.testing.assert_array_equal(found, with_a_helper(*given()))


STAYS = {
    "another name": "y = []\nz = y\nfor v in x:\n    y.append(v)\nreturn z",
    "a name after": "y = []\nfor v in x:\n    y.append(v)\nz = y\nz.append(1.0)\nreturn y",
    "sorted in place": "y = []\nfor v in x:\n    y.append(v)\ny.sort()\nreturn y",
    "arrays": "y = []\nfor v in x:\n    y.append(x * v)\nreturn np.array(y)",
    "two loops in a comprehension": "return np.array([v * w for v in x for w in x])",
    "a list of lists": "return np.array([[v, 2 * v] for v in x])",
    "a comprehension in a branch": "y = x\nif k > 5:\n    y = np.array([v * 2 for v in x])\nreturn y[0]",
}


ROWS = {
    "rows": "y = []\nfor i in range(k):\n    y.append(x[:3] * i)\nreturn y",
    "rows of other lengths": "y = []\nfor i in range(k):\n    y.append(x[: i + 1] * i)\nreturn y",
    "one row": "y = []\nrow = np.zeros(3)\nfor i in range(k):\n    row += x[:3]\n    y.append(row)\nreturn y",
    "tuples": "y = []\nfor i in range(k):\n    y.append((x[i], i))\nreturn y",
}


@pytest.mark.parametrize("name", ROWS)
def test_lists_of_rows_are_numbas(name):
    """An array would have copies of rows, where Python has one row in several places."""
    body = ROWS[name].replace("\n", "\n    ")
    function = defined(f"def f(x, k):\n    {body}\n", np=np)
    with pytest.warns(orion.SerialLoopWarning, match="the items of the list `y` are"):
        found = orion.parallel_for(function)(*given())
    for mine, its in zip(found, function(*given()), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("name", STAYS)
def test_others_are_as_python_has_them_or_refused(name):
    body = STAYS[name].replace("\n", "\n    ")
    function = defined(f"def f(x, k):\n    {body}\n", np=np)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = orion.parallel_for(function)(*given())
        except orion.UnsupportedLoopError:
            return
    want = function(*given())
    assert type(found) is type(want)
    np.testing.assert_array_equal(found, want)  # numbers of lists are Python's in functions that run as they are


def with_a_list(row):
    out = []
    for v in row:
        out.append(v * 2)
    return np.array(out)


def test_a_list_in_a_helper_is_told_of():
    def sums(a, b):
        for i in range(len(a)):
            b[i] = with_a_list(a[i]).sum()

    looped = orion.parallel_for(sums)
    with pytest.raises(orion.UnsupportedLoopError, match="lists are known in the decorated function alone"):
        looped.plan(np.ones((4, 3)), np.zeros(4))
    b = np.zeros(4)
    with pytest.warns(orion.SerialLoopWarning):
        looped(np.ones((4, 3)), b)
    assert b.tolist() == [6.0] * 4
