"""A planned loop of a program replaced by loops that do the same in a better order.

The stage in one function: statements → dependences → a new order, proved to keep them → loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from orion.dependence.conflicts import CapReached, capped
from orion.dependence.region import Region
from orion.dependence.relations import first_broken
from orion.dependence.study import Study
from orion.errors import PlanError
from orion.loop.between import SYNTHETIC
from orion.loop.ir import Const, For, Node, Range, Stmt, Var, walk
from orion.loop.nest import Branch, LoopNest, Program, Repeat, RunLoop, Step
from orion.loop.types import Types
from orion.transform.bands import Band, band_of
from orion.transform.generate import Around, Piece, Planned, generate
from orion.transform.lockstep import new_names
from orion.transform.order import is_simple, new_order
from orion.transform.skewed import buffers_of
from orion.transform.sweeps import MOST, find_sweeps
from orion.transform.swept import in_sweeps

if TYPE_CHECKING:
    import islpy as isl

MAX_OPERATIONS = 500_000
"""isl operations that a new order may cost. Those of all thirty PolyBench kernels take fewer than 300,000; past the
limit the loop stays as it is written."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A program with one of its loops replaced by loops number `first` … `first + len(bands)` - 1.

    `bands` are those whose tiles the new loops go through; None for what no planned band is left of. `dependences` and
    `order` are the texts of isl union maps between the instances of the statements of the loop that was replaced: what
    must be kept, and the new order. `trips` are what one trip of the innermost loops costs in memory, as written and in
    the new order (`orion.transform.strides`).
    """

    program: Program
    first: int
    bands: tuple[Band | None, ...]
    dependences: str
    order: str
    trips: tuple[int, int]


def rewrite_loop(program: Program, study: Study, types: Types) -> Rewritten | None:
    """The program with a planned loop in the order that isl's scheduler finds for its statements.

    None where no band of the new order can be shared out, or where finding it would take too long.
    """
    import islpy as isl

    region, relations = study.region, study.relations
    if not is_simple(relations):
        return None
    context = relations.domain.get_ctx()
    context.set_tile_scale_tile_loops(0)
    context.set_tile_shift_point_loops(0)
    variables = fresh_names(4 * max(len(statement.loops) for statement in region.statements) + 2, _names(program))
    try:
        with capped(context, MAX_OPERATIONS):
            order = new_order(region, relations, variables)
            if not order.bands:
                return None
            prove_order(relations.dependences, order.tree.get_map())
            pieces = generate(region, order, types)
    except (CapReached, KeyError, isl.Error):
        return None
    return _replaced(program, study, pieces, order.bands, variables, order.tree.get_map(), order.trips)


def rewrite_sweeps(program: Program, study: Study, types: Types) -> Rewritten | None:
    """The program with a planned loop in tiles of rounds and space: see `orion.transform.sweeps`. None where it has no
    such tiles, or where finding them would take too long."""
    import islpy as isl

    region, relations = study.region, study.relations
    variables = fresh_names(len(region.statements[0].loops) + MOST + 1, _names(program))
    try:
        with capped(relations.domain.get_ctx(), MAX_OPERATIONS):
            found = find_sweeps(region, relations, types)
            if found is None:
                return None
            sweeps, places = found
            order = places.flat_range_product(relations.written)
            prove_order(relations.dependences, order)
            band = replace(band_of(places, relations, variables, 0, len(sweeps.slopes) + 1), sweeps=sweeps)
    except (CapReached, isl.Error):
        return None
    pieces = (Planned(band, in_sweeps(region, band, sweeps)),)
    return _replaced(program, study, pieces, (band,), variables, order, (0, 0))


def _replaced(
    program: Program,
    study: Study,
    pieces: tuple[Piece, ...],
    bands: tuple[Band, ...],
    variables: Sequence[str],
    order: isl.UnionMap,
    trips: tuple[int, int],
) -> Rewritten:
    """The program with the pieces in the place of a loop; `variables` are the names of new loops."""
    number = study.region.nest.number
    replacer = _Replacer(study.region, pieces, bands)
    steps = replacer.steps(program, program.steps, number)
    limits = [name for band in bands for pair in band.limits for name in pair]
    bodies = [piece.body for piece in every_piece(pieces) if isinstance(piece, Planned)]
    helpers = [name for body in bodies for name in new_names(body)]
    known = tuple(dict.fromkeys((*program.variables, *variables, *limits, *helpers)))
    found = Program(program.function, tuple(replacer.nests), steps, known, program.tests)
    return Rewritten(found, number, tuple(replacer.added), str(study.relations.dependences), str(order), trips)


def every_piece(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces, and those inside of serial loops."""
    for piece in pieces:
        yield piece
        if isinstance(piece, Around):
            yield from every_piece(piece.pieces)


def fresh_names(count: int, taken: set[str]) -> list[str]:
    """Names for the variables of new loops.

    >>> fresh_names(3, {"x1"})
    ['x0', 'x1_', 'x2']
    """
    found = []
    for number in range(count):
        name = f"x{number}"
        while name in taken:
            name += "_"
        found.append(name)
    return found


def prove_order(dependences: isl.UnionMap, order: isl.UnionMap) -> None:
    """Prove that every dependence x → y goes forwards in an order: order(x) ≺ order(y). PlanError where one does
    not."""
    broken = first_broken(dependences, order)
    if not broken.is_empty():
        raise PlanError(f"the new order of the statements does not keep a dependence: {broken.sample()}")


def _names(program: Program) -> set[str]:
    function = program.function
    found = {*function.params, *dict(function.constants), *(helper.name for helper in function.helpers)}
    nodes: list[Node] = [node for statement in function.body for node in walk(statement)]
    found |= {node.name for node in nodes if isinstance(node, Var)}
    found |= {node.var for node in nodes if isinstance(node, Range)}
    return found


@dataclass
class _Replacer:
    region: Region
    replacement: tuple[Piece, ...]
    bands: tuple[Band, ...]
    nests: list[LoopNest] = field(default_factory=list)
    added: list[Band | None] = field(default_factory=list)

    def steps(self, program: Program, steps: Iterable[Step], number: int) -> tuple[Step, ...]:
        """The steps with loop `number` replaced; all loops are numbered anew."""
        found: list[Step] = []
        for step in steps:
            match step:
                case RunLoop(old) if old == number:
                    found += self.pieces(self.replacement)
                case RunLoop(old):
                    self.nests.append(replace(program.nests[old], number=len(self.nests)))
                    found.append(RunLoop(len(self.nests) - 1))
                case Repeat(loop, inner):
                    found.append(Repeat(loop, self.steps(program, inner, number)))
                case Branch(statement, (first, second)):
                    sides = self.steps(program, first, number), self.steps(program, second, number)
                    found.append(Branch(statement, sides))
                case _:
                    found.append(step)
        return tuple(found)

    def pieces(self, pieces: Iterable[Piece]) -> Iterator[Step]:
        for piece in pieces:
            match piece:
                case Planned(band, body):
                    yield self.box(band, body)
                case Around(space, inner):
                    steps = tuple(self.pieces(inner))
                    yield Repeat(For(space, (), SYNTHETIC, self.region.nest.span), steps)
                case _:
                    yield self.once(piece)

    def box(self, band: Band, body: tuple[Stmt, ...]) -> RunLoop:
        """A loop per dimension from limit to limit, which stands for all that is run for a box."""
        span, one = self.region.nest.span, Const(1, self.region.nest.span)
        loops: list[For] = []
        for name, (first, end) in reversed([*zip(band.dims, band.limits, strict=True)]):
            inner = (loops[-1],) if loops else body
            loops.append(For(Range(name, Var(first, span), Var(end, span), one, span), inner, SYNTHETIC, span))
        outermost = replace(loops[-1], index=self.region.nest.loops[0].index)
        return self.nest((outermost, *reversed(loops[:-1])), band)

    def once(self, statements: tuple[Stmt, ...]) -> RunLoop:
        """One trip around statements that are run on one worker."""
        span = self.region.nest.span
        trip = Range("once", Const(0, span), Const(1, span), Const(1, span), span)
        return self.nest((For(trip, statements, SYNTHETIC, span),), None)

    def nest(self, loops: tuple[For, ...], band: Band | None) -> RunLoop:
        dims = tuple(loop.space.var for loop in loops if isinstance(loop.space, Range))
        number, limits = len(self.nests), band.limits if band else ()
        self.added.append(band)
        body, function = loops[-1].body, self.region.nest.function
        buffers = buffers_of(band) if band else ()
        nest = LoopNest(number, loops, dims, body, True, function, True, limits, buffers)
        self.nests.append(nest)
        return RunLoop(number)
