"""Arrays that a function makes between its loops: results on any number of workers, memory, plans, refusals."""

from __future__ import annotations

import json
import re
import weakref

import numpy as np
import pytest

import orion
from orion.cost.sizes import Sizes
from orion.inspect.text.text import plan_text
from orion.ir.printer import print_function
from orion.ir.types import ArrayType, ScalarType
from orion.pipeline import through_passes
from orion.plan.planner import plan_program
from orion.prepare import Preparation
from orion.prepared_call import Options
from orion.unanalysed import compiled_as_it_is
from tests.loop_text import from_body
from tests.made_functions import cases, jacobi, jacobi_with_copies, of_a_branch, padded, rows_of_their_own
from tests.trials import worker_counts

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

NAMES = list(cases())
TYPES = {
    "A": ArrayType("float64", 2),
    "a": ArrayType("float32", 1),
    "k": ArrayType("int64", 1),
    "n": ScalarType("int64", weak=True),
    "x": ScalarType("float64", weak=True),
}


def check(name):
    """The decorated function returns what the undecorated one does, of the same types, and changes its arrays alike."""
    function, expected = cases()[name]
    _, arguments = cases()[name]
    ours = orion.parallel_for(ordered=True)(function)
    wanted = ours.serial(*expected)
    for _ in range(1 if any(isinstance(one, np.ndarray) for one in expected) else 2):
        same(ours(*arguments), wanted)
    same(arguments, expected)


def same(ours, wanted):
    if isinstance(wanted, tuple):
        assert len(ours) == len(wanted)
        for one, other in zip(ours, wanted, strict=True):
            same(one, other)
    elif isinstance(wanted, np.ndarray):
        assert isinstance(ours, np.ndarray)
        assert ours.dtype == wanted.dtype
        np.testing.assert_allclose(ours, wanted, rtol=1e-12)
    elif not isinstance(wanted, orion.SparseArray):
        assert ours == (None if wanted is None else pytest.approx(wanted, rel=1e-12))


@pytest.mark.parametrize("name", NAMES)
def test_the_undecorated_function_gives_the_same(name):
    for workers in worker_counts(1, 2, 4):
        with orion.session("threads", workers, force_parallel=True):
            check(name)


def test_small_functions_run_as_written():
    with orion.session("threads", 2):
        for name in ("Jacobi", "Jacobi with copies", "several", "sparse"):
            check(name)


@pytest.mark.ray
def test_on_ray():
    with orion.session("ray", 2, force_parallel=True):
        for name in ("Jacobi", "Jacobi with copies", "padded", "expressions", "products", "early", "sparse"):
            check(name)
        ours = orion.parallel_for(padded)
        first, second = ours(np.full(9, 2.0), 1), ours(np.zeros(9), 1)
    assert first.tolist() == [*[2.0] * 9, 1.0]
    assert not second[:-1].any()
    second[0] = 7.0  # the workers are gone, the arrays are the caller's


# ---------------------------------------------------------------- memory


def test_each_call_returns_an_array_of_its_own():
    ours = orion.parallel_for(padded)
    first = ours(np.full(9, 2.0), 1)
    second = ours(np.zeros(9), 1)
    assert not np.shares_memory(first, second)
    assert first.flags.owndata
    assert first.flags.writeable
    assert first.tolist() == [*[2.0] * 9, 1.0]
    gone = weakref.ref(first)
    del first
    assert gone() is None


def test_arrays_that_are_not_returned_serve_the_next_call_of_these_sizes():
    ours = orion.parallel_for(jacobi)
    kept = []
    for shape in ((5, 6), (5, 6), (7, 6)):
        ours(np.ones(shape), 1)
        (local,) = [one.local for one in ours._preparations.plain._prepared.values() if one.local._free]
        kept.append(local._free[0]["B"].storage)
    assert kept[0] is kept[1]
    assert kept[2].shape == (7, 6)


def test_a_call_that_fails_leaves_the_next_one_as_it_was():
    def overrun(a, k):
        b = np.zeros(len(a))
        for i in range(len(a)):
            b[k[i]] += a[i]
        return b

    ours = orion.parallel_for(overrun)
    with pytest.raises(orion.OutOfBoundsError):
        ours(np.ones(3), np.array([0, 1, 9]))
    assert ours(np.ones(3), np.array([0, 1, 1])).tolist() == [1, 2, 0]


def test_a_negative_length_is_an_error_only_where_the_array_is_made():
    with pytest.raises(orion.OrionError, match="the array `b` would have a negative length"):
        orion.parallel_for(padded)(np.ones(3), -4)
    assert orion.parallel_for(of_a_branch)(np.ones(3), -4) == -4


def test_arrays_that_meet_must_be_of_one_length():
    def summed(a, b):
        return a + b

    ours = orion.parallel_for(summed)
    assert ours(np.ones(3), np.ones(3)).tolist() == [2, 2, 2]
    assert ours(np.ones(1), np.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(orion.OrionError, match=r"the arrays that `a \+ b` is made of differ in length: 2 and 3"):
        ours(np.ones(2), np.ones(3))


# ---------------------------------------------------------------- plans


def one_line(text):
    """The text of a plan, which is wrapped at the terminal's width, in one line."""
    return " ".join(text.split())


def test_the_plan_says_what_is_made_and_where_it_lives():
    with orion.session("threads", 2):
        plan = orion.parallel_for(padded).plan(np.zeros(4_000_000), 8)
    text = one_line(str(plan))
    assert text.startswith("padded(a, by): 1 loop, parallel")
    assert "makes b float32 (4000008), 16.0 MB in memory that all workers share; the caller gets it" in text
    assert re.search(r"\d b = np\.\S+ .*?filled by 2 workers", text)  # by ones
    assert [loop.strategy for loop in plan.loops] == ["independent"]
    (made,) = plan.to_dict()["makes"]
    assert made == {
        "array": "b", "dtype": "float32", "shape": [4_000_008], "bytes": 16_000_032, "is_returned": True,
        "line": padded.__code__.co_firstlineno + 2,
    }  # fmt: skip
    assert plan.to_dict()["parameters"] == ["a", "by"]
    json.loads(plan.to_json())
    assert "float32 (4000008), 16.0 MB" in plan._repr_html_()
    plan.check()


def test_rounds_that_make_an_array_are_opened():
    with orion.session("threads", 2):
        plan = orion.parallel_for(jacobi_with_copies).plan(np.zeros((2000, 2000)), 10)
    assert plan.is_parallel
    assert plan.runs_on == 2
    assert "B float64 (2000, 2000), 32.0 MB in memory that all workers share; used again" in one_line(str(plan))
    plan.check()


def test_an_array_of_iterations_that_are_shared_out_stays_theirs():
    plan = orion.parallel_for(rows_of_their_own).plan(np.zeros((1000, 1000)), 3)
    assert [one.name for one in plan.function.local_arrays] == ["out"]
    assert plan.strategy == "independent"


def test_a_plan_of_unknown_sizes_has_made_arrays():
    typed = Preparation(padded, Options()).typed({"a": TYPES["a"], "by": TYPES["n"]})
    text = plan_text(plan_program(typed.variants, Sizes(symbolic=True, workers=2)))
    assert "makes       b  float32  in memory that all workers share" in text


# ---------------------------------------------------------------- the program

LIFTED = [
    ("b = a.copy()\nreturn b", "for b_0 in range(a.shape[0]):\n    b[b_0] = a[b_0]\nreturn b"),
    ("return a * 2", "for made_0 in range(a.shape[0]):\n    made[made_0] = a[made_0] * 2\nreturn made"),
    (
        "B = np.zeros((n, 3), int)\nb_0 = B.shape[1]\nreturn B, b_0",
        "b_0 = 3\nreturn B, b_0",
    ),
    (
        "b = np.zeros(n)\na[0] = b[0]\nreturn a[0]",
        "result_0 = 0.0\nfor b_0 in range(n):\n    b[b_0] = 0.0\n"
        "for once in range(1):\n    a[0] = b[0]\nfor once in range(1):\n    result_0 = a[0]\nreturn result_0",
    ),
    ("B = np.empty_like(A)\nreturn B", "return B"),
    ("m = 2 * n\nb = np.ones(m + 1)\nreturn b", "m = 2 * n\nfor b_0 in range(2 * n + 1):\n    b[b_0] = 1.0\nreturn b"),
    ("b = A @ A[0]\nreturn b", "for once in range(1):\n    b[:] = A @ A[0]\nreturn b"),
    (
        "b = a.copy()\nb = b - b[0]\nreturn b",
        "for b_0 in range(a.shape[0]):\n    b[b_0] = a[b_0]\nfor once in range(1):\n    b[:] = b - b[0]\nreturn b",
    ),
]


@pytest.mark.parametrize(("body", "expected"), LIFTED)
def test_what_stands_for_statements_that_make_arrays(body, expected):
    function = through_passes(from_body(body, ", ".join(TYPES)), TYPES)
    lines = print_function(function).splitlines()[1:]
    assert "\n".join(line[4:] for line in lines) == expected
    assert function.given == tuple(TYPES)


REFUSED = [
    ("b = np.zeros(k[0])\nreturn b", "how large `b` is must follow from the arguments"),
    ("n = n + 1\nb = np.zeros(n)\nreturn b", "how large `b` is must follow from the arguments"),
    ("if n > 1:\n    b = a * n\nfor i in range(n):\n    a[i] = b[i]", "the array `b` may be used before it is made"),
    ("b = np.zeros(n)\nb = np.zeros(n, int)\nreturn b", "it is made with different dtypes, float64 and int64"),
    ("return A[k[0]]", "this array cannot be returned"),
    ("for i in range(n):\n    if a[i] > x:\n        return A[i]\nreturn 0", "this array cannot be returned"),
]


@pytest.mark.parametrize(("body", "words"), REFUSED)
def test_what_cannot_be_made_before_is_refused(body, words):
    with pytest.raises(orion.UnsupportedLoopError) as error:
        through_passes(from_body(body, ", ".join(TYPES)), TYPES)
    assert words in str(error.value)
    assert "  help: " in str(error.value)


def made_and_changed(x, y):
    z = x * 2
    z += 1
    z[1:] -= y[1:]
    z[:] *= y
    return z


@pytest.mark.parametrize("shape", [(5,), (3, 2), (2, 3, 4), (1, 1)])
def test_arrays_that_are_made_and_then_changed_as_a_whole(shape):
    made = np.random.default_rng(0)
    x, y = made.random(shape), made.random(shape)
    with orion.session(workers=2, force_parallel=True):
        looped = orion.parallel_for(made_and_changed)
        looped.plan(x, y).check()
        np.testing.assert_array_equal(looped(x, y), made_and_changed(x, y))


def chain(start, P, steps):
    p = start.copy()
    for _ in range(steps):
        p = p @ P
    return p


def scaled_chain(start, P, steps):
    p = start * P[:, 0]
    size = 0.0
    for t in range(steps):
        size += np.sum(p)
        p = np.dot(p / (1 + size), P) * P[:, t]
    return p, size


rng = np.random.default_rng(4)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("function", [chain, scaled_chain])
def test_arrays_whose_shapes_are_the_same_at_the_sizes_of_a_call(function, steps, workers):
    start, P = rng.random(9), rng.random((9, 9))
    looped = orion.parallel_for(function)
    with orion.session(workers=workers, force_parallel=True):
        looped.plan(start, P, steps).check()
        same(looped(start, P, steps), function(start, P, steps))


@pytest.mark.parametrize("steps", [0, 1])
def test_a_call_in_which_they_differ_runs_as_it_is(steps):
    start, P = rng.random(9), rng.random((9, 4))
    looped = orion.parallel_for(chain)
    looped(rng.random(4), rng.random((4, 4)), steps)
    with pytest.raises(orion.UnsupportedLoopError) as caught:
        looped.plan(start, P, steps)
    assert "the array `p` is made with different shapes" in str(caught.value)
    assert "start.shape[0], 9, and P.shape[1], 4" in str(caught.value)
    with pytest.warns(orion.SerialLoopWarning, match="compiled by Numba as it is"):
        same(looped(start, P, steps), chain(start, P, steps))
    looped.plan(rng.random(4), rng.random((4, 4)), steps).check()


def test_calls_in_which_they_are_the_same_are_analysed_afterwards(monkeypatch):
    looped, made = orion.parallel_for(chain), []
    monkeypatch.setattr("orion.api.compiled_as_it_is", lambda *given: made.append(given) or compiled_as_it_is(*given))
    for size in (4, 9, 4, 9):
        start, P = rng.random(9), rng.random((9, size))
        same(looped(start, P, int(size == 9)), chain(start, P, int(size == 9)))
    assert len(made) == 1  # it is compiled once, for the calls in which they differ
    with pytest.raises(ValueError, match=r"sizes for np\.dot"):
        looped(rng.random(9), rng.random((9, 4)), 2)
    assert looped._preparations.plain._last is not None


def by_integers(n, m, steps):
    p = np.zeros(n)
    for t in range(steps):
        p = np.full(m, t + 1.0)
    return p


def test_integers_that_lengths_are_made_of_are_looked_at_in_each_call():
    looped = orion.parallel_for(by_integers)
    for n, m, steps in ((5, 5, 2), (5, 6, 2), (5, 6, 0), (6, 6, 1), (6, 5, 3)):
        same(looped(n, m, steps), by_integers(n, m, steps))


def stepped(start, step, n):
    p = start.copy()
    for _ in range(n):
        p = p + step
    return p


@pytest.mark.parametrize("lengths", [(4, 4), (4, 1), (1, 1)])
def test_rows_of_one_element_are_repeated(lengths):
    start, step = rng.random(lengths[0]), rng.random(lengths[1])
    for n in (0, 1, 3):
        same(orion.parallel_for(stepped)(start, step, n), stepped(start, step, n))
    with pytest.raises(orion.ArgumentError, match="differ in length"):
        orion.parallel_for(stepped)(np.ones(3), np.ones(4), 2)


def row_first(y, A, k):
    B = y[k:] * A[:, 1:-k]
    for i in range(len(A)):
        A[i, 0] += B[i, -1]
    return B


def row_last(y, A, k):
    B = A[:, 1:-k] * y[k:]
    for i in range(len(A)):
        A[i, 0] += B[i, -1]
    return B


@pytest.mark.parametrize("function", [row_first, row_last])
def test_a_row_is_repeated_along_the_last_axis(function):
    ours = orion.parallel_for(function)
    for m, k in ((6, 1), (7, 2), (3, 1)):
        for length in (m - k - 1, 1):  # one element is repeated
            y, A = rng.random(length + k), rng.random((4, m))
            same(ours(y, A.copy(), k), function(y, A.copy(), k))
    with pytest.raises(orion.ArgumentError, match="differ in length"):
        ours(np.ones(6), np.ones((4, 5)), 1)
