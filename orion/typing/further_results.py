"""Further rules for the type of what a function returns: numbers, limits of dtypes, the trace of a matrix, new axes."""

from __future__ import annotations

from dataclasses import replace

from orion.ir.constants import constant_value
from orion.ir.nodes import Expr, Var
from orion.ir.printer import print_expr
from orion.typing.arguments import Arguments, Rule
from orion.typing.dtypes import sum_result
from orion.typing.problems import TypeProblem
from orion.typing.results import NOT_BY_NUMBA
from orion.typing.rewritten_axes import without_axis
from orion.typing.value_type import INT, ONE, ValueType, scalar


def keyed(limits: int, result: ValueType) -> Rule:
    """The rule of a random number by key, given so many limits, a seed and keys: integers."""

    def rule(given: Arguments) -> ValueType:
        if len(given.types) <= limits:
            written = f"{given.call.function}({'low, high, ' if limits else ''}seed, i)"
            why = "a number is drawn by a seed and keys, which no other draw has"
            hint = f"write `{written}`, with i the loop variable"
            raise TypeProblem(f"`{given.call.function}` is given no seed", why, hint)
        for kind in given.types:
            if kind.rank or not (kind.is_integer or kind.dtype == "bool"):
                what = f"`{given.call.function}` of {kind.dtype if not kind.rank else 'an array'}"
                raise TypeProblem(what, "its limits, seed and keys are integers", "convert a number first: `int(x)`")
        return result

    return rule


def number(result: ValueType) -> Rule:
    """Return the rule of a function that takes single numbers, such as `int` and those of `math`."""

    def rule(given: Arguments) -> ValueType:
        name = given.call.function
        for kind, expr in zip(given.types, given.call.arguments, strict=True):
            if kind.items:
                raise TypeProblem(f"`{name}` of a tuple", "it takes a number", "write one of its items")
            if kind.rank:
                hint = f"write {element_of(expr, kind, name + '({})')}"
                raise TypeProblem(f"`{name}` of an array", "it takes a number", hint)
        return result

    return rule


def element_of(expr: Expr, kind: ValueType, written: str = "{}") -> str:
    """Return what to write for the number in an array, where `written` goes around the number.

    >>> from orion.ir.spans import NOWHERE
    >>> element_of(Var("k", NOWHERE), ValueType("int64", rank=2), "int({})")
    'one of its elements, `int(k[0, 0])`, or pass the number, `k.item()`'
    """
    if not isinstance(expr, Var):
        return f"`{written.format(f'{print_expr(expr)}[…]')}`, an element of it, or a loop over its elements"
    element = f"{expr.name}[{', '.join('0' * kind.rank)}]"
    return f"one of its elements, `{written.format(element)}`, or pass the number, `{expr.name}.item()`"


def integer_limit(given: Arguments) -> ValueType:
    """A number of np.iinfo."""
    if not (given.dtype(0) or "").startswith(("int", "uint")):
        raise TypeProblem(f"`np.iinfo` of {given.dtype(0)}", "it is for integers", "write `np.finfo`")
    return INT


def float_limit(given: Arguments) -> ValueType:
    """A number of np.finfo."""
    dtype = given.dtype(0) or ""
    if not dtype.startswith("float"):
        raise TypeProblem(f"`np.finfo` of {dtype}", "it is for floating-point numbers", "write `np.iinfo`")
    return ValueType(dtype)


def trace(given: Arguments) -> ValueType:
    """The sum of the diagonal of a matrix."""
    array = given.type(0)
    if array.rank != 2:
        what = f"`trace` of an array of {array.rank} dimensions"
        raise TypeProblem(what, NOT_BY_NUMBA, "add up its elements in a loop, `A[i, i]`")
    return scalar(sum_result(array.kind))


def with_axis(given: Arguments) -> ValueType:
    """np.expand_dims, `x[:, None]`: an axis of one element more."""
    array = given.type(0)
    if not array.rank:  # the mean of a row: `np.std(x, axis=0)` is written by this (`orion.frontend.numpy_forms`)
        hint = "for a row leave the axis out, `np.std(x)`"
        raise TypeProblem("a number gets an axis", "", hint, rewritten=without_axis)
    number = constant_value(given.call.arguments[1]) if len(given.call.arguments) > 1 else None
    if number is None or not -array.rank <= number + (number < 0) <= array.rank:
        raise TypeProblem("`axis` is not the number of an axis of the result", "", "write a constant, `x[:, None]`")
    place = number % (array.rank + 1)
    lengths = (*array.lengths[:place], ONE, *array.lengths[place:])
    return replace(array, rank=array.rank + 1, lengths=lengths)
