"""That the first pass of a scan computes what iterations do with the scalars that they hand on, read from the text.

Each pass has a part of the body of the loop as written, which the rest after the last block has whole. A part computes
in its scalars what the body does, as far as that is known without what is handed on, where

    the body is gone through from its first statement to its last: no `break`, no `continue`, no `while` in it;
    a part has all statements, in their order and under the same tests, that give values to a name that it reads, but
    those that are handed on; changes of these stand where those of their summaries do;
    the first pass writes no array, and neither tests nor reads what is handed on;
    of arrays that the body writes, it reads no elements but those that the iteration stores, and before it does.

That summaries are put together rightly is not proved here: their algebra is that of `orion.rewrites.scans.kept`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set

from orion.dataclass import dataclass, replace
from orion.errors import PlanError
from orion.ir.assigned import assigned_by, assigned_names
from orion.ir.constants import constant_value
from orion.ir.function import Function, InBlocks
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Break,
    Const,
    Continue,
    For,
    If,
    Range,
    Return,
    Stmt,
    Subscript,
    Unary,
    Update,
    Var,
    While,
    count_names,
    every,
    holds,
    names_in,
)
from orion.ir.renaming import renamed
from orion.ir.spans import without_spans
from orion.ir.sums import difference
from orion.passes.view_names import written_names
from orion.typing.expression_types import Typing

CHANGE = "change"
"""Stands for a change of what is handed on, or of its summary."""


def prove_scans(function: Function, typing: Typing) -> None:
    """PlanError where a pass of a loop in blocks leaves out what it needs."""
    for one in function.in_blocks:
        found = _found(function, one)
        if found is None:
            raise PlanError(f"the blocks of the loop that hands {' and '.join(one.names)} on are not found")
        _Proof(function, typing, found).run()


@dataclass(frozen=True, slots=True)
class _Passes:
    """The loops over iterations of a scan: `rest` has the body as written, `first` makes summaries, `again` are those
    that compute what is handed on where summaries do not tell, and `whole` do all that the body does. `handed` are the
    scalars, by the names that they have in the last pass."""

    rest: For
    first: For
    again: tuple[For, ...]
    whole: tuple[For, ...]
    handed: dict[str, str]


def _found(function: Function, one: InBlocks) -> _Passes | None:
    for block in _blocks(function.body):
        for at, last in enumerate(block):
            if isinstance(last, For) and last.index == one.loop:
                return _read(block[:at], last, one)
    return None


def _blocks(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    yield body
    for statement in body:
        if isinstance(statement, For | While):
            yield from _blocks(statement.body)
        elif isinstance(statement, If):
            yield from _blocks(statement.body)
            yield from _blocks(statement.orelse)


def _read(before: Sequence[Stmt], last: For, one: InBlocks) -> _Passes | None:
    """The parts of a scan whose last loop over blocks this is."""
    choice = next((part for part in last.body if isinstance(part, If) and part.orelse), None)
    rest = None if choice is None else choice.orelse[-1]
    if choice is None or not isinstance(rest, For) or not isinstance(rest.space, Range):
        return None
    variable = rest.space.var
    if not one.is_twice:
        first, *whole = _over(variable, choice.body)
        return _Passes(rest, first, (), tuple(whole), _copied(choice.body, here_first=True))
    loops = [part for part in before if isinstance(part, For)][-2:]
    if len(loops) < 2:
        return None
    first, *others = _over(variable, loops[:1])
    whole = [*_over(variable, choice.body), rest]
    again, handed = _over(variable, loops[1:]), _copied(last.body, here_first=False)
    return None if others else _Passes(rest, first, tuple(again), tuple(whole), handed)


def _over(variable: str, body: Iterable[Stmt]) -> list[For]:
    return [one for one in every(For, *body) if isinstance(one.space, Range) and one.space.var == variable]


def _copied(body: Iterable[Stmt], *, here_first: bool) -> dict[str, str]:
    """The scalars that are handed on, by the names of those that a block works on."""
    pairs = [(one.target.name, one.value.name) for one in body
             if isinstance(one, Assign) and isinstance(one.target, Var) and isinstance(one.value, Var)]  # fmt: skip
    return dict(pairs) if here_first else {value: target for target, value in pairs}


@dataclass(frozen=True, slots=True)
class _Proof:
    function: Function
    typing: Typing
    passes: _Passes

    @property
    def body(self) -> tuple[Stmt, ...]:
        """The body as written."""
        return self.as_written(self.passes.rest)

    @property
    def scalars(self) -> set[str]:
        return {*self.passes.handed.values()}

    def as_written(self, loop: For) -> tuple[Stmt, ...]:
        return tuple(renamed(one, self.passes.handed) for one in loop.body)

    def run(self) -> None:
        if holds((Bind, Break, Continue, Return, While), *self.body):
            raise PlanError("a pass of a scan may leave its iterations early")
        self.prove_first()
        for one in self.passes.again:
            part = self.as_written(one)
            self.prove_reads(part)
            self.prove_same(part, names_in(*part), frozenset())
        for one in self.passes.whole:
            self.prove_same(self.as_written(one), None, self.scalars)

    def prove_first(self) -> None:
        part = self.as_written(self.passes.first)
        handed = sorted(names_in(*part) & self.scalars)
        if handed:
            raise PlanError(f"the first pass of a scan needs `{handed[0]}`, which is handed on")
        self.prove_reads(part)
        self.prove_same(part, names_in(*part), self.scalars)

    def prove_reads(self, part: tuple[Stmt, ...]) -> None:
        """A part that runs before the body as written writes no arrays, and reads what the body has not written yet."""
        if self.written(part):
            raise PlanError(f"an earlier pass of a scan writes {', '.join(sorted(self.written(part)))}")
        for array in sorted(self.written(self.body) & names_in(*part)):
            if not self.is_read_first(array):
                raise PlanError(f"the first pass of a scan reads `{array}`, of which the iterations store elements")

    def written(self, body: tuple[Stmt, ...]) -> set[str]:
        found = written_names(replace(self.function, body=body), self.typing)
        return {name for name in found if name not in self.typing.names or self.typing.name(name).rank}

    def is_read_first(self, array: str) -> bool:
        """Whether iterations touch no element of an array but their own, which the last statement that does stores."""
        touching = [one for one in self.body if count_names((one,), array)]
        last, space = touching[-1], self.passes.rest.space
        assert isinstance(space, Range)
        if not isinstance(last, Assign | Update) or self.written(tuple(touching[:-1])) & {array}:
            return False
        target, uses = last.target, [one for one in every(Subscript, *touching) if one.base.name == array]
        if not isinstance(target, Subscript) or target.base.name != array or len(uses) != count_names(touching, array):
            return False
        if names_in(*target.index) & assigned_names(self.body) or not any(
            _steps(one, space.var) for one in target.index
        ):
            return False
        return all(_are_equal(one, target) for one in uses)

    def prove_same(self, part: tuple[Stmt, ...], needed: Set[str] | None, changed: Collection[str]) -> None:
        """A part has all statements of the body that give the `needed` names their values; all at all, if None."""
        own = {*changed, *(assigned_names(part) - assigned_names(self.body))} if changed else set[str]()
        wanted = _skeleton(self.body, needed, own, self.scalars)
        if _skeleton(part, needed, own, self.scalars) != wanted:
            raise PlanError("a pass of a scan does not do what the iterations do")


def _steps(index: object, variable: str) -> bool:
    """Whether a subscript is a loop's variable, or that and a number."""
    match index:
        case Var(name) | Binary("+" | "-", Var(name), Const()):
            return name == variable
        case _:
            return False


def _are_equal(one: Subscript, other: Subscript) -> bool:
    return len(one.index) == len(other.index) and all(
        without_spans(left) == without_spans(right) or constant_value(difference(left, right)) == 0
        for left, right in zip(one.index, other.index, strict=True)
    )


def _skeleton(body: Iterable[Stmt], needed: Set[str] | None, own: Set[str], scalars: Set[str]) -> tuple[object, ...]:
    """What gives needed names their values, in its order, with changes of `own` names as one word."""
    found: list[object] = []
    for statement in body:
        if _is_change(statement, own, scalars):
            found += [] if found[-1:] == [CHANGE] else [CHANGE]
            continue
        match statement:
            case If(test, then, orelse):
                sides = tuple(_skeleton(side, needed, own, scalars) for side in (then, orelse))
                found += [("if", without_spans(test), *sides)] if any(sides) else []
            case For(space, inner):
                inside = _skeleton(inner, needed, own, scalars)
                counts = needed is None or not needed.isdisjoint(assigned_by(statement))
                found += [("for", without_spans(space), inside)] if inside or counts else []
            case _:
                if needed is None or not needed.isdisjoint(assigned_by(statement)):
                    found.append(without_spans(statement))
    return tuple(found)


def _is_change(statement: Stmt, own: Set[str], scalars: Set[str]) -> bool:
    """Whether a statement does nothing but change names of `own`: plainly, to the better of two values, or as what says
    that a summary does not tell."""
    match statement:
        case Assign(Var(name)) | Update(Var(name)):
            return name in own
        case If(Unary("not"), (Assign(Var(name), Const(False)),), ()):
            return name in own - scalars
        case If(test, (Assign(Var(name)),), ()):
            return name in own & scalars and name in names_in(test)
        case _:
            return False
