"""Scalars taken from one iteration, and integers that grow by a constant: Python's results on 1, 2 and 4 workers."""

import json
import math
import warnings

import numpy as np
import pytest

import orion

nan, inf = math.nan, math.inf


def first_max(a, start):
    best = start
    at = -1
    for i in range(a.shape[0]):
        if a[i] > best:
            best = a[i]
            at = i
    return best, at


def last_max(a, start):
    best = start
    at = -1
    for i in range(a.shape[0]):
        if a[i] >= best:
            best = a[i]
            at = i
    return best, at


def first_min(a, start):
    best = start
    at = -1
    for i in range(a.shape[0]):
        d = a[i] * 2
        if best > d:
            at = i
            best = d
    return best, at


def last_min_backwards(a, start):
    best = start
    at = -1
    for i in range(a.shape[0] - 1, -1, -1):
        if a[i] <= best:
            best, at = a[i], i
    return best, at


def plain_max(a, start):
    best = start
    for i in range(a.shape[0]):
        if a[i] > best:
            best = a[i]
    return best, 0


def masked(a, start):
    best = start
    at = -1
    for i in range(1, a.shape[0]):
        if a[i - 1] < 3 and a[i] >= best:
            best = a[i]
            at = i
    return best, at


def last_value(a, start):
    best = start
    at = -1
    for i in range(a.shape[0]):
        best = a[i]
        if best > 1:
            at = i
    return best, at


FUNCTIONS = [first_max, last_max, first_min, last_min_backwards, plain_max, masked, last_value]
KINDS = ["float64", "float32", "int64"]


def columns(kind):
    """Arrays of every small length, with ties, and for floats NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(5)
    for length in (0, 1, 2, 3, 5, 40):
        yield rng.integers(-4, 5, length).astype(kind)
    yield np.full(20, 2, kind)
    if kind != "int64":
        yield rng.choice([nan, 1.0, -1.0, inf, -inf, 0.0, -0.0], 40).astype(kind)
        yield np.array([nan] * 20 + [2.0, nan, 2.0, 3.0, nan, 3.0] + [nan] * 20, kind)
        yield np.full(9, nan, kind)
        yield np.array([-0.0, 0.0] * 8, kind)


def starts(kind):
    return (-1000, 1000, 0, 3) if kind == "int64" else (-inf, inf, nan, 0.0, -0.0, 2.0)


def bits(values):
    """Values with the sign of a zero, and NaN equal to itself."""
    return [(repr(float(value)), type(value)) for value in values]


@pytest.fixture(scope="module", params=[1, 2, 4], ids=lambda count: f"{count} workers")
def session(request):
    with orion.session(workers=request.param, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("error", orion.SerialLoopWarning)
        yield


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_result_is_that_of_python(function, kind, session):
    compiled = orion.parallel_for(function)
    for a in columns(kind):
        for start in starts(kind):
            found, expected = compiled(a, start), function(a, start)
            assert bits(found) == bits(expected), (a, start)


# ---------------------------------------------------------------- nests, orders, rounds


def in_a_matrix(A):
    best = A[0, 0]
    at_i = at_j = 0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] > best:
                best = A[i, j]
                at_i = i
                at_j = j
    return best, at_i, at_j


def across_columns(A):
    """Rows depend on each other, so that the columns are shared out: tiles lie side by side in the written order."""
    best = -1.0
    at_i = at_j = -1
    last = -1.0
    for i in range(1, A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = A[i, j] + A[i - 1, j] % 3
            if A[i, j] >= best:
                best = A[i, j]
                at_i = i
                at_j = j
            if A[i, j] < 2:
                last = i * 100 + j
    return best, at_i, at_j, last


def alignment(H, x, y):
    """Smith and Waterman: anti-diagonals of tiles, and where the best score is."""
    best = 0.0
    at_i = 0
    at_j = 0
    for i in range(1, H.shape[0]):
        for j in range(1, H.shape[1]):
            score = H[i - 1, j - 1] + (2.0 if x[i] == y[j] else -1.0)
            H[i, j] = max(0.0, score, H[i - 1, j] - 1.0, H[i, j - 1] - 1.0)
            if H[i, j] > best:
                best = H[i, j]
                at_i = i
                at_j = j
    return best, at_i, at_j


def in_rounds(A, rounds):
    """Each round goes on from the best of the rounds before."""
    best = 0.0
    at = -1
    when = -1
    for t in range(rounds):
        for i in range(A.shape[0]):
            A[i] = (A[i] * 5 + t) % 17
        for i in range(A.shape[0]):
            if A[i] >= best:
                best = A[i]
                at = i
                when = t
    return best, at, when


def per_row(A, b, c):
    for i in range(A.shape[0]):
        best = A[i, 0]
        at = 0
        total = 0.0
        for j in range(1, A.shape[1]):
            total += A[i, j]
            if A[i, j] > best:
                best = A[i, j]
                at = j
        b[i] = at
        c[i] = total
    return total, at


def whole(*shape, seed=2):
    return np.random.default_rng(seed).integers(0, 6, shape).astype(np.float64)


NESTS = [
    (in_a_matrix, lambda: (whole(40, 30),), "independent"),
    (in_a_matrix, lambda: (whole(1, 1),), "independent"),
    (across_columns, lambda: (whole(30, 40),), "1d"),
    (alignment, lambda: (np.zeros((50, 60)), whole(50), whole(60, seed=3)), "2d"),
    (in_rounds, lambda: (whole(60), 5), "independent"),
    (per_row, lambda: (whole(40, 30), np.zeros(40, np.int64), np.zeros(40)), "independent"),
]


@pytest.mark.parametrize(("function", "make", "strategy"), NESTS)
def test_nests(function, make, strategy, session):
    arguments, expected = make(), make()
    compiled = orion.parallel_for(function)
    plan = compiled.plan(*arguments)
    assert plan.loops[-1].strategy == strategy
    plan.check()
    assert compiled(*arguments) == function(*expected)
    for mine, theirs in zip(arguments, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def best_rating(ratings, W):
    best = -inf
    at_i = at_j = -1
    last = 0.0
    for (i, j), r in ratings:
        W[i] += r
        last = r
        if r >= best:
            best = r
            at_i = i
            at_j = j
    return best, at_i, at_j, last


@pytest.mark.parametrize("ordered", [None, True], ids=["any order", "ascending keys"])
def test_elements_are_compared_in_the_order_that_the_plan_tells(ordered, session):
    rng = np.random.default_rng(8)
    keys = rng.integers(0, 30, 500), rng.integers(0, 20, 500)
    values = rng.integers(0, 9, 500).astype(np.float64)
    ratings = orion.sparse(keys, values)
    compiled = orion.parallel_for(ordered=ordered)(best_rating)
    plan = compiled.plan(ratings, np.zeros(30))
    in_turn = [((int(keys[0][p]), int(keys[1][p])), values[p]) for p in plan.serial_order()]
    assert compiled(ratings, np.zeros(30)) == best_rating(in_turn, np.zeros(30))


def any_order(a):
    best = -1.0
    at = -1
    for i in range(a.shape[0]):
        if a[i] >= best:
            best = a[i]
            at = i
    return best, at


def test_a_range_in_any_order_too(session):
    a = whole(50)
    compiled = orion.parallel_for(ordered=False)(any_order)
    best, at = -1.0, -1
    for (i,) in compiled.plan(a).serial_order():
        if a[i] >= best:
            best, at = a[i], i
    assert compiled(a) == (best, at)


# ---------------------------------------------------------------- induction variables


def every_second(a, b, k):
    for i in range(a.shape[0]):
        b[k] = a[i]
        k += 1
        b[k] += 1
        k = k + 1
    return k


def by_an_argument(a, b, m):
    k = 0
    for i in range(a.shape[0] // 4):
        a[i] = b[k]
        k += m


def downwards(a, b, k):
    k = a.shape[0]
    for i in range(a.shape[0] - 1, -1, -2):
        b[k] = a[i]
        k -= 1
    return k


def every_third(a, b, k):
    k = 2
    for i in range(a.shape[0]):
        b[k] = a[i] + k
        k += 3
    return k


def packed(a, b, k):
    k = 0
    for i in range(a.shape[0]):
        for j in range(4):
            b[k] = a[i] + j
            k += 1
        b[k] = -1.0
        k += 1
    return k


def in_turn(a, b, k):
    k = 0
    for t in range(3):
        for i in range(t, a.shape[0], 3):
            b[k] = a[i]
            k += 1
    return k


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")  # an argument may be negative, and then wrap
@pytest.mark.parametrize("function", [every_second, every_third, downwards, packed, in_turn])
@pytest.mark.parametrize("length", [0, 1, 2, 30])
def test_induction_variables(function, length, session):
    a = whole(length)
    arguments, expected = (a, np.zeros(200), 7), (a, np.zeros(200), 7)
    compiled = orion.parallel_for(function)
    plan = compiled.plan(*arguments)
    plan.check()
    assert compiled(*arguments) == function(*expected)
    np.testing.assert_array_equal(arguments[1], expected[1])


@pytest.mark.parametrize("function", [every_third, downwards, packed])
def test_they_make_loops_parallel(function):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function).plan(whole(30), np.zeros(200), 0)
    assert plan.strategy == "independent"
    assert all(verdict.is_parallel for verdict in plan.verdicts)


# ---------------------------------------------------------------- what is told


def test_the_plan_says_what_it_is():
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(first_max).plan(whole(40), 0.0)
        text = " ".join(str(plan).split())
    assert "best, at, in line 19: " in text
    assert "argmax, of equal values the first; no conflict, combined in the written order" in text
    (loop,) = plan.to_dict()["loops"]
    assert loop["choices"] == [{"names": ["best", "at"], "kind": "max", "comparison": ">", "line": 19}]
    assert "argmax, of equal values the first" in plan._repr_html_()
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(every_second).plan(whole(40), whole(90), 0)
    assert "k, by 2 per trip of the `for` in line" in str(plan)
    assert plan.to_dict()["loops"][0]["inductions"][0]["step"] == 2
    assert "k, by 2 per trip" in plan._repr_html_()
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(by_an_argument).plan(whole(40), whole(90), 3)
    assert "k, by m per trip of the `for` in line" in str(plan)
    assert json.loads(json.dumps(plan.to_dict()))["loops"][0]["inductions"][0]["step"] == "m"
