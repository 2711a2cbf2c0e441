"""Lists that loops append to now and then: arrays of as many items as they may get, and how many they have."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

import orion
from tests.alike import alike
from tests.loop_text import defined

TAKEN = {
    "a break": "y = []\nfor v in x:\n    if v > 0.9:\n        break\n    y.append(v)\nreturn y",
    "some are left out": "y = []\nfor v in x:\n    if v > 0.5:\n        continue\n    y.append(v)\nreturn y",
    "a condition": "y = []\nfor v in x:\n    if v > 0.5:\n        y.append(v)\nreturn y",
    "two in an iteration": "y = []\nfor v in x:\n    y.append(v)\n    y.append(-v)\nreturn y",
    "two loops": "y = []\nfor v in x:\n    y.append(v)\nfor v in x:\n    y.append(-v)\nreturn y",
    "an inner loop": "y = []\nfor v in x:\n    for j in range(k):\n        y.append(v * j)\nreturn y",
    "counted while it grows": "y = []\nfor v in x:\n    y.append(v + len(y))\nreturn y",
    "read after an item": "y = []\nfor v in x:\n    y.append(v)\n    x[0] += y[-1]\nreturn y",
    "an item before": "y = []\ny.append(x[0])\nfor v in x:\n    y.append(v)\nreturn y",
    "a loop with an else": "y = []\nfor v in x:\n    y.append(v)\nelse:\n    y.append(x[1])\nreturn y",
    "a comprehension with an if": "return [v * k for v in x if v > 0.5 if v < 0.9]",
    "an array of one": "return np.array([v for v in x if v > 0.5])",
    "its array and its length": (
        "y = []\nfor i in range(k):\n    if x[i] > 0.3:\n        y.append(i)\nreturn len(y), np.array(y)"
    ),
    "items one by one": "y = [i for i in range(k) if x[i] > 0.3]\ns = 0.0\nfor i in y:\n    s += x[i]\nreturn s",
    "what functions of NumPy make of it": (
        "y = []\nfor v in x:\n    if v > 0.1:\n        y.append(v)\nreturn np.mean(y), np.max(y), len(y)"
    ),
    "until it changes little": (
        "y = []\nfor t in range(50):\n    loss = 0.0\n    for i in range(len(x)):\n        x[i] *= 0.5\n"
        "        loss += x[i]\n    y.append(loss)\n    if t > 0 and abs(y[-1] - y[-2]) < 0.1:\n        break\n"
        "return y, y[0], y[-1]"
    ),
    "every other round": (
        "y, z = [], []\nfor t in range(k):\n    for i in range(len(x)):\n        x[i] *= 0.9\n    if t % 2 == 0:\n"
        "        y.append(x[3])\n        z.append(t)\nreturn x, y, z"
    ),
    "anew in each round": (
        "s = 0.0\nfor t in range(k):\n    y = []\n    for v in x:\n        if v > s:\n            y.append(v)\n"
        "    s += len(y) * 0.01\n    for v in y:\n        s += v * 0.001\nreturn s"
    ),
    "rows": "y = []\nfor i in range(k):\n    if x[i] > 0.3:\n        y.append(x * i)\nreturn np.array(y)",
    "pairs": "y = []\nfor i in range(k):\n    if x[i] > 0.3:\n        y.append((i, i + 1))\nreturn np.array(y)",
    "truth values": "y = []\nfor i in range(k):\n    if x[i] > 0.3:\n        y.append(x[i] > 0.7)\nreturn y",
    "none": "y = []\nfor v in x:\n    if v > 9.0:\n        y.append(v)\nreturn y, len(y)",
}

STAYS = {
    "a loop variable that changes": "y = []\nfor i in range(k):\n    i = 2 * i\n    y.append(i * 1.0)\nreturn y",
    "a while": "y = []\nwhile len(y) < k:\n    y.append(x[len(y)])\nreturn y",
    "a bound that changes": "y = []\nfor i in range(k, 9):\n    k += 1\n    y.append(i * 1.0)\nreturn y",
    "a bound of the outer loop": "y = []\nfor i in range(k):\n    for j in range(i):\n        y.append(x[j])\nreturn y",
    "a step of a call": "y = []\nfor i in range(0, 9, k):\n    y.append(i * 1.0)\nreturn y",
    "gone through while it grows": (
        "y = []\ny.append(1.0)\nfor v in y:\n    if v < 9:\n        y.append(v + 1)\nreturn y"
    ),
    "two types": "y = []\nfor i in range(k):\n    y.append(x[i])\n    y.append(1.0)\nreturn y",
    "an item is changed": "y = []\nfor v in x:\n    if v > 0.5:\n        y.append(v)\ny[0] = 2.0\nreturn y",
    "a part": "y = []\nfor v in x:\n    if v > 0.5:\n        y.append(v)\nreturn y[1:]",
    "another name": "y = []\nfor v in x:\n    if v > 0.5:\n        y.append(v)\nz = y\nreturn z",
    "a test": "y = []\nfor v in x:\n    if v > 0.5:\n        y.append(v)\nif y:\n    return 1\nreturn 2",
}


def given(n=40):
    return np.random.default_rng(n).random(n), 9


def of_text(text):
    body = text.replace("\n", "\n    ")
    return defined(f"def f(x, k):\n    {body}\n", np=np)


def assert_same(found, want):
    alike(found, want, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", TAKEN)
def test_is_what_python_gives(name, workers):
    function = of_text(TAKEN[name])
    with orion.session(workers=workers, force_parallel=workers > 1):
        decorated = orion.parallel_for(function)
        decorated.plan(*given()).check()  # it is analysed
        for n in (40, 9):
            mine, its = given(n), given(n)
            assert_same(decorated(*mine), function(*its))
            np.testing.assert_allclose(mine[0], its[0], rtol=1e-12)


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_is_what_python_gives_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for name in ("a condition", "until it changes little", "every other round", "pairs"):
            function = of_text(TAKEN[name])
            assert_same(orion.parallel_for(function)(*given()), function(*given()))


@pytest.mark.parametrize("name", ["until it changes little", "every other round"])
def test_loops_beside_it_are_shared_out(name):
    with orion.session(workers=2, force_parallel=True):
        assert orion.parallel_for(of_text(TAKEN[name])).plan(*given()).is_parallel


@pytest.mark.parametrize("name", STAYS)
def test_others_are_as_python_has_them_or_refused(name):
    function = of_text(STAYS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decorated = orion.parallel_for(function)
        with pytest.raises(orion.UnsupportedLoopError):
            decorated.plan(*given())
        try:
            found = decorated(*given())
        except orion.UnsupportedLoopError:
            return
    want = function(*given())
    assert type(found) is type(want)
    np.testing.assert_array_equal(found, want)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("place", ["0", "-1", "2", "-3", "k", "-1 if k else 0"])
def test_an_item_that_there_is_not(place):
    function = of_text(f"y = []\nfor i in range(k):\n    if x[i] > 2:\n        y.append(x[i])\nreturn y[{place}]")
    with pytest.raises(IndexError, match="list index out of range"):
        function(*given())
    with pytest.raises((orion.OutOfBoundsError, IndexError)) as caught:
        orion.parallel_for(function)(*given())
    if " " not in place:
        assert "the list `y` has no such item" in str(caught.value)
        assert "y[" in str(caught.value)


def forever(x, k):
    losses = []
    for _ in range(k):
        x *= 0.5
        losses.append(x[0])
        if x[0] < 1e-3:
            break
    return losses


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_no_more_than_a_gigabyte_is_taken_for_one():
    decorated = orion.parallel_for(forever)
    assert_same(decorated(np.ones(3), 100), forever(np.ones(3), 100))
    with pytest.raises(orion.UnsupportedLoopError, match="where it may have 10000000000 items"):
        decorated.plan(np.ones(3), 10**10)
    np.testing.assert_array_equal(decorated(np.ones(3), 10**10), forever(np.ones(3), 10**10))
    assert_same(decorated(np.ones(3), 20), forever(np.ones(3), 20))


# ---------------------------------------------------------------- random lists


def random_text(rng):
    """A function that appends to two lists here and there, and what it returns of them."""
    lines = ["a, b, s = [], [], 0.0"]

    def value(depth):
        return rng.choice([f"x[i{depth}]", f"x[i{depth}] * s", "x[0] + s", f"x[i{depth}] - len(a)"])

    def block(depth, pad):
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(["append", "append", "if", "loop", "last", "scalar", "break", "update"])
            if kind == "append":
                lines.append(f"{pad}{rng.choice('ab')}.append({value(depth)})")
            elif kind == "if":
                lines.append(f"{pad}if x[i{depth}] > {rng.choice([0.2, 0.5, 0.8])}:")
                block(depth, pad + "    ")
            elif kind == "loop" and depth < 2:
                lines.append(f"{pad}for i{depth + 1} in range({rng.choice(['k', '3', 'len(x) // 5', '2, k'])}):")
                block(depth + 1, pad + "    ")
            elif kind == "last":
                name = rng.choice("ab")
                lines.append(f"{pad}if len({name}) > 1:")
                lines.append(f"{pad}    s += {name}[{rng.choice(['-1', '-2', '0', '1'])}] * 0.25")
            elif kind == "break" and depth:
                lines.append(f"{pad}if len(a) > {rng.randint(2, 30)}:")
                lines.append(f"{pad}    break")
            elif kind == "update":
                lines.append(f"{pad}for j in range(len(x)):")
                lines.append(f"{pad}    x[j] = x[j] * 0.5 + 0.2")
            else:
                lines.append(f"{pad}s = s * 0.5 + {value(depth)}")

    for _ in range(rng.randint(1, 3)):
        lines.append(f"for i0 in range({rng.choice(['k', 'len(x)', '1, 9'])}):")
        block(0, "    ")
    if rng.random() < 0.5:
        lines += ["for v in b:", "    s += v * 0.125"]
    lines.append(f"return {rng.choice(['a, b, s', 'b, len(a), s', 'np.array(a), s, len(b)', 's, len(a) + len(b)'])}")
    return "\n".join(lines)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("seed", range(12))
def test_random_lists(seed):
    text = random_text(random.Random(seed))
    function = of_text(text)
    want = function(*given(20))
    for workers in (1, 2):
        with orion.session(workers=workers, force_parallel=True):
            mine = given(20)
            try:
                found = orion.parallel_for(function)(*mine)
            except orion.UnsupportedLoopError:
                continue
            for one, other in zip(found, want, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=text)


# ---------------------------------------------------------------- items that are read back

BACK = {
    "integers in narrow products": (
        "y = []\nfor i in range(len(x)):\n    if x[i] >= 0:\n        y.append(2 * i + 1)\nfor i in range(len(out)):\n"
        "    out[i] = small[i] * y[2]\nreturn y[-1], y[0]"
    ),
    "truth values that are added": (
        "y = []\nfor i in range(len(x)):\n    if x[i] >= 0:\n        y.append(i > 1)\ns = 0\n"
        "for v in y:\n    s += v + v\nreturn s"
    ),
    "the last but none": "y = []\nfor v in x:\n    if v > 0.1:\n        y.append(v)\nreturn y[-0], y[0]",
    "floats": (
        "y = []\nfor i in range(len(x)):\n    if x[i] >= 0:\n        y.append(i / 4)\ns = 0.0\n"
        "for v in y:\n    s += v\n"
        "return s, y[1], y[-2]"
    ),
}


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", BACK)
def test_items_are_pythons_where_they_are_read(name, workers):
    body = BACK[name].replace("\n", "\n    ")
    function = defined(f"def f(x, small, out):\n    {body}\n", np=np)

    def arrays():
        return np.random.default_rng(0).random(9), np.full(9, 50, np.int8), np.zeros(9)

    with orion.session(workers=workers, force_parallel=True):
        mine, its = arrays(), arrays()
        with np.errstate(over="ignore"):
            assert_same(orion.parallel_for(function)(*mine), function(*its))
        np.testing.assert_array_equal(mine[2], its[2])


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("item", ["i", "i * 1.0"])
def test_dividing_by_an_item_that_is_0_is_pythons_error(item):
    function = of_text(
        f"y = []\nfor i in range(len(x)):\n    if x[i] >= 0:\n        y.append({item})\nfor v in y:\n"
        f"    x[0] += 1 / v\nreturn x"
    )
    with pytest.raises(ZeroDivisionError):
        orion.parallel_for(function)(*given())


@pytest.mark.parametrize("body", [
    "for w in y:\n    w[0] = 9.0", "for w in y:\n    w *= 2", "w = y[-1]\nw += 1", "w = y[0]\nw[1] = 5.0",
    "for i in range(len(y)):\n    w = y[i]\n    w *= 0", "for w in y:\n    for j in range(2):\n        w[j] -= j",
])  # fmt: skip
def test_rows_that_are_written_to_are_no_items(body):
    """A list holds the rows themselves."""
    text = f"y = []\nfor i in range(len(x)):\n    if x[i, 0] >= 0:\n        y.append(x[i])\n{body}\nreturn len(y)"
    x = np.arange(8.0).reshape(4, 2)
    with pytest.raises(orion.UnsupportedLoopError, match="the items of the list `y` are arrays that are written to"):
        orion.parallel_for(of_text(text)).plan(x, 3)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2])
def test_copies_of_rows_may_be_written_to(workers):
    """As the message says to write."""
    text = (
        "y = []\nfor i in range(len(x)):\n    if x[i, 0] >= 2:\n        y.append(x[i].copy())\n"
        "for w in y:\n    w *= 2\nreturn np.array(y)"
    )
    x = np.arange(8.0).reshape(4, 2)
    with orion.session(workers=workers, force_parallel=True):
        decorated = orion.parallel_for(of_text(text))
        decorated.plan(x, 3)
        assert_same(decorated(x, 3), of_text(text)(x, 3))
    assert x.sum() == 28


def test_a_name_of_the_users_is_no_counter():
    text = (
        "y = []\ny_length = 0.5\nfor v in x:\n    y_length = 3.5 * y_length * (1 - y_length)\n"
        "    if v > y_length:\n        y.append(v)\nreturn y, y_length"
    )
    told = " ".join(str(orion.parallel_for(of_text(text)).plan(*given())).split())
    assert "`y_length` passes a value from one iteration to the next" in told
    assert "how many items `y` has passes from one iteration to the next" in told
    assert "y_length_" not in told
