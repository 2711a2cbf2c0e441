"""What cannot be compiled is refused: with the place, the reason, and what to write instead."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict, deque

import numpy as np
import pytest
import scipy.special
import scipy.stats

import orion
from orion.errors import UnsupportedLoopError
from orion.frontend.parse import parse_function
from tests.loop_text import defined, from_body

TABLE = np.arange(4)
SETTINGS = {"rate": 0.5}


def recursive(x):
    return recursive(x) + 1


def ping(x):
    return pong(x)


def pong(x):
    return ping(x)


def with_array_default(x, table=TABLE):
    return x


def with_print(x):
    print(x)
    return x


def plus(x, y):
    return x + y


class Model:
    rate = 0.5
    scale = None


def prange(n):
    return range(n)


OUTSIDE = {
    "TABLE": TABLE,
    "SETTINGS": SETTINGS,
    "objects": [1, 2],
    "recursive": recursive,
    "ping": ping,
    "with_array_default": with_array_default,
    "with_print": with_print,
    "plus": plus,
    "model": Model(),
    "prange": prange,
    "math": __import__("math"),
}

# code of a loop body · the marked source text · what the message says · what it says to write instead
STATEMENTS = [
    (
        "try:\n    a[i] = 1\nexcept ValueError:\n    pass",
        "try:",
        "`try` is not supported",
        "check the data before the call",
    ),
    ("with open('f') as g:\n    pass", "with open('f') as g:", "`with` is not supported", "around the call"),
    ("raise", "raise", "this `raise` is not supported", "one of Python's own errors"),
    ("raise KeyError(1, 2)", "raise KeyError(1, 2)", "this `raise` is not supported", "a string or an f-string"),
    ("raise ValueError(n)", "n", "the text of this error is not supported", "a string or an f-string"),
    ("assert a[i] > 0, f'{n!r}'", "f'{n!r}'", "the text of this error is not supported", "an f-string of numbers"),
    ("import math", "import math", "an import is not supported", "top of the file"),
    ("from math import exp", "from math import exp", "an import is not supported", "top of the file"),
    ("global TABLE", "global TABLE", "`global` is not supported", "return the scalar"),
    ("x = 1\ndel x", "del x", "`del` is not supported", "leave it out"),
    ("def g(x):\n    return x", "def g(x):", "a function defined inside", "move the definition out"),
    ("class C:\n    pass", "class C:", "a class is not supported", "move the definition out"),
    ("match n:\n    case 1:\n        pass", "match n:", "`match` is not supported", "`if` and `elif`"),
    ("a.rate = 1", "a.rate", "assigning to `a.rate`", "write the elements"),
    ("a[0], *x = 1, 2", "*x", "a starred target", "one by one"),
    ("(x, y), z = (1, 2, 3), 3", "(x, y), z = (1, 2, 3), 3", "nested tuples of targets", "each line"),
    ("a[0] = n, m = 1", "a[0] = n, m = 1", "a chain of assignments", "each line"),
    ("x, y = a + b", "a + b", "cannot be unpacked into 2 targets", "a tuple of as many values"),
    ("x, y = 1, 2, 3", "1, 2, 3", "cannot be unpacked into 2 targets", "a tuple of as many values"),
    ("x = 1, 2\nx = 3", "1, 2", "a tuple as a value", "a name of its own"),
    ("a[()] = 1", "a[()]", "an empty subscript is not supported", "pass the number itself"),
    ("a[()] += 1", "a[()]", "an empty subscript is not supported", "pass the number itself"),
    ("W.shape[0] = 1", "W.shape[0]", "this cannot be assigned to", "an array element"),
]

EXPRESSIONS = [
    ("lambda x: x", "a `lambda` is not", "a function outside"),
    ("[x for x in a]", "a list comprehension is not", "write a `for` loop"),
    ("{x for x in a}", "a set comprehension is not", "write a `for` loop"),
    ("{x: 1 for x in a}", "a dict comprehension is not", "write a `for` loop"),
    ("sum(x for x in a)", "a generator expression is not", "write a `for` loop"),
    ("[1, 2]", "a list is not supported", "make an array"),
    ("{}", "a dict is not supported", "use arrays"),
    ("{1, 2}", "a set is not supported", "an array of flags"),
    ("'text'", "a string is not supported", "use numbers"),
    ("b'text'", "a string is not supported", "use numbers"),
    ("f'{n}'", "an f-string is not supported", "after the call"),
    ("(x := 1)", "`:=` is not supported", "a line of its own"),
    ("n is b", "`is` is not supported", "`==`"),
    ("n is not a", "`is not` is not supported", "`==`"),
    ("n in a", "`in` is not supported", "`x in (1, 2)`"),
    ("n not in a", "`not in` is not supported", "array of flags"),
    (str(2**64), "is too large", ""),
    ("model.scale.rate", "`model.scale.rate` is an attribute of a Model", "pass `model.scale.rate` as an argument"),
    ("np.timedelta64(1, 'D')", "`np.timedelta64` is not supported", "`x.view(np.int64)` for an array of dates"),
    ("np.nonzero(a > 0)[0]", "`np.nonzero` is not supported", "write `np.flatnonzero(a > 0)` inside a loop, or"),
    ("np.argwhere(a > 0)", "`np.argwhere` is not supported", "pass `np.argwhere(a > 0)`, computed before the call"),
    ("np.modf(a[i])", "`np.modf` is not supported", "call it on the whole array before the loop, `np.modf(a)`"),
    ("a['k']", "a string is not supported", "of a dict, `a['k']`; of a data frame, `a['k'].to"),
    ("np.iinfo(a).max", "`np.iinfo(a).max` is not supported", "`np.iinfo(x.dtype).max`"),
    ("a[b, None]", "a new axis beside a subscript that may be an array", "`row[:, None]`"),
    ("a['x'][i]", "a string is not supported", "of a data frame, `a['x'].to_numpy()`"),
    ("a[...]", "`...` in a subscript", "`A[:, 0]` for `A[..., 0]`"),
    ("a[()]", "an empty subscript is not", "`a[:]` for a whole array"),
    ("a[i][()]", "an empty subscript is not", "an array with one element"),
    ("a[*b]", "a starred expression is not", "one by one"),
    ("W.T[i]", "a subscript of a transpose", "`A[:, j]` for `A.T[j]`"),
    ("(a and b)[0]", "only a subscript of an array by its name", "write one subscript"),
    ("n > 1 and (a + b)[0]", "a subscript of an expression is not supported here", "a name first"),
    ("W.shape[n]", "the subscript of `shape` is not a constant", "`a.shape[0]`"),
    ("a.flat", "the attribute `flat` is not supported", "as an argument"),
    ("a.tolist()", "the method `tolist` is not known", "operators"),
    ("missing + 1", "`missing` is not defined", "an argument"),
    ("missing(1)", "`missing` is not defined", "define or import it"),
    ("missing.of.thing()", "`missing` is not defined", "an argument"),
    ("objects[0]", "`objects` is a list from outside", "pass the numbers and arrays"),
    ("SETTINGS['rate']", "`SETTINGS` is a dict from outside", "pass the numbers and arrays"),
    ("model.rate", "`model.rate` is an attribute of a Model from outside", "pass `model.rate` as an argument"),
    ("np", "`np` is a module used as a value", "name the function where it is called"),
    ("np.sqrt", "`np.sqrt` is a function used as a value", "name the function where it is called"),
    ("list", "`list` is a class", "make what it is for before the call"),
    ("plus", "`plus` is a function used as a value", "name the function where it is called"),
    ("n(1)", "`n` is called, and is a local name", "a function that is defined outside"),
    ("plus(1, 2)(3)", "what is called here is not a name", "by its name"),
    ("print(n)", "`print` is not supported", "return what is to be printed"),
    ("open('f')", "`open` is not supported", "into arrays before the loop"),
    ("input()", "`input` is not supported", "ask before the loop"),
    ("range(3)", "`range` outside a `for`", "`for i in range(…):`"),
    ("list(a)", "`list` is not supported", "make a NumPy array before"),
    ("sorted(a)", "`sorted` is not supported", "np.sort"),
    ("divmod(n, 2)", "`divmod` is not supported", "`a // b` and `a % b`"),
    ("isinstance(n, int)", "`isinstance` is not supported", "before the loop"),
    ("np.random.rand()", "`np.random.rand` is not supported", "orion.random(seed, i)"),
    ("np.loadtxt(n)", "`np.loadtxt` is not supported", "pass `np.loadtxt(n)`, computed before the call"),
    ("np.no_such_function(n)", "`np.no_such_function` is not defined", "define or import it"),
    ("math.fsum(a)", "`math.fsum` is not supported", ""),
    ("model(n)", "`model` cannot be called here", "a function written in Python"),
    ("np.add(a, b, out=a)", "the argument `out=` is not", "`a[:] = …`"),
    ("np.add.at(a, b[i], 2 * n)", "`np.add.at` is not supported", "write `a[b[i]] += 2 * n`; where that picks several"),
    ("np.subtract.at(a, i, W[i, 0])", "`np.subtract.at` is not", "write `a[i] -= W[i, 0]`"),
    ("np.multiply.at(a, b, a + 1)", "`np.multiply.at` is not", "write `a[b[k]] *= (a + 1)[k]` in a loop, `for k in ra"),
    ("np.maximum.at(a, b, -1)", "`np.maximum.at` is not", "write `a[b[k]] = np.maximum(a[b[k]], -1)` in a loop"),
    ("np.minimum.at(W, (b, i), a)", "`np.minimum.at` is not", "write `W[b, i] = np.minimum(W[b, i], a)`; where"),
    ("np.negative.at(a, b)", "`np.negative.at` is not", "write `a[b[k]] = np.negative(a[b[k]])` in a loop"),
    ("np.add.reduce(W)", "`np.add.reduce` is not", "write `np.sum(W, axis=0)`"),
    ("np.add.accumulate(W)", "`np.add.accumulate` is not", "computed before the call"),
    ("max(a, b, key=n)", "the argument `key=` is not", "keeps the best value"),
    ("plus(*b)", "a starred expression is not", "one by one"),
    ("plus(**b)", "`**` arguments are not", "one by one"),
    ("plus(1)", "`plus` is called without `y`", ""),
    ("plus(1, 2, 3)", "the arguments do not fit `plus(x, y)`", ""),
    ("plus(1, z=2)", "the arguments do not fit `plus(x, y)`", ""),
    ("plus(1, x=2)", "the arguments do not fit `plus(x, y)`", ""),
    ("recursive(n)", "`recursive` calls itself", "write it with a loop"),
    ("ping(n)", "`ping` calls itself", "write it with a loop"),
    ("with_array_default(n)", "the default of `table`", "give every parameter"),
    ("with_print(n)", "`print` is not supported", "return what is to be printed"),
]

LOOPS = [
    ("for i, x in np.ndenumerate(a): pass", "i", "the subscripts are not taken apart", "for i, j in"),
    ("for i in np.ndenumerate(a): pass", "np.ndenumerate(a)", "is not taken apart", "for (i, j), x in"),
    ("for i, x in zip(np.ndenumerate(a), a): pass", "np.ndenumerate(a)", "a loop over `np.ndenumerate(a)`", ""),
    ("for x in np.ndindex(n): pass", "x", "the subscripts are not taken apart", "for i, j in np.ndindex(A.shape)"),
    ("for x, y in np.ndindex(n): pass", "np.ndindex(n)", "`np.ndindex(n)` is not taken apart", "inside another"),
    ("for x, y in np.ndindex(n, n): break", "np.ndindex(n, n)", "is not taken apart", "inside another"),
    ("for x in (): pass", "()", "this goes through nothing", "leave the loop out"),
    ("for x in zip(): pass", "zip()", "this goes through nothing", "leave the loop out"),
    ("for x, y in enumerate(a, 2.5): pass", "2.5", "begins at an integer", "int("),
    ("for x in reversed(reversed(a)): pass", "reversed(reversed(a))", "is not supported", ""),
    ("for x in a.items(): pass", "a.items()", "the method `items` is not known", "(list(a.keys()), dtype=np.int64)"),
    ("for x, y in a.iterrows(): pass", "a.iterrows()", "the method `iterrows` is not known", "a['x'].to_numpy()"),
    ("for x in n > 0: pass", "n > 0", "a loop over `n > 0`", "use subscripts"),
    ("for x, y in zip(a, b, strict=True): pass", "zip(a, b, strict=True)", "is not supported", "leave `strict` out"),
    ("for x in zip(a, b): pass", "x", "does not take what this goes through apart", "as many names"),
    ("for x in enumerate(a): pass", "x", "does not take what this goes through apart", "as many names"),
    ("for x, y, z in zip(a, b): pass", "x, y, z", "does not take", "as many names"),
    ("for x, y in enumerate(): pass", "enumerate()", "a loop over `enumerate()`", "use subscripts"),
    ("for x, y in reversed(zip(a, b)): pass", "reversed(zip(a, b))", "is not supported", ""),
    ("for x in reversed(a, b): pass", "reversed(a, b)", "`reversed` takes one argument", ""),
    (
        "for x in reversed(range(0, 9, n)): pass",
        "range(0, 9, n)",
        "the step of this range is not a number",
        "as a number",
    ),
    (
        "for k, (x, (y, z)) in enumerate(W): pass",
        "(x, (y, z))",
        "does not take what this goes through apart",
        "as many",
    ),
    (
        "for key, (x, y), z in a: pass",
        "key, (x, y), z",
        "the elements of `a` are not taken apart",
        "for (i, j), value in a",
    ),
    (
        "for (k, (l, m)), r in a: pass",
        "(k, (l, m)), r",
        "the elements of `a` are not taken apart",
        "for (i, j), value in a",
    ),
    ("for (k, k), r in a: pass", "(k, k), r", "`k` stands twice", ""),
    ("for k, l in range(3): pass", "k, l", "a range has one loop variable", "for i in range"),
    ("for k in range(): pass", "range()", "`range` takes one to three bounds", "range(start, stop, step)"),
    ("for k in range(0, 3, 0): pass", "0", "the step of a range is 0", ""),
]


def refusal(body: str, **names) -> str:
    with pytest.raises(UnsupportedLoopError) as error:
        from_body("for i in range(n):\n" + textwrap.indent(body, "    "), **OUTSIDE, **names)
    return str(error.value)


def marked(message: str) -> str:
    """The source text above the carets of a message."""
    source, carets = (line.partition("| ")[2] for line in message.splitlines()[1:3])
    return source[carets.index("^") : len(carets)]


@pytest.mark.parametrize(
    ("body", "place", "what", "hint"), STATEMENTS + LOOPS, ids=[row[0] for row in STATEMENTS + LOOPS]
)
def test_a_statement_is_refused(body, place, what, hint):
    message = refusal(body)
    assert re.match(r"<test \d+>:\d+: ", message)
    assert what in message.splitlines()[0]
    assert marked(message) == place
    assert hint in message.partition("  help: ")[2]


@pytest.mark.parametrize(("text", "what", "hint"), EXPRESSIONS, ids=[row[0] for row in EXPRESSIONS])
def test_an_expression_is_refused(text, what, hint):
    message = refusal(f"a[0] = {text}")
    assert what in message.splitlines()[0]
    assert hint in message.partition("  help: ")[2]
    if message.startswith("<test"):  # not in a helper
        assert marked(message) in f"a[0] = {text}"


def test_the_whole_message():
    lines = refusal("a[i] = print(n)").splitlines()
    assert re.fullmatch(r"<test \d+>:3: `print` is not supported", lines[0])
    assert lines[1:] == [
        "   3 |         a[i] = print(n)",
        "     |                ^^^^^^^^",
        "  why:  iterations may run in another order and in other processes, where this would do something else",
        "  help: return what is to be printed, or write it into an array; to see progress, go through "
        "`tqdm(range(n))`, whose bar Orion shows",
    ]


def test_an_error_in_a_helper_is_shown_in_the_helper():
    message = refusal("a[i] = with_print(n)")
    assert message.splitlines()[1].endswith("print(x)")
    assert message.startswith(f"{__file__}:")


WHOLE_FUNCTIONS = [
    ("def f(a, *rest):\n    a[0] = 1\n", "the parameter `*rest` is not supported"),
    ("def f(a, **rest):\n    a[0] = 1\n", "the parameter `*rest` is not supported"),
    ("async def f(a):\n    a[0] = 1\n", "not a function written with `def`"),
    ("def f(a):\n    a[0] = x\n    x = 1\n", "`x` is used before it is assigned"),
    ("def f(a, n):\n    for i in range(n):\n        a[i] = x\n    x = 1\n", "`x` is used before it is assigned"),
    ("def f(a, n):\n    for i in range(x):\n        x = n\n", "`x` is used before it is assigned"),
    ("def f(a, np):\n    a[0] = np.pi\n", "the attribute `pi` is not supported"),
    ("def f(a, np):\n    a[0] = np.sqrt(2)\n", "the method `sqrt` is not known"),
    ("def f(a):\n    a[0] = f(a)\n", "`f` calls itself"),
]


@pytest.mark.parametrize(("text", "what"), WHOLE_FUNCTIONS, ids=[text for text, _ in WHOLE_FUNCTIONS])
def test_a_function_is_refused(text, what):
    with pytest.raises(UnsupportedLoopError) as error:
        parse_function(defined(text))
    assert what in str(error.value).splitlines()[0]


def test_a_name_assigned_in_a_round_before_is_no_error():
    from_body("for i in range(n):\n    if i > 0:\n        a[i] = x\n    x = i")


LOOKED_UP = [
    ("defaultdict(list)", "`defaultdict(list)` makes a dict, and is not supported", "use arrays, indexed by integers"),
    ("deque()", "`deque()` makes a list, and is not supported", "make a NumPy array before the call"),
    ("orion.random.uniform(1, i)", "`orion.random.uniform` is not supported", "* orion.random(seed, i)`"),
    ("scipy.stats.norm.cdf(a[i])", "`scipy.stats.norm.cdf` is not supported", "`scipy.stats.norm.cdf(a)`, and pass"),
    ("scipy.special.erf(a[i])", "`scipy.special.erf` is not supported", "`scipy.special.erf(a)`, and pass the result"),
]


@pytest.mark.parametrize(("text", "what", "cure"), LOOKED_UP, ids=[row[0] for row in LOOKED_UP])
def test_what_objects_of_libraries_are_and_what_to_write(text, what, cure):
    names = {"defaultdict": defaultdict, "deque": deque, "orion": orion, "scipy": scipy}
    with pytest.raises(UnsupportedLoopError) as error:
        from_body(f"for i in range(n):\n    y = {text}", **names)
    first, *_, last = str(error.value).splitlines()
    assert what in first
    assert cure in last
