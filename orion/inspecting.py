"""Runs the inspectors of loops, and keeps what they have found until the arrays that subscripts are read from change.

To look costs many runs of the loop, and a process that has never done so compiles for it. So a call looks that finds
these arrays as calls before have left them, if these have taken so long that as much again may be hoped to be gained;
where they are others each time, as minibatches are, nobody looks.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from orion.aside import aside
from orion.cost.caches import Caches
from orion.cost.extents import evaluated
from orion.cost.sizes import Sizes
from orion.cost.worth import ITEM_BYTES, barriers_of, chained_ns
from orion.dataclass import dataclass, field, replace
from orion.dependence.inspection import (
    OUTSIDE,
    SWITCH,
    Inspectable,
    InspectedLoops,
    Inspection,
    extent_argument,
)
from orion.errors import OrionError
from orion.ir.printer import print_function
from orion.ir.signature import argument_types
from orion.known import Typed
from orion.pipeline import REWRITES, analyse, executed, kernels_of, make_plan
from orion.plan.plan import FunctionPlan, Inspected, LoopPlan, NotInspected
from orion.runtime.notice import said_if_slow
from orion.runtime.shown import Properties, memory_of
from orion.sets.affine import has_unit_step
from orion.sets.names import isl_name

if TYPE_CHECKING:
    from orion.kernel.inspector.inspect import Costs
    from orion.kernel.inspector.on_disk import InspectionFile
    from orion.runtime.prepared import Announcing, PreparedProgram
    from orion.schedule.footprints import Footprint
    from orion.schedule.schedule import Schedule

KEPT = 4
"""How many inspections one function keeps; the least recently used goes first."""

NEAR_NS, FAR_NS, MEMORY_NS, LINE_NS, LINE = 0.3, 1.5, 8.0, 2.0, 64
"""What an access takes that does not go on where the one before it was: in the second-level cache, in the third, which
is taken to have 16 times as much, and in memory; and each further line of a row."""

CHECK_NS = 0.08
"""What it takes to compare a byte of an array with a copy: 2.3 ms were measured of 32 MB, a Zen 4."""

LOOK_AFTER_NS = 1e8
"""How long calls with the same contents are predicted to have run before one looks. Half of that may be gained by two
workers in as many calls again, which is what looking at a million accesses takes."""

PATIENCE = 8
"""After so many calls with other contents each time nobody looks whether they are still the same."""

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Watched:
    """A loop that is inspected, or may be. How often a call runs it, and how long that takes, are predicted, as far as
    they can be."""

    loop: LoopPlan
    inspectable: Inspectable
    rounds: float
    call_ns: float


@dataclass(slots=True)
class _Seen:
    """The contents that a loop's arrays of subscripts had in the last calls, with the time that these are predicted to
    have taken, and in how many calls one after the other they were others. `costly` is an inspection that gains too
    little, for sizes: nobody looks for changes then."""

    ran: dict[Key, float] = field(default_factory=dict)
    changes: int = 0
    costly: tuple[Key, Inspection] | None = None

    def note(self, key: Key, nanoseconds: float) -> None:
        """That a call runs the loop with these contents."""
        self.changes = 0 if key in self.ran else self.changes + 1
        ran = self.ran.pop(key, 0.0) + nanoseconds  # the last one is the one of the last call
        self.ran = {**dict([*self.ran.items()][1 - PATIENCE :]), key: ran}


@dataclass(slots=True)
class Inspections:
    """What was found of the loops of one function."""

    properties: Properties
    caches: Caches
    found: OrderedDict[Key, Inspection | None] = field(default_factory=OrderedDict)
    programs: dict[Key, Typed] = field(default_factory=dict)
    seen: dict[Inspectable, _Seen] = field(default_factory=dict)

    def of(
        self, loops: Sequence[Watched], sizes: Sizes, arguments: Mapping[str, Any], *, looks: bool | None
    ) -> InspectedLoops:
        """What is known of loops that may be inspected, for these arguments. `looks`: they are inspected where nothing
        is known of them, or (False) where calls with the same contents have run for long, or (None) not at all: then
        what calls before have found is taken, or what is on disk."""
        found = []
        for watched in loops:
            one = self._of(watched, sizes, arguments, looks)
            if one is not None:
                found.append((watched.inspectable, one))
        return tuple(found)

    def _of(
        self, watched: Watched, sizes: Sizes, arguments: Mapping[str, Any], looks: bool | None
    ) -> Inspection | None:
        inspectable = watched.inspectable
        seen = self.seen.setdefault(inspectable, _Seen())
        if seen.changes > PATIENCE and not looks:
            return None
        frozen = tuple(self.properties.is_frozen(arguments[name]) for name in inspectable.reads)
        of_sizes = (*self._sizes(inspectable, sizes, arguments), *frozen)
        if seen.costly is not None and seen.costly[0] == of_sizes and not looks:
            return seen.costly[1]
        key = self._key(inspectable, sizes, arguments)
        with suppress(KeyError):  # another thread may have needed the room
            known = self.found[key]
            seen.changes = 0
            self.found.move_to_end(key)
            return known
        ran = seen.ran.get(key)
        only_on_disk = not looks and ran is None
        if not looks and (looks is None or ran is None or ran < LOOK_AFTER_NS):
            if looks is not None:
                seen.note(key, watched.call_ns)
            if not (only_on_disk and os.environ.get(SWITCH)):
                return None
        read = {name: self.properties.snapshot(arguments[name]) for name in inspectable.reads}
        if self._key(inspectable, sizes, arguments) != key:
            return None  # another thread has just changed them
        with said_if_slow(watched.loop.nest.function.name):
            found = aside(lambda: self._inspect(watched, sizes, {**arguments, **read}, only_on_disk=only_on_disk))
        if found is None and only_on_disk:
            return None
        seen.changes = 0
        self.found[key] = found
        with suppress(KeyError):
            while len(self.found) > KEPT:
                self.found.popitem(last=False)
        seen.costly = (of_sizes, found) if found is not None and not (found.pays or sizes.force_parallel) else None
        return found

    def _key(self, inspectable: Inspectable, sizes: Sizes, arguments: Mapping[str, Any]) -> Key:
        versions = (self.properties.version(arguments[name]) for name in inspectable.reads)
        return (*self._sizes(inspectable, sizes, arguments), *versions)

    def _sizes(self, inspectable: Inspectable, sizes: Sizes, arguments: Mapping[str, Any]) -> Key:
        extents = _extents(sizes)
        lengths = tuple(extents[name] for name in inspectable.function.params if name in extents)
        shapes = tuple(sizes.shapes[name] for name in (*inspectable.reads, *inspectable.arrays))
        integers = tuple(arguments[name] for name in inspectable.integers)
        return (inspectable, lengths, shapes, integers, sizes.workers)

    def _inspect(
        self, watched: Watched, sizes: Sizes, arguments: Mapping[str, Any], *, only_on_disk: bool
    ) -> Inspection | None:
        """The inspection of a loop, perhaps one that is on disk; None where there is none, or one of its subscripts
        leaves its array: the loop then says so as it is written."""
        from orion.kernel.inspector.inspect import Listed, inspected
        from orion.runtime.listing import TooManyError, listed

        inspectable = watched.inspectable
        space = watched.loop.nest.ranges[0]
        start, stop, step = (evaluated(bound, sizes.known) for bound in (space.start, space.stop, space.step))
        if start is None or stop is None or not step:
            return None
        count = len(range(start, stop, step))
        first = start if has_unit_step(space) else 0  # the coordinate of the first iteration
        costs = self._costs(watched, sizes, arguments, first)
        file = self._file(watched, sizes, arguments, costs, count)
        found = None if file is None else file.load()
        if found is not None or only_on_disk:
            return found
        try:
            given = {**_extents(sizes), **arguments}
            program = self._program(inspectable, given, count)
            ends, places, spent = listed(inspectable, program, given, count, sizes.workers)
        except TooManyError:
            return None
        except (OrionError, ArithmeticError):
            return None  # a condition that nobody knows before the loop runs may keep it from going there
        if places.min(initial=0) == OUTSIDE:
            return None
        found = inspected(Listed(ends, places, spent, costs), sizes.workers)
        if file is not None:
            file.save(found)
        return found

    def _costs(self, watched: Watched, sizes: Sizes, arguments: Mapping[str, Any], first: int) -> Costs:
        """What is known of a loop before it is inspected."""
        from orion.kernel.inspector.inspect import Costs

        loop, inspectable = watched.loop, watched.inspectable
        extents = zip(inspectable.arrays, inspectable.keyed, strict=True)
        elements = sum(prod(sizes.shapes[name][axis] for axis in axes) for name, axes in extents)
        return Costs(
            elements=elements,
            first=first,
            ordered=loop.ordered,
            in_pieces=inspectable.in_pieces,
            iteration_ns=chained_ns(loop.nest.loops[0].body, {**sizes.known, **_integers(arguments)}, sizes.shapes),
            far_ns=self._far_ns(inspectable, elements, sizes),
            check_ns=self._check_ns(inspectable, arguments) / watched.rounds,
            rounds=watched.rounds,
        )

    def _file(
        self, watched: Watched, sizes: Sizes, arguments: Mapping[str, Any], costs: Costs, count: int
    ) -> InspectionFile | None:
        """Where the inspection is kept on disk, if that is asked for."""
        if not os.environ.get(SWITCH):
            return None
        from orion.kernel.inspector.on_disk import file_of

        inspectable = watched.inspectable
        function = inspectable.function
        arrays = {name: memory_of(arguments[name]) for name in inspectable.reads}
        numbers = self._sizes(inspectable, sizes, arguments)[1:]
        parts = (print_function(function), function.constants, inspectable.arrays, inspectable.keyed, numbers, costs)
        return file_of(parts, arrays, count, costs.first, sizes.workers)

    def _far_ns(self, inspectable: Inspectable, elements: int, sizes: Sizes) -> float:
        """What it takes to get at an element, or a row of them, that is not near those before."""
        total: int = sum(ITEM_BYTES * prod(sizes.shapes[name]) for name in inspectable.arrays)
        if total <= self.caches.second:
            return NEAR_NS
        far = FAR_NS if total <= 16 * self.caches.second else MEMORY_NS
        return far + LINE_NS * (total // max(1, elements) // LINE)

    def _check_ns(self, inspectable: Inspectable, arguments: Mapping[str, Any]) -> float:
        """What it takes to find out that no array that decides has changed."""
        arrays = [arguments[name] for name in inspectable.reads]
        return CHECK_NS * sum(int(one.nbytes) for one in arrays if not self.properties.is_frozen(one))

    def announcing(self, plan: FunctionPlan, sizes: Sizes, arguments: Mapping[str, Any]) -> tuple[Announcing, ...]:
        """The programs that list what nodes are to fetch, of all loops."""
        from orion.runtime.prepared import Announcing

        found = []
        for number, loop in enumerate(plan.loops):
            for one in (*loop.served, *loop.read_in_part):
                lists, extents = one.announcer.lists, _extents(sizes)
                needed = {name: length for name, length in extents.items() if name in lists.function.params}
                program = self._program(lists, {**extents, **arguments}, one.count)
                found.append(Announcing(number, one, program, needed))
        return tuple(found)

    def reads(
        self, arguments: Mapping[str, Any], plan: FunctionPlan, schedules: Sequence[Schedule], nodes: Sequence[str]
    ) -> Mapping[int, tuple[Footprint, ...]]:
        """What tiles of all loops read of arrays of which that is listed, by what these arguments hold now. Worker w is
        on node `nodes[w]`."""
        from orion.runtime.ray.announced import reads_of

        return reads_of(self.announcing(plan, plan.sizes, arguments), schedules, nodes, arguments)

    def _program(self, inspectable: Inspectable, arguments: Mapping[str, Any], count: int) -> PreparedProgram:
        """What lists the accesses of so many iterations: one for all parts of them, as what is known of its range must
        hold in each."""
        from orion.runtime.listing import given_part
        from orion.runtime.prepared import PreparedLoop, PreparedProgram

        none = np.empty(0, np.int64)
        given = given_part(inspectable, arguments, slice(0, count), none, none)
        types, shapes = argument_types(given)
        key = (inspectable, *types.items())
        if key not in self.programs:
            function = replace(inspectable.function, without=frozenset(one.name for one in REWRITES))
            self.programs[key] = analyse(function, types, True, self.caches)
        typed = self.programs[key]
        plan = make_plan(typed, given, shapes, 1, False)
        made = executed(typed, plan)
        kernels = zip(made.loops, kernels_of(typed, plan, made, False), strict=True)
        loops = tuple(PreparedLoop(loop, plan.proved_schedule(loop), kernel) for loop, kernel in kernels)
        return PreparedProgram(made.program, loops, plan.sizes.known)


def _extents(sizes: Sizes) -> dict[str, int]:
    """The lengths of all arrays, by what inspectors call them."""
    return {
        extent_argument(name, axis): length for name, shape in sizes.shapes.items() for axis, length in enumerate(shape)
    }


def _integers(arguments: Mapping[str, Any]) -> dict[str, int]:
    """The values of arguments that are integers, by their names in isl."""
    numbers = {name: value for name, value in arguments.items() if isinstance(value, int | np.integer)}
    return {isl_name(name): int(value) for name, value in numbers.items()}


def inspectable_of(loop: LoopPlan) -> Inspectable | None:
    """The inspector of a loop that runs by what it finds, or may; None for any other."""
    return loop.tiles.inspectable if isinstance(loop.tiles, NotInspected | Inspected) else None


def watched_loops(plan: FunctionPlan, sizes: Sizes) -> tuple[Watched, ...]:
    """The loops that run otherwise for other contents of arrays of subscripts."""
    found = []
    for number, loop in enumerate(plan.loops):
        inspectable = inspectable_of(loop)
        if inspectable is not None:
            rounds = max(1.0, barriers_of(plan.program, range(number, number + 1), sizes.values, 0))
            each = chained_ns(loop.nest.body, sizes.known, sizes.shapes)
            found.append(Watched(loop, inspectable, rounds, rounds * (loop.iterations or 0) * each))
    return tuple(found)
