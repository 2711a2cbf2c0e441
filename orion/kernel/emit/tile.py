"""The function of a generated module, `tile`, which runs the iterations of one tile."""

from __future__ import annotations

from math import prod

from orion.dataclass import dataclass
from orion.ir.assigned import assigned_places
from orion.ir.nodes import Var
from orion.kernel.calling import RESULTS, Argument, Site, neutral
from orion.kernel.emit.code import number, numpy_name
from orion.kernel.emit.facts import LoopFacts
from orion.kernel.emit.flush import Flushes
from orion.kernel.emit.names import ROUND, SUMS, VECTORS, Names
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
    """The source of the function, and the subscripts that are checked; and the places of the arguments that `receive`
    takes."""

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
            case "partial" | "chosen" | "carried" | "copies" | "ended" | "least" | "greatest":
                found[argument] = names.fresh(f"{argument.name}_{argument.kind}")
            case _:
                found[argument] = names.user(argument.name)
    return found


def emit_functions(facts: LoopFacts, arguments: tuple[Argument, ...], names: Names, private: PrivateRows) -> LoopText:
    """The source of `tile`. Raises RowsSpilledError where a private row cannot be where it is meant to be."""
    called = argument_names(arguments, names)
    body = Writer(depth=1)
    emitter = Statements(facts, names, body, private)
    emitter.marks = place_marks(facts, names, called)
    told = {(argument.kind, argument.name): text for argument, text in called.items()}
    looked_through = [name for kind, name in told if kind == "least"]
    emitter.extremes = {name: (told["least", name], told["greatest", name]) for name in looked_through}
    emitter.ended = next((f"{text} = 1" for argument, text in called.items() if argument.kind == "ended"), "")
    emitter.flushes = Flushes(facts, names, called) if facts.relaxed else None
    emitter.pulls = Pulls(facts, names, called) if facts.nest.replicas else None
    late = emitter.flushes or emitter.pulls  # no loop has both
    tile = names.fresh("t")
    if facts.nest.elements is None:
        order = next((text for argument, text in called.items() if argument.kind == "order"), "")
        limits = emit_ranges(facts, names, emitter, tile, order)
    else:
        limits = _emit_elements(facts, names, emitter, called, tile)
    own = _own_arrays(facts, names, tile, limits)
    limits |= late.limits(tile) if late else {}
    results = _results(arguments, names, called)
    given = [results[a][0] if a in results else text for a, text in called.items()]
    extents = "boxes" if facts.nest.elements is None else "offsets"
    function = Writer()
    function.add(f"def tile({', '.join([tile, ROUND, extents, 'control', *given])}):")
    function.extend(_at_once(called, results, tile))
    function.extend(_taken(facts, names, called, tile, limits))
    function.extend(own)
    function.extend(_prologue(facts, names, emitter, called))
    function.extend(begin_places(names, called))
    if late:
        function.extend(late.begin())
        body.extend(late.end())
    function.extend(body)
    function.extend(_epilogue(called, names, results, tile))
    if late:
        function.extend(late.after_tile(tile))
    writer = late.function() if late else Writer()
    writer.add("@tile_function")
    writer.lines += with_stops(function.lines, _tile_names(facts, names, emitter), names.fresh)
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


def _results(
    arguments: tuple[Argument, ...], names: Names, called: dict[Argument, str]
) -> dict[Argument, tuple[str, str]]:
    """What has one value per tile: the array of all tiles, and what a tile's own value is called in it."""
    found = {}
    for argument in arguments:
        if argument.kind in ("place", "ended"):
            found[argument] = names.fresh(f"{called[argument]}_of_tiles"), called[argument]
        elif argument.kind in RESULTS:
            found[argument] = called[argument], names.user(argument.name)
    return found


def _at_once(called: dict[Argument, str], results: dict[Argument, tuple[str, str]], tile: str) -> Writer:
    """A tile after one that has ended the loop does nothing."""
    writer = Writer(depth=1)
    for argument in called:
        if argument.kind == "ended":
            with writer.block(f"if is_after_end({tile}, {ROUND}, control):"):
                writer.add(f"{results[argument][0]}[{tile}] = 0")
                writer.add("return")
    return writer


def _taken(facts: LoopFacts, names: Names, called: dict[Argument, str], tile: str, limits: dict[str, str]) -> Writer:
    """What a tile takes of the arguments: its limits, and its block's copies of arrays."""
    writer = Writer(depth=1)
    for name, value in limits.items():
        writer.add(f"{name} = {value}")
    for argument, text in called.items():
        if argument.kind == "copies":
            writer.add(f"{names.user(argument.name)} = {text}[{facts.block.format(tile=tile)}]")
    return writer


def _epilogue(called: dict[Argument, str], names: Names, results: dict[Argument, tuple[str, str]], tile: str) -> Writer:
    """What a tile leaves: values that it carries on, and its results."""
    writer = Writer(depth=1)
    for argument, text in called.items():
        if argument.kind == "carried":
            writer.add(f"{text}[0] = {names.user(argument.name)}")
    for array, own in results.values():
        writer.add(f"{array}[{tile}] = {own}")
    for argument, (_, own) in results.items():
        if argument.kind == "ended":
            with writer.block(f"if {own} == 1:"):
                writer.add(f"tell_end({tile}, {ROUND}, control)")
    return writer


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
    """Emit the loop; the limits that the tile function takes, each with what it is for tile `tile`."""
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
