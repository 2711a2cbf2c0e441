"""Planning and calling accept the same functions: what a plan is made for is compiled, and gives what NumPy gives; what
cannot be compiled is refused when it is planned, with what to write instead."""

from __future__ import annotations

import linecache
import math
import warnings

import numpy as np
import pytest

import orion
from orion.errors import UnsupportedLoopError
from orion.kernel.support import numpys, vectors
from orion.typing.functions import FUNCTIONS, Form, Own, form_of, is_elementwise
from tests.trials import ALL, TIMES

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "ignore::RuntimeWarning")

REDUCTIONS = ("sum", "prod", "min", "max", "mean", "std", "var", "any", "all", "argmin", "argmax")
UFUNCS = sorted(
    name
    for name, found in vars(np).items()
    if isinstance(found, np.ufunc) and found.__name__ == name and found.nout == 1 and found.signature is None
)
TWO = {name for name in UFUNCS if getattr(np, name).nin == 2}
IN_MATH = sorted(name.removeprefix("math.") for name in FUNCTIONS if form_of(name) is Form.MATH)
TWO_IN_MATH = {"atan2", "copysign", "fmod", "gcd", "hypot", "pow"}

TOGETHER = 10
"""So many are compiled as one kernel."""

rng = np.random.default_rng(0)
NUMBERS = {
    "floats": (rng.uniform(0.1, 0.9, (3, 4)), rng.uniform(0.1, 0.9, (3, 4))),
    "integers": (rng.integers(1, 5, (3, 4)), rng.integers(1, 5, (3, 4))),
    "truths": (rng.random((3, 4)) > 0.5, rng.random((3, 4)) > 0.5),
    "complex": (rng.normal(size=(3, 8)).view(complex), rng.normal(size=(3, 8)).view(complex)),
}

OTHERS = [
    *(f"np.{name}({args})" for name in REDUCTIONS for args in (
        "A[i]", "A", "A, axis=0", "A, 1", "A[i], axis=-1", "A[i] > 0.5", "A[i], keepdims=True", "A, dtype=np.float64",
        "A[i, 0]", "A[:, 1]", "a=A", "A[i], ddof=1", "A[i], initial=1.0", "A[i][A[i] > 0.5]",
    )),
    *(f"A{row}.{name}({args})" for name in REDUCTIONS for row, args in (
        ("[i]", ""), ("", ""), ("", "axis=0"), ("", "1"), ("[i]", "keepdims=True"), ("[i]", "dtype=np.float64"),
        ("[i, A[i] > 0.5]", ""),
    )),
    "np.zeros(4)", "np.ones((2, 2))", "np.zeros(4, np.float32)", "np.ones(4, dtype=np.int32)", "np.full(4, 2.5)",
    "np.full((2, 2), 3)", "np.zeros(shape=4)", "np.full(4, fill_value=2.0)", "np.zeros_like(A[i])", "np.ones_like(A)",
    "np.full_like(A[i], 2.0)", "np.zeros_like(A[i], dtype=np.int64)", "np.ones_like(A[i], np.float32)",
    "np.full_like(A[i], 2, dtype=np.float32)", "np.zeros_like(A[i, 0])", "np.copy(A[i])", "A[i].copy()", "A.copy('K')",
    "np.dot(A[i], B[i])", "A[i].dot(B[i])", "A[i].dot(2.0)", "np.vdot(A[i], B[i])", "np.inner(A[i], B[i])",
    "np.inner(A, B)", "np.matmul(A[i], B[i])", "np.outer(A[i], B[i])", "np.outer(A, B)", "np.dot(A, B[i])", "A @ B[i]",
    "np.dot(A[i], 2.0)", "np.dot(A[i, 0], B[i, 0])", "np.sort(A[i])", "np.sort(A)", "np.sort(A, axis=0)",
    "np.sort(A, 0)", "np.sort(A[i], kind='stable')", "np.cumsum(A[i])", "np.cumsum(A)", "np.cumsum(A, axis=0)",
    "np.cumsum(A[i], dtype=np.float32)", "np.cumprod(A[i])", "A[i].cumsum()", "A.cumsum()", "np.round(A[i])",
    "np.round(A[i], 1)", "np.round(A[i], decimals=1)", "np.round(A[i, 0])", "np.round(A[i, 0], 1)", "round(A[i, 0])",
    "np.clip(A[i], 0.2, 0.5)", "np.clip(A[i, 0], 0.2, 0.5)", "np.clip(A[i], None, 0.5)", "np.clip(A[i], B[i], 0.9)",
    "np.clip(A[i], a_min=0.1, a_max=0.4)", "np.flip(A[i])", "np.flip(A)", "np.flip(A, 0)", "np.flip(A, axis=0)",
    "np.arange(4)", "np.arange(1, 5)", "np.arange(0, 8, 2)", "np.arange(0.0, 2.0, 0.5)",
    "np.arange(4, dtype=np.float32)",
    "np.arange(start=0, stop=4)", "np.where(A[i] > 0.5, A[i], B[i])", "np.where(A[i] > 0.5, 1.0, B[i])",
    "np.where(A[i, 0] > 0.5, A[i, 0], B[i, 0])", "np.where(A[i] > 0.5)", "np.argsort(A[i])", "np.argsort(A)",
    "np.argsort(A[i], kind='mergesort')", "A[i].argsort()", "A.argsort()", "np.searchsorted(np.sort(A[i]), B[i])",
    "np.searchsorted(np.sort(A[i]), B[i, 0])", "np.searchsorted(np.sort(A[i]), B[i], side='right')",
    "np.searchsorted(A, B[i])", "np.transpose(A)", "np.transpose(A, (1, 0))", "A.T", "np.ravel(A)", "A.ravel()",
    "A.ravel('F')", "A.flatten()", "np.diag(A[i])", "np.diag(A)", "np.diag(A, 1)", "np.diag(A, k=1)", "np.eye(3)",
    "np.eye(3, 4)", "np.eye(3, k=1)", "np.eye(3, dtype=np.float32)", "np.identity(3)", "np.median(A[i])",
    "np.median(A)", "np.median(A, axis=0)", "np.linalg.norm(A[i])", "np.linalg.norm(A)", "np.linalg.norm(A[i], 1)",
    "np.linalg.norm(A[i], ord=2)", "np.linalg.norm(A, axis=1)", "np.linalg.solve(A @ A.T + np.eye(3), B[:, 0])",
    "np.linalg.inv(A @ A.T + np.eye(3))", "np.linalg.det(A @ A.T)", "A[i].astype(np.float32)", "A[i].item(0)",
    "A[i, 0].astype(np.float32)", "A[i, 0].item()", "A[i].round(1)", "A[i].clip(0.1, 0.4)", "abs(A[i, 0])", "abs(A[i])",
    "min(A[i, 0], B[i, 0])", "max(A[i])", "sum(A[i])", "sum(A[i], 2.0)", "sum(A)", "sum(A[i] > 0.5)",
    "sum(A[i] > 0.5) - sum(B[:, 0] > 0.5)", "sum(~(A[i] > 0.5))", "sum(np.isnan(A[i]))", "max(A[i] > 0.5)",
    "math.log(A[i, 0] + 2.0, 3.0)", "pow(2, 3, 5)", "pow(A[i, 0], 2)", "pow(A[i], 2)",
    "int(A[i, 0])", "float(A[i, 0])", "bool(A[i, 0])", "len(A[i])", "np.float32(A[i, 0])", "np.bool_(A[i, 0])",
    "np.float32(A[i])", "np.absolute(A[i])", "np.maximum(A[i], 0.5)", "np.maximum(A[i], B[i, 0])", "np.amax(A[i])",
    "np.add(A[i], B[i], dtype=np.float32)", "np.sqrt(x=A[i])", "A[i, ::2]", "A[i, ::-1]", "A[i, A[i] > 0.5]",
    "A[A[:, 0] > 0.5]", "B[i][np.argsort(A[i])]", "A[i].size", "A.ndim", "A.shape[0]",
    "np.linspace(0.0, 1.0, 7)", "np.linspace(A[i, 0], B[i, 0], 5)", "np.linspace(0.0, 1.0, num=4)",
    "np.linspace(0.0, 1.0, 4, False)", "np.linspace(A[i], B[i], 3)", "np.hanning(9)", "np.hamming(5)", "np.blackman(6)",
    "np.bartlett(4)", "np.hanning(A[i, 0])", "np.concatenate((A[i], B[i]))", "np.concatenate((A, B))",
    "np.concatenate((A[i], B[i], A[i]))", "np.hstack((A[i], B[i]))", "np.concatenate(A)",
    "np.concatenate((A[i], B[i]), axis=0)", "np.concatenate((A[i], A[i] > 0.5))", "np.unique(A[i])", "np.unique(A)",
    "np.unique(A[i], return_counts=True)", "np.diff(A[i])", "np.diff(A)", "np.diff(A[i], 2)",
    "np.flatnonzero(A[i] > 0.5)", "np.flatnonzero(A)", "np.flatnonzero(A[i, 0])",
    "np.linalg.cholesky(A @ A.T + np.eye(3))", "np.percentile(A[i], 30.0)", "np.percentile(A, 40.0)",
    "np.percentile(A[i], (10.0, 20.0))", "np.quantile(A[i], 0.3)", "np.quantile(A[i, 0], 0.3)", "A[i].reshape(2, 2)",
    "A.reshape(12)", "np.reshape(A, (4, 3))", "A.reshape(-1)", "np.array([A[i, 0], 1.0])", "np.array([[1, 2], [3, i]])",
    "np.array(A)", "np.array([A[i, 0], A[i, 1]], dtype=np.float32)", "A[i][np.array([1, 0])]", "A[:, np.array([2, 2])]",
    "np.arange(1, 5)", "np.arange(i, 2 * i + 1)",
    "np.trace(A[:3, :3])", "np.trace(A)", "np.trace(A[i])", "np.trace(A, 1)", "np.expand_dims(A[i], 1)",
    "np.expand_dims(A[i], -2)", "np.expand_dims(A, 3)", "A[:, None] * B[None]", "A[i, :, None] + B[i]", "A[i][:, None]",
    "A[i, 0].real", "A[i].imag", "A.real", "A[i].conj()", "A[i, 1].conjugate()", "A[i, 1].conj()",
    "A[i] ** 2", "A[i, 0] ** 5", "A[i] / B[i]", "A[i, 0] / B[i, 0]", "np.complex64(A[i, 0])",
    "complex(A[i, 0].real, 2.0)",
    "A[i] == B[i]", "A[i, 0] != B[i, 0]", "np.zeros(4, complex)", "np.full(3, 1j)", "np.full_like(A[i], 2j)",
    "-A[i]", "bool(A[i, 0])",
]  # fmt: skip


def function_of(expressions):
    """A function that writes each value, or the sum of its elements with weights by their places, to an array."""
    lines = ["def f(A, B, w, out):", "    for i in range(A.shape[0]):"]
    for k, text in enumerate(expressions):
        lines += [f"        v{k} = {text}", f"        out[i, {k}] = {_one_number(text, f'v{k}')}"]
    source = "\n".join(lines) + "\n"
    name = f"<functions {abs(hash(source))}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space = {"np": np, "math": math}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def _one_number(text, name):
    A, B = NUMBERS["floats"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in (A, B), NUMBERS["integers"], NUMBERS["truths"], NUMBERS["complex"]:
            try:
                names = {"np": np, "math": math, "A": given[0], "B": given[1], "w": np.ones(12), "i": 0}
                rank = np.ndim(eval(text, names))
            except (TypeError, ValueError):
                continue
            return {0: name, 1: f"np.sum({name} * w[:{name}.size])"}.get(rank, f"np.sum({name})")
    return name


def arguments(kind, expressions):
    A, B = NUMBERS[kind]
    return A, B, np.arange(1.0, 13.0), np.zeros((A.shape[0], len(expressions)), complex if kind == "complex" else float)


def planned(expressions, kind):
    """Those that a plan is made for; the others are refused with what to write instead. Each by itself, or, if no more
    is asked for, several at a time as long as there is a plan for these."""
    size = 1 if ALL else TOGETHER
    groups = [expressions[first : first + size] for first in range(0, len(expressions), size)]
    return [text for group in groups for text in _planned_of(group, kind)]


def _planned_of(expressions, kind):
    refusal = _refusal(expressions, kind)
    if not refusal:
        return expressions
    if len(expressions) > 1:
        half = len(expressions) // 2
        return [*_planned_of(expressions[:half], kind), *_planned_of(expressions[half:], kind)]
    assert "help:" in refusal or "is not defined for" in refusal, expressions
    return []


def _refusal(expressions, kind):
    try:
        orion.parallel_for(function_of(expressions)).plan(*arguments(kind, expressions))
    except UnsupportedLoopError as error:
        return str(error)
    return ""


def check(expressions, kind, tried=lambda found: found):
    """Everything that a plan is made for runs, and gives what NumPy gives: what is `tried` of it, if no more is asked
    for."""
    planned_for = planned(expressions, kind)
    found = planned_for if ALL else tried(planned_for)
    wrong = []
    for first in range(0, len(found), TOGETHER):
        some = found[first : first + TOGETHER]
        mine, other = arguments(kind, some), arguments(kind, some)
        function = function_of(some)
        orion.parallel_for(function)(*mine)
        function(*other)
        pairs = zip(some, mine[-1].T.tolist(), other[-1].T.tolist(), strict=True)
        wrong += [(text, got, want) for text, got, want in pairs if not np.allclose(got, want, equal_nan=True)]
    assert not wrong
    return planned_for


def test_numba_or_orion_has_every_function_of_elements_that_is_accepted():
    from numba.np.ufunc_db import get_ufuncs

    has = {found.__name__ for found in get_ufuncs()}
    has |= {name.removeprefix("np.") for name, row in FUNCTIONS.items() if row.own is Own.ALWAYS}
    assert {name for name in UFUNCS if is_elementwise(f"np.{name}")} == has & set(UFUNCS)
    assert not is_elementwise("np.bitwise_count")


def test_what_rows_name_is_there():
    for name, row in FUNCTIONS.items():
        short = name.removeprefix("np.")
        assert row.own is Own.NEVER or {f"{short}_of", f"{short}_each"} <= vars(numpys).keys(), name
        assert not row.lanes or row.lanes in vars(vectors), name


@pytest.mark.parametrize("form", ["A[i, 0]", "A[i]"])
@pytest.mark.parametrize("kind", NUMBERS)
def test_functions_of_elements(form, kind):
    """If no more is asked for, of floats one in two runs, others of rows than of elements; of the rest one in four."""
    other, step = form.replace("A", "B"), 2 if kind == "floats" else 4
    texts = [f"np.{name}({f'{form}, {other}' if name in TWO else form})" for name in UFUNCS]
    found = check(texts, kind, lambda found: found[form == "A[i]" :: step])
    assert len(found) > {"truths": 30, "complex": 4}.get(kind, 50)


def _given(name):
    if name in TWO_IN_MATH:
        return "i, i + 1" if name == "gcd" else "A[i, 0], B[i, 0]"
    return "1.0 + A[i, 0]" if name == "acosh" else "A[i, 0]"


def test_functions_of_math():
    found = check([f"math.{n}({_given(n)})" for n in IN_MATH], "floats")
    assert len(found) == len(IN_MATH)


def of_each_function(expressions):
    """Of several calls of a function one in three: for each function others."""
    calls = {}
    for text in expressions:
        calls.setdefault(text.partition("(")[0], []).append(text)
    return {text for k, texts in enumerate(calls.values()) for text in texts[k % 3 :: 3] or texts[-1:]}


TRIED = of_each_function(OTHERS)


@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("kind", NUMBERS)
def test_other_functions_methods_and_keywords(kind, part):
    """Of other kinds than floats one in four runs, if no more is asked for: for each kind others. And of several calls
    of a function one in three."""
    if kind == "floats" or (part + [*NUMBERS].index(kind)) % 4 < TIMES:
        check(OTHERS[part::8], kind, lambda found: [text for text in found if text in TRIED])
    else:
        planned(OTHERS[part::8], kind)


def test_every_known_function_is_among_those_tried():
    tried = " ".join(OTHERS)
    apart = Form.ELEMENTS, Form.CONVERSION  # tests of their own have these
    names = [name for name in FUNCTIONS if name.startswith(("np.", ".")) and form_of(name) not in apart]
    left = {name for name in names if f"{name}(" not in tried}
    assert left - {".fill", ".sort"} == {"np.empty", "np.empty_like"}  # these return nothing, those have no values


@pytest.mark.parametrize(
    ("expression", "help_"),
    [
        ("np.bitwise_count(i)", "write it as a loop"),
        ("np.sum(B[B[:, 0] > i, 0])", "give what it picks a name first"),
        ("w[w > i].sum() if i > 1 else 0.0", "give what it picks a name first"),
        ("np.std(A + 1.0, axis=0)", "write a loop over the other axes"),
        ("(A + 1.0).var(0)", "write a loop over the other axes"),
        ("np.var(A[i], ddof=1)", "n / (n - ddof)"),
        ("A[i].max(initial=3.0)", "combine the result with that value"),
        ("np.linalg.norm(A, axis=1)", "write a loop over the other axes"),
        ("math.log(A[i, 0], 2)", "`math.log(x) / math.log(base)`"),
        ("pow(i, 3, 7)", "a loop of products"),
        ("sum(A[i], 3.0)", "a loop that adds the elements"),
        ("sum(A)", "`np.sum(a, axis=0)`"),
    ],
)
def test_what_is_refused_says_what_to_write(expression, help_):
    function = function_of([expression])
    with pytest.raises(UnsupportedLoopError) as error:
        orion.parallel_for(function).plan(*arguments("floats", [expression]))
    assert help_ in str(error.value)


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("A[i, 0] and 7.0", "7.0 if A[i, 0] else A[i, 0]"),
        ("A[i, 0] or 7.0", "A[i, 0] if A[i, 0] else 7.0"),
    ],
)
def test_a_choice_by_and_or_or_is_that_of_a_conditional_expression(expression, instead):
    check([expression, instead], "floats")


def test_what_is_written_instead_runs():
    check(["np.sum(A, axis=0) / A.shape[0]", "np.sum(np.where(w > i, w, 0.0))"], "floats")
