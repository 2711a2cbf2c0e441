"""Everything that stands between a call and its run, made once and kept: parsed, analysed, planned, scheduled,
compiled.

Each level is kept by what it depends on: types; then shapes, the integers that subscripts and bounds use, and
workers; then the sparse arrays themselves, whose elements decide where blocks are cut.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.again import Again, again_for
from orion.arrays.buffer import Buffer
from orion.arrays.compressed import part_of
from orion.arrays.dense import DenseArray
from orion.arrays.foreign import owner_of
from orion.arrays.replica import Replicated
from orion.aside import aside
from orion.cost.caches import Caches, caches_here
from orion.cost.sizes import Asked, Shown
from orion.dataclass import dataclass, replace
from orion.dependence.inspection import NOT_INSPECTED, InspectedLoops
from orion.errors import AliasError, ArgumentError, UnsupportedLoopError
from orion.frontend.accumulators import NO_ACCUMULATORS, AccumulatorOf
from orion.frontend.buffers import NO_BUFFERS, LateOf
from orion.frontend.locate import NO_LINES, FileLines, Located
from orion.frontend.matrices import Matrix
from orion.frontend.outside import Outside, Version
from orion.frontend.parse import NO_MATRICES, parse_with_outside
from orion.frontend.scope import outer_names
from orion.inspecting import Inspections, watched_loops
from orion.ir.cures import Used
from orion.ir.foreign_cures import with_copies
from orion.ir.function import BufferPart, Function, in_users_words
from orion.ir.nodes import Var
from orion.ir.recent import Identity, Recent, recent
from orion.ir.replicas import ReplicaPart
from orion.ir.signature import argument_types, read_only_refusal
from orion.ir.types import Shapes, SparseType, Types
from orion.kernel.calling import KernelSource
from orion.known import MAX_SIZES, Known, Typed, check_keys, check_sizes, shapes_in_rows
from orion.passes.argument_uses import use_of
from orion.passes.defaults import NO_DEFAULTS, Defaults, with_defaults
from orion.passes.delinearize import with_row_types, with_rows
from orion.passes.options import Words, words_in
from orion.passes.steps import names_in_steps
from orion.pipeline import (
    WITHOUT_WHERE_RELAXED,
    analyse,
    executed,
    kernels_of,
    left_out,
    local_specs,
    make_plan,
    through_passes,
)
from orion.plan.replicas import check_replicas
from orion.planned import Plan
from orion.prepared_call import Options, Prepared, in_rows, memory_of, rows_of, with_numbers
from orion.runtime.alias import check_aliases, check_sparse_aliases
from orion.runtime.local_arrays import LocalArrays
from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.runtime.session import Session, current_session
from orion.runtime.shown import Properties
from orion.typing.integers_at_call import integers_at_call
from orion.verify.scans import prove_scans

KEPT, KEPT_LARGE = 64, 8
"""How many prepared runs one function keeps, and how many of those that may take much memory; the least recently used
goes first."""


def _is_dense(value: Any) -> bool:
    return isinstance(value, np.ndarray | DenseArray)


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
class Call:
    """A call that is to be planned: its arguments, the function for arguments of their types and sizes, the session's
    workers, and what is shown of arrays."""

    arguments: Mapping[str, Any]
    types: Types
    shapes: Shapes
    parsed: _Parsed
    known: Known
    typed: Typed
    workers: int
    force_parallel: bool
    shown: Shown

    def key(self, inspected: InspectedLoops) -> tuple[Any, ...]:
        """What a prepared run depends on, with what inspections have found."""
        sparse = [Identity(self.arguments[name]) for name, kind in self.types.items() if isinstance(kind, SparseType)]
        integers = tuple([self.arguments[name] for name in self.typed.parameters])
        settings = self.workers, self.force_parallel, self.shown, inspected
        return self.typed, tuple(self.shapes.items()), integers, tuple(sparse), *settings


@dataclass(frozen=True, slots=True)
class _Last:
    """What the last call was given, and what was prepared for it, where of the properties `asked` of arrays those are
    shown that were; and what would be without inspections, `plain`."""

    prepared: Prepared
    plain: Prepared
    recent: Recent
    parsed: _Parsed
    session: tuple[int, bool]
    asked: Asked
    shown: Shown
    inspected: InspectedLoops

    def is_for(self, parsed: _Parsed | None, arguments: Mapping[str, Any], session: tuple[int, bool]) -> bool:
        """Whether it is for a call with these arguments, too."""
        return (
            self.session == session
            and self.parsed is parsed
            and self.recent.are_like(arguments)
            and parsed.is_current()
        )


class Preparation:
    """The stages of one decorated function, each result kept. `caches` are those of this machine, if not given, and
    `defaults` the numbers that calls leave to their defaults, `matrices` the arguments that are sparse matrices.
    `with_maps`: the calls have sparse arrays with maps of their keys as keys. `lines` are those of the file
    of the function as it was defined, if it is not to be read when a call needs it, `buffers` the arguments that are
    such, or replicas, and `accumulators` those."""

    def __init__(
        self,
        function: FunctionType,
        options: Options,
        caches: Caches | None = None,
        defaults: Defaults = NO_DEFAULTS,
        matrices: Mapping[str, Matrix] = NO_MATRICES,
        *,
        with_maps: bool = False,
        lines: FileLines = NO_LINES,
        buffers: tuple[LateOf, ...] = NO_BUFFERS,
        accumulators: tuple[AccumulatorOf, ...] = NO_ACCUMULATORS,
    ) -> None:
        self._source = function
        self._options = options
        self._caches = caches
        self._defaults = defaults
        self._matrices = matrices
        self._with_maps = with_maps
        self._lines = lines
        self._buffers = buffers
        self._accumulators = accumulators
        self.located: dict[FunctionType, Located] = {}
        """The source, where it was read already: parsing it writes into it, so that it is taken from here once."""
        self._parsed: _Parsed | None = None
        self._last: _Last | None = None
        self._properties = Properties()
        self._inspections = Inspections(self._properties, caches or caches_here())
        self._prepared: OrderedDict[tuple[object, ...], Prepared] = OrderedDict()

    def typed(self, types: Types) -> Typed:
        """Parse, resolve views, infer types, split into loops, and analyse them."""
        return self._as_written(self._known(self._current(), types, {}).at(types, {}, {}), types)

    def typed_for(
        self, types: Types, shapes: Shapes, integers: Mapping[str, Any], words: Words | None = None
    ) -> tuple[Typed, Shapes]:
        """What is known of the function, and the shapes as it takes them: with flattened arrays as arrays of rows where
        they are such (`orion.passes.delinearize`), at these sizes or, where some are not given, at all. `words` are the
        arguments that are strings or None, if not those of `integers`."""
        words = words_in(integers) if words is None else words
        known = self._known(self._current(), types, words).at(types, shapes, integers)
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
            names = typed.deciding(shapes, integers)
            if names and (typed, names) not in known.in_turn:
                source = known.function if typed is known.typed or known.flat is None else known.flat
                types = typed.given
                known.in_turn[typed, names] = self._analysed(replace(source, deciding=names), types)
            known.at_sizes[key] = known.in_turn[typed, names] if names else typed
            known.integers = tuple(sorted({*known.integers, *typed.parameters}))
        return known.at_sizes[key]

    def _in_rows(self, known: Known, types: Types, shapes: Shapes, given: Mapping[str, Any]) -> tuple[Typed, Shapes]:
        if known.flat is None:
            return self._as_written(known, types), shapes
        if known.typed_flat is None:
            flat, row_types = known.flat, with_row_types(types, known.flat.rows)
            known.typed_flat = aside(lambda: self._analysed(flat, row_types))
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
            known.typed = aside(lambda: self._analysed(known.function, types))
        return known.typed

    def _current(self) -> _Parsed:
        """The source as it is, read again where something that it takes from outside has changed."""
        parsed = self._parsed
        if parsed is None or not parsed.is_current():
            function, outside = parse_with_outside(
                self._source, self._matrices, with_maps=self._with_maps, lines=self._lines, buffers=self._buffers,
                accumulators=self._accumulators, located=self.located.pop(self._source, None),
            )  # fmt: skip
            function = with_defaults(function, self._defaults)
            without = left_out(os.environ.get("ORION_REWRITES", ""))
            without |= WITHOUT_WHERE_RELAXED if function.late or function.accumulated else frozenset()
            parsed = self._parsed = _Parsed(
                replace(function, without=without, reassociates=self._options.fastmath), outside, {}
            )
        return parsed

    def _known(self, parsed: _Parsed, types: Types, words: Words) -> Known:
        key = (*types.items(), *words.items())
        found = parsed.kinds.get(key)
        if found is None:
            function = through_passes(parsed.function, types, words)
            at_call = integers_at_call(function, types)
            integers = at_call.integers if at_call is not None and at_call.is_narrow else ()
            steps, rows = names_in_steps(function), with_rows(function, types)
            found = Known(function, rows, integers=integers, at_call=at_call, steps=steps)
            parsed.kinds[key] = found
        return found

    def _kinds(self, parsed: _Parsed, arguments: Mapping[str, Any]) -> tuple[Types, Shapes, Known]:
        """The types and shapes of the arguments of a call, and what is known of the function for such. Keys of sparse
        arrays whose elements it finds by them are looked at, which becomes a part of their types."""

        def uses(name: str) -> Used:
            return use_of(parsed.function, name)

        types, shapes = argument_types(arguments, uses)
        known = self._known(parsed, types, words_in(arguments))
        if known.function.by_key:
            check_keys((one.array for one in known.function.by_key), arguments)
            types, shapes = argument_types(arguments, uses)
            known = self._known(parsed, types, words_in(arguments))
        return types, shapes, known

    def _analysed(self, function: Function, types: Types) -> Typed:
        return analyse(function, types, self._options.ordered, self._caches or caches_here(), self._options.dynamic)

    def with_outside(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of the function, what it takes from matrices among them, and the arrays that it has from
        outside, as they are now."""
        function = self._current().function
        if self._defaults:
            constants = dict(function.constants)
            arguments = {name: value for name, value in arguments.items() if name not in constants}
        if function.parts:
            parts = {one.name: part_of(arguments[one.matrix], one.matrix, one.attribute) for one in function.parts}
            params = {*function.params}
            arguments = {name: value for name, value in arguments.items() if name in params} | parts
        if self._buffers:
            parts = {one.name: part_of_buffer(arguments, one) for one in function.buffer_parts}
            arguments = {name: value for name, value in arguments.items() if not is_late(value)} | parts
        if self._accumulators:
            arguments = with_numbers(arguments, function.accumulated)
        return {**arguments, **self.arrays_outside()} if function.outside else arguments

    @property
    def constants(self) -> frozenset[str]:
        """The parameters of the source that are constants, as calls leave them to their defaults."""
        return frozenset(self._defaults).difference(self._current().function.params)

    def arrays_outside(self) -> dict[str, NDArray[np.generic]]:
        """The arrays that the function has from outside. Where one is no array any more, it is read anew."""
        names = self._current().function.outside
        outer = outer_names(self._source)
        found = {name: outer.get(name) for name in names}
        if any(type(value) is not np.ndarray for value in found.values()):
            self._parsed = None
            return self.arrays_outside()
        return found  # type: ignore[return-value]

    def plan(
        self,
        arguments: Mapping[str, Any],
        workers: int,
        force_parallel: bool,
        dealt: Callable[[PreparedProgram], PreparedProgram] = lambda prepared: prepared,
        *,
        inspects: object = False,
    ) -> Plan:
        """Return the plan of a call; no loop runs. Raises what the call raises before it runs.

        With `inspects`, or `force_parallel`, the inspectors of loops run, compiled for that; otherwise the plan has
        what they have found in calls before. `dealt` says how the tiles of a program that was prepared before are dealt
        out now."""
        with self._in_users_words(arguments):
            call = self._call(self.with_outside(arguments), workers, force_parallel)
            plan, inspected = self._inspected_plan(call, looks=True if inspects or force_parallel else None)
        plan = replace(plan.for_shuffled(call.arguments), looked=bool(inspects or force_parallel))
        if any(loop.read_in_part for loop in plan.function.loops):
            given = in_rows(call.arguments, rows_of(call.typed.function, call.shapes))
            plan = replace(plan, reads=partial(self._inspections.reads, given))
        kept = self._prepared.get(call.key(inspected))
        return plan if kept is None else plan.dealt_as(loop.plan.deal for loop in dealt(kept.program).loops)

    def kernels(self, arguments: Mapping[str, Any], workers: int, force_parallel: bool) -> tuple[KernelSource, ...]:
        """Return the kernels generated for a call. Raises what the call raises before it runs."""
        with self._in_users_words(arguments):
            call = self._call(self.with_outside(arguments), workers, force_parallel)
            plan, _ = self._inspected_plan(call, looks=True if force_parallel else None)
        made = executed(call.typed, plan)
        return tuple(kernels_of(call.typed, plan, made, self._options.fastmath))

    def _inspected_plan(self, call: Call, *, looks: bool | None) -> tuple[Plan, InspectedLoops]:
        """Return the plan of a call, with what is known of loops that may be inspected; `looks` as `Inspections.of`."""
        plan = aside(lambda: self._plan(call))
        watched = watched_loops(plan.function, plan.sizes)
        given = in_rows(call.arguments, rows_of(call.typed.function, call.shapes))
        inspected = self._inspections.of(watched, plan.sizes, given, looks=looks)
        return (aside(lambda: self._plan(call, inspected)) if inspected else plan), inspected

    def prepare(self, arguments: Mapping[str, Any], workers: int, force_parallel: bool) -> Prepared:
        """Return everything up to compiled kernels for a call. Raises `OutOfBoundsError` where a subscript is sure to
        leave its array, `AliasError` where arrays overlap."""
        with self._in_users_words(arguments):
            return self._prepared_for(arguments, workers, force_parallel)

    @contextmanager
    def _in_users_words(self, arguments: Mapping[str, Any]) -> Iterator[None]:
        """Raise what is refused of the parts of a matrix, and of arrays of others, as what the user calls them."""
        try:
            yield
        except UnsupportedLoopError as error:
            name, owner = error.read_only, owner_of(arguments.get(error.read_only))
            if owner is None:
                raise
            error.__traceback__ = None  # its frames hold memory that the owner may be about to resize
            raise read_only_refusal(name, owner, use_of(self._current().function, name)) from None
        except (ArgumentError, AliasError) as error:
            owners = {name: owner for name, one in arguments.items() if (owner := owner_of(one)) is not None}
            error.args = (in_users_words(with_copies(str(error), owners), self._current().function),)
            raise

    def _prepared_for(self, arguments: Mapping[str, Any], workers: int, force_parallel: bool) -> Prepared:
        last, shown = self._last, None
        if last is not None and last.is_for(self._parsed, arguments, (workers, force_parallel)):
            shown = self._properties.of(last.asked, arguments)
        inspected: InspectedLoops | None = None
        if last is not None and last.shown == shown:
            inspected = self._inspected(last.plain, arguments, force_parallel)
            if inspected == last.inspected:
                return last.prepared
        call = self._call(arguments, workers, force_parallel, shown)
        plain = self._found(call)
        if inspected is None:  # else it is the same function, at the same sizes
            inspected = self._inspected(plain, arguments, force_parallel)
        found = self._found(call, inspected) if inspected else plain
        at_call = call.known.at_call.integers if call.known.at_call else ()
        like = recent(arguments, {*found.integers, *call.known.integers, *at_call})
        session, asked = (workers, force_parallel), call.typed.asked
        self._last = _Last(found, plain, like, call.parsed, session, asked, call.shown, inspected) if like else None
        return found

    def again(self, version: Version, session: Session, arguments: Mapping[str, Any]) -> Again | None:
        """What runs calls like the last one, which had these arguments; None where more than arrays and scalars is new
        in each. `version` is what the function is made of."""
        last = self._last
        if last is None or last.inspected or last.asked.properties or last.asked.contents:
            return None
        return again_for(last.prepared, last.recent, (version.is_current, last.parsed.is_current), session, arguments)

    def _call(
        self, arguments: Mapping[str, Any], workers: int, force_parallel: bool, shown: Shown | None = None
    ) -> Call:
        """Return what is known of a call before it is planned. Raises `AliasError` where arrays overlap."""
        parsed = self._current()  # another thread may read the source again meanwhile
        types, shapes, of_kinds = self._kinds(parsed, arguments)
        known = of_kinds.at(types, shapes, arguments)
        typed, shapes = self._typed_for(known, types, shapes, arguments)
        check_memory(parsed.function, typed, arguments)
        shown = shown or self._properties.of(typed.asked, arguments)
        return Call(arguments, types, shapes, parsed, known, typed, workers, force_parallel, shown)

    def _plan(self, call: Call, inspected: InspectedLoops = NOT_INSPECTED) -> Plan:
        """Return the plan of a call. Raises what the call is refused for once its sizes are known."""
        settings = call.workers, call.force_parallel, call.shown, inspected
        plan = make_plan(call.typed, call.arguments, call.shapes, *settings, dynamic=self._options.dynamic)
        check_sizes(call.typed, plan.sizes)
        check_replicas(plan.function)
        plan.check_bounds()
        return plan

    def _inspected(self, prepared: Prepared, arguments: Mapping[str, Any], force_parallel: bool) -> InspectedLoops:
        """What is known of loops that run as they are written, or in tiles that were found, in this call."""
        if not prepared.watched:
            return NOT_INSPECTED
        sizes = prepared.plan.sizes
        return self._inspections.of(prepared.watched, sizes, prepared.given(arguments), looks=force_parallel)

    def _found(self, call: Call, inspected: InspectedLoops = NOT_INSPECTED) -> Prepared:
        key = call.key(inspected)
        found = self._prepared.get(key)
        last = next(reversed(self._prepared.values()), None)
        if last is not None and last is not found:
            last.local.forget()
        if found is None:
            found = aside(lambda: self._make(call, inspected))
            self._prepared[key] = found
            self._forget()
        with suppress(KeyError):  # another thread may have needed the room
            self._prepared.move_to_end(key)
        return found

    def _forget(self) -> None:
        """Give up what was used least recently, where there is too much."""
        with suppress(KeyError, RuntimeError):  # another thread does so too
            large = [key for key, one in self._prepared.items() if one.is_large]
            for key in large[:-KEPT_LARGE]:
                del self._prepared[key]
            while len(self._prepared) > KEPT:
                self._prepared.popitem(last=False)

    def _make(self, call: Call, inspected: InspectedLoops) -> Prepared:
        typed, plan = call.typed, self._plan(call, inspected)
        made = executed(typed, plan)
        prove_scans(made.program.function, typed.typing_of(plan.function))
        kernels = kernels_of(typed, plan, made, self._options.fastmath)
        loops = tuple(
            PreparedLoop(loop, plan.proved_schedule(loop), kernel)
            for loop, kernel in zip(made.loops, kernels, strict=True)
        )
        local = LocalArrays(local_specs(plan))
        rows = rows_of(typed.function, call.shapes)
        announcing = partial(self._inspections.announcing, made, plan.sizes)
        program = PreparedProgram(made.program, loops, plan.sizes.known, announcing)
        watched = watched_loops(plan.function, plan.sizes)
        return Prepared(plan, program, typed.written, plan.parallelism.serial, rows, local, typed.parameters, watched)


def check_memory(function: Function, typed: Typed, arguments: Mapping[str, Any]) -> None:
    """AliasError where arguments overlap of which a loop writes one."""
    own = {name for one in function.late for name in one.own}
    said = {part.name: part.written for part in function.parts}
    dense = {said.get(k, k): memory_of(one) for k, one in arguments.items() if _is_dense(one) and k not in own}
    written = {said.get(name, name) for name in typed.written}
    check_aliases(dense, written, {one.name: one.written for one in function.buffer_parts})
    check_sparse_aliases(arguments, typed.written)


def is_late(value: object) -> bool:
    """Whether an argument is a buffer or a replica."""
    return isinstance(value, Buffer | Replicated)


def part_of_buffer(arguments: Mapping[str, Any], part: BufferPart | ReplicaPart) -> Any:
    """An array that a buffer or a replica among the arguments has; an array that is relaxed itself is its own."""
    given = arguments[part.buffer]
    if isinstance(part, ReplicaPart):
        given.begin(current_session().workers)
        return getattr(given, part.part)
    return (given.array, *given.helpers)[part.number] if isinstance(given, Buffer) else given
