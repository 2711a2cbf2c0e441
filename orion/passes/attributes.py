"""Attributes of arrays made plain once types are known: extents, counts, dtypes.

| in the source | becomes |
|---|---|
| `len(a)`, `a.shape[k]`, `W[i].shape[0]` of a dense array | `Dim(array, axis)`, the axis counted from the front |
| `a.size` | the product of its `Dim`s |
| `len(r)`, `r.nnz`, `r.size` of a sparse array | `Count(r)` |
| `a.ndim` | a constant |
| `dtype=a.dtype` | a `Dtype` |
| `np.finfo(a.dtype).eps` | the number |
| `np.zeros(a.shape)` | `np.zeros((Dim, Dim))` |
| `a.conj()` of real numbers | `a`, the same array |
"""

from __future__ import annotations

from functools import reduce

from orion.frontend.numpy_forms import dtype_limit
from orion.frontend.scope import constant
from orion.ir.function import Function
from orion.ir.nodes import Binary, Call, Const, Count, Dim, Dtype, Expr, Tuple, Var
from orion.ir.rewriting import rewrite_function
from orion.ir.spans import with_span
from orion.ir.types import SparseType
from orion.source import Span
from orion.typing.expression_types import Typing


def resolve_attributes(function: Function, typing: Typing) -> Function:
    """The function with attributes and lengths of arrays in their plain forms."""
    return rewrite_function(function, lambda expr: _resolve(expr, typing))


def _resolve(expr: Expr, typing: Typing) -> Expr:
    match expr:
        case Dim(array, axis):
            found = _axis(expr, array, axis, typing)
            return expr if found == expr else found
        case Call("len" | "attribute:nnz" | "attribute:size", (owner,)):
            return _count(expr, owner, typing)
        case Call("attribute:ndim", (owner,)):
            return Const(typing.of(owner).rank, expr.span)
        case Call("attribute:dtype", (owner,)):
            return Dtype(typing.of(owner).dtype, expr.span)
        case Call(function, (Dtype(dtype),)) if function.startswith(("iinfo:", "finfo:")):
            name, _, attribute = function.partition(":")
            return constant(dtype_limit(name, attribute, dtype), expr.span) or expr
        case Call(".conj" | ".conjugate", (owner,)) if not typing.of(owner).is_complex:
            return owner
        case Call("attribute:shape", (owner, *rest)):
            return _shape(expr, owner, rest, typing)
        case _:
            return expr


def _axis(expr: Dim, array: str, axis: int, typing: Typing) -> Expr:
    rank = typing.name(array).rank
    if not -rank <= axis < rank:
        what = f"`{array}` has {rank} dimensions" if rank else f"`{array}` is a scalar and has no shape"
        raise typing.refuse(expr, what)
    return _named_extent(array, axis % rank, typing, expr.span)


def _count(call: Call, owner: Expr, typing: Typing) -> Expr:
    kind = typing.of(owner)
    if isinstance(owner, Var) and isinstance(typing.arguments.get(owner.name), SparseType):
        return Count(owner.name, call.span)
    if kind.rank == 0:
        raise typing.refuse(call, "a scalar has no length")
    if call.function == "attribute:nnz":
        raise typing.refuse(call, "`nnz` of a dense array", "only sparse arrays have it", "write `np.sum(a != 0)`")
    axes = range(1 if call.function == "len" else kind.rank)
    extents = [_extent(owner, axis, typing, call.span) for axis in axes]
    known = [extent for extent in extents if extent is not None]
    return reduce(lambda a, b: Binary("*", a, b, call.span), known) if len(known) == len(extents) else call


def _shape(call: Call, owner: Expr, rest: list[Expr], typing: Typing) -> Expr:
    rank = typing.of(owner).rank
    if not rest:
        extents = [_extent(owner, axis, typing, call.span) for axis in range(rank)]
        known = tuple(extent for extent in extents if extent is not None)
        return Tuple(known, call.span) if len(known) == rank else call
    axis = rest[0].value if isinstance(rest[0], Const) else None
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise typing.refuse(call, f"this has {rank} dimensions")
    return _extent(owner, axis % rank, typing, call.span) or call


def _extent(owner: Expr, axis: int, typing: Typing, span: Span) -> Expr | None:
    """How long an axis of a value is, as an expression; None where only the value itself tells."""
    if isinstance(owner, Var):
        return _named_extent(owner.name, axis, typing, span)
    found = typing.of(owner).lengths[axis]
    return with_span(found, span) if isinstance(found, Dim | Const) else None


def _named_extent(name: str, axis: int, typing: Typing, span: Span) -> Expr:
    """The extent of what a name stands for: that of an argument, where it is a part of one."""
    found = typing.name(name).lengths[axis]
    return with_span(found, span) if isinstance(found, Dim | Const) else Dim(name, axis, span)
