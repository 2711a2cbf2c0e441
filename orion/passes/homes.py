"""Which names live in one loop of a body alone, and which do not: those are handed on between its loops.

for t in range(rounds):
    acc = np.zeros(n)               # lives in both loops: whoever runs one of them must find it
    for i in range(n):
        d = pos - pos[i]            # lives in the first loop alone: each iteration may have its own
        acc[i] = d @ d
    for i in range(n):
        vel[i] += acc[i]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set

from orion.ir.assigned import assignments
from orion.ir.nodes import For, If, Node, Stmt, While, names_in

Loop = For | While


def living_between(body: Iterable[Stmt], names: Set[str]) -> set[str]:
    """Those of the names that live in more than one loop of a body, or in what stands between its loops."""
    homes: dict[str, Node] = {}
    found: set[str] = set()
    for unit in _units(body):
        for name in names & mentioned(unit):
            if homes.setdefault(name, unit) is not unit or not isinstance(unit, Loop):
                found.add(name)
    return found


def living_around(body: Iterable[Stmt], names: Set[str], is_around: Callable[[Loop], bool]) -> set[str]:
    """Those of the names that live between the loops of a body, or between those of the loops in it that are around
    something, and so on."""
    body = tuple(body)
    found = living_between(body, names)
    for inner in loops_of(body):
        if is_around(inner):
            found |= living_around(inner.body, names, is_around)
    return found


def loops_of(body: Iterable[Stmt]) -> Iterator[Loop]:
    """The loops of a body, in branches too, not those inside of them."""
    return (unit for unit in _units(body) if isinstance(unit, Loop))


def mentioned(code: Node) -> set[str]:
    """The names that the code assigns or reads."""
    return {name for name, _ in assignments(code)} | names_in(code)


def _units(body: Iterable[Stmt]) -> Iterator[Node]:
    """The loops, and the statements and tests between them, in textual order."""
    for statement in body:
        if isinstance(statement, If):
            yield statement.test
            yield from _units((*statement.body, *statement.orelse))
        else:
            yield statement
