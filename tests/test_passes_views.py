"""Names of views become the rows that they stand for, and the function still computes the same."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import orion
from orion.dependence import references
from orion.errors import PlanError, UnsupportedLoopError
from orion.ir.nodes import Bind, walk
from orion.ir.printer import print_expr, print_function
from orion.ir.spans import NOWHERE
from orion.ir.types import ArrayType, ScalarType
from orion.passes.view import View, compose
from orion.pipeline import through_passes
from tests.loop_text import defined, from_body
from tests.trials import TIMES

TYPES = {
    "W": ArrayType("float64", 2),
    "H": ArrayType("float64", 2),
    "T": ArrayType("float64", 3),
    "a": ArrayType("float64", 1),
    "b": ArrayType("float64", 1),
    "perm": ArrayType("int64", 1),
    "n": ScalarType("int64", weak=True),
}
PARAMS = ", ".join(TYPES)
HEAD = "for i in range(n):\n"


def resolved(body: str):
    return through_passes(from_body(body, PARAMS), TYPES)


def inside(body: str) -> str:
    """The body of the loop over `i` after views are resolved."""
    text = print_function(resolved(HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")))
    return textwrap.dedent("\n".join(text.splitlines()[2:]))


# name · body of a loop over i · what it becomes
RESOLVED = [
    ("a row", "w = W[i]\na[i] = w[0]", "a[i] = W[i, 0]"),
    ("a row with a colon", "w = W[i, :]\na[i] = w[0]", "a[i] = W[i, 0]"),
    ("a column", "w = W[:, i]\nw[1] = w[0]", "W[1, i] = W[0, i]"),
    ("a row updated in place", "w = W[i]\nw -= 0.5", "W[i] -= 0.5"),
    ("a row written by a slice", "w = W[i]\nw[:] = w * 2", "W[i, :] = W[i] * 2"),
    ("an element updated", "w = W[i]\nw[2] += 1", "W[i, 2] += 1"),
    ("rows as operands", "w = W[i]\nh = H[i]\na[i] = w @ h", "a[i] = W[i] @ H[i]"),
    ("a row as an argument", "w = W[i]\na[i] = np.sum(w)", "a[i] = np.sum(W[i])"),
    ("a copy is private", "w = W[i].copy()\nw[0] = 1", "w = W[i].copy()\nw[0] = 1"),
    ("a copy of a view", "w = W[i]\nv = w.copy()\nv += w", "v = W[i].copy()\nv += W[i]"),
    ("a new row is private", "w = W[i]\nw = w - 1\nw[0] = 2", "w = W[i] - 1\nw[0] = 2"),
    ("private, then a view", "w = W[i] - 1\nw[0] = 2\nw = H[i]\nw[0] = 3", "w = W[i] - 1\nw[0] = 2\nH[i, 0] = 3"),
    ("a scalar is no view", "x = a[i]\nx += 1\nb[i] = x", "x = a[i]\nx += 1\nb[i] = x"),
    ("a view of a view", "t = T[i]\nw = t[1]\nw[0] = t[0, 0]", "T[i, 1, 0] = T[i, 0, 0]"),
    ("a view of all of a view", "w = W[i]\nv = w[:]\nv[0] = 1", "W[i, 0] = 1"),
    ("a slice of a view", "w = W[i]\nv = w[1:3]\na[i] = v @ v", "a[i] = W[i, 1:3] @ W[i, 1:3]"),
    ("counted from the start of a slice", "v = W[i, 1:]\nv[2] = 1", "W[i, 3] = 1"),
    ("a slice of the rest", "v = W[i, 1:]\nu = v[1:]\nu[:] = 0", "W[i, 2:] = 0"),
    ("a column of a matrix view", "t = T[i]\nc = t[:, 1]\nc[2] = 1", "T[i, 2, 1] = 1"),
    ("another name for an array", "x = W\nx[i, 0] = 1", "W[i, 0] = 1"),
    ("another name for another name", "x = W\ny = x\ny += 1", "W[:, :] += 1"),
    ("a private row under two names", "w = W[i] * 2\nv = w\nv[0] = 1", "w = W[i] * 2\nw[0] = 1"),
    ("bound again to another row", "w = W[i]\nw[0] = 1\nw = H[i]\nw[0] = 2", "W[i, 0] = 1\nH[i, 0] = 2"),
    (
        "bound to the same row in both branches",
        "if i > 1:\n    w = W[i]\nelse:\n    w = W[i]\nw[0] = 1",
        "if i > 1:\n    pass\nelse:\n    pass\nW[i, 0] = 1",
    ),
    ("used in the branch that binds it", "if i > 1:\n    w = W[i]\n    w[0] = 1", "if i > 1:\n    W[i, 0] = 1"),
    (
        "used in an inner loop",
        "w = W[i]\nfor k in range(3):\n    w[k] = a[k]",
        "for k in range(3):\n    W[i, k] = a[k]",
    ),
    ("bound in an inner loop", "for k in range(3):\n    w = W[k]\n    w[0] = i", "for k in range(3):\n    W[k, 0] = i"),
    ("read through a subscript", "w = W[perm[i]]\nw[0] = 1", "W[perm[i], 0] = 1"),
    (
        "a subscript that is written later",
        "w = W[perm[i]]\nperm[0] = 1\nw[0] = 1",
        "w_index = perm[i]\nperm[0] = 1\nW[w_index, 0] = 1",
    ),
    (
        "a subscript written through another name",
        "p = perm\nw = W[p[i]]\np[0] = 1\nw[0] = 1",
        "w_index = perm[i]\nperm[0] = 1\nW[w_index, 0] = 1",
    ),
    ("two views in one assignment", "w, h = W[i], H[i]\nw += h", "W[i] += H[i]"),
    ("a view moved along", "w = W[0]\nw = w[1:]\nw[i] = 1", "W[0, 1 + i] = 1"),
    (
        "a length of a view",
        "w = W[i]\nfor k in range(len(w)):\n    w[k] = w.shape[0] + w.size",
        "for k in range(W.shape[1]):\n    W[i, k] = W.shape[1] + W.shape[1]",
    ),
    ("a length of a copy", "w = W[i].copy()\na[i] = len(w)", "w = W[i].copy()\na[i] = W.shape[1]"),
    (
        "array attributes",
        "a[i] = W.size + len(W) + W.ndim + W.shape[-1]",
        "a[i] = W.shape[0] * W.shape[1] + W.shape[0] + 2 + W.shape[1]",
    ),
    (
        "a dtype",
        "z = np.zeros(W.shape, dtype=perm.dtype)\nz[0] = 1",
        "z = np.zeros((W.shape[0], W.shape[1]), dtype=np.int64)\nz[0] = 1",
    ),
    ("a shape unpacked", "r, c = W.shape\na[i] = r + c", "r, c = W.shape[0], W.shape[1]\na[i] = r + c"),
]


@pytest.mark.parametrize(("body", "after"), [row[1:] for row in RESOLVED], ids=[row[0] for row in RESOLVED])
def test_a_name_becomes_the_row(body, after):
    assert inside(body) == after


# name · body of a loop over i · what it becomes: the assignment stays
KEPT = [
    (
        "two rows",
        "if i > 1:\n    w = W[i]\nelse:\n    w = H[i]\nw[0] = 1",
        "if i > 1:\n    w = W[i]\nelse:\n    w = H[i]\nw[0] = 1",
    ),
    (
        "one of two rows",
        "w = W[i] if i > 1 else H[i]\nw[0] = 1",
        "if i > 1:\n    w = W[i]\nelse:\n    w = H[i]\nw[0] = 1",
    ),
    ("perhaps private", "w = W[i]\nif i > 1:\n    w = w * 2\nw[0] = 1", "w = W[i]\nif i > 1:\n    w = w * 2\nw[0] = 1"),
    ("the subscript is assigned", "k = i\nw = W[k]\nk += 1\nw[0] = 1", "k = i\nw = W[k]\nk += 1\nw[0] = 1"),
    ("the loop variable is assigned", "w = W[i]\ni = 0\nw[0] = 1", "w = W[i]\ni = 0\nw[0] = 1"),
    (
        "from the round before",
        "w = W[0]\nfor k in range(3):\n    w[0] = 1\n    w = W[k]",
        "w = W[0]\nfor k in range(3):\n    w[0] = 1\n    w = W[k]",
    ),
    (
        "from the last round",
        "w = W[0]\nfor k in range(3):\n    w = W[k]\nw[0] = 1",
        "w = W[0]\nfor k in range(3):\n    w = W[k]\nw[0] = 1",
    ),
    (
        "in a condition of `while`",
        "w = W[0]\nk = 0\nwhile w[0] > k and k < 3:\n    k += 1\n    w = W[k]",
        "w = W[0]\nk = 0\nwhile w[0] > k and k < 3:\n    k += 1\n    w = W[k]",
    ),
    ("a negative subscript of a slice", "v = W[i, 1:]\nv[-1] = 1", "v = W[i, 1:]\nv[-1] = 1"),
    ("a negative subscript of a slice with an end", "v = W[i, 1:3]\nv[-1] = 1", "v = W[i, 1:3]\nv[-1] = 1"),
    ("a slice with a step", "v = W[i, 1::2]\nv[1] = 1", "v = W[i, 1::2]\nv[1] = 1"),
    (
        "a subscript that goes below zero",
        "for k in range(2, -2, -1):\n    v = W[i, 1:]\n    v[k] = 1",
        "for k in range(2, -2, -1):\n    v = W[i, 1:]\n    v[k] = 1",
    ),
    (
        "a subscript that is assigned something negative",
        "for k in range(2):\n    k, z = k - 1, 0\n    v = W[i, 1:]\n    v[k] = 1",
        "for k in range(2):\n    k, z = k - 1, 0\n    v = W[i, 1:]\n    v[k] = 1",
    ),
]


@pytest.mark.parametrize(("body", "after"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
def test_a_name_that_may_be_several_rows_stays(body, after):
    assert inside(body) == after
    found = resolved(HEAD + textwrap.indent(body, "    "))
    assert any(isinstance(node, Bind) for statement in found.body for node in walk(statement))


@pytest.mark.parametrize("body", [row[1] for row in RESOLVED + KEPT], ids=[row[0] for row in RESOLVED + KEPT])
def test_the_function_computes_what_it_did(body):
    indented = HEAD + textwrap.indent(body, "    ")
    before = defined(f"def f({PARAMS}):\n" + textwrap.indent(indented, "    "))
    after = defined(print_function(resolved(indented)))
    assert run(after) == run(before)


def run(function) -> dict[str, list]:
    """The arrays after a run of the function on small arrays with distinct elements."""
    arrays = {
        "W": np.arange(1.0, 17.0).reshape(4, 4),
        "H": np.arange(1.0, 17.0).reshape(4, 4) / 8,
        "T": np.arange(64.0).reshape(4, 4, 4),
        "a": np.arange(4.0),
        "b": -np.arange(4.0),
        "perm": np.array([2, 0, 1, 3]),
    }
    function(**arrays, n=3)
    return {name: array.tolist() for name, array in arrays.items()}


REFUSED = [
    ("t = W.T\nt[0, i] = 1", "a name for a transposed or flattened array", "W.T.copy()"),
    ("f = W.ravel()\nf[i] = 1", "a name for a transposed or flattened array", "make a copy"),
    ("w = W[i]\nw = 1.0", "`w` is a row in one place and a scalar here", "use two names"),
]


@pytest.mark.parametrize(("body", "what", "hint"), REFUSED, ids=[row[0] for row in REFUSED])
def test_views_that_cannot_be_named_are_refused(body, what, hint):
    with pytest.raises(UnsupportedLoopError) as error:
        inside(body)
    assert what in str(error.value)
    assert hint in str(error.value)


def test_a_use_has_its_own_place_in_the_source():
    found = resolved("for i in range(n):\n    w = W[i]\n    a[i] = w[0] + w[1]")
    subscripts = [node for node in walk(found.body[0]) if getattr(node, "base", None) and node.base.name == "W"]
    assert [found.source.line(s.span.line)[s.span.column : s.span.end_column] for s in subscripts] == ["w[0]", "w[1]"]


def test_a_view_that_does_not_surely_compose_has_no_subscripts():
    body = from_body("for k in range(n):\n    a[k] = W[1:, 0:2] @ b[k:]", PARAMS).body[0]
    parts = {print_expr(node): node for node in walk(body) if hasattr(node, "lower")}
    outer = View("W", (parts["1:"], parts["0:2"]))
    first, second = parts["1:"].lower, parts["k:"].lower
    assert [print_expr(part) for part in compose(outer, (first,), frozenset())] == ["2", "0:2"]
    assert compose(outer, (second,), frozenset()) is None
    assert compose(outer, (second,), frozenset({"k"})) is not None
    assert compose(outer, (first, parts["0:2"].upper), frozenset()) is None
    assert [print_expr(part) for part in compose(outer, (first, first), frozenset())] == ["2", "1"]
    assert View("W", ()).at(NOWHERE).name == "W"


SIMPLE = [
    "w = W[i]", "w = W[k]", "w = W[perm[k]]", "w = H[i] * 2", "w = w + 1", "v = w", "v = H[k]", "v = T[i, k]",
    "v = w.copy()",
    "w, v = W[k], H[k]", "w = W[k] if k > 1 else H[i]", "w = v[1:]", "w += v[0]", "w *= 2", "w[k] += 1", "w[0] = v[k]",
    "v[:] = v[0] + 3", "v -= 1", "W[i, k] += 5", "H[k] += 1", "k = (k + 1) % 3", "perm[i] = k", "a[i] = w[0] + v[k]",
    "a[k] += len(w) + v.shape[0]",
]  # fmt: skip


def random_block(rng: np.random.Generator, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(rng.integers(1, 6)):
        kind = rng.integers(0, 10) if depth else 9
        inner = ["    " + line for line in random_block(rng, depth - 1)] if kind < 3 else []
        if kind == 0:
            lines += ["if k > 0:", *inner]
        elif kind == 1:
            lines += ["if a[k] > 2:", *inner, "else:", *("    " + line for line in random_block(rng, depth - 1))]
        elif kind == 2:
            lines += [str(rng.choice(["for j in range(2):", "for k in range(3):"])), *inner]
        else:
            lines.append(str(rng.choice(SIMPLE)))
    return lines


@pytest.mark.parametrize("seed", range(7 * TIMES))
def test_random_functions_compute_what_they_did(seed):
    rng = np.random.default_rng(seed)
    lines = ["k = 0", "w = W[0]", "v = H[1]", HEAD.rstrip(), *("    " + line for line in random_block(rng, 2))]
    body = "\n".join(["for t in range(1):", *("    " + line for line in lines)])
    text = f"def f({PARAMS}):\n" + textwrap.indent(body, "    ")
    after = defined(print_function(resolved(body)))
    assert outcome(after) == outcome(defined(text)), text


def outcome(function) -> dict[str, list] | str:
    """The arrays after a run; the kind of error where the random function leaves an array."""
    try:
        return run(function)
    except (IndexError, ValueError) as error:
        return type(error).__name__


# ---------------------------------------------------------------- parts of rows that stay names


def parts_of_rows(A, out, n):
    """`w` is a part of `v`, which is a row of `A`: one iteration writes what the next one reads."""
    for i in range(n):
        v = A[i]
        if A[i, 0] > 0.2:
            v = A[i + 1]
        w = v[1:]
        if A[i, 1] > 0.2:
            w = v[2:]
        w[0] = 1.0
        out[i] = v[2]


def test_a_part_of_a_part_is_a_part_of_the_array():
    A, out = np.random.default_rng(0).random((9, 9)), np.zeros(8)
    plan = orion.parallel_for(parts_of_rows).plan(A, out, 8)
    assert not plan.loops[0].is_parallel
    assert {one.array for one in plan.dependences} == {"A"}


def test_the_checker_follows_parts_of_parts_by_itself(monkeypatch):
    monkeypatch.setattr(references, "bound_rows", lambda _: {"v": {"A"}, "w": {"v"}})
    plan = orion.parallel_for(parts_of_rows).plan(np.random.default_rng(0).random((9, 9)), np.zeros(8), 8)
    assert plan.loops[0].is_parallel
    with pytest.raises(PlanError, match="A is written, and the plan does not say so"):
        plan.check()
