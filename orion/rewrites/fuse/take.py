"""Neighbouring loops that may be run as one, found before sizes are known.

Two planned loops directly after one another are run as one, where their outermost loops have the same ranges, both are
parallel without tiles that wait, and the fused loop keeps the strategy that both have (`orion.rewrites.fuse.find`).
Only where they go through an array in the same blocks is there anything to gain. Loops in a new order are left alone,
and so are those that choose scalars. Sums must not be rounded in another way where caches have another size: each is
one loop's own, and all of the dimensions of that loop are shared, so that it has the same blocks
(`orion.plan.fused.keeps_blocks`) and the same order in them.

Statements share their innermost loop only where that stays one which the processor's compiler makes vectors of: plain
arithmetic on few arrays. Else the loops inside run one after the other, row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from orion.analysis.analyse_nest import analyse_nest
from orion.analysis.one_loop import AnalysedLoop, AsOne
from orion.analysis.rules import strength
from orion.dataclass import dataclass, replace
from orion.dependence.access import Access
from orion.dependence.model import model_loop
from orion.dependence.references import loop_scope
from orion.ir.assigned import assigned_names
from orion.ir.nodes import Assign, Call, Expr, For, Node, Pass, Range, Stmt, Update, While, walk
from orion.ir.program import LoopNest, Program
from orion.ir.types import Types
from orion.reasons import Reason
from orion.rewrites.fuse.apply import Group, fuse_loops, neighbours
from orion.rewrites.fuse.find import shared_depth
from orion.rewrites.fuse.found import Found, Fusable, NotFused
from orion.rewrites.rewrite import OfNeighbours
from orion.sets.affine import Affine, affine_form, parameter
from orion.sets.maps import Maps
from orion.typing.functions import Cost, cost_of

MAX_ARRAYS = 8
"""The most arrays that an innermost loop may go through when statements share it."""


def find(program: Program, loops: tuple[AnalysedLoop, ...], owners: dict[int, int], types: Types) -> Found:
    """Which neighbours in a program may be run as one; `owners` are the loops of the source that several of its loops
    stand for. Where that pays is decided when sizes are known (`orion.plan.fused`)."""
    finder = _Finder(program, loops, owners, types)
    found = (_fusable(program, loops, group, types) for group in finder.groups())
    fusable = tuple(one for one in found if one is not None)
    return Found(fusable, tuple(finder.not_fused))


def _fusable(program: Program, loops: tuple[AnalysedLoop, ...], group: Group, types: Types) -> Fusable | None:
    """The loop that stands for a group of neighbours, where it has a form and is as parallel as these are."""
    fused = fuse_loops(program, (group,))
    if fused is None:
        return None
    members = loops[group.first : group.first + group.count]
    model = model_loop(fused, group.first, types)
    loop = analyse_nest(fused, group.first, types, None, model, Maps())
    if not _keeps_strategy(loop, members):
        return None
    work = [one.work for one in members]
    together = tuple(part for parts in work for part in parts) if all(work) else ()
    return Fusable(group, replace(loop, form=AsOne(model, members), work=together, rewrites=("fuse",)))


def _keeps_strategy(fused: AnalysedLoop, members: Iterable[AnalysedLoop]) -> bool:
    if not _is_parallel(fused) or fused.analysis.private:
        return False
    weakest = min(strength(member.candidates[0].strategy) for member in members)
    return strength(fused.candidates[0].strategy) >= weakest


def _combined(loop: AnalysedLoop) -> list[str]:
    """The scalars that a loop combines, each by itself, from its iterations."""
    scalars = loop.analysis.scalars
    return [one.name for one in scalars.reductions] + [choice.names[0] for choice in scalars.choices]


def _is_parallel(loop: AnalysedLoop) -> bool:
    """Whether a loop is parallel without tiles that wait for each other."""
    return bool(loop.candidates) and not any(candidate.time for candidate in loop.candidates)


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why two loops are not run as one; with no reason where there would be nothing to gain."""

    reason: Reason | None = None


class _Finder:
    def __init__(self, program: Program, loops: tuple[AnalysedLoop, ...], owners: dict[int, int], types: Types) -> None:
        self.program, self.loops, self.owners, self.types = program, loops, owners, types
        self.maps = Maps()
        self.not_fused: list[NotFused] = []
        self.copies = {one.copy for loop in loops for one in loop.nest.copied_in}

    def groups(self) -> Iterator[Group]:
        """The longest runs of loops that may be one, from the first on."""
        for run in neighbours(self.program):
            members, depth = [run[0]], 0
            for number in run[1:]:
                found = self.joined(members, number)
                if isinstance(found, int):
                    members.append(number)
                    depth = found if len(members) == 2 else min(depth, found)
                    continue
                if found.reason is not None:
                    arrays = shared_arrays([self.loops[k] for k in (members[-1], number)])
                    self.not_fused.append(NotFused(number, arrays, found.reason))
                if len(members) > 1:
                    yield Group(members[0], len(members), depth)
                members = [number]
            if len(members) > 1:
                yield Group(members[0], len(members), depth)

    def joined(self, members: Sequence[int], number: int) -> int | _Refused:
        """How many loops a further one may share with those before it."""
        loops = [self.loops[k] for k in (*members, number)]
        *before, last = loops
        if len({self.owners.get(k) for k in (*members, number)}) > 1 or not all(map(_is_parallel, loops)):
            return _Refused()
        depth = min(self.same_ranges(one.nest, last.nest) for one in before)
        if not depth or not any(shared_arrays([one, last]) for one in before):
            return _Refused()
        if any(loop.analysis.private or loop.summed for loop in loops):
            return _Refused()
        if any(use.array in self.copies for loop in loops for use in loop.uses):
            return _Refused()  # a copy is made as a whole before its array is written
        sums = [name for loop in loops for name in _combined(loop)]
        choices = (choice for loop in loops for choice in loop.analysis.scalars.choices)
        if any(choice.comparison is None or len(choice.names) > 1 for choice in choices) or len(set(sums)) < len(sums):
            return _Refused()
        for one in before:
            shared = shared_depth(one.analysis.accesses, last.analysis.accesses, depth, self.maps)
            if not shared.depth and shared.against:
                return _Refused(_meeting(one.nest, *shared.against))
            depth = shared.depth
        depth = self.vectorized(loops, depth)
        sums_agree = all(len(one.nest.dims) == depth for one in loops if _combined(one))
        return depth if depth and sums_agree else _Refused()

    def same_ranges(self, first: LoopNest, second: LoopNest) -> int:
        """Count the outermost loops that have the same ranges, given the same values of those further out, and whose
        variables no body changes."""
        inside = assigned_names((*first.body, *second.body))
        one, other = loop_scope(first, self.types), loop_scope(second, self.types)
        pairs = list(zip(first.ranges, second.ranges, strict=False))
        for mine, its in pairs:
            other[its.var] = parameter(mine.var)
        for depth, (mine, its) in enumerate(pairs):
            if not inside.isdisjoint((mine.var, its.var)):
                return depth
            for a, b in zip(_bounds(mine), _bounds(its), strict=True):
                form, like = affine_form(a, one), affine_form(b, other)
                if not (isinstance(form, Affine) and isinstance(like, Affine) and form.text == like.text):
                    return depth
        return len(pairs)

    def vectorized(self, loops: Sequence[AnalysedLoop], depth: int) -> int:
        """`depth`, or one loop fewer where statements would else share an innermost loop that is slower then."""
        innermost = [loop for loop in loops if _is_innermost(loop.nest, depth)]
        if not innermost:
            return depth
        is_plain = all(_is_plain(loop.nest.body) and not loop.analysis.dependences for loop in innermost)
        few = len({use.array for loop in loops for use in loop.uses}) <= MAX_ARRAYS
        return depth if is_plain and few and len(innermost) == len(loops) else depth - 1


def _bounds(space: Range) -> tuple[Expr, Expr, Expr]:
    return space.start, space.stop, space.step


def _is_innermost(nest: LoopNest, depth: int) -> bool:
    """Whether there is no loop inside of the `depth` outermost ones."""
    return len(nest.dims) == depth and not any(isinstance(node, For | While) for node in _nodes(nest.body))


def _is_plain(body: tuple[Stmt, ...]) -> bool:
    """Whether statements are arithmetic without branches."""
    is_flat = all(isinstance(statement, Assign | Update | Pass) for statement in body)
    calls = (node.function for node in _nodes(body) if isinstance(node, Call))
    return is_flat and all(cost_of(function) is Cost.VECTOR for function in calls)


def _nodes(body: tuple[Stmt, ...]) -> Iterator[Node]:
    return (node for statement in body for node in walk(statement))


def shared_arrays(loops: Iterable[AnalysedLoop]) -> tuple[str, ...]:
    """The arrays that several loops go through in the same blocks of their outermost dimension."""
    along = [{(use.array, f.axis) for use in loop.uses for f in use.follows if f.dim == 0} for loop in loops]
    both = [one & other for one, other in combinations(along, 2)]
    return tuple(sorted({array for pair in both for array, _ in pair}))


def _meeting(nest: LoopNest, first: Access, second: Access) -> Reason:
    """Why two loops are not run as one: two of their accesses meet in different iterations."""
    verbs = ["written" if one.is_write else "read" for one in (first, second)]
    one, other = (f"`{a.text}` ({verb} in line {a.span.line})" for a, verb in zip((first, second), verbs, strict=True))
    message = (
        f"not fused with the loop in line {nest.span.line}: {one} and {other} meet in different iterations of the two"
    )
    return Reason.of("ORN123", message, first.span, second.span)


FUSE = OfNeighbours("fuse", "neighbouring loops are run as one, so that caches still have their arrays", find)
