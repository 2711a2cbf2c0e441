"""A planned loop of a program replaced by loops that do the same in a better order.

The stage in one function: statements → dependences → a new order, proved to keep them → loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orion.cost.caches import Caches
from orion.dataclass import dataclass, field, replace
from orion.dependence.conflicts import CapReached, capped
from orion.dependence.region import Region
from orion.dependence.relations import first_broken
from orion.dependence.scalars import live_after_each
from orion.dependence.study import Study
from orion.errors import PlanError
from orion.ir.nodes import Const, For, Range, Stmt, Var, every, names_in
from orion.ir.program import BesideBoxes, Buffer, LoopNest, OfBox, Program, Repeat, RunLoop, Step, with_loops
from orion.ir.types import Types
from orion.passes.between import SYNTHETIC
from orion.rewrites.band import Band
from orion.rewrites.lockstep.apply import new_names
from orion.rewrites.reorder.bands import band_of
from orion.rewrites.reorder.generate import Body, generate
from orion.rewrites.reorder.order import Order, as_given, new_order
from orion.rewrites.reorder.outline import Around, Leaf, Piece, Tiles, cache_tiles, known_names, outline
from orion.rewrites.skewed_buffers.apply import buffers_of
from orion.rewrites.tile.sizes import Memory, memory_of
from orion.rewrites.time_tiles.apply import in_time_tiles
from orion.rewrites.time_tiles.find import MOST, find_time_tiles
from orion.sets.maps import Maps

if TYPE_CHECKING:
    import islpy as isl

MAX_OPERATIONS = 500_000
"""isl operations that a new order may cost, but for searches for it and the loops of boxes, which have limits of their
own. Those of all thirty PolyBench kernels take fewer than 300,000; past the limit the loop stays as it is written."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Loops number `first` and following of a program that run outlines, and what their bodies are made from: the
    statements, the new order as the text of an isl schedule tree, its bands and their tiles, and the names of its
    variables. `live` has for each loop the scalars whose values are needed after it."""

    first: int
    region: Region
    tree: str
    bands: tuple[Band, ...]
    tiles: Tiles
    variables: tuple[str, ...]
    memory: Memory
    live: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A program with one of its loops replaced by loops number `first` … `first + len(bands)` - 1.

    `bands` are those whose tiles the new loops go through; None for what no planned band is left of. `dependences` and
    `order` are the texts of isl union maps between the instances of the statements of the loop that was replaced: what
    must be kept, and the new order. `trips` are what one trip of the innermost loops costs in memory, as written and in
    the new order (`orion.cost.strides`). `live` are the scalars whose values are needed after each new loop.
    `deferred`: what is to be made yet of them, None where nothing.
    """

    program: Program
    first: int
    bands: tuple[Band | None, ...]
    dependences: str
    order: str
    trips: tuple[int, int]
    live: tuple[frozenset[str], ...]
    deferred: Deferred | None


def rewrite_loop(program: Program, study: Study, types: Types, maps: Maps, caches: Caches) -> Rewritten | None:
    """The program with a planned loop in the order that isl's scheduler finds for its statements, in tiles for caches.

    None where no band of the new order can be shared out, or where finding it would take too long, which is noted in
    `maps`.
    """
    import islpy as isl

    region, relations, number = study.region, study.relations, study.region.nest.number
    context = relations.domain.get_ctx()
    context.set_tile_scale_tile_loops(0)
    context.set_tile_shift_point_loops(0)
    variables = fresh_names(4 * max(len(statement.loops) for statement in region.statements) + 2, _names(program))
    try:
        with capped(context, MAX_OPERATIONS):
            given = as_given(relations)
            if given is None:
                maps.give_up("no other order of the loops was looked for, as the dependences fall into too many pieces")
                return None
            order = new_order(region, relations, given, variables, memory_of(types, caches), types)
            if not order.bands:
                return None
            written, places = relations.dependences, order.tree.get_map()
            prove_order(written, places)
            replacer = _Replacer(region, outline(region, order, types))
            found, tiles = replacer.program(program, order.bands, order.variables), cache_tiles(region, order, types)
            can_wait = _can_wait(region, order, types)
            if not can_wait:
                found = _with_bodies(found, number, generate(region, order, types, tiles), variables)
    except CapReached:
        maps.give_up("what other order of the loops is best was not found out; they stay as they are written")
        return None
    except (KeyError, isl.Error):
        return None
    texts = str(written), str(places)
    after, bands = live_after_each(found), tuple(replacer.added)
    live = tuple(after[number + position] for position in range(len(bands)))
    deferred = Deferred(number, region, str(order.tree), order.bands, tiles, order.variables, order.memory, live)
    return Rewritten(found, number, bands, *texts, order.trips, live, deferred if can_wait else None)


def rewrite_in_time_tiles(program: Program, study: Study, types: Types, maps: Maps, caches: Caches) -> Rewritten | None:
    """The program with a planned loop in tiles of rounds and space: see `orion.rewrites.time_tiles.find`. None where it
    has no such tiles, or where finding them would take too long."""
    import islpy as isl

    region, relations, number = study.region, study.relations, study.region.nest.number
    variables = tuple(fresh_names(MOST + 1, _names(program)))
    try:
        with capped(relations.domain.get_ctx(), MAX_OPERATIONS):
            tiled = find_time_tiles(region, relations, types)
            if tiled is None:
                return None
            time_tiles, places = tiled
            order = places.flat_range_product(relations.written)
            prove_order(relations.dependences, order)
            band = replace(band_of(places, relations, variables, 0, len(time_tiles.slopes) + 1), time_tiles=time_tiles)
    except CapReached:
        maps.give_up("whether rounds can be gone through in tiles was not found out; they run one after another")
        return None
    except isl.Error:
        return None
    body = in_time_tiles(region, band, time_tiles, caches)
    found = _Replacer(region, (Leaf(band, body),)).program(program, (band,), (*variables, *new_names(body, variables)))
    live = (live_after_each(found)[number],)
    return Rewritten(found, number, (band,), str(relations.dependences), str(order), (0, 0), live, None)


def _can_wait(region: Region, order: Order, types: Types) -> bool:
    """Whether it is certain before they are made that the bodies of a new order can be, and soon: every name has a
    meaning, and each statement has one convex set of instances. Also that nothing is to be learned from them: no scalar
    passes a value from one statement to another."""
    import islpy as isl

    names, domain = known_names(region, order, types), order.tree.get_domain()
    space, sets = domain.get_space(), list[isl.Set]()
    domain.foreach_set(sets.append)
    parameters = [space.get_dim_name(isl.dim_type.param, k) for k in range(space.dim(isl.dim_type.param))]
    is_convex = all(one.n_basic_set() == 1 for one in sets)
    return not region.scalars and is_convex and all(name in names for name in parameters)


def with_bodies(program: Program, deferred: Deferred, types: Types) -> Program:
    """The program with the bodies of loops that ran outlines."""
    import islpy as isl

    tree = isl.Schedule(deferred.tree, isl.Context())
    order = Order(tree, deferred.bands, (0, 0), deferred.variables, 0, 0, deferred.memory)
    bodies = generate(deferred.region, order, types, deferred.tiles)
    return _with_bodies(program, deferred.first, bodies, deferred.variables)


def _with_bodies(program: Program, first: int, bodies: Iterable[Body], variables: Sequence[str]) -> Program:
    nests, names = list(program.nests), list(program.variables)
    for number, (band, body) in enumerate(bodies, first):
        nests[number] = _with_body(nests[number], body, buffers_of(band) if band else ())
        names += new_names(body, variables) if band else ()
    return replace(program, nests=tuple(nests), variables=tuple(dict.fromkeys(names)))


def _with_body(nest: LoopNest, body: tuple[Stmt, ...], buffers: tuple[Buffer, ...]) -> LoopNest:
    loops: list[For] = []
    for loop in reversed(nest.loops):
        loops.append(replace(loop, body=(loops[-1],) if loops else body))
    form = replace(nest.form, buffers=buffers) if isinstance(nest.form, OfBox) else nest.form
    return replace(nest, form=form, loops=tuple(reversed(loops)), body=body)


def fresh_names(count: int, taken: set[str]) -> list[str]:
    """Names for the variables of new loops. No name that is taken begins with one of them and `_`, as those do that
    are made of them.

    >>> fresh_names(3, {"x1", "x2_low"})
    ['x0', 'xx1', 'xx2']
    """
    found = []
    for number in range(count):
        name = f"x{number}"
        while any(one == name or one.startswith(f"{name}_") for one in taken):
            name = f"x{name}"  # not a `_` at its end: two in a row have a meaning in isl's names
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
    return found | names_in(*function.body) | {space.var for space in every(Range, *function.body)}


@dataclass
class _Replacer:
    region: Region
    replacement: tuple[Piece, ...]
    nests: list[LoopNest] = field(default_factory=list)
    added: list[Band | None] = field(default_factory=list)

    def program(self, program: Program, bands: Iterable[Band], variables: Iterable[str]) -> Program:
        """The program with the loop of the region replaced; `variables` are the names of new loops."""

        def change(number: int) -> Iterator[Step]:
            if number == self.region.nest.number:
                yield from self.pieces(self.replacement)
            else:
                self.nests.append(replace(program.nests[number], number=len(self.nests)))
                yield RunLoop(len(self.nests) - 1)

        steps = with_loops(program.steps, change)
        limits = [name for band in bands for pair in band.limits for name in pair]
        known = tuple(dict.fromkeys((*program.variables, *variables, *limits)))
        return Program(program.function, tuple(self.nests), steps, known, program.tests)

    def pieces(self, pieces: Iterable[Piece]) -> Iterator[Step]:
        for piece in pieces:
            match piece:
                case Leaf(None, body):
                    yield self.once(body)
                case Leaf(Band() as band, body):
                    yield self.box(band, body)
                case Around(space, inner):
                    steps = tuple(self.pieces(inner))
                    yield Repeat(For(space, (), SYNTHETIC, self.region.nest.span), steps)

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
        number, form = len(self.nests), OfBox(band.limits, ()) if band else BesideBoxes()
        self.added.append(band)
        body, function = loops[-1].body, self.region.nest.function
        self.nests.append(LoopNest(number, form, loops, dims, body, True, function))
        return RunLoop(number)
