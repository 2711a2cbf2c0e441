"""Scans in two passes over blocks of iterations.

    for i in range(n):          for b in range(B):                            # what each block does with s
        s = s + x[i]                t = 0.0
        out[i] = s                  for i in range(b * L, b * L + L):
                                        t = t + x[i]
                                    s_parts[b] = t
                                for b in range(B + 1):                        # what s is when each block begins
                                    s_start[b] = s
                                    if b < B:
                                        s = s + s_parts[b]
                                for b in range(B + 1):
                                    s_here = s_start[b]
                                    if b < B:
                                        for i in range(b * L, b * L + L):
                                            s_here = s_here + x[i]
                                            out[i] = s_here
                                    else:                                     # the rest, of which there is some
                                        for i in range(B * L, n):
                                            …
                                    s = s_here

with B = (n - 1) // L. The first and the third loop can be shared out. In both of them an addition of floats does not
wait for the one before it: `s_here` is made of what it was before a group of iterations, and of what these did with it.
What the text does beside, sums and extremes of s among it, stays what it is. Blocks have the same length on any number
of workers. One worker takes less time for one pass, in which each block is gone through twice: with the same bits. What
is exact, as integers and extremes are, needs no blocks there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from orion.dataclass import dataclass, field, replace
from orion.dependence.given_sizes import GivenSizes
from orion.errors import UnsupportedLoopError
from orion.ir.assumed import Assumed, OfWorkers
from orion.ir.constants import constant_value
from orion.ir.function import Function, InBlocks
from orion.ir.nodes import Assign, Binary, Compare, Const, Expr, For, If, Logic, Range, Stmt, Var, holds
from orion.ir.program import new_fillings, new_numbers
from orion.ir.renaming import fresh, renamed
from orion.ir.rewriting import expand
from orion.ir.spans import NOWHERE, with_span
from orion.ir.sums import difference, plus
from orion.ir.types import Types
from orion.passes.between import separate
from orion.passes.sizes import with_arrays
from orion.rewrites.scans.find import dtype_of, handed_on, is_rounded, iteration_ns, scanned
from orion.rewrites.scans.in_arrays import WithScalars, with_scalars
from orion.rewrites.scans.kept import Kept, array_of, place
from orion.rewrites.scans.steps import Scan, Step, kept_for
from orion.rewrites.slices.bounds import condition
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.infer import infer_types, with_local_arrays

LENGTH = 2048
"""Iterations of a block: what a block reads twice is still in a near cache, and starting one costs nothing."""

GROUP = 4
"""Iterations after which an addition waits for the one before."""

LEAST_NS = 1_000_000
"""Loops that take less are run as they are written: three loops take 0.1 to 0.3 ms beside what is done in them."""


def apply(function: Function, types: Types, typing: Typing, places: frozenset[Span]) -> tuple[Function, ...]:
    """The function with the loops at these places, for the scalars that they hand on, in two passes, and with these in
    one pass over the same blocks; none where it has no such form."""
    writers = [_Writer(function, types, typing, places, in_one) for in_one in (False, True)]
    try:
        twice, once = (writer.made() for writer in writers)
    except UnsupportedLoopError:
        return ()
    if twice is None or once is None:
        return ()
    return (twice, once) if writers[0].is_rounded else (twice,)


@dataclass(slots=True)
class _Writer:
    """`in_one`: in one pass. `arrays` are those that have been made for what blocks do, `assumed` the conditions of the
    loops; `is_rounded`: blocks are put together with rounding."""

    function: Function
    types: Types
    typing: Typing
    places: frozenset[Span]
    in_one: bool
    arrays: list[str] = field(default_factory=list)
    assumed: list[Assumed] = field(default_factory=list)
    told: list[InBlocks] = field(default_factory=list)
    is_rounded: bool = False
    taken: set[str] = field(init=False)
    numbers: Iterator[int] = field(init=False)
    fillings: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self.taken = {*self.typing.names, *self.function.params}
        self.numbers = new_numbers(self.function.body)
        self.fillings = new_fillings(self.function.body)

    def made(self) -> Function | None:
        body = expand(self.function.body, self.statement)
        if not self.assumed:
            return None
        assumed, told = (*self.function.assumed, *self.assumed), (*self.function.in_blocks, *self.told)
        changed = replace(self.function, body=body, assumed=assumed, in_blocks=told)
        if self.arrays:
            changed = with_arrays(changed, infer_types(changed, self.types), self.arrays)
            local = (replace(one, is_sure=False) if one.name in self.arrays else one for one in changed.local_arrays)
            changed = replace(changed, local_arrays=tuple(local))
        return separate(changed, with_local_arrays(self.types, changed))

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(statement, For) or statement.span not in self.places or statement.index < 0:
            return (statement,)
        changed = with_scalars(statement, self.typing, self.function)
        names = handed_on(changed.loop, self.function)
        scans = scanned(changed, names, self.function)
        made = self.in_blocks(changed, scans) if scans else None
        if made is None:
            return (statement,)
        begun = (Assign(Var(one.scalar, statement.span), one.begins, statement.span) for one in changed.moved)
        return (*begun, *made)

    def in_blocks(self, changed: WithScalars, scans: tuple[Scan, ...]) -> tuple[Stmt, ...] | None:
        loop, typing, number = changed.loop, changed.typing, next(self.numbers)
        space = loop.space
        assert isinstance(space, Range)
        ends = (space.stop, space.start) if constant_value(space.step) == 1 else (space.start, space.stop)
        trips = difference(*ends)
        least = max(1, round(LEAST_NS / iteration_ns(loop, scans, typing) / LENGTH)) * LENGTH
        enough = Compare(("<=",), (Const(least, NOWHERE), trips), NOWHERE)
        sizes = GivenSizes.of(self.function, self.types)
        found = condition(number, [enough], (), sizes.forms, sizes.known)
        if found is None:
            return None
        self.assumed.append(found)
        rounded = any(is_rounded(scan, typing) for scan in scans)
        self.is_rounded = self.is_rounded or rounded
        kept = [Kept.of(scan, dtype_of(scan, typing), loop.span, self.scalar) for scan in scans]
        blocks = Binary("//", plus(trips, -1), Const(LENGTH, NOWHERE), NOWHERE)
        names = _Names(self.scalar, self.array, self.fillings)
        writer = _Blocks(loop, kept, with_span(blocks, loop.span), number, names)
        arrays = {one.scalar: one.begins.base.name for one in changed.moved}
        said = tuple(arrays.get(scan.name, scan.name) for scan in scans)
        self.told.append(InBlocks(number, said, LENGTH, rounded, not self.in_one))
        if self.in_one:
            return writer.one_pass()
        self.assumed.append(OfWorkers(number, 2))
        return writer.two_passes()

    def scalar(self, name: str) -> str:
        return fresh(name, self.taken)

    def array(self, name: str) -> str:
        self.arrays.append(fresh(name, self.taken))
        return self.arrays[-1]


@dataclass(frozen=True, slots=True)
class _Names:
    """New names of scalars and arrays, and new numbers of loops that are not those of the source."""

    scalar: Callable[[str], str]
    array: Callable[[str], str]
    numbers: Iterator[int]


def waits(kept: Kept) -> bool:
    """Whether what an iteration does with a scalar takes so long that the next one waits for it."""
    return kept.dtype == "float64" and kept.scan.steps != {Step.NEW}


class _Blocks:
    """The loops in place of one, over so many `blocks`."""

    def __init__(self, loop: For, kept: list[Kept], blocks: Expr, number: int, names: _Names) -> None:
        assert isinstance(loop.space, Range)
        self.loop, self.space, self.span = loop, loop.space, loop.span
        self.kept, self.blocks, self.number, self.names = kept, blocks, number, names
        self.at = Var(names.scalar(f"{loop.space.var}_block"), loop.span)
        self.here = {one.scan.name: names.scalar(f"{one.scan.name}_here") for one in kept}
        self.is_grouped = not holds(For, *loop.body) and any(map(waits, kept))

    def two_passes(self) -> tuple[Stmt, ...]:
        arrays = {name: self.names.array(f"{name}s") for one in self.kept for name, _, _ in one.parts}
        starts = {one.scan.name: self.names.array(f"{one.scan.name}_start") for one in self.kept}
        dtypes = {arrays[name]: dtype for one in self.kept for name, dtype, _ in one.parts}
        made = [array_of(name, dtype, self.blocks, self.span) for name, dtype in dtypes.items()]
        all_blocks = plus(self.blocks, 1)
        made += [array_of(starts[one.scan.name], one.dtype, all_blocks, self.span) for one in self.kept]

        def kept_in(name: str) -> Expr:
            return place(arrays[name], self.at)

        stored = [Assign(place(array, self.at), Var(name, self.span), self.span) for name, array in arrays.items()]
        first = self.over([*self.kept_of_block(), *stored], self.blocks, next(self.names.numbers))
        noted, moved, begun, ended = list[Stmt](), list[Stmt](), list[Stmt](), list[Stmt]()
        for one in self.kept:
            name, start = one.scan.name, place(starts[one.scan.name], self.at)
            noted.append(Assign(start, one.var(name), self.span))
            moved += self.moved_on(one, kept_in, [self.in_order(name)])
            begun.append(one.given(self.here[name], start))
            ended.append(one.given(name, one.var(self.here[name])))
        between = self.over([*noted, self.in_block(moved, ())], all_blocks, next(self.names.numbers))
        rest = self.as_here(self.rest())
        last = self.over([*begun, self.in_block([*self.run_block(kept_in)], rest), *ended], all_blocks, self.number)
        return (*made, first, between, last)

    def one_pass(self) -> tuple[Stmt, ...]:
        begun = [one.given(self.here[one.scan.name], one.var(one.scan.name)) for one in self.kept]
        inside = [*self.kept_of_block(), *begun, *self.run_block(lambda name: Var(name, self.span))]
        for one in self.kept:
            running = one.given(one.scan.name, one.var(self.here[one.scan.name]))
            inside += self.moved_on(one, one.read, [running])
        return (self.over([self.in_block(inside, self.rest())], plus(self.blocks, 1), self.number),)

    def in_block(self, body: Sequence[Stmt], otherwise: Sequence[Stmt]) -> Stmt:
        """What is done in a block, and what with the iterations after the last one."""
        return If(Compare(("<",), (self.at, self.blocks), self.span), tuple(body), tuple(otherwise), self.span)

    # ------------------------------------------------------------ parts of them

    def kept_of_block(self) -> Iterator[Stmt]:
        """What a block does with the scalars."""
        for one in self.kept:
            yield from one.begun()
        if not self.is_grouped:
            yield self.iterations(self.changing(self.kept), next(self.names.numbers))
            return
        groups = [Kept.of(one.scan, one.dtype, one.span, self.names.scalar) for one in self.kept]
        inside = [statement for one in groups for statement in one.begun()]
        joined = [statement for one, group in zip(self.kept, groups, strict=True) for statement in one.joined(group)]
        yield self.in_groups(inside, self.changing(groups), next(self.names.numbers), joined)

    def changing(self, kept: Sequence[Kept]) -> tuple[Stmt, ...]:
        """What an iteration does with what is kept."""
        changes = {change.statement: tuple(one.changed(change)) for one in kept for change in one.scan.changes}
        body = self.needed([one.scan.name for one in kept])
        return expand(self.renumbered(body), lambda one: changes.get(one, (one,)))

    def run_block(self, read: Callable[[str], Expr]) -> Iterator[Stmt]:
        """A block as written, with the scalars of that block; in groups where additions would wait for each other, and
        what is kept tells what they come to."""
        if not self.is_grouped:
            yield self.iterations(self.as_here(self.loop.body), self.loop.index)
            return
        added = [one for one in self.kept if waits(one)]
        groups = [replace(Kept.of(one.scan, one.dtype, one.span, self.names.scalar), is_plain="") for one in added]
        before = {group.scan.name: self.names.scalar(f"{group.scan.name}_before") for group in groups}
        changes: dict[Stmt, tuple[Stmt, ...]] = {}
        inside: list[Stmt] = []
        for group in groups:
            name = group.scan.name
            inside += [*group.begun(), group.given(before[name], group.var(name))]
            now = group.given(name, group.applied(group.var(before[name]), group.read))
            changes |= {change.statement: (*group.changed(change), now) for change in group.scan.changes}
        body = expand(self.loop.body, lambda one: changes.get(one, (one,)))
        grouped = self.in_groups(self.as_here(inside), self.as_here(body), self.loop.index, [])
        told = (one.tells(one.var(self.here[one.scan.name]), read) for one in added)
        tests = tuple(one for one in told if one is not None)
        if tests:
            test = tests[0] if len(tests) == 1 else Logic("and", tests, self.span)
            in_order = self.iterations(self.as_here(self.loop.body), next(self.names.numbers))
            yield If(test, (grouped,), (in_order,), self.span)
        else:
            yield grouped

    def as_here(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(renamed(one, self.here) for one in body)

    def moved_on(self, one: Kept, read: Callable[[str], Expr], in_order: Sequence[Stmt]) -> Iterator[Stmt]:
        """The scalar when the next block begins: by what is kept, or where that does not tell, by `in_order`."""
        scalar = one.var(one.scan.name)
        step, test = one.given(one.scan.name, one.applied(scalar, read)), one.tells(scalar, read)
        yield step if test is None else If(test, (step,), tuple(in_order), self.span)

    def in_order(self, name: str) -> For:
        """What a block does with a scalar, one iteration after the other."""
        return self.iterations(self.renumbered(self.needed([name])), next(self.names.numbers))

    def rest(self) -> tuple[Stmt, ...]:
        """The iterations after the last block."""
        start = self.place(Binary("*", self.blocks, Const(LENGTH, self.span), self.span))
        body = self.renumbered(self.loop.body)
        return (For(replace(self.space, start=start), body, next(self.names.numbers), self.span),)

    def needed(self, names: list[str]) -> tuple[Stmt, ...]:
        return kept_for(self.loop.body, names)

    # ------------------------------------------------------------ loops

    def over(self, body: Sequence[Stmt], blocks: Expr, number: int) -> For:
        """A loop over blocks."""
        return For(self.counted(self.at.name, blocks), tuple(body), number, self.span)

    def iterations(self, body: Sequence[Stmt], number: int) -> For:
        """A loop over the iterations of a block."""
        return self.trips(Binary("*", self.at, Const(LENGTH, self.span), self.span), LENGTH, body, number)

    def in_groups(self, before: Sequence[Stmt], body: Sequence[Stmt], number: int, after: Sequence[Stmt]) -> For:
        """A loop over the groups of a block, with something before and after the iterations of each."""
        group = Var(self.names.scalar(f"{self.space.var}_group"), self.span)
        block = Binary("*", self.at, Const(LENGTH, self.span), self.span)
        first = Binary("+", block, Binary("*", group, Const(GROUP, self.span), self.span), self.span)
        inner = self.trips(first, GROUP, body, number)
        space = self.counted(group.name, Const(LENGTH // GROUP, self.span))
        return For(space, (*before, inner, *after), next(self.names.numbers), self.span)

    def trips(self, first: Expr, length: int, body: Sequence[Stmt], number: int) -> For:
        """A loop over so many iterations of the source, from the one of that number on."""
        last = Binary("+", first, Const(length, self.span), self.span)
        return For(replace(self.space, start=self.place(first), stop=self.place(last)), tuple(body), number, self.span)

    def place(self, trip: Expr) -> Expr:
        """The value of the loop's variable in a trip."""
        down = constant_value(self.space.step) == -1
        start = self.space.start
        return trip if not down and constant_value(start) == 0 else Binary("-" if down else "+", start, trip, self.span)

    def counted(self, name: str, stop: Expr) -> Range:
        return Range(name, Const(0, self.span), stop, Const(1, self.span), self.span)

    def renumbered(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Some text with other numbers for its loops."""

        def change(statement: Stmt) -> tuple[Stmt, ...]:
            new = replace(statement, index=next(self.names.numbers)) if isinstance(statement, For) else statement
            return (new,)

        return expand(tuple(body), change)
