"""Operators in place on whole arrays, `g += X[i]`: updates of elements to the analysis, and loops in kernels."""

from __future__ import annotations

import linecache
import textwrap
import warnings

import numpy as np
import pytest

import orion
from orion.frontend.parse import parse_function
from orion.ir.printer import print_function
from orion.ir.signature import argument_types
from orion.pipeline import through_passes
from tests.trials import worker_counts

HEADER = "def loop(X, y, D, w, g, G, k, step, n):\n"


def function_of(body):
    source = HEADER + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    file = f"<in place {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = {"np": np}
    exec(compile(source, file, "exec"), scope)
    return scope["loop"]


def arguments(rows=3000):
    rng = np.random.default_rng(11)
    return {
        "X": rng.random((rows, 12)), "y": rng.random(rows), "D": rng.random((rows, 5)), "w": rng.random(12),
        "g": np.zeros(12), "G": np.zeros((12, 5)), "k": np.zeros(5, np.int64), "step": 1e-4, "n": 4,
    }  # fmt: skip


GRADIENT = "for i in range(X.shape[0]):\n    g += X[i] * (X[i] @ w - y[i])\n"

# What is written, and the arrays that the parallel loop has copies of to add to.
BODIES = {
    "rows": ("for i in range(X.shape[0]):\n    g += X[i]", {"g"}),
    "gradient": (GRADIENT, {"g"}),
    "two": ("for i in range(X.shape[0]):\n    g += X[i]\n    w -= X[i]", {"g", "w"}),
    "integers": ("for i in range(X.shape[0]):\n    k += i", {"k"}),
    "matrix": ("for i in range(X.shape[0]):\n    G += np.outer(X[i], D[i])", {"G"}),
    "products": ("for i in range(X.shape[0]):\n    G += 2.0 * np.outer(X[i] - step, D[i]) + D[i]", {"G"}),
    "epochs": (f"for t in range(n):\n    g[:] = 0\n{textwrap.indent(GRADIENT, '    ')}    w -= step * g", {"g"}),
    "new array": (
        f"for t in range(n):\n    h = np.zeros(12)\n"
        f"{textwrap.indent(GRADIENT.replace('g +=', 'h +='), '    ')}    w -= step * h",
        {"h"},
    ),
}


def same(ours, wanted):
    for name, value in wanted.items():
        if name == "k":
            assert ours[name].tolist() == value.tolist()
        else:
            np.testing.assert_allclose(ours[name], value, rtol=1e-11)  # sums in another order


@pytest.mark.parametrize("name", BODIES)
def test_sums_of_whole_arrays_are_parallel(name):
    body, copied = BODIES[name]
    loop = function_of(body.replace("np.zeros(12)", "np.zeros(w.shape[0])"))
    ours, wanted = arguments(), arguments()
    loop(*wanted.values())
    function = orion.parallel_for(loop)
    with orion.session("threads", 2, force_parallel=True):
        plan = function.plan(**ours)
        assert {one.array for part in plan.function.loops for one in part.copies} == copied
        function(**ours)
    same(ours, wanted)


def test_bits_do_not_depend_on_the_workers():
    body, _ = BODIES["epochs"]
    results = []
    for workers in worker_counts(1, 2, 3):
        given = arguments()
        with orion.session("threads", workers, force_parallel=True):
            orion.parallel_for(function_of(body))(**given)
        results.append(given["w"].tobytes())
    assert len(set(results)) == 1


def test_copies_that_cost_too_much_leave_the_rounds_on_one_worker():
    """With few rows the copies do not pay: then nothing is taken apart, and the loop runs as written."""
    body, _ = BODIES["epochs"]
    given, wanted = arguments(rows=6), arguments(rows=6)
    loop = function_of(body)
    loop(*wanted.values())
    with orion.session("threads", 2), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = orion.parallel_for(loop)
        function(**given)
        assert len(function.plan(**given).function.loops) == 1
    same(given, wanted)


STAYS = {
    "another value": "g = g * 2.0\nfor i in range(n):\n    X[i] += g[0]\ng += 1.0\nX[n] = g",
    "a new row": "for i in range(n):\n    r = X[i].copy()\n    r += w\n    X[i] = r * 2.0",
    "a scalar": "s = 0.0\nfor i in range(n):\n    s += X[i, 0]\ny[0] = s",
    "a view": "for i in range(n):\n    r = X[i]\n    r += w",
}


@pytest.mark.parametrize("name", STAYS)
def test_names_that_are_no_arrays_of_the_caller(name):
    ours, wanted = arguments(20), arguments(20)
    loop = function_of(STAYS[name])
    loop(*wanted.values())
    with orion.session("threads", 2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            orion.parallel_for(loop)(**ours)
        except orion.UnsupportedLoopError:
            assert name == "another value"
            return
    same(ours, wanted)


def test_lengths_are_those_of_numpy():
    """A row of one element is stretched, as in NumPy; any other length is refused, with nothing written."""
    function = orion.parallel_for(function_of("for i in range(X.shape[0]):\n    g += X[i]"))
    given = arguments(3000)
    given["X"] = given["X"][:, :1].copy()
    function(**given)
    np.testing.assert_allclose(given["g"], given["X"].sum())
    given["X"], given["g"] = arguments(50)["X"][:, :7].copy(), np.zeros(12)
    with pytest.raises(orion.ArgumentError, match="differ in length: 12 and 7"):
        function(**given)
    assert not given["g"].any()


def test_the_text_of_the_program():
    function = parse_function(function_of("G += 1.0\ng -= step * w\nk //= 2"))
    types, _ = argument_types(arguments(3))
    text = print_function(through_passes(function, types))
    assert [line for line in text.splitlines() if "=" in line] == [
        "        G[:, :] += 1.0", "        g[:] -= step * w", "        k[:] //= 2",
    ]  # fmt: skip


def test_a_matrix_is_gone_through_by_rows_without_a_new_one():
    with orion.session("threads", 1):
        source = orion.parallel_for(function_of(BODIES["matrix"][0])).kernel_source(**arguments())
    assert "outer" not in source.replace("# G += np.outer(X[i], D[i])", "")
    assert "for k in range(G.shape[0])" in source
