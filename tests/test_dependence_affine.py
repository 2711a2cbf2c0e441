"""Numbers in the text for isl: whatever affine expression a subscript is, isl reads the number that Python has."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import orion
from orion.dependence.bounds import fix_parameters
from orion.ir.nodes import Binary, Call, Compare, Const, Expr, Unary, Var
from orion.ir.printer import print_expr
from orion.ir.spans import NOWHERE
from orion.sets.affine import Affine, affine_condition, affine_form, parameter
from orion.sets.conditions import all_of
from orion.sets.names import parameter_list
from orion.sets.reader import Reader

NAMES = ("i", "j", "n", "mod")
SCOPE = {name: parameter(name) for name in NAMES}
HUGE = st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64, 10**30])
CONSTANTS = st.one_of(st.integers(0, 12), HUGE).map(lambda number: Const(number, NOWHERE))


def negated(expr: Expr) -> Expr:
    return Unary("-", expr, NOWHERE)


def larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Sums, negations, products with a constant on either side, quotients and remainders, minima and maxima."""
    factors = st.one_of(CONSTANTS, CONSTANTS.map(negated), CONSTANTS.map(negated).map(negated))
    divisors = st.one_of(st.integers(1, 12), HUGE).map(lambda number: Const(number, NOWHERE))
    divisors = st.one_of(divisors, divisors.map(negated))
    return st.one_of(
        inner.map(negated),
        inner.map(lambda operand: Unary("+", operand, NOWHERE)),
        st.builds(lambda op, a, b: Binary(op, a, b, NOWHERE), st.sampled_from("+-"), inner, inner),
        st.builds(lambda a, b: Binary("*", a, b, NOWHERE), factors, inner),
        st.builds(lambda a, b: Binary("*", a, b, NOWHERE), inner, factors),
        st.builds(lambda op, a, b: Binary(op, a, b, NOWHERE), st.sampled_from(["//", "%"]), inner, divisors),
        st.builds(lambda name, a, b: Call(name, (a, b), NOWHERE), st.sampled_from(["min", "max"]), inner, inner),
    )


EXPRESSIONS = st.recursive(
    st.one_of(CONSTANTS, st.sampled_from(NAMES).map(lambda name: Var(name, NOWHERE))), larger, max_leaves=6
)
VALUES = st.fixed_dictionaries({name: st.one_of(st.integers(-20, 20), st.integers(-(2**70), 2**70)) for name in NAMES})


def value_in_isl(form: Affine, values: dict[str, int]) -> int:
    """What isl makes of the text of a form."""
    known = {str(form_of.text): values[name] for name, form_of in SCOPE.items()}
    text = f"{parameter_list({*form.names, *known})}{{ [value] : value = {form.text} }}"
    found = fix_parameters(isl.Set(text), known)
    return int(found.dim_min_val(0).to_python())


@given(EXPRESSIONS, VALUES)
@example(Binary("*", Unary("-", Const(2, NOWHERE), NOWHERE), Var("i", NOWHERE), NOWHERE), dict.fromkeys(NAMES, 3))
@settings(max_examples=600, deadline=None)
def test_isl_reads_what_python_computes(expr: Expr, values: dict[str, int]) -> None:
    form = affine_form(expr, SCOPE)
    assert isinstance(form, Affine)
    wanted = eval(print_expr(expr), {}, values)
    assert value_in_isl(form, values) == wanted
    assert form.value in (None, wanted)


@given(EXPRESSIONS, EXPRESSIONS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), VALUES)
@settings(max_examples=200, deadline=None)
def test_conditions_are_those_of_python(left: Expr, right: Expr, op: str, values: dict[str, int]) -> None:
    condition = affine_condition(Compare((op,), (left, right), NOWHERE), SCOPE)
    assert condition is not None
    known = {str(form.text): values[name] for name, form in SCOPE.items()}
    for each, holds in ((condition, True), (condition.negated(), False)):
        found = fix_parameters(isl.Set(f"{parameter_list({*each.names, *known})}{{ [x] : {each.text} }}"), known)
        assert found.is_empty() != (eval(f"({print_expr(left)}) {op} ({print_expr(right)})", {}, values) == holds)


@orion.parallel_for
def leading_minus(a, n):
    for i in range(5):
        a[-2 * i + 10] = i + 1


@orion.parallel_for
def minus_in_a_bound(a, n):
    for i in range(-1 * n, -2 * -3):
        a[-(-1 * i) - 2 * -1] = 2 * 3 * i


@orion.parallel_for
def minus_in_a_condition(a, n):
    for i in range(5):
        for j in range(-2 * i + 10):
            if -3 * i + n < 4 * -2:
                a[j] += 2 * 3 * i


@orion.parallel_for
def minus_in_a_slice(a, n):
    for i in range(4):
        a[-2 * i + 8 : -2 * i + 10] = i + 1.0


@orion.parallel_for
def minus_in_a_step(a, n):
    for i in range(-2 * n + 12, -1 * 2, -1 * 2):
        a[(-1 - 1) * i + 20] = i


@pytest.mark.parametrize(
    "f", [leading_minus, minus_in_a_bound, minus_in_a_condition, minus_in_a_slice, minus_in_a_step]
)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_loops_whose_subscripts_and_bounds_begin_with_a_minus(f):
    wanted, found = np.zeros(24), np.zeros(24)
    f.serial(wanted, 2)
    with orion.session("threads", workers=2, force_parallel=True):
        f.plan(found, 2).check()
        f(found, 2)
    np.testing.assert_array_equal(found, wanted)


TEXTS = (
    "[n, m] -> { S1[i, j] : 0 <= i < n and 0 <= j and j < (m - 1) }",
    "[m, n] -> { [i] -> A[x0, x1] : 0 <= i < n and ((i >= 0 and x0 = i) or (i < 0 and x0 = i + n)) and 0 <= x1 < m }",
    "[n] -> { S0[i] -> total[] : 0 <= i and i < n }",
    "[n] -> { S0[i] : i mod 3 = 0 and not ((i < 2)) and (i < n or (i = 7 and n > 2) or i > 90) }",
    "[n] -> { [i] : exists j: 0 <= j < n and i = 2 * j }",
    "[n] -> { [i] : 0 <= i and i < n or i = -3 }",
    "[n] -> { [i = 2n] : i >= 0 and n < 9 }",
    "[n] -> { : n >= 0 and n < 7 }",
    "[n] -> { [i] : 0 <= i < n; [i] : i = -4 and n > 0 }",
    "[n, m] -> { S0[i] -> A[x0, x1] : exists j, k: 0 <= i and j = (n - 2) + (-1 * k) and x0 = j and 0 <= x1 < m + k }",
    "[n] -> { [i] -> y[i, 0] : 0 <= i and i < n }",
    "[i] -> { [i, j] : i < 3 and j = (i - (2 - -4)) }",
    "[n] -> { [i] : (n >= 2 and i > 0) and not ((i = n)) and not ((0 <= i and i < n * 2 or i > 99)) }",
    "[n] -> { [i] : 2 * (i - 3 * n) < 12345678901234567890 and true and n != 3 }",
    "[n] -> { [i] : i = 3 and 1 <= 0 and floor((n)/2) < i }",
)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_read_in_parts_is_what_isl_reads(text):
    context = isl.Context()
    kind = isl.Map if "] -> " in text.partition("{")[2] else isl.Set
    reader, wanted = Reader(context), kind(text, context)
    for found in (reader.read(text, kind), reader.read(text, kind)):
        assert found.is_equal(wanted)
        assert str(found.get_space()) == str(wanted.get_space())


def test_conditions_that_hold_together_are_one():
    first, second = ("(n = 0 or (n > 0 and m >= n))", ("m", "n")), ("(n = 0 or (n > 0 and k = m))", ("k", "m", "n"))
    (found,), names = all_of((first, second, first))
    wanted = isl.Set(f"[k, m, n] -> {{ : {first[0]} and {second[0]} }}")
    assert isl.Set(f"[k, m, n] -> {{ : {found} }}").is_equal(wanted)
    assert names == {"k", "m", "n"}
    assert all_of((first,)) == ((first[0],), {"m", "n"})
