"""Running minima and maxima: scalars that a loop takes the least or the greatest of its values for.

    m = min(m, v)      m = max(v, m)      m = np.minimum(m, v)      m = max(m, v, w)

Which of two values these keep matters where one is NaN, or both are zeros of different signs. With `new` for v and
`old` for m as it was, v is taken where

    m = max(m, v)           new > old                              op ">"
    m = max(v, m)           not new < old                          op "!<"
    m = np.maximum(m, v)    new >= old, or new is NaN              op "n>="
    m = np.maximum(v, m)    new > old, or new is NaN               op "n>"

and correspondingly for minima: Python's functions keep the first of their arguments unless another one is better, and
NumPy's keep a NaN, else the second of equal ones. Integers have neither NaN nor two zeros: of them the name is written
first, and `not v < m` as `v >= m`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orion.dataclass import dataclass, replace
from orion.ir.function import Function
from orion.ir.nodes import Assign, Call, Compare, Expr, For, If, Node, Stmt, Unary, Var, While, count_names, every
from orion.ir.rewriting import expand, with_new
from orion.typing.expression_types import Typing

STRICT = {"min": "<", "max": ">", "np.minimum": "<", "np.maximum": ">"}
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
AGAINST = "!"
"""An op that begins so takes a value unless it compares so with the one before: also after a NaN, whatever it is."""

NANS_WIN = "n"
"""An op that begins so takes a value that compares so, and every NaN."""


@dataclass(frozen=True, slots=True)
class Running:
    """A statement that keeps the better of a scalar and the values that are `offered`, one after the other, by one op;
    "" where they are compared in different ways."""

    name: str
    op: str
    offered: tuple[Expr, ...]


def running(statement: Node) -> Running | None:
    """What kind of running minimum or maximum a statement is; None for any other.

    >>> from orion.ir.spans import NOWHERE
    >>> m, v = Var("m", NOWHERE), Var("v", NOWHERE)
    >>> for name, parts in (("max", (m, v)), ("max", (v, m)), ("np.minimum", (m, v)), ("np.minimum", (v, m))):
    ...     running(Assign(m, Call(name, parts, NOWHERE), NOWHERE)).op
    '>'
    '!<'
    'n<='
    'n<'
    """
    match statement:
        case Assign(Var(name), Call(function, parts, span, ())) if function in STRICT and len(parts) > 1:
            own = [place for place, part in enumerate(parts) if isinstance(part, Var) and part.name == name]
        case _:
            return None
    if len(own) != 1 or count_names(parts, name) != 1:
        return None
    (place,), op = own, STRICT[function]
    if function.startswith("np."):
        return Running(name, NANS_WIN + op + "=" * (place == 0), (parts[1 - place],)) if len(parts) == 2 else None
    if not place:
        return Running(name, op, parts[1:])
    first = parts[0] if place == 1 else Call(function, parts[:place], span)
    if place < len(parts) - 1:
        return Running(name, "", (first, *parts[place + 1 :]))
    return Running(name, AGAINST + FLIPPED[op], (first,))


def comparison(op: str) -> str:
    """How an op compares numbers other than NaN.

    >>> comparison("<="), comparison("!<"), comparison("n>")
    ('<=', '>=', '>')
    """
    return OPPOSITE[op[1:]] if op.startswith(AGAINST) else op.removeprefix(NANS_WIN)


def begins_anew(body: Iterable[Stmt]) -> bool:
    """Whether a NaN among the values of a running minimum or maximum that these statements keep, and use nowhere else,
    makes it begin anew: what it ends with is then that of the values after the last NaN."""
    body = tuple(body)
    found: dict[str, list[Node]] = {}
    for node in every((If, Assign), *body):
        for name in _begun_anew(node):
            found.setdefault(name, []).append(node)
    return any(count_names(body, name) == count_names(nodes, name) for name, nodes in found.items())


def _begun_anew(node: Node) -> Iterator[str]:
    match node:
        case If(Unary("not", Compare(_, operands)), body):
            assigned = {one.target.name for one in body if isinstance(one, Assign) and isinstance(one.target, Var)}
            yield from (part.name for part in operands if isinstance(part, Var) and part.name in assigned)
        case Assign() if (kept := running(node)) is not None and kept.op.startswith(AGAINST):
            yield kept.name
        case _:
            pass


# ---------------------------------------------------------------- by their types


def with_running_extremes(function: Function, typing: Typing) -> Function:
    """The function with the name first in the running extremes of integers, and tests of integers without `not`. It
    knows the names of the others: parts of a loop's iterations cannot simply be combined into these."""
    body = expand(function.body, lambda statement: (_of_integers(statement, typing),))
    found = (kept for kept in map(running, _in_loops(body)) if kept is not None)
    names = frozenset(kept.name for kept in found if len(kept.offered) > 1 or not _is_integer(kept.name, typing))
    return with_new(function, body=body, running=names)


def _in_loops(body: Iterable[Stmt]) -> Iterator[Node]:
    for loop in every((For, While), *body):
        yield from every(Assign, *loop.body)


def _is_integer(name: str, typing: Typing) -> bool:
    kind = typing.names.get(name)
    return kind is not None and not kind.rank and (kind.is_integer or kind.dtype == "bool")


def _of_integers(statement: Stmt, typing: Typing) -> Stmt:
    match statement:
        case If(Unary("not", Compare((op,), (left, right), span))) if op in OPPOSITE:
            kinds = typing.of(left), typing.of(right)
            if all(kind.is_integer and not kind.rank for kind in kinds):
                return replace(statement, test=Compare((OPPOSITE[op],), (left, right), span))
        case Assign(Var(name), Call(function, parts) as value) if running(statement) and _is_integer(name, typing):
            if function in ("min", "max") and all(typing.of(part).is_integer for part in parts):
                own = next(part for part in parts if isinstance(part, Var) and part.name == name)
                others = tuple(part for part in parts if part is not own)
                return replace(statement, value=replace(value, arguments=(own, *others)))
        case _:
            pass
    return statement
