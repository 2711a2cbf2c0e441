"""The two functions of a generated module: `tile`, which runs the iterations of one tile, and `walk`, which runs
the tiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from orion.ir.assigned import assigned_places
from orion.ir.nodes import Var
from orion.kernel.calling import RESULTS, Argument, Site, neutral
from orion.kernel.emit.code import number, numpy_name
from orion.kernel.emit.facts import LoopFacts
from orion.kernel.emit.flush import Flushes
from orion.kernel.emit.names import SUMS, VECTORS, Names
from orion.kernel.emit.places import begin_places, place_marks
from orion.kernel.emit.private import PrivateRows
from orion.kernel.emit.pulls import Pulls
from orion.kernel.emit.ranges import emit_ranges
from orion.kernel.emit.statements import Statements
from orion.kernel.emit.stop_bounds import Bracket
from orion.kernel.emit.stops import InMemory, TileNames, with_stops
from orion.kernel.emit.writer import Writer
from orion.kernel.rows.rows import RowPlace

PREFETCH_DISTANCE = 8
"""How many elements ahead rows are asked for: 4 to 16 measure the same."""


@dataclass(slots=True)
class LoopText:
    """The source of the two functions, what their arguments are called, and the subscripts that are checked; and the
    places of the arguments that `receive` takes."""

    writer: Writer
    sites: tuple[Site, ...]
    receives: tuple[int, ...]


def argument_names(arguments: tuple[Argument, ...], names: Names) -> dict[Argument, str]:
    """What each argument is called in the generated source."""
    found: dict[Argument, str] = {}
    for argument in arguments:
        match argument.kind:
            case "key" | "value" | "place":
                found[argument] = names.fresh(f"{argument.name}_{argument.kind}{argument.position}")
            case "order":
                found[argument] = names.fresh("order")
            case "listed" | "marks" | "posted" | "posted marks":
                found[argument] = names.fresh(f"{argument.name}_{argument.kind.replace(' ', '_')}")
            case "clocks" | "locks" | "notes":
                found[argument] = names.fresh(argument.kind)
            case "partial" | "chosen" | "carried" | "copies" | "ended":
                found[argument] = names.fresh(f"{argument.name}_{argument.kind}")
            case _:
                found[argument] = names.user(argument.name)
    return found


def emit_functions(facts: LoopFacts, arguments: tuple[Argument, ...], names: Names, private: PrivateRows) -> LoopText:
    """The source of `tile` and `walk`. Raises RowsSpilledError where a private row cannot be where it is meant to
    be."""
    called = argument_names(arguments, names)
    body = Writer(depth=1)
    emitter = Statements(facts, names, body, private)
    emitter.marks = place_marks(facts, names, called)
    emitter.ended = next((f"{text} = 1" for argument, text in called.items() if argument.kind == "ended"), "")
    leave = _returned(arguments, names, called) or "return"
    emitter.flushes = Flushes(facts, names, called, leave) if facts.relaxed else None
    emitter.pulls = Pulls(facts, names, called, leave) if facts.nest.replicas else None
    late = emitter.flushes or emitter.pulls  # no loop has both
    tile = names.fresh("t")
    if facts.nest.elements is None:
        order = next((text for argument, text in called.items() if argument.kind == "order"), "")
        limits = emit_ranges(facts, names, emitter, tile, order)
    else:
        limits = _emit_elements(facts, names, emitter, called, tile)
    own = _own_arrays(facts, names, tile, limits)
    limits |= late.limits(tile) if late else {}
    passed = ["control", *(called[a] for a in arguments if a.kind not in (*RESULTS, "copies"))]
    function = Writer()
    function.add(f"def tile({', '.join([*limits, *passed])}):")
    function.extend(own)
    function.extend(_prologue(facts, names, emitter, called))
    function.extend(begin_places(names, called))
    if late:
        function.extend(late.begin())
        body.extend(late.end())
    function.extend(body)
    function.extend(_epilogue(arguments, names, called))
    writer = late.function() if late else Writer()
    writer.add("@tile_function")
    writer.lines += with_stops(function.lines, _tile_names(facts, names, emitter), leave, names.fresh)
    writer.add("")
    writer.add("")
    copies = {names.user(a.name): f"{text}[{facts.block}]" for a, text in called.items() if a.kind == "copies"}
    given = [copies.get(name, name).format(tile=tile) for name in passed]
    done = late.after_tile(tile) if late else Writer()
    _emit_walk(writer, facts, called, tile, [*limits.values(), *given], done)
    received = emitter.flushes.received() if emitter.flushes else []
    places = tuple([*called.values()].index(name) for name in received)
    return LoopText(writer, tuple(emitter.sites), places)


# ------------------------------------------------------------ before and after the iterations


def _prologue(facts: LoopFacts, names: Names, emitter: Statements, called: dict[Argument, str]) -> Writer:
    """Scalars converted once, reductions at their identity, carried scalars at the values that they have."""
    writer = Writer(depth=1)
    for (name, dtype), text in emitter.conversions.items():
        writer.add(f"{text} = {dtype}({names.user(name)})")
    for buffer in facts.nest.buffers:
        dtype = numpy_name(facts.typing.name(buffer.name).dtype)
        writer.add(f"{names.user(buffer.name)} = np.empty({buffer.length}, np.{dtype})")
    for name in sorted(emitter.buffers):
        kind = facts.typing.name(name)
        length = kind.lengths[0]
        assert length is not None
        extent, dtype = emitter.operand(length, "int64").text, numpy_name(kind.dtype)
        writer.add(f"{names.user(name)} = np.empty({extent}, np.{dtype})")
    for argument, text in called.items():
        if argument.kind == "partial":
            none = neutral(argument.op, argument.dtype) if argument.neutral is None else argument.neutral
            start = number(none, argument.dtype)
            writer.add(f"{names.user(argument.name)} = {start.text}")
        if argument.kind == "carried":
            writer.add(f"{names.user(argument.name)} = {text}[0]")
    return writer


def _own_arrays(facts: LoopFacts, names: Names, tile: str, limits: dict[str, str]) -> Writer:
    """The private arrays of every tile but the last, which has the arrays themselves: it has the last iteration.
    Whether a tile is the last one is added to `limits`."""
    writer = Writer(depth=1)
    if facts.private_arrays:
        is_last = names.fresh("is_last")
        limits[is_last] = f"{tile} == len(boxes) - 1"
        with writer.block(f"if not {is_last}:"):
            for name in facts.private_arrays:
                writer.add(f"{names.user(name)} = np.empty_like({names.user(name)})")
    return writer


def _epilogue(arguments: tuple[Argument, ...], names: Names, called: dict[Argument, str]) -> Writer:
    writer = Writer(depth=1)
    for argument in arguments:
        if argument.kind == "carried":
            writer.add(f"{called[argument]}[0] = {names.user(argument.name)}")
    returned = _returned(arguments, names, called)
    if returned:
        writer.add(returned)
    return writer


def _returned(arguments: tuple[Argument, ...], names: Names, called: dict[Argument, str]) -> str:
    """The statement that returns the results of a tile; nothing where it has none."""
    kept = [argument for argument in arguments if argument.kind in RESULTS]
    own = ("place", "ended")
    results = [called[argument] if argument.kind in own else names.user(argument.name) for argument in kept]
    return f"return {', '.join(results)}" if results else ""


def _tile_names(facts: LoopFacts, names: Names, emitter: Statements) -> TileNames:
    """What the names in the text of a tile stand for."""
    arrays: dict[str, InMemory] = {}
    numbers: dict[str, Bracket] = {
        names.user(name): value for name, value in facts.integers.items() if names.knows(name)
    }
    for name in sorted(facts.names_used()):
        kind, shape = facts.typing.names.get(name), facts.shapes.get(name)
        if kind is not None and kind.rank > 0 and name not in emitter.registers:
            arrays[names.user(name)] = InMemory(kind.rank, None if shape is None else prod(shape))
        for axis, extent in enumerate(shape or ()):
            numbers[f"{names.user(name)}.shape[{axis}]"] = extent, extent
    return TileNames(arrays, frozenset((*SUMS, *VECTORS)), numbers)


# ------------------------------------------------------------ iterations over elements


def _emit_elements(
    facts: LoopFacts, names: Names, emitter: Statements, called: dict[Argument, str], tile: str
) -> dict[str, str]:
    """Emit the loop; the limits that the tile function takes, each with what the walk passes for tile `tile`."""
    elements = facts.nest.elements
    assert elements is not None
    position = names.fresh("e")
    writer = emitter.writer
    inner = Writer(depth=2)
    emitter.writer = inner
    emitter.begin_iteration()
    emitter.values = {
        argument.position: (f"{text}[uint64({position})]", argument.dtype)
        for argument, text in called.items()
        if argument.kind == "value"
    }
    for argument, text in called.items():
        if argument.kind == "key":
            inner.add(f"{names.user(elements.keys[argument.position])} = int64({text}[uint64({position})])")
        elif argument.kind == "value":
            inner.add(f"{names.user(elements.values[argument.position])} = {text}[uint64({position})]")
    emitter.block(facts.nest.body)
    emitter.writer = writer
    writer.span = facts.nest.span
    writer.add(f"for {position} in range(first, last):")
    writer.extend(_prefetches(facts, names, emitter, called, position))
    if not inner.lines:
        inner.add("pass")
    writer.extend(inner)
    return {"first": f"offsets[{tile}]", "last": f"offsets[{tile} + 1]"}


def _prefetches(
    facts: LoopFacts, names: Names, emitter: Statements, called: dict[Argument, str], position: str
) -> Writer:
    """Requests for the rows that the elements a little further on will use."""
    writer = Writer(depth=2)
    keys = _constant_keys(facts, called)
    places = [place for place in emitter.touched if _key_of(place) in keys]
    if not places:
        return writer
    ahead = names.fresh("ahead")
    with writer.block(f"if {position} + {PREFETCH_DISTANCE} < last:"):
        writer.add(f"{ahead} = uint64({position} + {PREFETCH_DISTANCE})")
        for place in places:
            start = f"int64({keys[_key_of(place)]}[{ahead}]) * {facts.stride(place.array)}"
            writer.add(f"prefetch_row({names.user(place.array)}, {start}, {place.length})")
    return writer


def _key_of(place: RowPlace) -> str:
    match place.index:
        case (Var(name),):
            return name
        case _:
            return ""


def _constant_keys(facts: LoopFacts, called: dict[Argument, str]) -> dict[str, str]:
    """The keys that the body does not assign, each with the array that it is taken from."""
    elements = facts.nest.elements
    assert elements is not None
    changed = assigned_places(facts.nest.body)
    keys = {elements.keys[a.position]: text for a, text in called.items() if a.kind == "key"}
    return {name: text for name, text in keys.items() if name not in changed}


# ------------------------------------------------------------ the walk


def _emit_walk(
    writer: Writer, facts: LoopFacts, called: dict[Argument, str], tile: str, passed: list[str], done: Writer
) -> None:
    """`done` is what follows each tile."""
    extents = "boxes" if facts.nest.elements is None else "offsets"
    leading = ["tiles", "round", extents, "wait_offsets", "waits", "lags", "done", "control"]
    results = [f"{text}[{tile}]" for argument, text in called.items() if argument.kind in RESULTS]
    call = f"tile({', '.join(passed)})"
    ended = next((f"{text}[{tile}]" for argument, text in called.items() if argument.kind == "ended"), "")
    writer.span = None
    writer.add("@walk_function")
    if facts.takes_tiles:
        taking = f"{', '.join(results)} = {call}" if results else call
        _emit_taking_walk(writer, [*leading, *called.values()], tile, taking)
        return
    with writer.block(f"def walk({', '.join([*leading, *called.values()])}):"), writer.block(f"for {tile} in tiles:"):
        with writer.block(f"if not is_ready({tile}, round, wait_offsets, waits, lags, done, control):"):
            writer.add("end_raising(has_raised(control))")
            writer.add("return")
        if ended:
            with writer.block(f"if is_after_end({tile}, round, control):"):
                writer.add(f"{ended} = 0")
                writer.add(f"finish({tile}, round, done)")
                writer.add("continue")
        writer.add(f"{', '.join(results)} = {call}" if results else call)
        with writer.block("if is_left(control):"):
            writer.add("end_raising(has_raised(control))")
            writer.add("return")
        if ended:
            with writer.block(f"if {ended} == 1:"):
                writer.add(f"tell_end({tile}, round, control)")
        writer.extend(done)
        writer.add(f"finish({tile}, round, done)")


def _emit_taking_walk(writer: Writer, arguments: list[str], tile: str, call: str) -> None:
    """The walk of a loop whose workers take tiles one by one, those of other workers too."""
    flags = "round, wait_offsets, waits, lags, done, control"
    with writer.block(f"def walk({', '.join(arguments)}):"):
        writer.add(f"{tile}, own, other, patience = 0, 0, 0, PATIENCE")
        with writer.block("while True:"):
            writer.add(f"{tile}, own, other, patience = take(tiles, own, other, patience, {flags})")
            with writer.block(f"if {tile} < 0:"):
                writer.add("end_raising(has_raised(control))")
                writer.add("return")
            writer.add(call)
            with writer.block("if is_left(control):"):
                writer.add("end_raising(has_raised(control))")
                writer.add("return")
            writer.add(f"finish({tile}, round, done)")
