"""Whether a loop makes two trips: ranges in numbers, and what its function does to keep it from more than one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orion.cli.audit.values import Site

JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
BELOW, ABOVE = (ast.Lt, ast.LtE, ast.Eq), (ast.Gt, ast.GtE, ast.NotEq)
FEWEST = 2


def is_single(loop: ast.For) -> bool:
    """Whether the range of a loop, written out in numbers, has one item at most."""
    try:
        numbers = [ast.literal_eval(one) for one in loop.iter.args] if isinstance(loop.iter, ast.Call) else []
        return bool(numbers) and len(range(*numbers)) <= 1
    except (ValueError, TypeError, OverflowError):
        return False


def limit_of(site: Site, sizes: int = FEWEST) -> ast.AST | None:
    """Return what may keep a loop of a function from being run at these sizes, or with two trips; None where there is
    no such.

    That is a comparison with a number as small as these, such a number itself, `min` with one, a remainder, or an array
    with such an extent.
    """
    largest = max(sizes, FEWEST)
    for function in site.around[-1:]:
        limited = _names(site.loop.iter)
        if _is_short(site.loop.iter, largest):
            return site.loop
        for _ in range(4):
            for node in ast.walk(function):
                match node:
                    case ast.Assign(targets, value) if limited & set().union(*map(_names, targets)):
                        limited |= _names(value)
                        if _may_be_small(value, largest):
                            return node
                    case ast.For(target, ast.Call(_, [*_, stop])) if node is not site.loop:
                        if limited & _names(target) and _is_small(stop, largest):
                            return node
        for test, holds in _tests(function.body, site.loop):
            if test is None:
                return site.loop
            if limited & _names(test) and _is_limiting(test, largest, holds=holds):
                return test
    return None


def _is_short(iterated: ast.expr, largest: int) -> bool:
    """Whether a range may have few items, by the expressions of its bounds alone."""
    match iterated:
        case ast.Call(_, [start, ast.BinOp(left, ast.Add(), width)]) if ast.dump(left) == ast.dump(start):
            return _may_be_small(width, largest)
        case ast.Call(_, [stop]) if not isinstance(stop, ast.Constant):
            return _may_be_small(stop, largest)
        case _:
            return False


def _may_be_small(value: ast.expr, largest: int) -> bool:
    """Whether an expression shows that its value may be small at all sizes: a number, a remainder, or a choice."""
    if _is_small(value, largest) or any(_is_small(one, largest) for one in _bounds_in(value)):
        return True
    parts = [getattr(one, "op", one) for one in ast.walk(value)]
    return any(isinstance(part, ast.Mod | ast.BitAnd | ast.RShift | ast.Compare) for part in parts)


def _bounds_in(value: ast.expr) -> Iterator[ast.expr]:
    """The numbers in the calls of `min` and of functions of NumPy in a value."""
    for call in (one for one in ast.walk(value) if isinstance(one, ast.Call)):
        match call.func:
            case ast.Name("min" | "minimum") | ast.Attribute():
                for argument in call.args:
                    yield from argument.elts if isinstance(argument, ast.Tuple) else [argument]


def _is_small(value: ast.expr, largest: int) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float) and value.value <= largest


def _tests(body: list[ast.stmt], loop: ast.For) -> Iterator[tuple[ast.expr | None, bool]]:
    """The tests that decide whether a loop is reached, and what they are then; None stands for one that never holds."""
    for statement in body:
        if statement is loop:
            return
        if any(one is loop for one in ast.walk(statement)):
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(statement, name, [])
                if any(one is loop for part in inner for one in ast.walk(part)):
                    if isinstance(statement, ast.If | ast.While):
                        yield statement.test, name == "body"
                    yield from _tests(inner, loop)
            return
        if isinstance(statement, JUMPS):
            yield None, False
        elif isinstance(statement, ast.Assert):
            yield statement.test, True
        elif isinstance(statement, ast.If):
            if _leaves(statement.body):
                yield statement.test, False
            if _leaves(statement.orelse):
                yield statement.test, True


def _leaves(body: list[ast.stmt]) -> bool:
    return any(isinstance(one, JUMPS) for statement in body for one in ast.walk(statement))


def _is_limiting(test: ast.expr, largest: int, *, holds: bool) -> bool:
    """Whether a test that holds, or does not, may bound something by a small number."""
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return _is_limiting(operand, largest, holds=not holds)
        case ast.BoolOp(_, parts):
            return any(_is_limiting(part, largest, holds=holds) for part in parts)
        case ast.Compare(left, operators, rest):
            terms = [left, *rest]
            return any(
                (_is_small(second, largest) and isinstance(op, BELOW if holds else ABOVE))
                or (_is_small(first, largest) and isinstance(op, (*_flipped(holds=holds),)))
                for first, op, second in zip(terms, operators, rest, strict=False)
            )
        case _:
            return False


def _flipped(*, holds: bool) -> tuple[type[ast.cmpop], ...]:
    return (ast.Gt, ast.GtE, ast.Eq) if holds else (ast.Lt, ast.LtE, ast.NotEq)


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
