"""The compiler in order: what becomes of a function from its source to what a call runs.

    source ─ frontend ─→ Function ─ PASSES ─→ Function ─ split ─→ Program ─ analyse, REWRITES ─→ variants
           ─ plan ─→ FunctionPlan, the variant chosen for the sizes of a call ─ schedule ─→ tiles ─ kernel ─→ code

Each arrow is a function from frozen values to frozen values. `python -m orion stages FILE:FUNCTION` prints what they
make of a function; `orion.prepare` keeps it from call to call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from orion.analysis.one_loop import AnalysedLoop, AsOne, AsWritten, InBand, InTimeTiles, OutsideBands
from orion.arrays.sparse import SparseArray
from orion.cost.caches import Caches
from orion.cost.contents import decided_loops
from orion.cost.extents import names_behind
from orion.cost.local_arrays import names_in_lengths
from orion.cost.sizes import NOTHING_SHOWN, Asked, Shown, Sizes
from orion.dataclass import dataclass, replace
from orion.dependence.bounds import BoundsChecks, all_checks, bounds_checks
from orion.dependence.guarded import guarded_by
from orion.dependence.inspection import NOT_INSPECTED, InspectedLoops
from orion.errors import ArgumentError, UnsupportedLoopError
from orion.frontend.check import check_function
from orion.ir.assigned import assigned_places
from orion.ir.assumed import OfArray, OfSizes
from orion.ir.function import Function
from orion.ir.nodes import Binary, every, names_in
from orion.ir.program import Program, repeated_loops
from orion.ir.signature import index_value
from orion.ir.types import ArrayType, ScalarType, Shapes, Types
from orion.kernel.calling import KernelSource
from orion.kernel.emit.kernel import emit_kernel
from orion.kernel.emit.stop_bounds import bracket
from orion.known import MAX_KERNELS, Typed
from orion.passes.accumulated import refuse_other_numbers
from orion.passes.along_axes import with_loops_along_axes
from orion.passes.array_names import with_one_array_a_name
from orion.passes.attributes import resolve_attributes
from orion.passes.between import separate
from orion.passes.bounds import name_bounds
from orion.passes.element_stores import stored_arrays, with_stored_elements
from orion.passes.extreme_places import with_extremes_by_name
from orion.passes.extremes import with_running_extremes
from orion.passes.flat_loops import with_nested_loops
from orion.passes.given_anew import with_parameters_given_anew
from orion.passes.induction import close_inductions
from orion.passes.inline import inline_helpers
from orion.passes.kernel_limits import refuse_in_kernels
from orion.passes.large import refuse_large_numbers
from orion.passes.leaving import leave_by_break
from orion.passes.lists import with_types_of_items
from orion.passes.literal_arrays import fill_by_elements
from orion.passes.local_arrays import named_results
from orion.passes.options import NO_WORDS, Words, with_options
from orion.passes.picking import pick_by_loops
from orion.passes.plain_ifs import with_plain_ifs
from orion.passes.row_lengths import with_lengths_of_arrays
from orion.passes.several_rows import with_rows_one_by_one
from orion.passes.single_trips import without_single_trips
from orion.passes.sizes import with_sizes_first
from orion.passes.sums import with_single_terms
from orion.passes.unmade_arrays import refuse_unmade_arrays
from orion.passes.unpacking import over_dense_arrays, take_rows_apart
from orion.passes.views import replace_views
from orion.passes.writing_calls import with_calls_first
from orion.plan.analyse_function import analyse_function
from orion.plan.deferred_bodies import plan_with_bodies, with_deferred_bodies
from orion.plan.plan import FunctionPlan, Fused, Inspected
from orion.plan.planner import plan_program
from orion.plan.variants import Variant
from orion.planned import Plan
from orion.rewrites.array_sums.take import ARRAY_SUMS
from orion.rewrites.coalesce.take import COALESCE
from orion.rewrites.copy_in.take import COPY_IN
from orion.rewrites.distribute.take import DISTRIBUTE
from orion.rewrites.early_exits.take import EARLY_EXITS
from orion.rewrites.expand.take import EXPAND
from orion.rewrites.fuse.take import FUSE
from orion.rewrites.peel.take import PEEL
from orion.rewrites.privatize.take import PRIVATIZE
from orion.rewrites.rename.take import RENAME
from orion.rewrites.reorder.take import JAM, LOCKSTEP, REORDER, SKEWED_BUFFERS, STORED_SUMS, TILE
from orion.rewrites.rewrite import Rewrite
from orion.rewrites.scans.find import not_worthwhile
from orion.rewrites.scans.take import SCANS
from orion.rewrites.shared_locals.take import SHARED_LOCALS
from orion.rewrites.slices.take import SLICES
from orion.rewrites.time_tiles.take import TIME_TILES
from orion.rewrites.wrap_around.take import WRAP_AROUND
from orion.runtime.local_arrays import LocalSpec
from orion.sets.names import isl_name
from orion.typing.expression_types import Typing, with_names
from orion.typing.infer import infer_types


@dataclass(frozen=True, slots=True)
class Pass:
    """A step from a function to a function that does the same. `retypes`: names get other types by it, or new names
    come, so that types are inferred anew."""

    name: str
    does: str
    run: Callable[[Function, Inferred], Function]
    retypes: bool = False


class Inferred:
    """The types of the arguments of a function, and those of all its expressions once somebody asks for them; `words`
    are the arguments that are strings or None."""

    def __init__(self, function: Function, types: Types, words: Words) -> None:
        self._function, self.types, self.words = function, types, words

    @cached_property
    def typing(self) -> Typing:
        return infer_types(self._function, self.types)

    @property
    def arrays(self) -> set[str]:
        """The names that stand for arrays, or for rows."""
        return {name for name, kind in self.typing.names.items() if kind.rank}


PASSES: tuple[Pass, ...] = (
    Pass("inline", "calls of helpers are their bodies", lambda f, known: inline_helpers(f, known.types), True),
    Pass("calls", "calls that write are statements", lambda f, known: with_calls_first(f, known.types), True),
    Pass("options", "what depends on None and strings is settled", lambda f, known: with_options(f, known.words), True),
    Pass(
        "anew",
        "parameters given new values have new names",
        lambda f, known: with_parameters_given_anew(f, known.types),
        True,
    ),
    Pass("elements", "loops over dense arrays are ranges", lambda f, known: over_dense_arrays(f, known.types), True),
    Pass("stores", "stored elements are scalars", lambda f, known: with_stored_elements(f, known.types), True),
    Pass("names", "a name stands for one array", lambda f, known: with_one_array_a_name(f, known.types), True),
    Pass("large", "large integers have no sign", lambda f, known: refuse_large_numbers(f, lambda: known.typing)),
    Pass("trips", "loops of one trip are their bodies", lambda f, known: without_single_trips(f, known.typing), True),
    Pass("lists", "lists have the types of their items", lambda f, known: with_types_of_items(f, known.typing), True),
    Pass("flat", "loops over flattened arrays are nested", lambda f, known: with_nested_loops(f, known.typing), True),
    Pass("leave", "a `return` inside a loop is a `break`", lambda f, known: leave_by_break(f, known.arrays), True),
    Pass("pick", "arrays as subscripts are loops", lambda f, known: pick_by_loops(f, known.typing), True),
    Pass("literals", "arrays written out are filled", lambda f, known: fill_by_elements(f, known.typing), True),
    Pass("axes", "extremes along an axis are loops", lambda f, known: with_loops_along_axes(f, known.typing), True),
    Pass("rows", "rows are assigned one by one", lambda f, known: with_rows_one_by_one(f, known.typing), True),
    Pass("unpack", "rows that are taken apart are their elements", lambda f, known: take_rows_apart(f, known.typing)),
    Pass("results", "arrays that are returned have names", lambda f, known: named_results(f, known.typing), True),
    Pass("attributes", "shapes and lengths are plain", lambda f, known: resolve_attributes(f, known.typing)),
    Pass("lengths", "lengths of rows are those of arrays", lambda f, known: with_lengths_of_arrays(f), True),
    Pass("sizes", "sizes have their names before loops", lambda f, known: with_sizes_first(f, known.typing)),
    Pass("views", "names of parts of arrays are these parts", lambda f, known: replace_views(f, known.typing)),
    Pass("plain_ifs", "choices of scalars are `if`s", lambda f, known: with_plain_ifs(f, known.typing)),
    Pass("terms", "sums of terms are added one by one", lambda f, known: with_single_terms(f, known.typing)),
    Pass(
        "places",
        "extremes that are looked up have names",
        lambda f, known: with_extremes_by_name(f, known.typing),
        True,
    ),
    Pass("extremes", "running extremes have one form", lambda f, known: with_running_extremes(f, known.typing)),
    Pass("inductions", "counters are functions of trips", lambda f, known: close_inductions(f, known.typing)),
    Pass("between", "what stands between loops is apart", lambda f, known: separate(f, known.types)),
    Pass("bounds", "sizes in bounds are names", lambda f, known: name_bounds(f, known.types)),
)
"""From the source to planned loops, in order. Two more depend on a call: `steps`, numbers for the steps of ranges
(`orion.passes.steps`), and flattened arrays as arrays of rows (`orion.passes.delinearize`)."""


REWRITES: tuple[Rewrite, ...] = (
    PRIVATIZE,
    ARRAY_SUMS,
    PEEL,
    TIME_TILES,
    REORDER,
    STORED_SUMS,
    TILE,
    JAM,
    LOCKSTEP,
    SKEWED_BUFFERS,
    DISTRIBUTE,
    COPY_IN,
    RENAME,
    SHARED_LOCALS,
    WRAP_AROUND,
    EXPAND,
    SLICES,
    EARLY_EXITS,
    SCANS,
    COALESCE,
    FUSE,
)
"""All rewrites, in the order in which they are tried: first those of one loop's arrays, then those of a loop, of which
each is given what those before it made of it, those of a whole function, and those of neighbours. Each is a folder of
`orion.rewrites`. `ORION_REWRITES=-fuse,-jam` leaves some out."""


WITHOUT_WHERE_RELAXED = frozenset(one.name for one in REWRITES if one not in (PRIVATIZE, PEEL))
"""The rewrites that functions with buffers go without: they reckon with iterations one by one, in their order."""


def left_out(setting: str) -> frozenset[str]:
    """The rewrites that the environment variable `ORION_REWRITES` leaves out. ArgumentError for one that there is not.

    >>> sorted(left_out("-fuse, -jam"))
    ['fuse', 'jam']
    """
    known = {one.name for one in REWRITES}
    found = []
    for part in filter(None, map(str.strip, setting.split(","))):
        name = part.removeprefix("-")
        if not part.startswith("-") or name not in known:
            names = ", ".join(f"-{one.name}" for one in REWRITES)
            raise ArgumentError(f"ORION_REWRITES has {part!r}: it leaves rewrites out, separated by commas: {names}")
        found.append(name)
    return frozenset(found)


def through_passes(function: Function, types: Types, words: Words = NO_WORDS) -> Function:
    """A function as the analysis takes it. UnsupportedLoopError where that cannot be made of it, or the types of its
    expressions cannot be told; one with lists may then be one that Numba compiles, as arrays can do less than lists."""
    try:
        *_, (_, last) = after_each(function, types, words)
        return check_function(last)
    except UnsupportedLoopError as error:
        error.is_for_numba |= bool(function.lists)
        raise


def after_each(function: Function, types: Types, words: Words) -> Iterator[tuple[Pass, Function]]:
    """The function after each of the passes."""
    known = Inferred(function, types, words)
    for one in PASSES:
        before, function = function, one.run(function, known)
        if one.retypes and function != before:
            known = Inferred(function, types, words)
        yield one, function


# ---------------------------------------------------------------- variants, and the one that a call runs


def analyse(function: Function, types: Types, ordered: bool | None, caches: Caches, dynamic: bool = False) -> Typed:
    """What is known of a function that has gone through the passes, for any sizes. `dynamic` as in `make_plan`."""
    found = analyse_function(function, types, ordered, caches, REWRITES)
    function, typing, every = found.function, found.typing, with_costly_scans(found.variants)
    refuse_unmade_arrays(every[-1].program.function, every[-1].typing)
    refuse_other_numbers(function, typing)
    refuse_in_kernels(function, [loop.nest.body for loop in every[-1].loops], every[-1].typing)
    checks = {id(variant.program): _checks(variant, variant.typing.arguments) for variant in every}
    used = {name for found in checks.values() for check in found for one in check.checks for name in one.names}
    used |= {name for variant in every for loop in variant.loops for name in loop.parameters}
    made = tuple(dict.fromkeys(one for variant in every for one in variant.program.function.local_arrays))
    used |= names_in_lengths(made)
    used = names_behind(function, used)
    integers = [
        name for name, kind in types.items() if isinstance(kind, ScalarType) and np.dtype(kind.dtype).kind in "iu"
    ]
    changed = assigned_places(function.body)  # those have other values than the arguments when their loop begins
    assumed = (one for variant in every for one in variant.program.function.assumed if isinstance(one, OfSizes))
    used |= names_behind(function, {name for one in assumed for name in one.names})
    parameters = tuple(name for name in integers if not used.isdisjoint({name, isl_name(name)}) and name not in changed)
    written = frozenset(use.array for loop in every[-1].loops for use in loop.uses if use.is_written)
    written |= stored_arrays(function)
    guarded = guarded_by(function, typing, _combined(every) - function.in_turn)
    needed = ((one for one in variant.program.function.assumed if isinstance(one, OfArray)) for variant in every)
    properties = frozenset(frozenset((one.array, one.has) for one in together) for together in needed) - {frozenset()}
    asked = Asked(properties, _deciding(every, types) - written if dynamic else frozenset())
    return Typed(
        types, function, typing, every, checks, written, parameters, caches, made, guarded, asked, maps=[found.maps]
    )


def with_costly_scans(every: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """The variants of a function, whose loops as written say where scans would share them out and take longer."""
    last = every[-1]
    reasons = [not_worthwhile(loop, last.typing) for loop in last.loops]
    if not any(reasons):
        return every
    pairs = zip(last.loops, reasons, strict=True)
    return (*every[:-1], replace(last, loops=tuple(replace(one, capped=(*one.capped, *why)) for one, why in pairs)))


def _deciding(every: Iterable[Variant], types: Types) -> frozenset[str]:
    """The arguments, arrays of integers, that decide how often inner loops are run."""
    loops = (one for variant in every for loop in variant.loops for one in decided_loops(loop.nest))
    kinds = ((name, types.get(name)) for one in loops for name in one.arrays)
    return frozenset(name for name, kind in kinds if isinstance(kind, ArrayType) and np.dtype(kind.dtype).kind in "iu")


def checks_of(typed: Typed, plan: FunctionPlan) -> Iterator[BoundsChecks]:
    """The bounds checks of the loops of a plan: of neighbours that are run as one, those of all."""
    found = iter(typed.checks[id(plan.unfused or plan.program)])
    counts = (len(loop.form.members) if isinstance(loop.form, Fused) else 1 for loop in plan.loops)
    return (all_checks(islice(found, count)) for count in counts)


def _checks(analysed: Variant, types: Types) -> tuple[BoundsChecks, ...]:
    """The bounds checks of all loops; a loop in another order has those of the loop as written."""
    return tuple(_checks_of(analysed.program, number, loop, types) for number, loop in enumerate(analysed.loops))


def _checks_of(program: Program, number: int, loop: AnalysedLoop, types: Types) -> BoundsChecks:
    match loop.form:
        case AsWritten(model) | AsOne(model):
            return bounds_checks(program, number, types, model)
        case InBand(origin=origin) | InTimeTiles(origin=origin) | OutsideBands(origin=origin):
            return origin.checks


def _combined(every: Iterable[Variant]) -> set[str]:
    """The scalars that some loop combines from its iterations by conditions."""
    roles = [loop.analysis.scalars for variant in every for loop in variant.loops]
    conditions = {one.name for role in roles for one in role.reductions if one.op in ("and", "or")}
    return conditions | {name for role in roles for choice in role.choices for name in choice.names}


def make_plan(
    typed: Typed,
    arguments: Mapping[str, Any],
    shapes: Shapes,
    workers: int,
    force_parallel: bool,
    shown: Shown = NOTHING_SHOWN,
    inspected: InspectedLoops = NOT_INSPECTED,
    *,
    dynamic: bool = False,
) -> Plan:
    """The plan for arguments of known types, with what was shown of arrays among them, and found of loops; `dynamic`
    where workers are to take tiles of each other."""
    arrays = {name: value for name, value in arguments.items() if isinstance(value, SparseArray)}
    integers = {name: index_value(name, arguments[name]) for name in typed.parameters}
    counts = {name: len(array) for name, array in arrays.items()}
    sizes = Sizes(
        shapes, integers, counts, workers, force_parallel, caches=typed.caches, shown=shown, inspected=inspected,
        dynamic=dynamic,
    )  # fmt: skip
    sizes = typed.all_sizes(sizes)
    return planned(typed, sizes, arrays)


def planned(typed: Typed, sizes: Sizes, arrays: Mapping[str, Any]) -> Plan:
    plan = replace(plan_program(typed.variants, sizes, typed.take_maps()), taken_inside=typed.taken_inside(sizes))

    def again(other: Sizes) -> Plan:
        return planned(typed, other, arrays)

    return Plan(plan, sizes, arrays, tuple(checks_of(typed, plan)), again, typed.measurements)


def local_specs(plan: Plan) -> tuple[LocalSpec, ...]:
    """What a function makes when it runs by a plan."""
    made = plan.function.program.function.local_arrays
    shapes = plan.sizes.shapes
    return tuple(LocalSpec(one.name, shapes[one.name], one.dtype, one.is_returned, one.is_zero) for one in made)


def executed(typed: Typed, plan: Plan) -> FunctionPlan:
    """The plan that a call runs by, with the bodies of all its loops, which are made once for each program."""
    found, types = plan.function, typed.typing_of(plan.function).arguments
    if found.unfused is not None:  # a program made for these sizes
        return plan_with_bodies(found, with_deferred_bodies(found.program, found.deferred, types))
    key = id(found.program)
    if key not in typed.bodies:
        typed.bodies[key] = with_deferred_bodies(found.program, found.deferred, types)
    return plan_with_bodies(found, typed.bodies[key])


def kernels_of(typed: Typed, plan: Plan, made: FunctionPlan, fastmath: bool) -> list[KernelSource]:
    """The kernels of the loops of a plan. What they are made of is mostly the same for calls of other sizes, and so
    they are kept; integer arguments get into them only by how many bits they have, but for divisors."""
    shapes, found = plan.sizes.shapes, typed.typing_of(plan.function)
    divisors = {
        name
        for one in every(Binary, *made.program.function.body)
        if one.op in ("%", "//")
        for name in names_in(one.right)
    }
    integers = {name: (value, value) for name, value in plan.sizes.named.items()}
    for name, value in plan.sizes.integers.items():  # what is left by a division by them is told by their values
        integers[name] = (value, value) if name in divisors else bracket(value)
    typing = with_names(found, made.program.variables, made.program.tests)
    same = (*shapes.items(), *integers.items(), fastmath)
    repeated = repeated_loops(made.program.steps)
    kernels = []
    for loop, proved in zip(made.loops, plan.inside, strict=True):
        tiles = loop.tiles.inspection.is_listed if isinstance(loop.tiles, Inspected) else (loop.space, loop.time)
        own = made.program, loop.nest, loop.analysis.scalars, loop.analysis.private, found
        key = (*map(id, own), loop.cuts, tiles, loop.copies, proved, same)
        if key not in typed.kernels:
            if len(typed.kernels) >= MAX_KERNELS:
                typed.kernels.clear()
            kernel = emit_kernel(
                loop, found.arguments, shapes, typing, fastmath, proved, integers,
                is_repeated=loop.nest.number in repeated,
            )  # fmt: skip
            typed.kernels[key] = kernel, own  # as long as these are there, no other has their identities
        kernels.append(typed.kernels[key][0])
    return kernels
