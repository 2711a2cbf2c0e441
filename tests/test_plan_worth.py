"""Whether loops inside serial ones are shared out: only where what it costs to start them is little next to their work.

Loops between scalar statements, branches or `while`s, and those with results, are started from Python in each round;
others in a compiled serial loop, for much less.
"""

import math
import warnings

import numpy as np
import pytest

import orion
from orion.cost.extents import named_values
from orion.cost.worth import STARTED_NS, SYNC_NS, Changes, is_worthwhile
from orion.frontend.parse import parse_function
from orion.ir.program import OfNewOrder
from orion.ir.types import ArrayType, ScalarType
from orion.pipeline import through_passes


def decaying(a, b, rounds):
    """The second loop needs the first of the same round, the first the second one of the round before."""
    for t in range(rounds):
        rate = 1.0 / (t + 1)
        for i in range(a.shape[0]):
            a[i] = a[i] * rate + b[a.shape[0] - 1 - i]
        for i in range(b.shape[0]):
            b[i] = b[i] * 0.3 - a[a.shape[0] - 1 - i]


def steady(a, b, rounds):
    for _ in range(rounds):
        for i in range(a.shape[0]):
            a[i] = a[i] * 0.5 + b[a.shape[0] - 1 - i]
        for i in range(b.shape[0]):
            b[i] = b[i] * 0.3 - a[a.shape[0] - 1 - i]


def by_mean(a, b, rounds):
    """A result of a loop is used by the next one."""
    for _ in range(rounds):
        total = 0.0
        for i in range(a.shape[0]):
            total += a[i]
        for i in range(b.shape[0]):
            b[i] = b[i] * 0.3 - total


def where_flagged(a, b, rounds):
    for t in range(rounds):
        for i in range(a.shape[0]):
            a[i] = a[i] * 0.5 + b[a.shape[0] - 1 - i]
        if a[t] > 0.5:
            for i in range(b.shape[0]):
                b[i] = b[i] * 0.3 - a[a.shape[0] - 1 - i]


def damped(a, b, rounds):
    """The same with a function that only Python has as it is."""
    for t in range(rounds):
        rate = math.exp(-t)
        for i in range(a.shape[0]):
            a[i] = a[i] * rate + b[a.shape[0] - 1 - i]
        for i in range(b.shape[0]):
            b[i] = b[i] * 0.3 - a[a.shape[0] - 1 - i]


def by_squashed_mean(a, b, rounds):
    for _ in range(rounds):
        total = 0.0
        for i in range(a.shape[0]):
            total += a[i]
        total = math.tanh(total)
        for i in range(b.shape[0]):
            b[i] = b[i] * 0.3 - total


def where_large(a, b, rounds):
    for t in range(rounds):
        for i in range(a.shape[0]):
            a[i] = a[i] * 0.5 + b[a.shape[0] - 1 - i]
        if math.exp(t) > 0.5:
            for i in range(b.shape[0]):
                b[i] = b[i] * 0.3 - a[a.shape[0] - 1 - i]


def plan_at(function, size):
    a = np.zeros(size)
    with orion.session("threads", 2):
        return orion.parallel_for(function).plan(a, a.copy(), 10)


@pytest.mark.parametrize("function", [damped, by_squashed_mean, where_large], ids=lambda function: function.__name__)
def test_rounds_that_are_started_from_python_must_be_long(function):
    assert STARTED_NS > SYNC_NS
    assert plan_at(function, 2_000_000).runs_on == 2
    rounds = [loop for loop in plan_at(function, 2_000_000).loops if loop.strategy == "independent"]
    assert len(rounds) == 2
    small = plan_at(function, 200_000)
    assert not [loop for loop in small.loops if loop.runs_on > 1 and not loop.parts]


@pytest.mark.parametrize("function", [steady, decaying, by_mean, where_flagged], ids=lambda function: function.__name__)
def test_rounds_that_are_followed_may_be_short(function):
    plan = plan_at(function, 200_000)
    assert plan.runs_on == 2
    assert not [loop for loop in plan.loops if loop.parts]
    assert plan_at(function, 1_000).runs_on == 1


def test_where_a_branch_is_not_worth_starting_the_loops_beside_it_still_are():
    """In the order that has the `if` run once, by one worker, rounds are compiled."""
    (loop,) = plan_at(where_flagged, 20_000).loops
    assert loop.parts
    assert loop.runs_on == 2


TABLE = [
    ([], True),
    ([Changes(None, ((1e9,),), True)], True),  # nothing is known
    ([Changes(1e5, (), False)], True),  # 30 µs to wake the others, of 100
    ([Changes(0.9e5, (), False)], False),
    ([Changes(1e6, ((90,),), False)], True),  # 90 meetings of 3 µs
    ([Changes(1e6, ((91,),), False)], False),
    ([Changes(1e6, ((6,),), True)], True),  # 6 starts from Python, of 40 µs each
    ([Changes(1e6, ((7,),), True)], False),
    ([Changes(1e4, ((3,),), False), Changes(1e9, ((3,),), False)], True),  # the small one comes with the large one
    ([Changes(None, ((1e9,),), True), Changes(1e3, ((1,),), False)], False),
]


@pytest.mark.parametrize(("changes", "expected"), TABLE)
def test_what_is_worthwhile(changes, expected):
    assert is_worthwhile(changes) is expected


def columns_and_rows(A, small):
    """Another order of the first loops saves next to nothing, that of the second much."""
    for j in range(small.shape[1]):
        for i in range(small.shape[0]):
            small[i, j] = small[i, j] + 1.0
    for j in range(A.shape[1]):
        for i in range(1, A.shape[0]):
            A[i, j] = A[i, j] + A[i - 1, j]


def test_a_small_loop_does_not_keep_a_large_one_from_another_order():
    with orion.session("threads", 2):
        plan = orion.parallel_for(columns_and_rows).plan(np.zeros((2000, 2000)), np.zeros((20, 20)))
    assert [isinstance(loop.nest.form, OfNewOrder) for loop in plan.function.loops] == [True, True]


def rows(A, B):
    for i in range(A.shape[0]):
        A[i] = A[i] * B[i] + 1.0


def copied_rows(A, B):
    for i in range(A.shape[0]):
        A[i] = B[i]


def row_functions(A, B):
    for i in range(A.shape[0]):
        A[i, 1:] = np.exp(B[i, 1:])


def until_small(A, B):
    for i in range(A.shape[0]):
        w = B[i, 0]
        while w > 0.001:
            w *= 0.9
            A[i, 0] += w


@pytest.mark.parametrize("function", [rows, copied_rows, row_functions], ids=lambda function: function.__name__)
def test_rows_are_counted_by_their_elements(function):
    for shape, workers in (((1000, 20_000), 2), ((1000, 4), 1)):
        A = np.zeros(shape)
        with orion.session("threads", 2):
            assert orion.parallel_for(function).plan(A, A.copy()).runs_on == workers


def test_loops_of_unknown_length_are_taken_to_be_long():
    A = np.zeros((10_000, 2))
    with orion.session("threads", 2):
        assert orion.parallel_for(until_small).plan(A, A.copy()).runs_on == 2


def forward(A, B, alpha, scale):
    """The forward algorithm of a hidden Markov model."""
    for t in range(1, alpha.shape[0]):
        for j in range(A.shape[0]):
            s = 0.0
            for i in range(A.shape[0]):
                s += alpha[t - 1, i] * A[i, j]
            alpha[t, j] = s * B[t, j]
        total = 0.0
        for j in range(A.shape[0]):
            total += alpha[t, j]
        scale[t] = total
        for j in range(A.shape[0]):
            alpha[t, j] /= total


def forward_with_names(A, B, alpha, scale):
    """The same, as it is mostly written."""
    rounds, states = alpha.shape
    for t in range(1, rounds):
        for j in range(states):
            s = 0.0
            for i in range(states):
                s += alpha[t - 1, i] * A[i, j]
            alpha[t, j] = s * B[t, j]
        total = 0.0
        for j in range(states):
            total += alpha[t, j]
        scale[t] = total
        for j in range(states):
            alpha[t, j] /= total


@pytest.mark.parametrize("rounds", [3_000, 5_000, 50_000])
def test_names_for_extents_are_as_good_as_the_extents(rounds):
    """Rounds over 64 states take 4 µs: to meet in each of them would cost more. A name for the number of states is no
    reason to take it for 256."""
    A, alpha = np.zeros((64, 64)), np.zeros((rounds, 64))
    with orion.session("threads", 2):
        given = A, alpha, alpha.copy(), alpha[:, 0].copy()
        plans = [orion.parallel_for(f).plan(*given) for f in (forward, forward_with_names)]
    assert [(plan.runs_on, len(plan.function.loops)) for plan in plans] == [(1, 1)] * 2


def test_what_names_stand_for():
    types = {"A": ArrayType("float64", 2), "k": ScalarType("int64", weak=True)}
    function = through_passes(parse_function(named), types)
    assert named_values(function, {"A__0": 12, "A__1": 5, "k": 3}) == {"n": 12, "m": 5, "half": 6, "most": 9}
    assert named_values(function, {"k": 3}) == {}


def named(A, k):
    n, m = A.shape
    half = n // 2
    most = max(half, k * 3)
    float_ = 0.5 * n
    twice = n
    twice = twice + 1
    for i in range(n):
        inside = n
        A[i, 0] = inside + m + half + most + float_ + twice


def with_a_source(a, b, source, rounds):
    for t in range(rounds):
        for i in range(1, a.shape[0] - 1):
            b[i] = 0.5 * a[i] + 0.25 * (a[i - 1] + a[i + 1])
        b[100] = source[t]
        for i in range(1, a.shape[0] - 1):
            a[i] = 0.5 * b[i] + 0.25 * (b[i - 1] + b[i + 1])


@pytest.mark.parametrize(("size", "strategies"), [(2_000, ["serial"]), (1_000_000, ["independent"] * 3)])
def test_an_element_between_two_stencils_does_not_cost_the_vectors(size, strategies):
    """Tiles of rounds and space that wait for each other run one iteration after another: 24 times as slow."""
    a, source = np.random.default_rng(3).random(size), np.random.default_rng(4).random(300)
    with orion.session("threads", 2):
        function = orion.parallel_for(with_a_source)
        plan = function.plan(a, a.copy(), source, 300)
        assert [loop.strategy for loop in plan.function.loops] == strategies
        ours, wanted = [a[:2000].copy(), a[:2000].copy()], [a[:2000].copy(), a[:2000].copy()]
        function(*ours, source, 20)
        with_a_source(*wanted, source, 20)
    assert [one.tobytes() for one in ours] == [one.tobytes() for one in wanted]


def wave(a, rounds):
    """Not in vectors as written: its tiles wait as before."""
    for _ in range(rounds):
        for i in range(1, a.shape[0] - 1):
            a[i] = 0.5 * a[i] + 0.25 * (a[i - 1] + a[i + 1])


def test_chains_that_are_not_in_vectors_still_have_tiles_that_wait():
    with orion.session("threads", 2):
        plan = orion.parallel_for(wave).plan(np.zeros(1_000_000), 300)
    assert [loop.strategy for loop in plan.function.loops] == ["wavefront"]


@orion.parallel_for
def strip(A, w):
    for i in range(A.shape[0] - w.shape[0]):
        for k in range(w.shape[0]):
            A[i] += A[i + k + 1] * w[k]


@pytest.mark.parametrize(("count", "is_chain"), [(4, True), (3000, False)])
def test_tiles_along_a_line_are_not_shared_out(count, is_chain):
    """Of (i, i + k) with few k those tiles that hold iterations follow one another, whatever the number of workers."""
    with orion.session("threads", 2), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        plan = strip.plan(np.zeros(6000), np.zeros(count))
    assert [loop.strategy for loop in plan.loops] == ["serial" if is_chain else "wavefront"]
    assert ("ORN126" in {one.reason.code for one in plan.considered}) == is_chain
    assert ("each tile would wait for the one before it" in " ".join(str(plan).split())) == is_chain
