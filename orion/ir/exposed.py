"""Exposed reads: which names code may read before it has given them a value itself.

A name is exposed where some way through the code reads it before writing it (upward-exposed uses; Aho, Lam, Sethi &
Ullman, *Compilers*, section 9.2.5). What both sides of a branch assign has a value after it; the body of a loop may not
run at all, so that what only it assigns has none after the loop. For scalars (`exposed_scalars`) a loop whose first
trip is sure assigns what that does before it may leave the loop:

    for _ in range(30):          # `change` and `r` have values after it, `last` may have none
        change = …
        r -= change
        if abs(change) < 1e-10:
            break
        last = r

What names of arrays stand for is told by `orion.passes.array_states`, for which no trip of a `for` is sure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from orion.dataclass import dataclass, replace
from orion.ir.assigned import assigned_by, leaves_loop
from orion.ir.constants import constant_value
from orion.ir.kept import kept
from orion.ir.nodes import Assign, Bind, Const, For, If, Node, Range, Stmt, Tuple, Var, While, walk
from orion.source import Span


@dataclass(frozen=True, slots=True)
class Exposure:
    """The names that code may read before it assigns them, each with the first such place, and those that have a value
    after it for sure."""

    reads: Mapping[str, Span]
    defined: frozenset[str]


def exposed_reads(nodes: Iterable[Node], defined: Iterable[str]) -> dict[str, Span]:
    """The names that may be read before the code assigns them, each with the first such place.

    `defined` are names that have a value already. A branch or loop body that may not run assigns nothing for sure.
    """
    known = set(defined)
    return {name: span for name, span in exposure(nodes).reads.items() if name not in known}


def exposed_scalars(nodes: Iterable[Node], defined: Iterable[str]) -> dict[str, Span]:
    """The same of scalars: what the first trip of a loop assigns has a value after it where that trip is sure."""
    known = set(defined)
    return {name: span for name, span in exposure(nodes, of_scalars=True).reads.items() if name not in known}


def _in_order(parts: Iterable[Exposure]) -> Exposure:
    """The exposure of parts that run one after the other."""
    reads: dict[str, Span] = {}
    defined: set[str] = set()
    for part in parts:
        for name, span in part.reads.items():
            if name not in defined:
                reads.setdefault(name, span)
        defined |= part.defined
    return Exposure(reads, frozenset(defined))


def exposure(nodes: Iterable[Node], of_scalars: bool = False) -> Exposure:
    """The exposure of code that runs from its first node to its last."""
    return _in_order(_exposure(node, of_scalars) for node in nodes)


@kept
def _exposure(node: Node, of_scalars: bool) -> Exposure:
    match node:
        case Assign(target, value):
            return _in_order([_reads(value), *_targets(target)])
        case Bind(name, row):
            return replace(_reads(row), defined=frozenset({name}))
        case If(test, body, orelse):
            then, other = exposure(body, of_scalars), exposure(orelse, of_scalars)
            reads = _in_order([_reads(test), replace(then, defined=frozenset()), other]).reads
            return Exposure(reads, then.defined & other.defined)
        case While(test, body):
            reads = _in_order([_reads(test), exposure(body, of_scalars)]).reads
            is_entered = isinstance(test, Const) and bool(test.value)
            return Exposure(reads, _until_it_may_leave(body, of_scalars) if is_entered else frozenset())
        case For(space, body):
            own = Exposure({}, frozenset(assigned_by(node)))
            reads = _in_order([_reads(space), own, exposure(body, of_scalars)]).reads
            if not (of_scalars and _is_entered(space)):
                return Exposure(reads, frozenset())
            return Exposure(reads, own.defined | _until_it_may_leave(body, of_scalars))
        case _:
            return _reads(node)


def _until_it_may_leave(body: Iterable[Stmt], of_scalars: bool) -> frozenset[str]:
    """The names that the first trip of a loop assigns for sure before a statement that may leave the loop."""
    sure = takewhile(lambda statement: not leaves_loop(statement), body)
    return exposure(sure, of_scalars).defined


def _is_entered(space: Node) -> bool:
    """Whether a loop makes a trip for sure: by the numbers that its range is written with."""
    if not isinstance(space, Range):
        return False
    start, stop, step = map(constant_value, (space.start, space.stop, space.step))
    return start is not None and stop is not None and step not in (None, 0) and bool(range(start, stop, step))


def _targets(target: Node) -> Iterator[Exposure]:
    match target:
        case Var(name):
            yield Exposure({}, frozenset({name}))
        case Tuple(items):
            for item in items:
                yield from _targets(item)
        case _:
            yield _reads(target)


@kept
def _reads(node: Node) -> Exposure:
    reads: dict[str, Span] = {}
    for part in walk(node):
        if type(part) is Var:
            reads.setdefault(part.name, part.span)
    return Exposure(reads, frozenset())
