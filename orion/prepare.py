"""Everything that stands between a call and its run, made once and kept: parsed, analysed, planned, scheduled,
compiled.

Each level is kept by what it depends on: types; then shapes, the integers that subscripts and bounds use, and
workers; then the sparse arrays themselves, whose elements decide where blocks are cut.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dense import DenseArray
from orion.arrays.sparse import SparseArray
from orion.dependence.bounds import BoundsChecks, bounds_checks, prove_bounds
from orion.dependence.effects import assigned_names
from orion.loop.expression_types import with_names
from orion.loop.infer import Typing, infer_types
from orion.loop.ir import Function
from orion.loop.lengths import check_lengths
from orion.loop.parse import parse_function
from orion.loop.program import split_program
from orion.loop.signature import argument_types
from orion.loop.source import Span
from orion.loop.types import ScalarType, Shapes, SparseType, Types
from orion.loop.views import resolve_views
from orion.plan.analysed import AnalysedProgram, analyse_program
from orion.plan.bodies import Made, plan_with_bodies, with_all_bodies
from orion.plan.extents import parameter_values
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.plan.planner import plan_program
from orion.plan.sizes import Sizes
from orion.planned import Plan

if TYPE_CHECKING:
    from orion.kernel.calling import KernelSource
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
class Typed:
    """What is known of a function once the types of its arguments are. `checks` has those of all loops of a program, by
    the identity of the program: there is one in another order, and one as written."""

    types: Types
    function: Function
    typing: Typing
    analysed: AnalysedProgram
    checks: Mapping[int, tuple[BoundsChecks, ...]]
    written: frozenset[str]
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A function ready to run on arguments of one kind. `serial` are the loops of the source that are not parallel."""

    plan: Plan
    program: PreparedProgram
    written: frozenset[str]
    serial: tuple[LoopPlan, ...]

    def run(self, arguments: Mapping[str, Any], session: Session) -> Any:
        """Run it in a session: arrays change in place, the function's result is returned."""
        from orion.runtime.alias import check_aliases

        check_aliases({name: _memory(value) for name, value in arguments.items() if _is_dense(value)}, self.written)
        return session.run(self.program, arguments)


def _is_dense(value: Any) -> bool:
    return isinstance(value, np.ndarray | DenseArray)


def _memory(value: Any) -> NDArray[np.generic]:
    return value.storage if isinstance(value, DenseArray) else value


class Preparation:
    """The stages of one decorated function, each result kept."""

    def __init__(self, function: FunctionType, options: Options) -> None:
        self._source = function
        self._options = options
        self._parsed: Function | None = None
        self._typed: dict[tuple[object, ...], Typed] = {}
        self._prepared: OrderedDict[tuple[object, ...], Prepared] = OrderedDict()
        self._made: dict[int, Made] = {}  # by the identities of programs in `_typed`

    def typed(self, types: Types) -> Typed:
        """Parse, resolve views, infer types, split into loops, and analyse them."""
        key = tuple(types.items())
        found = self._typed.get(key)
        if found is None:
            found = self._typed[key] = self._analyse(types)
        return found

    def _analyse(self, types: Types) -> Typed:
        if self._parsed is None:
            self._parsed = parse_function(self._source)
        function = resolve_views(self._parsed, types)
        typing = infer_types(function, types)
        analysed = analyse_program(split_program(function, types, self._options.ordered), types)
        variants = _variants(analysed)
        checks = {id(variant.program): _checks(variant, types) for variant in variants}
        used = {name for found in checks.values() for check in found for one in check.checks for name in one.names}
        used |= {name for variant in variants for loop in variant.loops for name in loop.parameters}
        integers = [
            name for name, kind in types.items() if isinstance(kind, ScalarType) and np.dtype(kind.dtype).kind in "iu"
        ]
        changed = assigned_names(function.body)  # those have other values than the arguments when their loop begins
        parameters = tuple(name for name in integers if name in used and name not in changed)
        written = frozenset(use.array for loop in variants[-1].loops for use in loop.uses if use.is_written)
        return Typed(types, function, typing, analysed, checks, written, parameters)

    def plan(self, arguments: Mapping[str, Any], workers: int, force_parallel: bool) -> Plan:
        """The plan for these arguments; nothing is compiled and nothing runs."""
        types, shapes = argument_types(arguments)
        typed = self.typed(types)
        return make_plan(typed, arguments, shapes, workers, force_parallel)

    def prepare(self, arguments: Mapping[str, Any], workers: int, force_parallel: bool) -> Prepared:
        """Everything up to compiled kernels for these arguments. Raises `OutOfBoundsError` where a subscript is sure to
        leave its array."""
        types, shapes = argument_types(arguments)
        typed = self.typed(types)
        key = (
            id(typed), tuple(shapes.items()), tuple([arguments[name] for name in typed.parameters]),
            tuple([_Identity(arguments[name]) for name, kind in types.items() if isinstance(kind, SparseType)]),
            workers, force_parallel,
        )  # fmt: skip
        found = self._prepared.get(key)
        if found is None:
            found = self._make(typed, arguments, shapes, workers, force_parallel)
            self._prepared[key] = found
            if len(self._prepared) > KEPT:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(key)
        return found

    def kernel_source(self, arguments: Mapping[str, Any], workers: int, force_parallel: bool) -> str:
        """The generated kernels, one after the other."""
        types, shapes = argument_types(arguments)
        typed = self.typed(types)
        plan = make_plan(typed, arguments, shapes, workers, force_parallel)
        executed = self._executed(typed, plan)
        return "\n\n".join(kernel.text for kernel in self._kernels(typed, plan, executed, shapes))

    def _make(
        self, typed: Typed, arguments: Mapping[str, Any], shapes: Shapes, workers: int, force_parallel: bool
    ) -> Prepared:
        from orion.runtime.prepared import PreparedLoop, PreparedProgram

        check_lengths(typed.function, typed.typing, shapes)
        plan = make_plan(typed, arguments, shapes, workers, force_parallel)
        executed = self._executed(typed, plan)
        kernels = self._kernels(typed, plan, executed, shapes)
        loops = tuple(
            PreparedLoop(loop, plan.proved_schedule(loop), kernel)
            for loop, kernel in zip(executed.loops, kernels, strict=True)
        )
        serial = tuple(loop for loop in plan.loops if not loop.is_parallel)
        return Prepared(plan, PreparedProgram(executed.program, loops), typed.written, serial)

    def _executed(self, typed: Typed, plan: Plan) -> FunctionPlan:
        """The plan that a call runs by, with the bodies of all its loops, which are made once for each program."""
        found = plan.function.executed
        key = id(found.program)
        if key not in self._made:
            outlined = next(one.outlined for one in _variants(typed.analysed) if one.program is found.program)
            self._made[key] = with_all_bodies(found.program, outlined, typed.types)
        return plan_with_bodies(found, self._made[key])

    def _kernels(self, typed: Typed, plan: Plan, executed: FunctionPlan, shapes: Shapes) -> list[KernelSource]:
        from orion.kernel.emit import emit_kernel

        values = parameter_values(shapes, plan.sizes.integers)
        kernels = []
        typing = with_names(typed.typing, executed.program.variables, executed.program.tests)
        for loop, checks in zip(executed.loops, typed.checks[id(plan.function.executed.program)], strict=True):
            source = loop.origin.nest if loop.origin else loop.nest
            proved: frozenset[Span] = prove_bounds(checks, values, source)
            kernels.append(
                emit_kernel(loop, typed.types, shapes, typing, fastmath=self._options.fastmath, proved=proved)
            )
        return kernels


def _variants(analysed: AnalysedProgram) -> list[AnalysedProgram]:
    """The program in another order, and as it is written."""
    found = [analysed]
    while (other := found[-1].as_written) is not None:
        found.append(other)
    return found


def _checks(analysed: AnalysedProgram, types: Types) -> tuple[BoundsChecks, ...]:
    """The bounds checks of all loops; a loop in another order has those of the loop as written."""
    return tuple(
        loop.origin.checks if loop.origin else bounds_checks(analysed.program, number, types, loop.model)
        for number, loop in enumerate(analysed.loops)
    )


class _Identity:
    """An object as part of a key: equal only to itself, and kept alive so that its identity is not taken by another."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def make_plan(
    typed: Typed, arguments: Mapping[str, Any], shapes: Shapes, workers: int, force_parallel: bool
) -> Plan:
    """The plan for arguments of known types."""
    arrays = {name: value for name, value in arguments.items() if isinstance(value, SparseArray)}
    integers = {name: int(arguments[name]) for name in typed.parameters}
    counts = {name: len(array) for name, array in arrays.items()}
    sizes = Sizes(shapes, integers, counts, workers, force_parallel)
    return Plan(plan_program(typed.analysed, typed.types, sizes), sizes, arrays)


