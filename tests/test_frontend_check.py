"""The check between passes objects to every kind of broken function."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orion.frontend.check import MalformedError, UndefinedNameError, check_function
from orion.frontend.parse import parse_function
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Dtype,
    Elements,
    Evaluate,
    Expr,
    For,
    If,
    Range,
    Return,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Update,
    Var,
    While,
)
from orion.ir.spans import NOWHERE
from tests import loop_functions
from tests.loop_text import from_text

WHOLE = [
    loop_functions.sgd_epoch,
    loop_functions.rmse,
    loop_functions.gauss_seidel,
    loop_functions.control_flow,
    loop_functions.slices,
    loop_functions.tuple_values,
    loop_functions.names,
    loop_functions.arrays,
]


@pytest.mark.parametrize("function", WHOLE, ids=lambda function: function.__name__)
def test_what_is_parsed_is_well_formed(function):
    parsed = parse_function(function)
    assert check_function(parsed) is parsed


def number(value: int) -> Const:
    return Const(value, NOWHERE)


def name(text: str) -> Var:
    return Var(text, NOWHERE)


def assign(value: Expr, target: Expr | None = None) -> Assign:
    return Assign(target or name("y"), value, NOWHERE)


def loop(*body: Stmt, var: str = "i", stop: Expr | None = None, step: int = 1, index: int = 0) -> For:
    space = Range(var, number(0), stop or name("n"), number(step), NOWHERE)
    return For(space, body, index, NOWHERE)


def elements(keys: tuple[str, ...], values: tuple[str, ...], single: bool, array: str = "a") -> For:
    return For(Elements(array, keys, values, single, NOWHERE), (assign(number(1)),), 0, NOWHERE)


WHOLE_SLICE = Slice(None, None, None, NOWHERE)
ELEMENT = Subscript(name("a"), (number(0),), NOWHERE)

BROKEN = [
    ("an unknown name", assign(name("missing")), "uses `missing`, which nothing defines"),
    ("an unknown array", assign(Subscript(name("missing"), (number(0),), NOWHERE)), "uses `missing`"),
    ("a slice outside of a subscript", assign(WHOLE_SLICE), "stands where a value is needed"),
    ("a slice inside an operator", assign(Binary("+", number(1), WHOLE_SLICE, NOWHERE)), "stands where a value"),
    ("a dtype as a value", assign(Dtype("float32", NOWHERE)), "stands where a value is needed"),
    ("a subscript without subscripts", assign(Subscript(name("a"), (), NOWHERE)), "has no subscripts"),
    ("`break` outside of a loop", Break(NOWHERE), "stands outside of a loop"),
    ("`continue` in a branch outside of a loop", If(name("n"), (Continue(NOWHERE),), (), NOWHERE), "stands outside"),
    ("an empty loop", loop(), "has an empty block"),
    ("an empty `while`", While(name("n"), (), NOWHERE), "has an empty block"),
    ("an empty branch", If(name("n"), (), (), NOWHERE), "has an empty block"),
    ("two loops of one number", loop(loop(assign(number(1)), var="j")), "has the number of another `for`"),
    ("a step of 0", loop(assign(number(1)), step=0), "has the step 0"),
    ("a bound that uses the loop variable", loop(assign(number(1)), stop=name("i")), "uses `i` before"),
    ("an unknown operator", assign(Binary("+-", number(1), number(2), NOWHERE)), "has an unknown operator"),
    ("an unknown unary operator", assign(Unary("!", number(1), NOWHERE)), "has an unknown operator"),
    ("an unknown update", Update(name("n"), "=", number(1), NOWHERE), "has an unknown operator"),
    ("an unknown comparison", assign(Compare(("<>",), (number(1), number(2)), NOWHERE)), "an unknown comparison"),
    ("a comparison without operand", assign(Compare(("<",), (number(1),), NOWHERE)), "has operands to spare"),
    ("a call of no helper", assign(Call("helper:missing", (), NOWHERE)), "calls a function that is not there"),
    ("a call with too few arguments", assign(Call("helper:square", (), NOWHERE)), "does not fit the parameters"),
    ("a number as a target", assign(number(1), number(2)), "cannot be assigned to"),
    ("a nested target", assign(number(1), Tuple((Tuple((), NOWHERE),), NOWHERE)), "is a nested target"),
    ("an update of an unknown name", Update(name("missing"), "+", number(1), NOWHERE), "uses `missing` before"),
    ("a view that is no subscript", Bind("w", name("a"), NOWHERE), "binds something that is not a subscript"),
    ("a statement as a value", assign(Break(NOWHERE)), "is a statement"),
    ("an expression as a statement", number(1), "is not a statement"),
    ("a variable named twice", elements(("i", "i"), ("r",), True), "names a variable twice"),
    ("an element without a key", elements((), ("r",), True), "has no keys or no values"),
    ("one value that is two", elements(("i",), ("r", "s"), True), "has one value and names several"),
    ("elements of an unknown array", elements(("i",), ("r",), True, "missing"), "uses `missing`"),
    ("an unknown name that is returned", Return(name("missing"), NOWHERE), "uses `missing`"),
    ("an unknown name in a test", While(name("missing"), (Break(NOWHERE),), NOWHERE), "uses `missing`"),
    (
        "an unknown name in an argument",
        Evaluate(Call("np.sum", (name("missing"),), NOWHERE), NOWHERE),
        "uses `missing`",
    ),
]


def broken(statement: Stmt) -> Function:
    whole = from_text("def f(a, n):\n    y = square(n)\n", square=loop_functions.square)
    return replace(whole, body=(statement,))


@pytest.mark.parametrize(("statement", "what"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_function_is_noticed(statement, what):
    with pytest.raises(MalformedError, match=what.replace("+", r"\+")):
        check_function(broken(statement))


def test_the_same_statements_unbroken_pass():
    body = (loop(assign(ELEMENT), Break(NOWHERE)), elements(("j",), ("r",), True), Bind("w", ELEMENT, NOWHERE))
    body = (body[0], replace(body[1], index=1), body[2], Return(name("w"), NOWHERE))
    check_function(replace(broken(body[0]), body=body))


def test_a_broken_helper_is_noticed():
    whole = from_text("def f(a, n):\n    y = square(n)\n", square=loop_functions.square)
    helper = replace(whole.helpers[0], body=(Return(name("missing"), NOWHERE),))
    with pytest.raises(MalformedError, match="uses `missing`"):
        check_function(replace(whole, helpers=(helper,)))


def test_a_use_before_the_definition_says_where():
    body = (assign(name("z")), assign(number(1), name("z")))
    with pytest.raises(UndefinedNameError, match="uses `z` before it is defined") as error:
        check_function(replace(broken(body[0]), body=body))
    assert (error.value.name, error.value.function.name) == ("z", "f")
