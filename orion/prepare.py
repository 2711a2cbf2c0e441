"""Everything that stands between a call and its run, made once and kept: parsed, analysed, planned, scheduled,
compiled.

Each level is kept by what it depends on: types; then shapes, the integers that subscripts and bounds use, and
workers; then the sparse arrays themselves, whose elements decide where blocks are cut.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dense import DenseArray
from orion.arrays.sparse import SparseArray
from orion.aside import aside
from orion.cost.caches import Caches, caches_here
from orion.cost.extents import parameter_values
from orion.cost.local_arrays import names_in_lengths
from orion.cost.reached import reached
from orion.cost.sizes import Sizes
from orion.dependence.bounds import BoundsChecks, Place, all_checks, bounds_checks, prove_bounds
from orion.dependence.guarded import guarded_by
from orion.frontend.outside import Outside
from orion.frontend.parse import parse_with_outside
from orion.ir.assigned import assigned_places
from orion.ir.nodes import Function, Var
from orion.ir.recent import Identity, Recent, recent
from orion.ir.signature import argument_types, index_value
from orion.ir.source import Span
from orion.ir.types import ScalarType, Shapes, SparseType, Types
from orion.known import MAX_SIZES, Known, Typed, shapes_in_rows
from orion.passes.delinearize import as_rows, with_row_types, with_rows
from orion.passes.steps import names_in_steps
from orion.passes.views import resolve_views
from orion.plan.analysed import AnalysedProgram
from orion.plan.bodies import plan_with_bodies, with_all_bodies
from orion.plan.fusing import with_fusable_loops
from orion.plan.lifted import analyse_function, variants
from orion.plan.plan import FunctionPlan
from orion.plan.planner import plan_program
from orion.planned import Plan
from orion.typing.expression_types import with_names
from orion.typing.integers_at_call import integers_at_call
from orion.typing.lengths import check_lengths

if TYPE_CHECKING:
    from orion.kernel.calling import KernelSource
    from orion.runtime.local_arrays import LocalArrays, LocalSpec
    from orion.runtime.prepared import PreparedProgram
    from orion.runtime.session import Session

KEPT = 8
"""How many prepared runs one function keeps; the least recently used goes first."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `parallel_for`."""

    ordered: bool | None = None
    require_parallel: bool = False
    fastmath: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """A function ready to run on arguments of one kind. `serial` are the places of loops of the source that are
    not parallel, or that of the function where it is not parallel as a whole though they are. `rows` has the shapes of
    flattened arrays as arrays of rows. `integers` are the arguments whose values it is for."""

    plan: Plan
    program: PreparedProgram
    written: frozenset[str]
    serial: tuple[Span, ...]
    rows: Shapes
    local: LocalArrays
    integers: tuple[str, ...]

    def why_serial(self, span: Span) -> str:
        """What to say of one of the places in `serial`."""
        from orion.inspect.text.where import where_the_work_is
        from orion.inspect.text.words import place

        for loop in self.plan.loops:
            if loop.nest.span == span:
                reasons = "; ".join(f"{reason.code}: {reason.message}" for reason in loop.reasons[:1])
                return f"{place(span)}: the loop over ({', '.join(loop.nest.dims)}) is serial. {reasons}"
        function = self.plan.function
        return f"{place(span)}: `{function.program.function.name}` has {where_the_work_is(function)}"

    def given(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments as the loops take them: flattened arrays as arrays of rows."""
        if not self.rows:
            return arguments
        return {**arguments, **{name: as_rows(arguments[name], shape) for name, shape in self.rows.items()}}

    def run(self, arguments: Mapping[str, Any], session: Session) -> Any:
        """Run it in a session: arrays change in place, the function's result is returned."""
        arguments = self.given(arguments)
        if not self.local.specs:
            return session.run(self.program, arguments)
        return self._run_with_local_arrays(arguments, session)

    def _run_with_local_arrays(self, arguments: Mapping[str, Any], session: Session) -> Any:
        from orion.runtime.local_arrays import resolved

        own = self.local.take()
        try:
            return resolved(session.run(self.program, {**arguments, **own}), own)
        finally:
            self.local.give_back(own)


def _is_dense(value: Any) -> bool:
    return isinstance(value, np.ndarray | DenseArray)


def _memory(value: Any) -> NDArray[np.generic]:
    return value.storage if isinstance(value, DenseArray) else value


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The source, and what it takes from outside: while that stays the same, the source and what is known of it do."""

    function: Function
    outside: Outside
    kinds: dict[tuple[object, ...], Known]

    def is_current(self) -> bool:
        """Whether all that it takes from outside is still the same."""
        return self.outside.is_current()


@dataclass(frozen=True, slots=True)
class _Last:
    """What the last call was given, and what was prepared for it."""

    prepared: Prepared
    recent: Recent
    parsed: _Parsed
    session: tuple[int, bool]

    def is_for(self, parsed: _Parsed | None, arguments: Mapping[str, Any], session: tuple[int, bool]) -> bool:
        """Whether it is for a call with these arguments, too."""
        return (
            self.session == session
            and self.parsed is parsed
            and self.recent.are_like(arguments)
            and parsed.is_current()
        )


class Preparation:
    """The stages of one decorated function, each result kept. `caches` are those of this machine, if not given."""

    def __init__(self, function: FunctionType, options: Options, caches: Caches | None = None) -> None:
        self._source = function
        self._options = options
        self._caches = caches
        self._parsed: _Parsed | None = None
        self._last: _Last | None = None
        self._prepared: OrderedDict[tuple[object, ...], Prepared] = OrderedDict()

    def typed(self, types: Types) -> Typed:
        """Parse, resolve views, infer types, split into loops, and analyse them."""
        return self._as_written(self._known(self._current(), types).at(types, {}, {}), types)

    def typed_for(self, types: Types, shapes: Shapes, integers: Mapping[str, Any]) -> tuple[Typed, Shapes]:
        """What is known of the function, and the shapes as it takes them: with flattened arrays as arrays of rows where
        they are such (`orion.passes.delinearize`), at these sizes or, where some are not given, at all."""
        known = self._known(self._current(), types).at(types, shapes, integers)
        return self._typed_for(known, types, shapes, integers)

    def _typed_for(
        self, known: Known, types: Types, shapes: Shapes, integers: Mapping[str, Any]
    ) -> tuple[Typed, Shapes]:
        typed, shapes = self._in_rows(known, types, shapes, integers)
        return (self._in_turn(known, typed, shapes, integers) if typed.guarded else typed), shapes

    def _in_turn(self, known: Known, typed: Typed, shapes: Shapes, integers: Mapping[str, Any]) -> Typed:
        """What is known of the function where it combines only those scalars that it may at these sizes."""
        key = typed, tuple(shapes.items()), tuple([integers.get(name) for name in typed.parameters])
        if key not in known.at_sizes:
            if len(known.at_sizes) >= MAX_SIZES:
                known.at_sizes.clear()
            names = typed.in_turn(shapes, integers)
            if names and (typed, names) not in known.in_turn:
                source = known.function if typed is known.typed or known.flat is None else known.flat
                types = typed.given
                known.in_turn[typed, names] = self._analyse(replace(source, in_turn=names), types)
            known.at_sizes[key] = known.in_turn[typed, names] if names else typed
            known.integers = tuple(sorted({*known.integers, *typed.parameters}))
        return known.at_sizes[key]

    def _in_rows(self, known: Known, types: Types, shapes: Shapes, given: Mapping[str, Any]) -> tuple[Typed, Shapes]:
        if known.flat is None:
            return self._as_written(known, types), shapes
        if known.typed_flat is None:
            flat, row_types = known.flat, with_row_types(types, known.flat.rows)
            known.typed_flat = aside(lambda: self._analyse(flat, row_types))
            widths = {width.name for one in known.flat.rows for width in one.widths if isinstance(width, Var)}
            known.integers = tuple(sorted(widths.union(known.integers, known.typed_flat.parameters)))
        key = tuple(shapes.items()), tuple([given.get(name) for name in known.integers])
        if key not in known.in_rows:
            if len(known.in_rows) >= MAX_SIZES:
                known.in_rows.clear()
            known.in_rows[key] = shapes_in_rows(known.flat, known.typed_flat, shapes, given)
        found = known.in_rows[key]
        return (self._as_written(known, types), shapes) if found is None else (known.typed_flat, found)

    def _as_written(self, known: Known, types: Types) -> Typed:
        if known.typed is None:
            known.typed = aside(lambda: self._analyse(known.function, types))
        return known.typed

    def _current(self) -> _Parsed:
        """The source as it is, read again where something that it takes from outside has changed."""
        parsed = self._parsed
        if parsed is None or not parsed.is_current():
            parsed = self._parsed = _Parsed(*parse_with_outside(self._source), {})
        return parsed

    def _known(self, parsed: _Parsed, types: Types) -> Known:
        key = tuple(types.items())
        found = parsed.kinds.get(key)
        if found is None:
            function = resolve_views(parsed.function, types)
            at_call = integers_at_call(function, types)
            integers = at_call.integers if at_call is not None and at_call.is_narrow else ()
            steps, rows = names_in_steps(function), with_rows(function, types)
            found = Known(function, rows, integers=integers, at_call=at_call, steps=steps)
            parsed.kinds[key] = found
        return found

    def _analyse(self, function: Function, types: Types) -> Typed:
        given, caches = types, self._caches or caches_here()
        found = analyse_function(function, types, self._options.ordered, caches)
        function, types, typing = found.function, found.types, found.typing
        analysed = with_fusable_loops(found.analysed, types)
        every = tuple(variants(analysed))
        checks = {id(variant.program): _checks(variant, types) for variant in every}
        used = {name for found in checks.values() for check in found for one in check.checks for name in one.names}
        used |= {name for variant in every for loop in variant.loops for name in loop.parameters}
        made = tuple(dict.fromkeys(one for variant in every for one in variant.program.function.made))
        used |= names_in_lengths(made)
        integers = [
            name for name, kind in types.items() if isinstance(kind, ScalarType) and np.dtype(kind.dtype).kind in "iu"
        ]
        changed = assigned_places(function.body)  # those have other values than the arguments when their loop begins
        parameters = tuple(name for name in integers if name in used and name not in changed)
        written = frozenset(use.array for loop in every[-1].loops for use in loop.uses if use.is_written)
        guarded = guarded_by(function, typing, _combined(every) - function.in_turn)
        return Typed(given, types, function, typing, analysed, checks, written, parameters, caches, made, guarded)

    def plan(self, arguments: Mapping[str, Any], workers: int, force_parallel: bool) -> Plan:
        """The plan for these arguments; nothing is compiled and nothing runs."""
        types, shapes = argument_types(arguments)
        typed, shapes = self.typed_for(types, shapes, arguments)
        return aside(lambda: make_plan(typed, arguments, shapes, workers, force_parallel))

    def prepare(self, arguments: Mapping[str, Any], workers: int, force_parallel: bool) -> Prepared:
        """Everything up to compiled kernels for these arguments. Raises `OutOfBoundsError` where a subscript is sure to
        leave its array, `AliasError` where arrays overlap."""
        from orion.runtime.alias import check_aliases

        last = self._last
        if last is not None and last.is_for(self._parsed, arguments, (workers, force_parallel)):
            return last.prepared
        types, shapes = argument_types(arguments)
        parsed = self._current()  # another thread may read the source again meanwhile
        known = self._known(parsed, types).at(types, shapes, arguments)
        found = self._found(known, types, shapes, arguments, workers, force_parallel)
        check_aliases({name: _memory(value) for name, value in arguments.items() if _is_dense(value)}, found.written)
        like = recent(arguments, {*found.integers, *known.integers, *(known.at_call.integers if known.at_call else ())})
        self._last = _Last(found, like, parsed, (workers, force_parallel)) if like else None
        return found

    def _found(
        self, known: Known, types: Types, shapes: Shapes, arguments: Mapping[str, Any], workers: int, force: bool
    ) -> Prepared:
        typed, shapes = self._typed_for(known, types, shapes, arguments)
        key = (
            typed, tuple(shapes.items()), tuple([arguments[name] for name in typed.parameters]),
            tuple([Identity(arguments[name]) for name, kind in types.items() if isinstance(kind, SparseType)]),
            workers, force,
        )  # fmt: skip
        found = self._prepared.get(key)
        last = next(reversed(self._prepared.values()), None)
        if last is not None and last is not found:
            last.local.forget()
        if found is None:
            found = aside(lambda: self._make(typed, arguments, shapes, workers, force))
            self._prepared[key] = found
            if len(self._prepared) > KEPT:
                self._prepared.popitem(last=False)
        with suppress(KeyError):  # another thread may have needed the room
            self._prepared.move_to_end(key)
        return found

    def kernel_source(self, arguments: Mapping[str, Any], workers: int, force_parallel: bool) -> str:
        """The generated kernels, one after the other."""
        types, shapes = argument_types(arguments)
        typed, shapes = self.typed_for(types, shapes, arguments)
        plan = make_plan(typed, arguments, shapes, workers, force_parallel)
        executed = self._executed(typed, plan)
        return "\n\n".join(kernel.text for kernel in self._kernels(typed, plan, executed))

    def _make(
        self, typed: Typed, arguments: Mapping[str, Any], shapes: Shapes, workers: int, force_parallel: bool
    ) -> Prepared:
        from orion.runtime.local_arrays import LocalArrays
        from orion.runtime.prepared import PreparedLoop, PreparedProgram

        plan = make_plan(typed, arguments, shapes, workers, force_parallel)
        check_lengths(reached(typed.function, plan.sizes), typed.typing, plan.sizes.shapes, typed.function.source)
        executed = self._executed(typed, plan)
        kernels = self._kernels(typed, plan, executed)
        loops = tuple(
            PreparedLoop(loop, plan.proved_schedule(loop), kernel)
            for loop, kernel in zip(executed.loops, kernels, strict=True)
        )
        serial = tuple(loop.nest.span for loop in plan.loops if not loop.is_parallel)
        if not serial and not plan.is_parallel:
            serial = (typed.function.span,)
        local = LocalArrays(local_specs(plan))
        rows = {one.array: shapes[one.array] for one in typed.function.rows}
        program = PreparedProgram(executed.program, loops)
        return Prepared(plan, program, typed.written, serial, rows, local, typed.parameters)

    def _executed(self, typed: Typed, plan: Plan) -> FunctionPlan:
        """The plan that a call runs by, with the bodies of all its loops, which are made once for each program."""
        found = plan.function
        if found.separate is not None:  # a program made for these sizes
            return plan_with_bodies(found, with_all_bodies(found.program, found.outlined, typed.types))
        key = id(found.program)
        if key not in typed.bodies:
            typed.bodies[key] = with_all_bodies(found.program, found.outlined, typed.types)
        return plan_with_bodies(found, typed.bodies[key])

    def _kernels(self, typed: Typed, plan: Plan, executed: FunctionPlan) -> list[KernelSource]:
        from orion.kernel.emit.kernel import emit_kernel

        shapes = plan.sizes.shapes
        values = parameter_values(shapes, plan.sizes.integers)
        kernels = []
        typing = with_names(typed.typing, executed.program.variables, executed.program.tests)
        every = checks_of(typed, plan.function)
        for loop, checks in zip(executed.loops, every, strict=True):
            source = loop.origin.nest if loop.origin else loop.nest
            proved: frozenset[Place] = prove_bounds(checks, values, source)
            fastmath, integers = self._options.fastmath, {**plan.sizes.named, **plan.sizes.integers}
            kernels.append(emit_kernel(loop, typed.types, shapes, typing, fastmath, proved, integers))
        return kernels


def checks_of(typed: Typed, plan: FunctionPlan) -> Iterator[BoundsChecks]:
    """The bounds checks of the loops of a plan: of neighbours that are run as one, those of all."""
    found = iter(typed.checks[id(plan.separate or plan.program)])
    return (all_checks(islice(found, max(1, len(loop.members)))) for loop in plan.loops)


def _checks(analysed: AnalysedProgram, types: Types) -> tuple[BoundsChecks, ...]:
    """The bounds checks of all loops; a loop in another order has those of the loop as written."""
    return tuple(
        loop.origin.checks if loop.origin else bounds_checks(analysed.program, number, types, loop.model)
        for number, loop in enumerate(analysed.loops)
    )


def _combined(every: Iterable[AnalysedProgram]) -> set[str]:
    """The scalars that some loop combines from its iterations by conditions."""
    roles = [loop.analysis.scalars for variant in every for loop in variant.loops]
    conditions = {one.name for role in roles for one in role.reductions if one.op in ("and", "or")}
    return conditions | {name for role in roles for choice in role.choices for name in choice.names}


def make_plan(typed: Typed, arguments: Mapping[str, Any], shapes: Shapes, workers: int, force_parallel: bool) -> Plan:
    """The plan for arguments of known types."""
    arrays = {name: value for name, value in arguments.items() if isinstance(value, SparseArray)}
    integers = {name: index_value(name, arguments[name]) for name in typed.parameters}
    counts = {name: len(array) for name, array in arrays.items()}
    sizes = typed.all_sizes(Sizes(shapes, integers, counts, workers, force_parallel, caches=typed.caches))
    return Plan(plan_program(typed.analysed, typed.types, sizes), sizes, arrays)


def local_specs(plan: Plan) -> tuple[LocalSpec, ...]:
    """What a function makes when it runs by a plan."""
    from orion.runtime.local_arrays import LocalSpec

    made = plan.function.program.function.made
    shapes = plan.sizes.shapes
    return tuple(LocalSpec(one.name, shapes[one.name], one.dtype, one.is_returned, one.is_zero) for one in made)
