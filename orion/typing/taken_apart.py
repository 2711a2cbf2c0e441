"""What to write for an array of several dimensions that is taken apart: `a, b, c = points[corners]`."""

from __future__ import annotations

from orion.ir.nodes import Assign, Const, Expr, Node, Slice, Subscript, Tuple, Update, Var, every
from orion.ir.printer import print_expr
from orion.typing.expression_types import Typing


def one_by_one(targets: Tuple, value: Expr | None, typing: Typing, body: tuple[Node, ...]) -> str:
    """The hint to write what it is made of one by one. What an array as a subscript picks is a copy, and has to be one
    where `body`, in which that stands, may write it or what it was picked from."""
    if not isinstance(value, Var | Subscript) or typing.of(value).rank == 0:
        return "write the values one by one"
    parts = [_part(value, number, typing) for number in range(len(targets.items))]
    if None in parts:
        return "write the values one by one"
    names = {item.name for item in targets.items if isinstance(item, Var)}
    copy = ".copy()" if _is_pick(value, typing) and _written(body) & {*names, _base(value)} else ""
    written = ", ".join(f"{print_expr(part)}{copy}" for part in parts if part is not None)
    loop = ""
    match value:
        case Subscript(base, (Var(name, span),)) if span == base.span:  # of a loop over rows: nobody wrote its number
            written, loop = written.replace(f"[{name}, ", "[i, "), f" in a loop `for i in range(len({base.name})):`"
        case _:
            pass
    return f"write `{', '.join(map(print_expr, targets.items))} = {written}`{loop}"


def _part(value: Var | Subscript, number: int, typing: Typing) -> Subscript | None:
    """Part `number` of an array along its first dimension; None where that cannot be written."""
    place = Const(number, value.span)
    if isinstance(value, Var):
        return Subscript(value, (place,), value.span)
    arrays = [axis for axis, part in enumerate(value.index) if _is_array(part, typing)]
    if any(isinstance(part, Slice) for part in value.index) or len(arrays) > 1:
        return None
    if not arrays:
        return Subscript(value.base, (*value.index, place), value.span)
    (axis,) = arrays
    picked = value.index[axis]
    element = _part(picked, number, typing) if isinstance(picked, Var | Subscript) else None
    if element is None or typing.of(picked).dtype == "bool":
        return None
    return Subscript(value.base, (*value.index[:axis], element, *value.index[axis + 1 :]), value.span)


def _is_array(part: Expr, typing: Typing) -> bool:
    return not isinstance(part, Slice) and typing.of(part).rank > 0


def _is_pick(value: Var | Subscript, typing: Typing) -> bool:
    return isinstance(value, Subscript) and any(_is_array(part, typing) for part in value.index)


def _base(value: Var | Subscript) -> str:
    return value.name if isinstance(value, Var) else value.base.name


def _written(body: tuple[Node, ...]) -> set[str]:
    """The names of arrays that code writes in place."""
    targets = [one.target for one in every((Assign, Update), *body)]
    each = [item for one in targets for item in (one.items if isinstance(one, Tuple) else (one,))]
    found = {item.base.name for item in each if isinstance(item, Subscript)}
    return found | {one.target.name for one in every(Update, *body) if isinstance(one.target, Var)}
