"""What Python does not evaluate is not evaluated where it may fail: `and`, `or`, `… if …`, scalars that decide."""

import numpy as np
import pytest

import orion

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def any_greater(a, b, n):
    hit = False
    for i in range(n):
        hit = hit or a[i] > 3
    return hit


def all_less(a, b, n):
    hit = True
    for i in range(n):
        hit = hit and a[i] < 3
    return hit


def decided_before_the_loop(a, b, n):
    hit = n > 8
    for i in range(n):
        hit = hit or a[i] > 300
    return hit


def an_integer_that_decides(a, b, n):
    hit = 0
    for i in range(n):
        hit = hit or a[i] > 3
    return hit


def three_operands(a, b, n):
    hit = False
    for i in range(n):
        hit = hit or i > 2 or a[i + 2] > 30
    return hit


def a_guard_inside(a, b, n):
    hit = False
    for i in range(n):
        hit = hit or (i < n and a[i] > 3)
    return hit


def evaluated_first(a, b, n):
    hit = False
    for i in range(n):
        hit = a[i] > 3 or hit
    return hit


def in_rounds(a, b, n):
    hit = False
    for _ in range(2):
        for i in range(n):
            hit = hit or a[i] > 3
    return hit


def in_inner_loops(a, b, n):
    hit = False
    total = 0.0
    for i in range(n):
        for j in range(n):
            hit = hit or a[i + j] > 3
        total += i
    return hit, total


def own_of_an_iteration(a, b, n):
    for i in range(b.shape[0]):
        hit = False
        for k in range(n):
            hit = hit or a[k] > 3
        b[i] = hit


def by_a_subscript_of_an_array(a, b, n):
    hit = False
    for i in range(n):
        hit = hit or a[int(b[i])] > 3
    return hit


def a_divisor(a, b, n):
    hit = False
    for i in range(10):
        hit = hit or 10 // (n - i) > 3
    return hit


def looked_up(a, i):
    if i > 100:
        return True
    return a[i] > 3


def a_helper(a, b, n):
    hit = False
    for i in range(n):
        hit = hit or looked_up(a, i)
    return hit


def beside_a_choice(a, b, n):
    best, at, other = -1.0, -1, 0.0
    for i in range(a.shape[0]):
        if a[i] > best and b[i - 1] > -1:
            best, at, other = a[i], i, b[n - i]
    return best, at, other


def a_choice_of_the_first(a, b, n):
    best = 100.0
    for i in range(a.shape[0]):
        if best > a[i] and a[i + 7] > 0:
            best = a[i]
    return best


def conditions_of_ifs(a, b, n):
    for i in range(n):
        if i >= a.shape[0] or a[i] > 3:
            b[i] = 1
        elif a[i] < 2 or (i + 1 < a.shape[0] and a[i + 1] > 3):
            b[i] = 2
        else:
            b[i] = a[i]


def choices(a, b, n):
    for i in range(n):
        b[i] = (a[i] if a[i] > 3 else a[i + 1]) if i < a.shape[0] - 1 else a[0]


def choices_in_calls(a, b, n):
    for i in range(n):
        b[i] = max(a[i] if i < a.shape[0] else 0.0, 2.0)
        b[i] += 1.0 if i >= a.shape[0] else (2.0 if a[i] > 3 else 3.0)


def conditions_of_while(a, b, n):
    for i in range(n):
        k = i
        while k < a.shape[0] and a[k] < 5:
            k += 1
        b[i] = k


def chains(a, b, n):
    for i in range(n):
        b[i] = 0 <= i < a.shape[0] <= a[i]


LOOPS = [
    any_greater, all_less, decided_before_the_loop, an_integer_that_decides, three_operands, a_guard_inside,
    evaluated_first, in_rounds, in_inner_loops, own_of_an_iteration, by_a_subscript_of_an_array, a_divisor, a_helper,
    beside_a_choice, a_choice_of_the_first, conditions_of_ifs, choices, choices_in_calls, conditions_of_while, chains,
]  # fmt: skip


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_what_python_does_not_evaluate(function):
    """As many iterations as elements, and more: the same result, or an error where Python has one."""
    compiled = orion.parallel_for(function)
    for n, values in ((8, np.arange(8.0)), (12, np.arange(8.0)), (12, np.arange(8.0)[::-1]), (11, np.zeros(8))):
        arguments = np.ascontiguousarray(values), np.arange(12.0)
        expected = [array.copy() for array in arguments]
        try:
            result = function(*expected, n)
        except (IndexError, ZeroDivisionError) as error:
            result = error
        for workers in (1, 2):
            given = [array.copy() for array in arguments]
            with orion.session(workers=workers, force_parallel=True):
                if isinstance(result, Exception):
                    with pytest.raises(type(result)):
                        compiled(*given, n)
                    continue
                assert compiled(*given, n) == result
            for mine, theirs in zip(given, expected, strict=True):
                np.testing.assert_array_equal(mine, theirs)


def test_iterations_are_shared_out_where_nothing_can_fail():
    compiled = orion.parallel_for(any_greater)
    with orion.session(workers=2, force_parallel=True):
        assert compiled.plan(np.zeros(8), np.zeros(8), 8).is_parallel
        plan = compiled.plan(np.zeros(8), np.zeros(8), 9)
    assert not plan.is_parallel
    plan.check()
    (reason,) = (reason for reason in plan.reasons if reason.code == "ORN104")
    assert "decides what later iterations evaluate" in reason.message


def named_first(a, b, n):
    hit = False
    for i in range(n):
        found = a[i] > 3
        hit = hit or found
    return hit


def test_the_remedy_makes_the_loop_parallel():
    compiled = orion.parallel_for(named_first)
    with orion.session(workers=2, force_parallel=True):
        assert compiled.plan(np.zeros(8), np.zeros(8), 8).is_parallel


def of_a_made_array(a, b, rounds=3):
    seen = np.full(a.shape[0], -1.0)
    for _ in range(rounds):
        changed = False
        for i in range(a.shape[0]):
            changed = changed or seen[i] != a[i]
            seen[i] = a[i]
        if not changed:
            break
    return seen


def test_the_sizes_of_arrays_that_the_function_makes_are_known():
    compiled = orion.parallel_for(of_a_made_array)
    with orion.session(workers=2, force_parallel=True):
        plan = compiled.plan(np.arange(8.0), np.zeros(8))
        assert plan.is_parallel
        np.testing.assert_array_equal(compiled(np.arange(8.0), np.zeros(8)), np.arange(8.0))
    assert "combined at the end" in str(plan)
    assert "inside its array" not in str(plan)


def joined_numbers(a, b, n):
    last = 0.0
    for i in range(n):
        last = last or a[i]
    return last


@pytest.mark.parametrize(
    ("function", "n", "why"),
    [
        (any_greater, 9, "`a[i]` may be outside its array"),
        (a_divisor, 8, "may fail"),
        (a_helper, 8, "may fail"),
        (joined_numbers, 8, "is a number, not a truth value"),
    ],
)
def test_the_reason_names_what_may_go_wrong(function, n, why):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function).plan(np.zeros(8), np.zeros(8), n)
    said = [one.message for one in plan.reasons if one.code == "ORN104"]
    assert any("decides what later iterations evaluate, and `" in one and one.endswith(why) for one in said), said
