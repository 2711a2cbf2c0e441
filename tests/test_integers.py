"""Integers of a call, from its arguments to the machine code: what plain Python does with them is what loops do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, note, reject, settings
from hypothesis import strategies as st

import orion
from orion.errors import ArgumentError, UnsupportedLoopError
from orion.ir.nodes import Subscript, walk
from orion.ir.signature import argument_types
from orion.sets.affine import Affine, affine_form, parameter
from orion.typing.infer import infer_types
from orion.typing.integers_at_call import integers_at_call
from orion.typing.narrow import with_python_integers
from tests.loop_text import defined, from_text
from tests.narrow_loops import Memory, expressions, problem, random_loop
from tests.trials import combined, one_in, times

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "ignore::RuntimeWarning")


# ---------------------------------------------------------------- integers of more than 63 bits


@orion.parallel_for
def to_bound(a, n):
    for i in range(n):
        a[i] = 1


@orion.parallel_for
def from_bound(a, n):
    for i in range(n - 4, n + 10):
        a[i] = 1


@orion.parallel_for
def at(a, n):
    for i in range(5):
        a[n] = i


@orion.parallel_for
def as_value(a, n):
    for i in range(5):
        a[i] = n


@orion.parallel_for
def in_test(a, n):
    for i in range(5):
        if i < n:
            a[i] = 1


@orion.parallel_for
def in_slice(a, n):
    for i in range(5):
        a[i:n] = 1


@orion.parallel_for
def as_step(a, n):
    for i in range(0, 20, n):
        a[i] = 1


HUGE = [np.uint64(2**63), np.uint64(2**64 - 1), 2**63, 2**64 - 1, 2**64, 2**200, -(2**63) - 1, -(2**200)]
KNOWN = [to_bound, at, in_test, in_slice]
"""Their plans depend on the value of n."""
LOOPS = [to_bound, at, as_value, in_test, in_slice, as_step]


@pytest.mark.parametrize("n", HUGE, ids=lambda n: f"{type(n).__name__}-{int(n):.3g}")
@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_huge_integers_work_or_are_refused_in_words(f, n):
    found, wanted = np.zeros(20), np.zeros(20)
    if isinstance(n, int) or f in KNOWN:
        with pytest.raises(ArgumentError, match=r"argument `n` is (.|\n)* pass a smaller"):
            f(found, n)
        assert not found.any()
    else:
        f(found, n)
        f.serial(wanted, n)
        np.testing.assert_array_equal(found, wanted)


def test_huge_integers_that_are_no_bound_by_themselves():
    found = np.zeros(20)
    from_bound(found, np.uint64(2**64 - 1))  # from 2**64 - 5 to 9
    assert not found.any()
    with pytest.raises(IndexError):
        from_bound(found, np.uint64(2**63))


def test_unsigned_values_need_not_fit_a_subscript():
    found = np.zeros(5, np.uint64)
    as_value(found, np.uint64(2**64 - 1))
    assert (found == 2**64 - 1).all()


@orion.parallel_for
def rows_up_to(a, stops):
    for i in range(stops.size):
        for j in range(stops[i]):
            a[i, j] += 1
            if j > 3:
                break


@orion.parallel_for
def rows_from(a, starts, stop):
    for i in range(starts.size):
        for j in range(starts[i], stop):
            a[i, j] += 1


@orion.parallel_for
def cut_rows(a, stops):
    for i in range(stops.size):
        a[i, : stops[i]] = 1


@orion.parallel_for
def element_of(a, places):
    for i in range(places.size):
        a[i, places[i]] = 1


def test_bounds_read_from_unsigned_arrays():
    stops = np.array([0, 3, 2**63, 2**64 - 1], np.uint64)
    for f, more in ((rows_up_to, (stops,)), (cut_rows, (stops,)), (rows_from, (stops[1:], 6))):
        found, wanted = np.zeros((4, 9)), np.zeros((4, 9))
        f(found, *more)
        f.serial(wanted, *more)
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(IndexError):
        element_of(np.zeros((4, 9)), stops)


@orion.parallel_for
def between(a, starts, stops):
    for i in range(starts.size):
        for _ in range(starts[i], stops[i]):
            a[i] += 1


def test_a_range_of_integers_of_64_bits_is_refused():
    starts, stops = np.array([1, 2**64 - 4], np.uint64), np.array([3, 2**64 - 1], np.uint64)
    with pytest.raises(OverflowError, match="starts"):
        between(np.zeros(2), starts, stops)


# ---------------------------------------------------------------- integers narrower than Python's


@orion.parallel_for
def shifted(a, n):
    for i in range(5):
        a[i + n] = i


@orion.parallel_for
def counted(a, n):
    for i in range(5):
        a[i + n] += 1


@orion.parallel_for
def doubled(a, n):
    m = n + 1
    for i in range(5):
        a[n * 2 + i] = 1
        a[i + m] += 1


@orion.parallel_for
def negated(a, n):
    for i in range(5):
        a[-n + i] += 1


@orion.parallel_for
def converted(a, n):
    for i in range(5):
        a[int(n) + i] += 1


@orion.parallel_for
def grown(a, n):
    n = n + 100
    n += 20
    for i in range(5):
        a[i + n] += 1


@orion.parallel_for
def swept(a, n):
    for _ in range(n, n + 3):
        for i in range(1, 60 - n):
            a[i] = 0.5 * (a[i - 1] + a[i + 1])


INTEGERS = [
    np.int8(127), np.int8(3), np.int8(-128), np.int16(100), np.uint8(254), np.uint8(3), np.uint64(3), np.int64(100),
    100,
]  # fmt: skip


@pytest.mark.parametrize("f", [shifted, counted, doubled, negated, converted, grown, from_bound, swept])
def test_integers_of_every_dtype_are_those_of_plain_python(f):
    for n, workers in combined(INTEGERS, (2, 1)):
        wanted = Memory("int64")
        try:
            with np.errstate(all="ignore"):
                f.serial(wanted.a, n)
            refused = ()
        except (OverflowError, IndexError):
            refused = (OverflowError, IndexError)
        found = Memory("int64")
        with orion.session("threads", workers=workers, force_parallel=True):
            if refused:
                with pytest.raises(refused):
                    f(found.a, n)
            else:
                f(found.a, n)
                assert wanted.same_as(found), repr(n)
        assert found.is_guarded(), repr(n)


@orion.parallel_for
def after_largest(a, x):
    m = x.max()
    for i in range(5):
        a[i + m] += 1


def test_narrow_integers_that_a_function_computes():
    for dtype in ("int8", "uint8", "int64"):
        x = np.array([3, 127 if dtype == "int8" else 254], dtype)
        wanted, found = Memory(dtype), Memory(dtype)
        with np.errstate(all="ignore"):
            after_largest.serial(wanted.a, x)
        with orion.session("threads", workers=2, force_parallel=True):
            after_largest(found.a, x)
        assert wanted.same_as(found)


@orion.parallel_for
def chained(a, n):
    for i in range(1, 200):
        a[i + n] = a[i + n - 1] + 1


@orion.parallel_for
def filled(a, n):
    for i in range(60):
        a[i + n] = i


def test_narrow_integers_that_fit_are_like_others():
    a = np.zeros(300)
    with orion.session("threads", workers=2, force_parallel=True):
        for n in (np.int8(60), np.int16(3), np.uint8(195), np.uint64(3), np.int32(200)):
            like = filled.plan(a, int(n))
            plan = filled.plan(a, n)
            assert (plan.strategy, plan.runs_on) == (like.strategy, like.runs_on)
            assert [r.code for r in plan.reasons] == [r.code for r in like.reasons]


@orion.parallel_for
def counted_beside(a, n, m):
    g = 0
    for i in range(m + n):
        a[g] = 0.5 + i
        g += 1  # noqa: SIM113


def test_a_bound_that_wraps_around_is_no_sure_one_where_something_is_counted_beside_the_loop():
    for n, m in ((np.uint8(254), 2), (np.uint8(254), 5), (np.int8(127), 3), (np.int8(100), 20)):
        wanted, found = np.zeros(130), np.zeros(130)
        with np.errstate(all="ignore"):
            counted_beside.serial(wanted, n, m)
        counted_beside(found, n, m)
        assert wanted.tolist() == found.tolist(), (n, m)


def test_the_reason_says_what_to_write():
    plan = filled.plan(np.zeros(300), np.int8(100))
    reason = next(reason for reason in plan.reasons if reason.code == "ORN103")
    assert "`i + n` is computed in fewer than 64 bits" in reason.message
    assert "int(n)" in reason.hint
    fits = filled.plan(np.zeros(300), np.int8(60))
    assert all(reason.code != "ORN103" for reason in fits.reasons)


def test_a_call_with_another_integer_is_planned_again():
    for n in (np.int8(60), np.int8(100), np.int8(60), np.int8(126), np.int8(-60)):
        wanted, found = Memory("int64"), Memory("int64")
        with np.errstate(all="ignore"):
            filled.serial(wanted.a, n)
        filled(found.a, n)
        assert wanted.same_as(found), repr(n)


def test_a_python_integer_that_does_not_fit_is_an_overflow():
    a = np.zeros(300)
    with pytest.raises(OverflowError, match=r"a\[i \+ n\]"):
        chained(a, np.int8(3))
    with pytest.raises(OverflowError):
        chained.serial(np.zeros(300), np.int8(3))


# ---------------------------------------------------------------- what is taken for exact


@given(st.data())
@settings(max_examples=times(300, 100), deadline=None)
def test_operations_taken_for_exact_are_so_for_every_iteration(data):
    values = {name: data.draw(st.sampled_from(INTEGERS), label=name) for name in ("n", "m")}
    text, trips = (
        expressions(data.draw(st.randoms(use_true_random=False)), ("n", "m", "i")),
        data.draw(st.integers(1, 40)),
    )
    function = from_text(f"def f(a, n, m):\n    for i in range({trips}):\n        a[{text}] = 1\n")
    note(text)
    types, shapes = argument_types({"a": np.zeros(300), **values})
    try:
        typing = infer_types(function, types)
    except UnsupportedLoopError:  # what meets as uint64 and int64 is a float64
        reject()
    changed = with_python_integers(function, typing, shapes, values)
    index = next(iter(_subscripts(changed)))
    if not isinstance(affine_form(index, {name: parameter(name) for name in ("n", "m", "i")}), Affine):
        return
    for i in range(trips):
        with np.errstate(all="raise"):
            found = eval(text, {}, {**values, "i": i})
        assert int(found) == eval(text, {}, {"n": int(values["n"]), "m": int(values["m"]), "i": i})


def _subscripts(function):
    nodes = (node for statement in function.body for node in walk(statement))
    return [node.index[0] for node in nodes if isinstance(node, Subscript)]


def test_functions_of_python_integers_are_left_as_they_are():
    function = from_text("def f(a, n):\n    for i in range(n - 1):\n        a[2 * i + n] = 1\n")
    for n, is_narrow in ((3, False), (np.int64(3), False), (np.int32(3), True)):
        found = integers_at_call(function, argument_types({"a": np.zeros(9), "n": n})[0])
        assert found.is_narrow == is_narrow
        assert (found.at({}, {"n": n}) is function) == (not is_narrow)


@pytest.mark.parametrize(
    ("line", "matter"),
    [("orion.random.integers(0, 9, n, i)", False), ("orion.random(3, n)", False), ("orion.random(n + 1)", True),
     ("orion.random.integers(n, 200, 3)", True), ("orion.random(n) + n", True)],
)  # fmt: skip
def test_seeds_and_keys_of_random_numbers_decide_no_operation(line, matter):
    """A call with another one is planned as the one before, also beside operations on narrow integers."""
    text = f"def f(a, at, n):\n    for i in range(9):\n        k = at[i]\n        a[k + 1] = {line}\n"
    arguments = {"a": np.zeros(300), "at": np.zeros(9, np.int8), "n": 3}
    found = integers_at_call(from_text(text, orion=orion), argument_types(arguments)[0])
    assert found.is_narrow
    assert found.integers == (("n",) if matter else ())
    assert (found.at({}, {"n": 3}) is found.at({}, {"n": 4})) == (not matter)


# ---------------------------------------------------------------- random loops


@given(st.integers(0, 2**32))
@settings(max_examples=times(12, 6), deadline=None, derandomize=True)
def test_random_loops_with_integers_of_all_dtypes(seed):
    loop = random_loop(seed)
    note(str(loop))
    for workers in (1, 2):
        assert problem(loop, workers) in (None, "skipped", "refused")


@orion.parallel_for
def with_made_array(a, n):
    t = np.zeros(n + 1)
    for i in range(5):
        t[i] = i
    for i in range(5):
        a[i] = t[i]


def test_lengths_of_arrays_that_are_made():
    found, wanted = np.zeros(9), np.zeros(9)
    with_made_array(found, np.int8(20))
    with_made_array.serial(wanted, np.int8(20))
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ArgumentError, match=r"the length of the array `t` may not fit"):
        with_made_array(found, np.int8(127))


@orion.parallel_for
def relaxed(a, n, rounds):
    for _ in range(rounds):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


def test_orders_of_loops_with_narrow_bounds_are_those_of_others():
    start = np.random.default_rng(0).random((64, 64))
    wanted = start.copy()
    relaxed.serial(wanted, 60, 4)
    with orion.session("threads", workers=2, force_parallel=True):
        like = relaxed.plan(start, 60, 4)
        for n in one_in(2, (np.uint8(60), np.int32(60))):
            found = start.copy()
            plan = relaxed.plan(found, n, np.int8(4))
            assert (plan.strategy, plan.runs_on) == (like.strategy, like.runs_on)
            relaxed(found, n, np.int8(4))
            np.testing.assert_array_equal(found, wanted)


# ---------------------------------------------------------------- sums that begin with narrow integers


@orion.parallel_for
def counted(a, m):
    for _ in range(a.shape[0]):
        m += 1
    a[0] = m
    return m, m * 2


@orion.parallel_for
def doubled(a, m):
    s = m
    for _ in range(a.shape[0]):
        s *= 2
    a[0] = s
    return s


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("start", [np.int8(127), np.uint8(255), np.int16(-(2**15)), np.uint16(65535), np.int32(7)])
@pytest.mark.parametrize("loop", [counted, doubled])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_sums_that_begin_with_a_narrow_integer_wrap_around_in_it(loop, start, workers):
    wanted, found = np.zeros(5), np.zeros(5)
    result = loop.serial(wanted, start)
    with orion.session("threads", workers=workers, force_parallel=True):
        got = loop(found, start)
    np.testing.assert_array_equal(found, wanted)
    assert got == result
    assert np.asarray(got).dtype == np.asarray(result).dtype


SIGNS = ["-(i + 1 + c)", "--(i + 1 + c)", "~(i + c)", "-~(i + c)", "+-(i + c)", "-(c + i) - 1", "~-(c + i) + 1"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", SIGNS)
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32])
def test_signs_before_narrow_integers_wrap_around_like_sums(value, kind):
    """The negative of the least integer is that integer."""
    body = f"        out[i] = {value}\n        above[i] = {value} > 0\n"
    function = defined(f"def f(c, out, above):\n    for i in range(3):\n{body}")
    for c in (kind(np.iinfo(kind).max - 1), kind(np.iinfo(kind).min), kind(5)):
        expected, found = np.zeros((2, 3), np.int64), np.zeros((2, 3), np.int64)
        function(c, *expected)
        orion.parallel_for(function)(c, *found)
        np.testing.assert_array_equal(found, expected)


# ---------------------------------------------------------------- floats to a power that is an integer argument


def to_power(a, k):
    for i in range(len(a)):
        a[i] = a[i] ** k


def to_power_in_place(a, k):
    for i in range(len(a)):
        a[i] **= k


def to_power_of_sums(a, k):
    for i in range(len(a)):
        a[i] = (a[i] * 1.0 - 2.0) ** (k - 1)


def all_to_power(a, k):
    a[:] = a**k
    for i in range(len(a)):
        a[i] += 1


def to_power_of_elements(a, k):
    b = np.zeros(4, np.int64)
    b[:] = k
    for i in range(len(a)):
        a[i] = a[i] ** b[i]


POWERS = [-1, -3, 0, 2, np.int64(-2), np.int32(-1), np.uint8(3), -1.0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "function", [to_power, to_power_in_place, to_power_of_sums, all_to_power, to_power_of_elements]
)
def test_zero_to_a_negative_power_is_infinite_for_numpys_floats(function, dtype):
    compiled = orion.parallel_for(function)
    for power in POWERS:
        wanted, found = (np.array([2.0, 0.0, 3.0, -1.5], dtype) for _ in range(2))
        function(wanted, power)
        compiled(found, power)
        np.testing.assert_allclose(found, wanted, rtol=1e-15 if dtype == "float64" else 3e-7, err_msg=repr(power))
