"""What an analysis gives up because it would take too long is answered with care, and the plan says so."""

import islpy as isl
import numpy as np
import pytest

import orion
from orion.dependence import bounds, conflicts, study, within
from orion.plan.plan import Merged
from orion.rewrites.reorder import apply, generate, order
from orion.rewrites.reorder.outline import hull
from tests.reorder_loops import arguments, gemm, gs, lcs, lu, trisolv


def stencil(A, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def own_row(A, t, B):
    for i in range(A.shape[0]):
        for j in range(t.shape[0]):
            t[j] = A[i, j] + 1.0
        for j in range(1, t.shape[0]):
            B[i, j] = t[j] * t[j - 1]


def wrapped(a, n):
    for i in range(1, n):
        a[i - 2] = a[i - 1] + 1.0


def square():
    return np.random.default_rng(3).random((9, 8))


LOOPS = {
    stencil: lambda: (square(), 3),
    own_row: lambda: (square(), np.zeros(8), np.zeros((9, 8))),
    wrapped: lambda: (np.arange(12.0), 9),
}

# where the limit is, the loop, what the plan says
CAPS = [
    (study, stencil, "which statement depends on which"),
    (apply, stencil, "what other order of the loops is best"),
    (order, stencil, "what other order of the loops is best"),
    (conflicts, own_row, "whether iterations may have their own `t`"),
    (within, wrapped, "at which sizes all subscripts stay in their arrays"),
]


def said(function) -> list[str]:
    plan = orion.parallel_for(function).plan(*LOOPS[function]())
    return [reason.message for reason in plan.reasons if reason.code == "ORN109"]


@pytest.mark.parametrize("function", LOOPS)
def test_no_limit_is_reached_as_it_is(function):
    assert said(function) == []


@pytest.mark.parametrize(("where", "function", "what"), CAPS)
def test_a_limit_is_told(where, function, what, monkeypatch):
    monkeypatch.setattr(where, "MAX_OPERATIONS", 1)
    assert any(what in message for message in said(function))


def test_dependences_that_the_scheduler_is_not_given_are_told(monkeypatch):
    monkeypatch.setattr(order, "MAX_WEIGHT", 0.5)
    assert any("too many pieces" in message for message in said(stencil))


def test_dependences_with_large_coefficients_weigh_more():
    """With `A[i + c // 32765]` in a nest of four statements, isl's scheduler did not end."""
    few = isl.UnionMap("[n] -> { S[i] -> S[3 i + 2 n] : 0 <= i < n }")
    large = isl.UnionMap("[n] -> { S[i] -> S[98295 i + 32765 n] : 0 <= i < n }")
    assert order.weight(large) > 8 * order.weight(few)


@pytest.mark.parametrize("where", [study, apply, order, conflicts, within])
@pytest.mark.parametrize("function", LOOPS)
def test_the_schedules_are_right_past_every_limit(where, function, monkeypatch):
    monkeypatch.setattr(where, "MAX_OPERATIONS", 1)
    plan = orion.parallel_for(function).plan(*LOOPS[function]())
    monkeypatch.undo()
    plan.check()


def test_the_result_is_right_past_a_limit(monkeypatch):
    monkeypatch.setattr(apply, "MAX_OPERATIONS", 1)
    mine, plain = square(), square()
    decorated = orion.parallel_for(stencil)
    decorated(mine, 3)
    stencil(plain, 3)
    assert np.array_equal(mine, plain)


def test_a_limit_inside_another_one_does_not_end_it():
    context = isl.Context()
    values = isl.Set("[n] -> { [i, j] : 0 <= i < n and i <= 3j <= 2n and exists (e : 5e = 2i + j) }", context)

    def both():
        with conflicts.capped(context, 10):
            with conflicts.capped(context, 1_000_000):
                values.lexmin()
            values.lexmax()

    with pytest.raises(conflicts.CapReached):
        both()
    values.lexmax()  # no limit is left behind


def triangular(a, n):
    """Where subscripts lie is not for the limits of each variable alone to say."""
    for i in range(n):
        for j in range(i):
            a[i] += 0.5 * a[i - j - 1]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_subscripts_that_are_not_proved_within_shapes_are_checked_where_they_are_run(monkeypatch):
    given, expected = np.arange(12.0), np.arange(12.0)
    function = orion.parallel_for(triangular)
    proved = function.kernel_source(given, 9)
    monkeypatch.setattr(conflicts, "MAX_OPERATIONS", 1)
    bounds._is_empty.cache_clear()  # what was proved before stays proved
    bounds._side.cache_clear()
    function = orion.parallel_for(triangular)
    assert function.kernel_source(given, 9) != proved
    with orion.session("threads", 2):
        function(given, 9)
        with pytest.raises(orion.OutOfBoundsError):
            function(np.arange(12.0), 20)
    triangular(expected, 9)
    assert np.array_equal(given, expected)


def test_an_example_that_would_take_too_long_to_find_is_left_out(monkeypatch):
    def reasons():
        return [reason.message for reason in orion.parallel_for(chain).plan(np.zeros(9)).reasons]

    assert any("e.g." in message for message in reasons())
    monkeypatch.setattr(conflicts, "MAX_OPERATIONS", 1)
    assert reasons()
    assert not any("e.g." in message for message in reasons())


def chain(a):
    for i in range(1, a.shape[0]):
        a[i] = a[i - 1] + 1.0


def test_what_statements_have_in_common_may_take_too_long(monkeypatch):
    """The study of the statements is there then, and the dependences of iterations come from pairs of accesses."""
    with orion.session("threads", 2, force_parallel=True):
        (before,) = orion.parallel_for(stencil).plan(*LOOPS[stencil]()).loops
    monkeypatch.setattr(study, "MAX_WHOLE", 1)
    (serial,) = orion.parallel_for(chain).plan(np.zeros(9)).loops
    assert any("what statements have in common" in reason.message for reason in serial.reasons)
    with orion.session("threads", 2, force_parallel=True):
        function = orion.parallel_for(stencil)
        plan = function.plan(*LOOPS[stencil]())
        plan.check()
        (A, T), (B, _) = LOOPS[stencil](), LOOPS[stencil]()
        function(A, T)
    function.serial(B, T)
    assert A.tobytes() == B.tobytes()
    pairs = {(d.source.text, d.sink.text) for d in before.form.origin.analysis.dependences}
    assert pairs
    assert pairs <= {(d.source.text, d.sink.text) for d in plan.loops[0].form.origin.analysis.dependences}


def test_the_hull_of_values_of_a_serial_loop_is_found():
    """Without end where isl may look for integers between large inequalities."""
    pieces = (
        "exists (e1: i0 mod 15 = 0 and 510e1 <= 7i0 and 1020e1 >= -15n + 14i0 and 2700e1 >= -60 + 37i0 "
        "and 3795e1 <= 15 + 52i0)",
        "exists (e0, e1: 2e1 <= 256 - i0 and 4e1 >= 512 - n - 2i0 and 6572e1 >= 841980 - 3289i0 - 38e0 "
        "and 9857e1 <= 1262849 - 4933i0 - 57e0 and 18615e1 >= 2384895 - 9316i0 - 108e0 "
        "and 21900e1 <= 2805762 - 10960i0 - 127e0)",
    )
    values = isl.Set(f"[n] -> {{ [i0] : ({pieces[0]}) or ({pieces[1]}) }}")
    assert hull(values).is_equal(isl.Set(f"[n] -> {{ [i0] : n >= 0 and -1020 <= i0 <= 17880 and {ENDS} }}"))
    even = isl.Set("[n] -> { [i] : i mod 2 = 0 and (0 <= i <= n or 10 <= i <= 20) }")
    assert hull(even).is_subset(isl.Set("[n] -> { [i] : i mod 2 = 0 }"))


ENDS = "2i0 <= 3084 + 1167n and 2i0 <= 732 + 1265n"


@pytest.mark.parametrize("function", [gemm, gs, lcs, lu, trisolv], ids=lambda function: function.__name__)
def test_loops_that_would_take_too_long_to_make_have_tests_inside(function, monkeypatch):
    monkeypatch.setattr(generate, "MAX_OPERATIONS", 1)
    loop, given, expected = orion.parallel_for(function), arguments(24)[function], arguments(24)[function]
    with orion.session("threads", 2, force_parallel=True):
        loop.plan(*given).check()
        returned = loop(*given)
    assert returned == loop.serial(*expected)
    for one, other in zip(given, expected, strict=True):
        assert np.array_equal(one, other)


def steps(A, B, n, m):
    """Four statements in three loops each, at different places in the coordinates."""
    for _ in range(m):
        for j in range(m + 1):
            for k in range(1, n // 2 + 1):
                B[j + 1, k + 2] = 0.3 * (B[j + 1, k + 2] + A[j + 1, k] - B[j + 1, k + 2])
        for j in range(1, n):
            for k in range(1, m):
                A[j + 1, k] = 0.3 * (B[j + 1, k + 1] + B[j - 1, k] - A[j + 1, k])
                B[j, k + 2] = max(A[j, k], 0.5 * B[j, k + 1])
        for j in range(n // 2 + 1):
            for k in range(n // 2 + 1):
                A[j, k] = 0.5 * B[j, k + 2] - 0.25 * B[j, k]


def test_a_nest_of_which_isl_would_make_thousands_of_loops():
    given = square_of(30), square_of(30), 20, 12
    expected = given[0].copy(), given[1].copy(), 20, 12
    function = orion.parallel_for(steps)
    with orion.session("threads", 2, force_parallel=True):
        plan = function.plan(*given)
        plan.check()
        assert len(function.kernel_source(*given).splitlines()) < 800  # LLVM took a minute for 2,400
        function(*given)
    function.serial(*expected)
    assert [isinstance(loop.form, Merged) for loop in plan.loops] == [True]
    assert all(np.array_equal(one, other) for one, other in zip(given, expected, strict=True))


def large_steps(A, T, m):
    """isl's search for whole numbers did not end with coefficients of any size."""
    for i in range(m + 1):
        g = 0
        for j in range(1, 5):
            A[i + 6, j + 3] /= 2.0
            for k in range(1, m, 2):
                T[2 * i + 1, j - 1, k + 2] = A[j + 2 * k + 4, k - j + 3] - T[i, j - 1, -k - 1]
                T[i, j + 3, k - 1] *= 0.5
            A[j + 5, g + 3] = A[2 * i - j + 4, j + 3] + 0.1
            g += 1  # noqa: SIM113


def many_dimensions(a, x, y, n, m):
    """Pieces of dependences with 17 inequalities in 12 dimensions."""
    t = 0.5
    for i in range(m):
        for j in range(max(0, i - 1), min(m, i + 2)):
            for k in range(n):
                g = 0
                for r in range(j, n // 2 + 1, 2):
                    a[g] = x[k + 3] * 0.7
                    t = 0.25 * x[k] * x[r + 1]
                    a[r + 2] = t * 0.5 + y[i + 2]
                    g += 1  # noqa: SIM113
    return t


def large_given():
    made = np.random.default_rng(5)
    return made.random((40, 40)), made.random((40, 40, 40)), 8


def many_given():
    made = np.random.default_rng(5)
    return made.random(30), made.random(30), made.random(30), 11, 7


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "ignore:.*not proved")
@pytest.mark.parametrize(("loops", "given"), [(large_steps, large_given), (many_dimensions, many_given)])
def test_searches_for_an_order_that_took_isl_minutes(loops, given):
    function, mine, expected = orion.parallel_for(loops), given(), given()
    with orion.session("threads", 2, force_parallel=True):
        plan = function.plan(*mine)
        plan.check()
        assert function(*mine) == loops(*expected)
    assert all(np.array_equal(one, other) for one, other in zip(mine, expected, strict=True))


def square_of(size):
    return np.random.default_rng(size).random((size, size))


def far_apart(A, n):
    """Remainders and quotients of numbers so large that isl did not find out when they meet, and saw no signal."""
    for i in range(n):
        for j in range(0, 10**12, 3 * 10**11 + 1):
            A[(i + j) % 997] = A[(i + j) // 10**10] * 0.5


def test_conditions_of_large_remainders_are_not_looked_for():
    given, expected = np.arange(1000.0), np.arange(1000.0)
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(far_apart).plan(given, 5)
        plan.check()
        orion.parallel_for(far_apart)(given, 5)
    far_apart(expected, 5)
    assert (plan.strategy, plan.conditions) == ("serial", ())
    assert np.array_equal(given, expected)


NEAR = """[c, n, A, B] -> {{ S[i, j] -> S[k, l] : 0 <= i <= {0} - 2 - c and
    {0} - c - A <= i <= {0} + 2 - c - A and {0} - 5 - c - B <= j <= {0} - 6 - c + B and
    i < j < c - n and i < k < n and k < l < c - n }}"""


@pytest.mark.parametrize("size", [20, 127])
def test_what_would_take_the_scheduler_long_is_not_kept_near(size):
    """Large constants make it search for seconds, in a relation that only says what is better near."""
    relation = isl.UnionMap(NEAR.format(size))
    assert order.quickly_near(relation).is_equal(relation) == (size == 20)


def test_numbers_without_a_text_are_past_the_limit():
    """islpy makes an int of a text, of which there is none then."""
    context = isl.Context()
    value = isl.Val.int_from_si(context, 7)
    with pytest.raises(conflicts.CapReached), conflicts.capped(context, 50):
        sum(value.to_python() for _ in range(100))
    assert value.to_python() == 7
    with pytest.raises(TypeError, match="of ours"), conflicts.capped(context, 50):
        raise TypeError("of ours")


def meeting_itself(M, c):
    for i in range(5):
        for j in range(4, -1, -1):
            for k in range(0, 5, 2):
                M[j - 1, j + c] = M[i + c, k + 1] - 1
                M[j - 1, k + c] = M[i + c, k + 1] - 1


def test_the_weight_of_dependences_may_be_past_the_limit():
    mine, its = np.arange(36.0).reshape(6, 6), np.arange(36.0).reshape(6, 6)
    decorated = orion.parallel_for(meeting_itself)
    decorated.plan(mine, 1).check()
    with pytest.warns(orion.SerialLoopWarning):
        decorated(mine, 1)
    meeting_itself(its, 1)
    np.testing.assert_array_equal(mine, its)
