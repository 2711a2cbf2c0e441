"""Which of the `for`s that stand directly inside one another are dimensions of one planned loop."""

from __future__ import annotations

from orion.ir.assigned import assigned_names, holds_break, mentions
from orion.ir.nodes import (
    INTEGER,
    Binary,
    Call,
    Const,
    Count,
    Dim,
    Elements,
    Expr,
    For,
    Range,
    Stmt,
    Unary,
    Var,
)  # fmt: skip
from orion.passes.extremes import begins_anew


def perfect_loops(loop: For) -> tuple[For, ...]:
    """The loop and those `for`s directly inside it that span one iteration space with it, outermost first.

    A further `for` is taken where the body around it holds nothing else and its trips are known before the loop runs:
    its bounds are affine in the variables of the loops around it and in names that the body does not assign, its step
    is a constant, it is not left by a `break`, no variable of the loops around it is assigned in the body, and theirs
    are not bounded by an earlier value of its own.
    """
    loops = [loop]
    while not isinstance(loop.space, Elements):
        match loop.body:
            case (For(Range(), body) as inner,) if is_dimension(inner, loops) and not _is_one_by_one(body):
                loops.append(inner)
                loop = inner
            case _:
                break
    return tuple(loops)


def _is_one_by_one(body: tuple[Stmt, ...]) -> bool:
    """Whether blocks of the loops around a body must not lie side by side: what it does goes by the written order."""
    return holds_break(body) or begins_anew(body)


def is_dimension(inner: For, outer: list[For]) -> bool:
    assert isinstance(inner.space, Range)
    dims = {loop.space.var for loop in outer if isinstance(loop.space, Range)}
    changed = assigned_names(inner.body)
    if inner.space.var in dims or changed & dims or any(mentions(one.space, {inner.space.var}) for one in outer):
        return False
    bounds = (inner.space.start, inner.space.stop)
    return _is_constant(inner.space.step) and all(_is_affine(bound, dims, changed) for bound in bounds)


def _is_constant(expr: Expr) -> bool:
    match expr:
        case Const(int(value)):
            return value != 0
        case Unary("-" | "+", operand):
            return _is_constant(operand)
        case _:
            return False


def _is_affine(expr: Expr, dims: set[str], changed: set[str]) -> bool:
    """Whether a bound is affine in the loop variables `dims`, with everything else fixed while the loop runs."""
    match expr:
        case Const(int()) | Dim() | Count():
            return True
        case Var(name):
            return name not in changed
        case Unary("-" | "+", operand):
            return _is_affine(operand, dims, changed)
        case Binary("+" | "-", left, right):
            return _is_affine(left, dims, changed) and _is_affine(right, dims, changed)
        case Binary("*", left, right):
            affine = _is_affine(left, dims, changed) and _is_affine(right, dims, changed)
            return affine and not (mentions(left, dims) and mentions(right, dims))
        case Binary("//" | "%", left, right):
            return _is_affine(left, dims, changed) and _is_constant(right)
        case Call(function, (operand,)) if function == INTEGER:
            return _is_affine(operand, dims, changed)
        case Call("min" | "max", parts) if len(parts) > 1:
            return all(_is_affine(part, dims, changed) for part in parts)
        case _:
            return False
