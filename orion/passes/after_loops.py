"""Loop variables that are read after their loop.

The trips of a planned loop are made in any order, on any worker: its variables have no value afterwards. Where one is
read there, the loop keeps it in a scalar of its own:

    for i in range(n):                    for i in range(n):
        if a[i] == x:                         last_i = i
            break                             if a[i] == x:
    return i                                      break
                                          i = last_i
                                          return i
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from orion.dataclass import dataclass, field, replace
from orion.errors import UnsupportedLoopError
from orion.ir.assigned import assigned_by
from orion.ir.exposed import exposed_reads
from orion.ir.function import Function, HelperLocal
from orion.ir.nodes import (
    Assign,
    Elements,
    For,
    If,
    Node,
    Range,
    Stmt,
    Tuple,
    Update,
    Var,
    While,
    every,
)  # fmt: skip
from orion.ir.program import SYNTHETIC
from orion.ir.refuse import unsupported
from orion.ir.rewriting import expand
from orion.passes.dimensions import perfect_loops
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.value_type import ValueType


@dataclass(frozen=True, slots=True)
class LoopVariables:
    """Looks for reads of loop variables after planned loops. `names` are those that are not in `typing`, `keepers` the
    scalars that keep such variables, said by the names of these."""

    function: Function
    typing: Typing
    names: dict[str, ValueType]
    keepers: list[HelperLocal] = field(default_factory=list)

    def kept(self, body: tuple[Stmt, ...], after: tuple[Stmt, ...], before: Set[str] = frozenset()) -> tuple[Stmt, ...]:
        """The statements, with variables that are read later kept by their loops. `after` is what may run next, and
        `before` are variables that loops before these have kept."""
        found: list[Stmt] = []
        for number, unit in enumerate(body):
            rest = (*body[number + 1 :], *after)
            if not isinstance(unit, For | If | While) or not _holds_planned(unit):
                units = [*self.keep(unit, rest, before)] if isinstance(unit, For) else [unit]
                before = {*before, *(name for one in units if isinstance(one, Assign) for name in assigned_by(one))}
                found += units
                continue
            inside = rest if isinstance(unit, If) else (unit, *rest)
            changed = replace(unit, body=self.kept(unit.body, inside, before))
            if isinstance(changed, If):
                changed = replace(changed, orelse=self.kept(changed.orelse, inside, before))
            found.append(changed)
        return tuple(found)

    def check(self, body: tuple[Stmt, ...], after: tuple[Stmt, ...]) -> None:
        """UnsupportedLoopError where a variable of a planned loop in `body` is read after its loop. `after` is what may
        run next."""
        for number, unit in enumerate(body):
            rest = (*body[number + 1 :], *after)
            if isinstance(unit, For | If | While) and _holds_planned(unit):
                inside = rest if isinstance(unit, If) else (unit, *rest)
                self.check(unit.body, inside)
                if isinstance(unit, If):
                    self.check(unit.orelse, inside)
            elif isinstance(unit, For):
                others = {*self.typing.names, *self.names} - _variables(unit)
                for name, span in exposed_reads(rest, others).items():
                    raise self.lost(name, span)

    def keep(self, loop: For, rest: tuple[Stmt, ...], before: Set[str]) -> Iterator[Stmt]:
        """A planned loop that keeps those of its variables that are read in `rest`; what they were `before` is what
        they are where it makes no trip."""
        names = _variables(loop)
        others = {*self.typing.names, *self.names} - names
        keepers: dict[str, str] = {}
        after: list[Stmt] = []
        for name, span in exposed_reads(rest, others).items():
            if isinstance(loop.space, Elements) or name in _set_by_statements(loop.body) | _keys(loop):
                raise self.lost(name, span)
            kept = self.fresh(f"last_{name}", self.typing.name(name))
            known = {*self.function.params, *before, *_set_by_statements(self.function.body)}
            if name in known:
                yield Assign(Var(kept, loop.span), Var(name, loop.span), loop.span)  # where no trip is made
            keepers[name] = kept
            self.keepers.append(HelperLocal(kept, "", name))
            after.append(Assign(Var(name, loop.span), Var(kept, loop.span), loop.span))
        yield _keeping(loop, keepers)
        yield from after

    def lost(self, name: str, span: Span) -> UnsupportedLoopError:
        what = f"the loop variable `{name}` is read after its loop"
        why = "the iterations of a planned loop may be run in any order, by several workers"
        hint = f"keep it under another name: `last = {name}` in the loop"
        return unsupported(what, span, self.function.source, why=why, hint=hint, is_for_numba=True)

    def fresh(self, name: str, kind: ValueType) -> str:
        while name in self.typing.names or name in self.names:
            name += "_"
        self.names[name] = kind
        return name


def _variables(loop: For) -> set[str]:
    """The variables of a planned loop."""
    return {name for one in perfect_loops(loop) for name in assigned_by(one)}


def following(body: tuple[Stmt, ...], statement: Stmt) -> Iterator[tuple[Stmt, ...]]:
    """What may run after a statement, in this order: for each place in `body` where it stands."""
    for number, one in enumerate(body):
        rest = body[number + 1 :]
        if one is statement:
            yield rest
        for inner in (getattr(one, "body", ()), getattr(one, "orelse", ())):
            for found in following(inner, statement):
                yield (*found, *((one,) if isinstance(one, For | While) else ()), *rest)


def _holds_planned(unit: For | If | While) -> bool:
    """Whether it stands around planned loops, rather than being one or a statement between them."""
    inside = [node for node in every(For, unit) if node is not unit]
    if not isinstance(unit, For):
        return bool(inside)
    is_around = any(isinstance(node.space, Elements) or node.index == SYNTHETIC for node in inside)
    return is_around and isinstance(unit.space, Range)


def _set_by_statements(body: tuple[Stmt, ...]) -> set[str]:
    """The names that assignments set, not loops."""
    found: set[str] = set()
    for node in every((Assign, Update), *body):
        targets: tuple[Node, ...] = node.target.items if isinstance(node.target, Tuple) else (node.target,)
        found |= {target.name for target in targets if isinstance(target, Var)}
    return found


def _keeping(loop: For, keepers: Mapping[str, str]) -> For:
    """A loop in which all loops over the names in `keepers` set what these keep their values in, in every trip: that
    loop, those of its nest, and those inside that have such a name once more."""
    if not keepers:
        return loop

    def keeping(statement: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(statement, For) or not isinstance(statement.space, Range):
            return (statement,)
        name, span = statement.space.var, statement.span
        if name not in keepers:
            return (statement,)
        return (replace(statement, body=(Assign(Var(keepers[name], span), Var(name, span), span), *statement.body)),)

    (found,) = expand((loop,), keeping)
    assert isinstance(found, For)
    return found


def _keys(loop: For) -> set[str]:
    """The names that loops over elements give values to, inside of a loop."""
    inside = [inner for inner in every(For, *loop.body) if isinstance(inner.space, Elements)]
    return {name for inner in inside for name in assigned_by(inner)}
