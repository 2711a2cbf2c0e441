"""Types of expressions and names: as NumPy has them."""

from __future__ import annotations

import math
import warnings
from itertools import product

import numpy as np
import pytest

import orion
from orion.errors import UnsupportedLoopError
from orion.frontend.parse import parse_function
from orion.ir.nodes import Assign, Expr, walk
from orion.ir.printer import print_expr
from orion.ir.types import ArrayType, ScalarType, SparseType
from orion.typing.infer import Typing, ValueType, infer_types
from tests import loop_functions
from tests.loop_text import defined, from_body, from_text

TYPES = {
    "W": ArrayType("float32", 2),
    "H": ArrayType("float64", 2),
    "T": ArrayType("float32", 3),
    "a": ArrayType("float64", 1),
    "f": ArrayType("float32", 1),
    "k": ArrayType("int32", 1),
    "s": ArrayType("int8", 1),
    "m": ArrayType("bool", 1),
    "R": SparseType(2, "int32", ("float32",)),
    "n": ScalarType("int64", weak=True),
    "x": ScalarType("float64", weak=True),
    "q": ScalarType("float32"),
    "i": ScalarType("int64", weak=True),
}
PARAMS = ", ".join(TYPES)

VALUES = {
    "W": np.ones((3, 4), np.float32),
    "H": np.ones((3, 4)),
    "T": np.ones((3, 4, 5), np.float32),
    "a": np.ones(4),
    "f": np.ones(4, np.float32),
    "k": np.arange(4, dtype=np.int32),
    "s": np.ones(4, np.int8),
    "m": np.ones(4, bool),
    "n": 4,
    "x": 0.5,
    "q": np.float32(2),
    "i": 1,
}


def typed(text: str) -> tuple[Typing, Expr]:
    function = from_body(f"value = {text}", PARAMS)
    statement = function.body[0]
    assert isinstance(statement, Assign)
    return infer_types(function, TYPES), statement.value


def described(kind: ValueType) -> str:
    """`float32[W.shape[1]]`, `~int64` (weak), `float64[?, ?]`."""
    lengths = ["?" if length is None else print_expr(length) for length in kind.lengths]
    return f"{'~' if kind.weak else ''}{kind.dtype}" + (f"[{', '.join(lengths)}]" if kind.rank else "")


EXPRESSIONS = [
    # subscripts
    ("W[i]", "float32[W.shape[1]]"),
    ("W[i, 0]", "float32"),
    ("W[:, 0]", "float32[W.shape[0]]"),
    ("W[1:, 0]", "float32[W.shape[0] - 1]"),
    ("W[i, 1:-1]", "float32[W.shape[1] - 2]"),
    ("W[i, :-2]", "float32[W.shape[1] - 2]"),
    ("W[i, :2]", "float32[?]"),
    ("W[i, n:]", "float32[?]"),
    ("W[i, ::2]", "float32[?]"),
    ("W[i, -2:]", "float32[?]"),
    ("T[i]", "float32[T.shape[1], T.shape[2]]"),
    ("T[i, :, 0]", "float32[T.shape[1]]"),
    ("k[i]", "int32"),
    # weak and strong scalars
    ("n", "~int64"),
    ("x", "~float64"),
    ("q", "float32"),
    ("n / 2", "~float64"),
    ("n // 2", "~int64"),
    ("n * x", "~float64"),
    ("x * q", "float32"),
    ("n * q", "float32"),
    ("n + k[i]", "int32"),
    ("x + k[i]", "float64"),
    ("k[i] / k[i]", "float64"),
    ("f[i] * a[i]", "float64"),
    ("f[i] * k[i]", "float64"),
    ("n < 3", "~bool"),
    ("k[i] < 3", "bool"),
    ("-n", "~int64"),
    ("not n", "~bool"),
    ("n ** 2", "~int64"),
    ("n ** -1", "~float64"),
    ("0 < n < 3", "~bool"),
    ("~k[i]", "int32"),
    ("n if n > 2 else x", "~float64"),
    ("f[i] if n > 2 else 0.0", "float32"),
    ("n > 1 and x > 1", "~bool"),
    # rows
    ("W[i] * x", "float32[W.shape[1]]"),
    ("W[i] @ f", "float32"),
    ("W @ f", "float32[W.shape[0]]"),
    ("f @ W", "float32[W.shape[1]]"),
    ("W @ H.T", "float64[W.shape[0], H.shape[0]]"),
    ("W[i] * H[i]", "float64[W.shape[1]]"),
    ("x * (q * W[i])", "float32[W.shape[1]]"),
    ("W[i] > 0", "bool[W.shape[1]]"),
    ("W + f", "float32[W.shape[0], W.shape[1]]"),
    ("2 * s", "int8[s.shape[0]]"),
    ("s / s", "float64[s.shape[0]]"),
    ("k / 2", "float64[k.shape[0]]"),
    ("-W[i]", "float32[W.shape[1]]"),
    # functions
    ("np.sqrt(x)", "float64"),
    ("np.sqrt(q)", "float32"),
    ("np.sqrt(W[i])", "float32[W.shape[1]]"),
    ("np.maximum(f, 0)", "float32[f.shape[0]]"),
    ("math.exp(q)", "~float64"),
    ("math.floor(q)", "~int64"),
    ("math.isnan(q)", "~bool"),
    ("abs(n)", "~int64"),
    ("abs(q)", "float32"),
    ("min(n, q)", "~float64"),
    ("min(2, q)", "float32"),
    ("max(n, 2, x)", "~float64"),
    ("min(f)", "float32"),
    ("sum(k)", "int32"),
    ("int(q)", "~int64"),
    ("float(q)", "~float64"),
    ("round(q)", "~int64"),
    ("round(q, 2)", "float32"),
    ("len(a)", "~int64"),
    ("pow(q, 2)", "float32"),
    ("np.float32(x)", "float32"),
    ("np.float32(a)", "float32[a.shape[0]]"),
    ("np.sum(k)", "int64"),
    ("k.sum()", "int64"),
    ("np.mean(k)", "float64"),
    ("np.mean(f)", "float32"),
    ("np.sum(W, axis=0)", "float32[W.shape[1]]"),
    ("T.sum(axis=-2)", "float32[T.shape[0], T.shape[2]]"),
    ("np.ones(1) * W[i]", "float64[W.shape[1]]"),
    ("W.sum(axis=-1)", "float32[W.shape[0]]"),
    ("W.sum(0)", "float32[W.shape[1]]"),
    ("np.argmax(f)", "int64"),
    ("f.max()", "float32"),
    ("np.any(m)", "bool"),
    ("np.dot(f, f)", "float32"),
    ("f.dot(f)", "float32"),
    ("np.outer(f, a)", "float64[f.shape[0], a.shape[0]]"),
    ("np.zeros(n)", "float64[n]"),
    ("np.zeros((n, 3), np.float32)", "float32[n, 3]"),
    ("np.full(3, q)", "float32[3]"),
    ("np.full(3, n)", "int64[3]"),
    ("np.zeros_like(W)", "float32[W.shape[0], W.shape[1]]"),
    ("np.zeros(3, dtype=f.dtype)", "float32[3]"),
    ("np.empty_like(f, dtype=np.int64)", "int64[f.shape[0]]"),
    ("W[i].copy()", "float32[W.shape[1]]"),
    ("a.astype(np.float32)", "float32[a.shape[0]]"),
    ("np.arange(n)", "int64[n]"),
    ("np.arange(0.0, 1.0, 0.1)", "float64[?]"),
    ("np.where(f > 0, f, 0)", "float32[f.shape[0]]"),
    ("np.clip(f, 0, 1)", "float32[f.shape[0]]"),
    ("np.cumsum(s)", "int64[s.shape[0]]"),
    ("np.argsort(f)", "int64[f.shape[0]]"),
    ("W.T", "float32[W.shape[1], W.shape[0]]"),
    ("np.linalg.norm(f)", "float32"),
    ("np.linalg.norm(k)", "float64"),
    ("np.linalg.solve(H, a)", "float64[a.shape[0]]"),
    ("f[i].item()", "~float64"),
    ("W.shape[0]", "~int64"),
    ("np.eye(3)", "float64[3, 3]"),
    ("a.size", "~int64"),
]


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_the_type_of_an_expression(text, expected):
    import math

    function = from_body(f"value = {text}", PARAMS, math=math)
    typing = infer_types(function, TYPES)
    assert described(typing.of(function.body[0].value)) == expected
    assert described(typing.name("value")) == expected


# What Python chooses when it runs has one type in a compiled loop; the last is no square system with these values.
NOT_NUMPY = {"n if n > 2 else x", "min(n, q)", "min(2, q)", "max(n, 2, x)", "np.linalg.solve(H, a)", "f @ W"}


@pytest.mark.parametrize("text", [text for text, _ in EXPRESSIONS if text not in NOT_NUMPY])
def test_numpy_has_the_same_dtype_rank_and_weakness(text):
    import math

    typing, expr = typed_with(text, math)
    value = eval(
        text, {"np": np, "math": math}, VALUES | {"W": np.ones((3, 4), np.float32), "f": np.ones(4, np.float32)}
    )
    kind = typing.of(expr)
    assert np.ndim(value) == kind.rank
    assert np.asarray(value).dtype.name == kind.dtype
    assert (type(value) in (bool, int, float)) == kind.weak


def typed_with(text: str, math) -> tuple[Typing, Expr]:
    function = from_body(f"value = {text}", PARAMS, math=math)
    return infer_types(function, TYPES), function.body[0].value


KINDS = {
    "weak bool": (ScalarType("bool", weak=True), True),
    "weak int": (ScalarType("int64", weak=True), 3),
    "weak float": (ScalarType("float64", weak=True), 1.5),
} | {
    name: (ScalarType(name), np.dtype(name).type(1))
    for name in ("bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64")
}
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "<<", "<", "==", "!="]


@pytest.mark.parametrize("op", OPERATORS)
def test_every_pair_of_scalars_has_the_type_that_numpy_gives(op):
    function = from_text(f"def f(p, q):\n    r = p {op} q\n")
    for (left, (p_type, p)), (right, (q_type, q)) in product(KINDS.items(), KINDS.items()):
        assert scalar_type(function, p_type, q_type) == computed_type(op, p, q), f"{left} {op} {right}"


def scalar_type(function, p: ScalarType, q: ScalarType) -> tuple[str, bool] | None:
    try:
        found = infer_types(function, {"p": p, "q": q}).name("r")
    except UnsupportedLoopError:
        return None
    return found.dtype, found.weak


def computed_type(op: str, p: object, q: object) -> tuple[str, bool] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = eval(f"p {op} q", {"p": p, "q": q})
    except TypeError:
        return None
    return np.asarray(value).dtype.name, type(value) in (bool, int, float)


# ---------------------------------------------------------------- names


def names_of(body: str) -> dict[str, str]:
    typing = infer_types(from_body(body, PARAMS), TYPES)
    return {name: described(kind) for name, kind in typing.names.items() if name not in TYPES}


NAMES = [
    ("t = 0.0\nfor j in range(n):\n    t += f[j]", {"t": "float32", "j": "~int64"}),
    ("t = 0\nfor j in range(n):\n    t += k[j]", {"t": "int32", "j": "~int64"}),
    ("t = 0\nt = t + 0.5", {"t": "~float64"}),
    ("t = 0\nfor j in range(n):\n    t += a[j] > 0", {"t": "int64", "j": "~int64"}),
    ("u = 0.0\nfor j in range(n):\n    v = u\n    u = f[j]", {"u": "float32", "v": "float32", "j": "~int64"}),
    ("w = W[i]\nw = w * 2", {"w": "float32[W.shape[1]]"}),
    ("w = W[i]\nw = H[i]", {"w": "float64[?]"}),
    ("p, q2 = n, f[i]", {"p": "~int64", "q2": "float32"}),
    ("for (r, c), v in R:\n    y = v * x", {"r": "~int64", "c": "~int64", "v": "float32", "y": "float32"}),
]


@pytest.mark.parametrize(("body", "expected"), NAMES, ids=[body for body, _ in NAMES])
def test_a_name_holds_everything_that_it_is_assigned(body, expected):
    assert names_of(body) == expected


def test_values_of_several_parts():
    events = SparseType(3, "int64", ("float32", "int8"), single=False)
    typing = infer_types(parse_function(loop_functions.tuple_values), {"events": events, "a": ArrayType("float64", 2)})
    assert [described(typing.name(name)) for name in ("i", "r", "weight")] == ["~int64", "float32", "int8"]


def halved(x):
    return x / 2


def first_and_last(row):
    return row[0], row[-1]


def test_what_a_helper_returns_is_inferred_from_its_arguments():
    function = from_body(
        "x1 = halved(n)\nx2 = halved(W[i])\np, r = first_and_last(k)",
        PARAMS,
        halved=halved,
        first_and_last=first_and_last,
    )
    typing = infer_types(function, TYPES)
    found = [described(typing.name(name)) for name in ("x1", "x2", "p", "r")]
    assert found == ["~float64", "float32[W.shape[1]]", "int32", "int32"]


def test_any_expression_over_the_names_can_be_asked_for():
    function = parse_function(loop_functions.sgd_epoch)
    types = {
        "ratings": SparseType(2, "int32", ("float32",)),
        "W": ArrayType("float32", 2),
        "H": ArrayType("float32", 2),
        "step": ScalarType("float64", weak=True),
        "reg": ScalarType("float64", weak=True),
    }
    typing = infer_types(function, types)
    found = {print_expr(node): described(typing.of(node)) for node in walk(function.body[0]) if is_sum(node)}
    assert found == {
        "r - W[i] @ H[j]": "float32",
        "err * H[j] - reg * W[i]": "float32[H.shape[1]]",
        "err * wi - reg * H[j]": "float32[W.shape[1]]",
    }
    with pytest.raises(KeyError):
        typing.name("missing")


def is_sum(node) -> bool:
    return getattr(node, "op", "") == "-" and hasattr(node, "left")


# ---------------------------------------------------------------- what has no type

REFUSED = [
    ("y = W[i, 0, 0]", "`W` has 2 dimensions and is given 3 subscripts", "W[i, 0, 0]"),
    ("y = n[0]", "`n` is a scalar and has no elements", "n[0]"),
    ("y = a[x]", "a subscript is a floating-point number", "x"),
    ("y = a[x:]", "the bound of a slice is not an integer", "x"),
    ("y = W[k, 0]", "an array of subscripts before a number is not supported", "k"),
    ("y = W[k, k]", "several arrays as subscripts are not supported", "k"),
    ("y = a[m, 0]", "`a` has 1 dimension and is given 2 subscripts", "a[m, 0]"),
    ("a[k] = 1.0", "an array of subscripts that is written to is not supported", "a[k] = 1.0"),
    ("W[k] += 1.0", "an array of subscripts that is written to is not supported", "W[k] += 1.0"),
    ("a[m] = 1.0", "a mask as a subscript that is written to is not supported", "a[m] = 1.0"),
    ("a[a > 1.0] = 0.0", "a mask as a subscript that is written to is not supported", "a[a > 1.0] = 0.0"),
    ("y = np.heaviside(x, 0.5)", "`np.heaviside` is not supported", "np.heaviside(x, 0.5)"),
    ("y = np.std(W + 1, axis=0)", "`np.std` with `axis=` is not supported", "np.std(W + 1, axis=0)"),
    ("y = np.cumsum(W, 0)", "given more arguments than are supported", "np.cumsum(W, 0)"),
    ("y = a.std(ddof=1)", "`std` with `ddof=` is not supported", "a.std(ddof=1)"),
    ("y = np.exp(a, dtype=np.float32)", "`np.exp` with `dtype=` is not supported", "np.exp(a, dtype=np.float32)"),
    ("y = np.argsort(W)", "`np.argsort` of an array of more than one dimension", "np.argsort(W)"),
    ("y = np.linalg.solve(k, k)", "`np.linalg.solve` of an array of integers", "np.linalg.solve(k, k)"),
    ("y = R[0, 0]", "`R` is a sparse array", "R"),
    ("y = np.ones(3) + np.ones(4)", "the lengths 3 and 4 do not fit", "np.ones(3) + np.ones(4)"),
    ("y = np.ones(3) @ np.ones(4)", "the lengths of the two sides of `@`", "np.ones(3) @ np.ones(4)"),
    ("y = n @ a", "`@` of a scalar", "n @ a"),
    ("y = x & 1", "`&` is not defined for float64 and int64", "x & 1"),
    ("y = ~x", "`~` of a floating-point number", "~x"),
    ("y = -m", "`-` of a truth value", "-m"),
    ("y = 1 if f > 0 else 2", "a condition is not a scalar", "f > 0"),
    ("if f > 0:\n    y = 1", "a condition is not a scalar", "f > 0"),
    ("y = not f", "a condition is not a scalar", "f"),
    ("y = 0 < f < 1", "a chain of comparisons of arrays", "0 < f < 1"),
    ("y = a if n > 1 else 0.0", "the alternatives have different shapes", "a if n > 1 else 0.0"),
    ("y = max(f, f)", "a minimum or maximum of arrays", "max(f, f)"),
    ("y = np.sum(n)", "`np.sum` of a scalar", "np.sum(n)"),
    ("y = np.where(f > 0)", "np.where with one argument", "np.where(f > 0)"),
    ("y = np.sum(W, axis=2)", "`axis` is not the number of an axis", "np.sum(W, axis=2)"),
    ("y = np.cumsum(W)", "a cumulated sum of more than one dimension", "np.cumsum(W)"),
    ("y = np.outer(W, f)", "`outer` of other than two rows", "np.outer(W, f)"),
    ("p, r = T.shape", "3 values cannot be unpacked into 2 targets", "p, r = T.shape"),
    ("y = W.shape[2]", "`W` has 2 dimensions", "W.shape[2]"),
    ("y = n.shape[0]", "`n` is a scalar", "n.shape[0]"),
    ("y = f.dtype", "`dtype` is used as a value", "f.dtype"),
    ("y = None", "`y` is given None", "y = None"),
    ("y = 1\ny = f", "`y` is a scalar in one place and a row here", "y = f"),
    ("y = 0.0\ny += f", "`y` is a scalar in one place and a row here", "y += f"),
    ("a = f", "the array `a` is assigned by its plain name", "a = f"),
    ("for a in range(n):\n    pass", "the array `a` is assigned by its plain name", "for a in range(n)"),
    ("a[0] = f", "a row is assigned to a scalar", "a[0] = f"),
    ("a[0] += f", "a row is assigned to a scalar", "a[0] += f"),
    ("a[:] = W", "a matrix is assigned to a row", "a[:] = W"),
    ("a[0] = None", "an array element is given something", "a[0] = None"),
    ("R[0, 0] = 1", "`R` is a sparse array", "R"),
    ("for j in range(x):\n    pass", "a bound of a range is not an integer", "x"),
    ("for j in range(len(a) / 2):\n    pass", "a bound of a range is not an integer", "len(a) / 2"),
    ("for (r, c), v in W:\n    pass", "`W` is not a sparse array", "for (r, c), v in W"),
    ("for (r, c, d), v in R:\n    pass", "an element of `R` has 2 keys and 1 values", "for (r, c, d), v in R"),
    ("for (r, c), (v, u) in R:\n    pass", "an element of `R` has 2 keys and 1 values", "for (r, c), (v, u) in R"),
    ("for r, c in R:\n    pass", "an element of `R` has 2 keys and 1 values", "for r, c in R"),
    ("p, r = W.shape[0], W.shape", "a tuple is used as a value", "p, r = W.shape[0], W.shape"),
    ("p, r, t = W.shape", "2 values cannot be unpacked into 3 targets", "p, r, t = W.shape"),
]


@pytest.mark.parametrize(("body", "what", "place"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_has_no_type_is_refused_with_its_place(body, what, place):
    with pytest.raises(UnsupportedLoopError) as error:
        infer_types(from_body(body, PARAMS), TYPES)
    lines = str(error.value).splitlines()
    assert what in lines[0]
    source, carets = (line.partition("| ")[2] for line in lines[1:3])
    assert source[carets.index("^") : len(carets)] == place


CURED = [
    ("for j in range(int(k), n):\n    pass", "`int` of an array", "one of its elements, `int(k[0])`, or pass"),
    ("y = float(a)", "`float` of an array", "one of its elements, `float(a[0])`, or pass the number, `a.item()`"),
    ("y = bool(W)", "`bool` of an array", "one of its elements, `bool(W[0, 0])`"),
    ("y = int(k[1:])", "`int` of an array", "`int(k[1:][…])`, an element of it"),
    ("y = math.sqrt(a)", "`math.sqrt` of an array", "`math.sqrt(a[0])`"),
    ("y = int((n, n))", "`int` of a tuple", "write one of its items"),
    ("for j in range(k, n):\n    pass", "a bound of a range is an array", "`k[0]`, or pass the number, `k.item()`"),
    ("for j in range(a):\n    pass", "a bound of a range is an array", "`int(a[0])`"),
    ("for j in range(x):\n    pass", "a bound of a range is not an integer", "write `int(x)`"),
    ("y = a[k:]", "the bound of a slice is an array", "`k[0]`"),
    ("y = np.sqrt(n > 1)", "`np.sqrt` of bool gives float16", "`np.sqrt(float(n > 1))`"),
    ("y = np.hypot(m, s)", "float16", "`np.hypot(m.astype(np.float64), s.astype(np.float64))`"),
    ("W[i, n > 1] = 1.0", "a subscript is a truth value", "`W[i]` in an `if n > 1:`, for the number `int(n > 1)`"),
    ("a[x > 5] = 1.0", "a subscript is a truth value", "for the mask write `a[:]` in an `if x > 5:`"),
    ("y = a[i] << n", "`<<` is not defined for float64 and int64", "convert what is a float, `int(a[i])`"),
    ("y = a & f", "`&` is not defined", "`a.astype(np.int64)` and `f.astype(np.int64)`"),
    ("y = m - m", "`-` is not defined for bool and bool", "convert them: `int(x)`"),
    ("W[i] += (1, 2, 3, 4)", "`+` is not defined for float32 and tuple", "`np.array((1, 2, 3, 4))`"),
    ("y = np.zeros(x)", "a shape is not an integer", "write `int(x)`"),
    ("y = orion.random()", "`orion.random` is given no seed", "write `orion.random(seed, i)`"),
    ("y = orion.random.integers(0, 9)", "is given no seed", "write `orion.random.integers(low, high, seed, i)`"),
    ("y = max((a[i], 0.2))", "`max` of a tuple", "`max(a[i], 0.2)`"),
    ("y = sum((a[i], 0.2))", "`sum` of a tuple", "write `a[i] + 0.2`"),
    ("y = np.where(f > 0)", "np.where with one argument", "`np.flatnonzero(f > 0)`"),
    ("y = 0.5\ny = a[y]", "a subscript is a floating-point number", "another name for the float"),
]


@pytest.mark.parametrize(("body", "what", "cure"), CURED, ids=[row[0] for row in CURED])
def test_what_is_refused_is_told_how_to_write_it(body, what, cure):
    with pytest.raises(UnsupportedLoopError) as error:
        infer_types(from_body(body, PARAMS, math=math, orion=orion), TYPES)
    first, *_, last = str(error.value).splitlines()
    assert what in first
    assert cure in last


def test_a_helper_returns_values_of_one_shape_and_the_function_any():
    either = defined("def either(f, n):\n    if n > 1:\n        return 1\n    return f\n")
    with pytest.raises(UnsupportedLoopError, match="the function returns values of different shapes"):
        infer_types(from_body("x = either(f, n)", PARAMS, either=either), TYPES)
    infer_types(from_body("if n > 1:\n    return\nif n > 0:\n    return n, 1\nreturn 2.5", PARAMS), TYPES)


def test_a_read_only_array_may_be_read_and_not_written():
    types = {"a": ArrayType("float64", 1, writeable=False), "b": ArrayType("float64", 1)}
    infer_types(from_body("b[0] = a[0]", "a, b"), types)
    with pytest.raises(UnsupportedLoopError, match="`a` is written, and is a read-only array"):
        infer_types(from_body("a[0] = b[0]", "a, b"), types)
