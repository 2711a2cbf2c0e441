"""The function that applies a worker's updates of arrays with buffers, and what tiles do before and after they call it.

def flush(arrays…, locks, notes, control):
    for i in range(w.shape[0]):                     # all parts of the array, or those in the list
        lock(locks, i, control)
        update = w_late[i]
        if update != 0:
            w_late[i] = 0
            w[i] = apply(w[i], update)
        unlock(locks, i)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from orion.kernel.calling import APPLIED, LAST, LEFT, Argument
from orion.kernel.emit.facts import LoopFacts
from orion.kernel.emit.names import ROUND, Names
from orion.kernel.emit.writer import Writer
from orion.plan.relaxed import How, RelaxedArray

Called = Mapping[Argument, str]


def relaxed_arguments(facts: LoopFacts) -> list[Argument]:
    """The arguments that buffers need, beside arrays, and replicas do."""
    if not facts.nest.late:
        return []
    found = []
    for one in facts.relaxed.arrays:
        found += [Argument(kind, one.buffered.name, LISTS[kind], one.leading) for kind in lists_of(one)]
        found += _posted(one, facts)
    shared = [Argument(kind, "", "int64") for kind in ("clocks", "locks")]
    return [*found, *shared, Argument("notes", "", "int64")]


RUN = 64
"""So many neighbouring elements have a lock together where updates are added to single ones."""

LISTS = {"marks": "uint8", "listed": "int64"}
"""The arguments that say which parts of an array have updates, with their dtypes."""


def lists_of(one: RelaxedArray) -> tuple[str, ...]:
    """Those of an array: a list where not all parts are looked at, and marks where it has one, or has snapshots."""
    if one.how is How.LISTED:
        return ("marks", "listed")
    return ("marks",) if one.how is How.DENSE and one.buffered.snapshots else ()


def is_posted(one: RelaxedArray) -> bool:
    """Whether other nodes are told of updates themselves, as what these make of an array does not say them."""
    return one.is_collected and one.buffered.apply is not None


def _posted(one: RelaxedArray, facts: LoopFacts) -> Iterator[Argument]:
    """The arguments that updates are posted in, with the snapshots of the first of those that others do not know yet,
    and marks of elements that have such."""
    if not is_posted(one):
        return
    for name in (one.buffered.name, *one.buffered.snapshots):
        kind = facts.array(name)
        assert kind is not None
        yield Argument("posted", name, kind.dtype)
    if one.buffered.snapshots:
        yield Argument("posted marks", one.buffered.name, "uint8")


class Flushes:
    """What is generated for the buffers of one loop; `names` are those of its module."""

    def __init__(self, facts: LoopFacts, names: Names, called: Called) -> None:
        self._facts, self._names = facts, names
        self._flush, self._left = names.fresh("flush"), names.fresh("until_flush")
        self._listed = {
            (argument.kind, argument.name): text for argument, text in called.items() if argument.kind != "array"
        }
        self.is_last = names.fresh("is_last_tile")

    def limits(self, tile: str) -> dict[str, str]:
        """What tiles are given beside the arguments of the kernel, and what that is for tile `tile`."""
        return {self.is_last: self.is_last_tile(tile)} if self._facts.relaxed.deterministic else {}

    def is_last_tile(self, tile: str) -> str:
        """Whether a tile is the last of its worker."""
        return f"{tile} == {self._of('notes')}[{LAST}]"

    def _of(self, kind: str, name: str = "") -> str:
        return self._listed[kind, name]

    # ------------------------------------------------------------ in tiles

    def begin(self) -> Writer:
        """Before the iterations of a tile."""
        relaxed, writer = self._facts.relaxed, Writer(depth=1)
        if not relaxed.has_clocks:
            return writer
        if relaxed.deterministic:
            writer.add(f"{self._left} = left_of({self._of('notes')}, {ROUND}, {relaxed.every})")
            return writer
        bounds = f"{relaxed.every}, {relaxed.max_delay}"
        wait = f"begin_tile({self._of('clocks')}, {self._of('notes')}, {ROUND}, {bounds}, {self._facts.rests}"
        writer.add(f"{self._left} = {relaxed.every}")
        writer.leave_unless(f"{wait}, control)", "return")
        return writer

    def step(self, writer: Writer) -> None:
        """Before an iteration."""
        relaxed = self._facts.relaxed
        if not relaxed.has_clocks:
            return
        with writer.block(f"if {self._left} == 0:"):
            if relaxed.deterministic:
                self._apply_in_turn(writer)
            else:
                self._apply(writer, str(relaxed.every))
                bounds = f"{relaxed.every}, {relaxed.max_delay}, {self._facts.rests}"
                wait = f"may_begin({self._of('clocks')}, {self._of('notes')}, {bounds}"
                writer.leave_unless(f"{wait}, control)", "return")
            writer.add(f"{self._left} = {relaxed.every}")
        writer.add(f"{self._left} -= 1")

    def end(self) -> Writer:
        """After the iterations of a tile. In a fixed order updates are applied after the same iterations whatever tiles
        there are, and after the last one."""
        writer = Writer(depth=1)
        if not self._facts.relaxed.has_clocks:
            return writer
        if self._facts.relaxed.deterministic:
            writer.add(f"{self._of('notes')}[{LEFT}] = {self._left}")
            with writer.block(f"if {self.is_last}:"):
                self._apply_in_turn(writer)
                writer.add(self.done())
            return writer
        self._apply(writer, f"{self._facts.relaxed.every} - {self._left}")
        if self._facts.rests:
            writer.add(f"is_in_no_tile({self._of('clocks')}, {self._of('notes')}, {ROUND})")
        return writer

    def after_tile(self, tile: str) -> Writer:
        """What follows a tile that is not left: nothing where the last tile has it."""
        writer = Writer(depth=1)
        if not self._facts.relaxed.deterministic:
            with writer.block(f"if {self.is_last_tile(tile)} and not is_left(control):"):
                writer.add(self.done())
        return writer

    def done(self) -> str:
        """What tells the others not to wait any more in this round."""
        return f"has_done_all({self._of('clocks')}, {self._of('notes')}, {ROUND})"

    def _apply(self, writer: Writer, iterations: str) -> None:
        if self._facts.relaxed.has_delays:
            writer.leave_unless(f"{self._flush}({', '.join(self._passed())}, control)", "return")
        noted = f"{iterations}, {self._facts.relaxed.max_delay}"
        writer.add(f"has_applied({self._of('clocks')}, {self._of('notes')}, {noted})")

    def _apply_in_turn(self, writer: Writer) -> None:
        clocks = f"{self._of('clocks')}, {self._of('notes')}, control"
        calls = f"my_turn({clocks})", f"{self._flush}({', '.join(self._passed())}, control)", f"turn_is_over({clocks})"
        for called in calls:
            writer.leave_unless(called, "return")

    def _passed(self) -> list[str]:
        arrays = dict.fromkeys(self._names.user(name) for one in self._collected() for name in one.buffered.names)
        lists = [self._of(kind, one.buffered.name) for one in self._collected() for kind in lists_of(one)]
        posted = [self._of(one.kind, one.name) for of in self._collected() for one in _posted(of, self._facts)]
        return [*arrays, *lists, *posted, self._of("locks"), self._of("notes")]

    def received(self) -> list[str]:
        """What `receive` is passed; nothing where there is no such function."""
        return self._passed() if any(map(is_posted, self._facts.relaxed.arrays)) else []

    def _collected(self) -> list[RelaxedArray]:
        return [one for one in self._facts.relaxed.arrays if one.is_collected]

    # ------------------------------------------------------------ updates

    def noted(self, name: str) -> list[RelaxedArray]:
        """The array with this buffer, where it is noted which parts of it are used."""
        return [one for one in self._collected() if one.buffered.name == name and lists_of(one)]

    def note(self, writer: Writer, one: RelaxedArray, parts: list[str]) -> None:
        """Note that the part with these subscripts has an update, or is about to be read; where it is the first such
        use, its snapshots are taken."""
        buffered, lists = one.buffered, [self._of(kind, one.buffered.name) for kind in lists_of(one)]
        place = self._part(self._names.user(buffered.array), [f"int64({part})" for part in parts])
        called = f"note_{'part' if one.how is How.DENSE else 'in_list'}({', '.join(lists)}, {place})"
        if not buffered.snapshots:
            writer.add(called)
            return
        at = ", ".join(parts)
        with writer.block(f"if {called}:"):
            for name, of in zip(buffered.snapshots, buffered.snapshot_of, strict=True):
                writer.add(f"{self._names.user(name)}[{at}] = {self._names.user(buffered.helpers[of])}[{at}]")

    # ------------------------------------------------------------ updates that are applied at once

    def is_at_once(self, name: str) -> bool:
        """Whether updates of an array with this buffer are applied at once."""
        return any(one.buffered.name == name for one in self._at_once())

    def add_at_once(self, writer: Writer, name: str, index: str, update: str) -> None:
        """Add an update to the element with these subscripts."""
        number, one = next(
            (number, one) for number, one in enumerate(self._facts.relaxed.arrays) if one.buffered.name == name
        )
        array = self._names.user(one.buffered.array)
        new = self._names.fresh("update")
        writer.add(f"{new} = {update}")
        if np.dtype(self._dtype(one)).kind == "f":
            with writer.block(f"if {new} != {new}:"):
                writer.add(f"tell_not_a_number({number}, -1, control)")
                writer.add("return")
        writer.add(f"add_at({array}, ({index},), {new})")

    def _at_once(self) -> list[RelaxedArray]:
        return [one for one in self._facts.relaxed.arrays if one.how is How.AT_ONCE]

    def _dtype(self, one: RelaxedArray) -> str:
        kind = self._facts.array(one.buffered.array)
        assert kind is not None
        return kind.dtype

    # ------------------------------------------------------------ the function

    def function(self) -> Writer:
        """The function that applies a worker's updates."""
        writer = Writer()
        if not self._facts.relaxed.has_delays:
            return writer
        writer.add("@part_function")
        with writer.block(f"def {self._flush}({', '.join([*self._passed(), 'control'])}):"):
            for number, one in enumerate(self._facts.relaxed.arrays):
                if one.how is How.DENSE and one.buffered.apply is None and one.leading == self._rank(one):
                    self._add_runs(writer, number, one)
                elif one.is_collected:
                    self._flush_array(writer, number, one)
            writer.add("return True")
        writer.add("")
        writer.add("")
        if self.received():
            passed = ", ".join([*self.received(), "control"])
            writer.add("@walk_function")
            with writer.block(f"def receive({passed}):"):
                writer.add(f"return {self._flush}({passed})")
            writer.add("")
            writer.add("")
        return writer

    def _flush_array(self, writer: Writer, number: int, one: RelaxedArray) -> None:
        array = self._names.user(one.buffered.array)
        leading = max(1, one.leading)
        indices = [self._names.fresh(f"at_{axis}") for axis in range(self._rank(one))]
        depth = writer.depth
        part = self._names.fresh("part")
        if one.how is How.DENSE:
            for axis in range(leading):
                writer.add(f"for {indices[axis]} in range({self._extent(one, axis)}):")
                writer.depth += 1
            if leading == len(indices):  # a look before the lock: most have no update
                writer.add(f"if {self._pending(one, indices)} != 0:")
                writer.depth += 1
            writer.add(f"{part} = {self._part(array, indices[:leading])}")
        else:
            marks, listed = (self._of(kind, one.buffered.name) for kind in LISTS)
            k = self._names.fresh("k")
            writer.add(f"for {k} in range(1, {listed}[0] + 1):")
            writer.depth += 1
            writer.add(f"{part} = {listed}[{k}]")
            writer.add(f"{marks}[{part}] = 0")
            rest = part
            for axis in range(leading - 1, 0, -1):
                writer.add(f"{indices[axis]} = {rest} % {array}.shape[{axis}]")
                rest = f"{rest} // {array}.shape[{axis}]"
            writer.add(f"{indices[0]} = {rest}")
        writer.leave_unless(f"lock({self._of('locks')}, {part}, control)")
        inner = writer.depth
        for axis in range(leading, len(indices)):
            writer.add(f"for {indices[axis]} in range({self._extent(one, axis)}):")
            writer.depth += 1
        self._flush_element(writer, number, one, indices, part)
        writer.depth = inner
        writer.add(f"unlock({self._of('locks')}, {part})")
        writer.depth = depth
        if one.how is How.LISTED:
            writer.add(f"{self._of('listed', one.buffered.name)}[0] = 0")
        elif one.buffered.snapshots:
            writer.add(f"{self._of('marks', one.buffered.name)}[:] = 0")

    def _add_runs(self, writer: Writer, number: int, one: RelaxedArray) -> None:
        """Add single elements' updates, all elements being looked at. A run of neighbours has a lock together, and what
        is done to it has no branches, so that it takes vectors."""
        depth, indices = writer.depth, [self._names.fresh(f"at_{axis}") for axis in range(one.leading)]
        array, late = self._names.user(one.buffered.array), self._pending(one, indices)
        first, end, count, part = (self._names.fresh(wish) for wish in ("first", "end", "count", "part"))
        for axis, index in enumerate(indices[:-1]):
            writer.add(f"for {index} in range({self._extent(one, axis)}):")
            writer.depth += 1
        extent = self._extent(one, one.leading - 1)
        with writer.block(f"for {first} in range(0, {extent}, {RUN}):"):
            writer.add(f"{end} = min({first} + {RUN}, {extent})")
            writer.add(f"{count} = 0")
            with writer.block(f"for {indices[-1]} in range({first}, {end}):"):
                writer.add(f"{count} += {late} != 0")
            with writer.block(f"if {count}:"):
                self._tell_of_run(writer, number, one, indices, (first, end))
                rows = f"({self._part(array, indices[:-1])})" if len(indices) > 1 else "0"
                writer.add(f"{part} = {rows} * (({extent} + {RUN - 1}) // {RUN}) + {first} // {RUN}")
                writer.leave_unless(f"lock({self._of('locks')}, {part}, control)")
                with writer.block(f"for {indices[-1]} in range({first}, {end}):"):
                    at = f"{array}[{', '.join(f'uint64({index})' for index in indices)}]"
                    writer.add(f"{at} = {at} + {late} if {late} != 0 else {at}")
                    writer.add(f"{late} = 0")
                writer.add(f"unlock({self._of('locks')}, {part})")
                writer.add(f"{self._of('notes')}[{APPLIED}] += {count}")
        writer.depth = depth

    def _tell_of_run(
        self, writer: Writer, number: int, one: RelaxedArray, indices: list[str], run: tuple[str, str]
    ) -> None:
        """Leave where an update of a run is not a number, before any of them is added."""
        if np.dtype(self._dtype(one)).kind != "f":
            return
        late, wrong = self._pending(one, indices), self._names.fresh("wrong")
        writer.add(f"{wrong} = 0")
        with writer.block(f"for {indices[-1]} in range({', '.join(run)}):"):
            writer.add(f"{wrong} += {late} != {late}")
        where = f"for {indices[-1]} in range({', '.join(run)}):", f"if {late} != {late}:"
        with writer.block(f"if {wrong}:"), writer.block(where[0]), writer.block(where[1]):
            place = self._part(self._names.user(one.buffered.array), indices)
            writer.add(f"tell_not_a_number({number}, {place}, control)")
            writer.add("return False")

    def _flush_element(self, writer: Writer, number: int, one: RelaxedArray, indices: list[str], part: str) -> None:
        buffered, at = one.buffered, ", ".join(f"uint64({index})" for index in indices)
        update = self._names.fresh("update")
        writer.add(f"{update} = {self._pending(one, indices)}")
        if np.dtype(self._dtype(one)).kind == "f":
            with writer.block(f"if {update} != {update}:"):
                place = self._part(self._names.user(buffered.array), indices)
                writer.add(f"tell_not_a_number({number}, {place}, control)")
                writer.add(f"unlock({self._of('locks')}, {part})")
                writer.add("return False")
        with writer.block(f"if {update} != 0:"):
            writer.add(f"{self._pending(one, indices)} = 0")
            writer.add(f"{self._of('notes')}[{APPLIED}] += 1")
            targets = [f"{self._names.user(name)}[{at}]" for name in (buffered.array, *buffered.helpers)]
            if buffered.apply is None:
                writer.add(f"{targets[0]} += {update}")
                return
            self._post(writer, one, indices, update)
            snapshots = [f"{self._names.user(name)}[{at}]" for name in buffered.snapshots]
            given = ", ".join([targets[0], update, *targets[1:], *snapshots])
            changed = ", ".join(targets[: buffered.results])
            writer.add(f"{changed} = {self._names.user(buffered.apply)}({given})")

    def _post(self, writer: Writer, one: RelaxedArray, indices: list[str], update: str) -> None:
        """Note an update for other nodes, where there are such."""
        buffered = one.buffered
        posted, at = self._of("posted", buffered.name), ", ".join(f"uint64({index})" for index in indices)
        number = self._names.fresh("number")
        with writer.block(f"if len({posted}):"):
            writer.add(f"{number} = {self._number(one, indices)}")
            if buffered.snapshots:
                marks = self._of("posted marks", buffered.name)
                with writer.block(f"if {marks}[{number}] == 0:"):
                    writer.add(f"{marks}[{number}] = 1")
                    for name in buffered.snapshots:
                        writer.add(f"{self._of('posted', name)}[{number}] = {self._names.user(name)}[{at}]")
            writer.add(f"{posted}[{number}] += {update}")

    def _pending(self, one: RelaxedArray, indices: list[str]) -> str:
        return f"{self._names.user(one.buffered.name)}[{', '.join(f'uint64({index})' for index in indices)}]"

    def _part(self, array: str, indices: list[str]) -> str:
        place = indices[0]
        for axis, index in enumerate(indices[1:], 1):
            place = f"({place}) * {array}.shape[{axis}] + {index}"
        return place

    def _number(self, one: RelaxedArray, indices: list[str]) -> str:
        """The number of an element; rows that are padded have as many as their array says."""
        place = indices[0]
        for axis, index in enumerate(indices[1:], 1):
            place = f"({place}) * {self._extent(one, axis)} + {index}"
        return place

    def _extent(self, one: RelaxedArray, axis: int) -> str:
        """How many elements there are along an axis; rows may be padded."""
        name = one.buffered.array
        if axis and axis == self._rank(one) - 1 and self._facts.is_padded(name):
            return str(self._facts.shapes[name][-1])
        return f"{self._names.user(name)}.shape[{axis}]"

    def _rank(self, one: RelaxedArray) -> int:
        kind = self._facts.array(one.buffered.array)
        assert kind is not None
        return kind.ndim
