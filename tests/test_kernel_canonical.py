"""Kernels that differ in names and comments alone are compiled once, and what is said of them is in their own names."""

import ast
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import orion
from benchmarks.polybench.kernels import KERNELS
from orion.kernel.build import compile as compiling
from orion.kernel.build.canonical import DOCSTRING, canonical
from orion.kernel.build.compile import RECEIVE
from tests.kernel_loops import kernel_cache

__all__ = ["kernel_cache"]


def kernels_of(function, *arguments):
    """The modules that the loops of a call are in, one for each loop."""
    found = []
    plain = compiling.compile_kernel

    def noted(source):
        found.append(plain(source))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "compile_kernel", noted)
        orion.parallel_for(function)(*arguments)
    return [kernel.module for kernel in found]


def products(A, B, C, D):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] = 0.0
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]  # the first product
    for row in range(B.shape[0]):
        for column in range(C.shape[1]):
            D[row, column] = 0.0
            for inner in range(B.shape[1]):
                D[row, column] += B[row, inner] * C[inner, column]


def other_names(first, second, third, fourth):
    for x in range(first.shape[0]):
        for y in range(second.shape[1]):
            third[x, y] = 0.0
            for z in range(first.shape[1]):
                third[x, y] += first[x, z] * second[z, y]
    for x in range(third.shape[0]):
        fourth[x, 0] = 1.0


def test_loops_of_one_form_are_one_module(kernel_cache):
    rng = np.random.default_rng(0)
    given = [rng.random((40, 40)) for _ in range(4)]
    expected = given[0] @ given[1]
    first, second = kernels_of(products, *given)
    assert first is second
    np.testing.assert_allclose(given[2], expected)
    np.testing.assert_allclose(given[3], given[1] @ expected)
    assert kernels_of(other_names, *given)[0] is first


def test_types_are_told_apart(kernel_cache):
    modules = {
        kernels_of(products, *(np.ones((40, 40), dtype) for _ in range(4)))[0].__name__
        for dtype in (np.float64, np.float32, np.int64)
    }
    assert len(modules) == 3


def same_but_for_names(text, public):
    """Check that the canonical text is the text with each name replaced by one of its own."""
    found = canonical(text, public)
    users = dict(found.names)
    assert len({*users.values()}) == len(users)
    assert len(found.text.splitlines()) == len(text.splitlines())
    again = ast.parse(found.text)
    for node in ast.walk(again):
        match node:
            case ast.Name() | ast.alias():
                field = "id" if isinstance(node, ast.Name) else "name"
            case ast.arg():
                field = "arg"
            case ast.FunctionDef():
                field = "name"
            case _:
                continue
        setattr(node, field, users.get(getattr(node, field), getattr(node, field)))
    plain = ast.parse(text)
    plain.body[0] = again.body[0] = ast.Pass()
    assert ast.dump(again) == ast.dump(plain)
    assert found.text.startswith(DOCSTRING)
    assert not [line for line in found.text.splitlines() if line.lstrip().startswith("# ")]
    assert canonical(found.text, public).text == found.text


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_nothing_but_names_is_changed(kernel):
    preparation = orion.parallel_for(kernel.function)._preparations.plain
    loops = preparation.prepare(kernel.inputs("small"), 2, True).program.loops
    assert loops
    for loop in loops:
        same_but_for_names(loop.kernel.text, frozenset({loop.kernel.entry, RECEIVE}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import cmath as c\ndef tile(d):\n    d.T[0] = c.T", "import cmath as c\ndef tile(v0):\n    v0.T[0] = c.T"),
        ("def tile(v0, b, c):\n    return b.v0(v0, c=c)", "def tile(v0, v1, c):\n    return v1.v0(v0, c=c)"),
        ("def tile(a, axis):\n    return sum(a, axis=axis)", "def tile(v0, axis):\n    return sum(v0, axis=axis)"),
        ("def tile(max, b):\n    return max + b", "def tile(v0, v1):\n    return v0 + v1"),
        ("def f(max):\n    max = 1\ndef tile(b):\n    max(b)", "def v0(max):\n    max = 1\ndef tile(v1):\n    max(v1)"),
        ("def tile(a):\n    return 'a' + \"a # a\" + a", "def tile(v0):\n    return 'a' + \"a # a\" + v0"),
        ("def tile(v1, v0):\n    return v1 - v0", "def tile(v0, v1):\n    return v0 - v1"),
        ("def tile(größe, ünder):\n    return größe - ünder", "def tile(v0, v1):\n    return v0 - v1"),
    ],
)  # fmt: skip
def test_names_that_stand_for_something_else_stay(text, expected):
    assert canonical(text, frozenset({"tile"})).text == expected


def test_texts_are_made_in_many_threads_at_once():
    text = "def tile(a):\n" + "\n".join(f"    b{k} = a[{k}] + (a[0] + {k})" for k in range(300))
    with ThreadPoolExecutor(8) as threads:
        made = [*threads.map(lambda _: canonical(text, frozenset({"tile"})), range(200))]
    assert {one.text for one in made} == {made[0].text}
