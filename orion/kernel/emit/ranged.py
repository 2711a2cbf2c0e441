"""Subscripts of an inner loop that go along with its variable: inside of their arrays in all trips if they are so in
the first and in the last.

    for c in range(n, w - 1, -1):                 if 0 <= n < len(best) and 0 <= n - w < len(best) and …:
        if best[c - w] + v > best[c]:                 the loop, in which nothing is looked at
            …                                     else:
                                                      the loop, in which everything is

(One loop that looks at the flag in each trip took four times as long on rows of sparse arrays.) This is the range check
elimination of Java's compilers (Würthinger, Wimmer and Mössenböck, "Array bounds check elimination for the Java HotSpot
client compiler", PPPJ 2007).

A subscript `var + e`, `var - e` or `e - var`, where the loop changes nothing of e, takes values without gaps from its
first to its last trip. It may wrap around past 64 bits on the way. If both ends are in an array all of it is there: the
array has less than 2**57 elements, and a loop less than 2**63 trips, too few to go around.

Subscripts that are elements of an array of integers, which the function only reads, are inside where the least and the
greatest of its elements are. These are looked for once in a call, for loops that are run again and again.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from orion.dataclass import dataclass
from orion.ir.assigned import assigned_names
from orion.ir.nodes import (
    Assign,
    Binary,
    Const,
    Dim,
    Expr,
    For,
    If,
    Slice,
    Stmt,
    Subscript,
    Var,
    While,
    every,
    holds,
    names_in,
)
from orion.ir.rewriting import rewrite
from orion.ir.spans import without_spans

Key = tuple[Expr, str, int]


@dataclass(frozen=True, slots=True)
class Ranged:
    """A subscript that goes along with the variable of a loop: axis `axis` of an element of an array. `direction` is 1
    where it grows with it, else -1."""

    subscript: Subscript
    axis: int
    direction: int

    @property
    def part(self) -> Expr:
        return self.subscript.index[self.axis]

    def rest(self, variable: str) -> Expr:
        """The subscript where the variable is 0."""
        zero = Const(0, self.subscript.span)
        return rewrite(self.part, lambda one: zero if isinstance(one, Var) and one.name == variable else one)

    @property
    def key(self) -> Key:
        return subscript_key(self.subscript, self.axis)


def subscript_key(subscript: Subscript, axis: int) -> Key:
    """What is the same for all subscripts that are inside of their array where this one is."""
    return without_spans(subscript.index[axis]), subscript.base.name, axis


@dataclass(frozen=True, slots=True)
class Gathered:
    """A subscript that is an element of `array`, or a name for one: axis `axis` of an element of another array."""

    subscript: Subscript
    axis: int
    array: str

    @property
    def key(self) -> Key:
        return subscript_key(self.subscript, self.axis)


def gathered_subscripts(body: tuple[Stmt, ...], arrays: Container[str]) -> Iterator[Gathered]:
    """The subscripts in an innermost loop that are elements of some of these arrays."""
    if holds((For, While), *body):
        return
    named = _named_elements(body)
    for subscript in every(Subscript, *body):
        for axis, part in enumerate(subscript.index):
            element = named.get(part.name) if isinstance(part, Var) else part
            if isinstance(element, Subscript) and element.base.name in arrays:
                yield Gathered(subscript, axis, element.base.name)


def _named_elements(body: tuple[Stmt, ...]) -> dict[str, Subscript]:
    """The names that stand for one element all through an iteration: `name = array[…]`, and no other statement gives it
    a value, or mentions it before."""
    found, mentioned = dict[str, Subscript](), set[str]()
    for statement in body:
        match statement:
            case Assign(Var(name), Subscript() as element) if name not in mentioned | names_in(element):
                found[name] = element
            case _:
                for name in assigned_names((statement,)):
                    found.pop(name, None)
        mentioned |= names_in(statement)
    return found


def ranged_subscripts(body: tuple[Stmt, ...], variable: str) -> Iterator[Ranged]:
    """The subscripts in an innermost loop, outside of its `if`s, that go along with its variable."""
    changed = assigned_names(body)
    if variable in changed or holds((For, While), *body):
        return
    for subscript in every(Subscript, *(one.test if isinstance(one, If) else one for one in body)):
        for axis, part in enumerate(subscript.index):
            direction = 0 if isinstance(part, Slice) else _direction(part, variable, changed)
            if direction:
                yield Ranged(subscript, axis, direction)


def _direction(part: Expr, variable: str, changed: set[str]) -> int:
    """1 for `variable + e`, -1 for `e - variable`, 0 for anything else."""
    match part:
        case Var(name):
            return int(name == variable)
        case Binary("+" | "-" as op, left, right):
            if _is_fixed(right, variable, changed):
                return _direction(left, variable, changed)
            direction = _direction(right, variable, changed) if _is_fixed(left, variable, changed) else 0
            return direction if op == "+" else -direction
        case _:
            return 0


def _is_fixed(expr: Expr, variable: str, changed: set[str]) -> bool:
    """Whether it is a sum of integers that have the same values in all trips."""
    match expr:
        case Const(int()) | Dim():
            return True
        case Var(name):
            return name != variable and name not in changed
        case Binary("+" | "-" | "*", left, right):
            return _is_fixed(left, variable, changed) and _is_fixed(right, variable, changed)
        case _:
            return False
