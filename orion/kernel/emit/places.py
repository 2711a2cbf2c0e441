"""The places that scalars are taken from: which iteration set them last (`orion.dependence.choices`)."""

from __future__ import annotations

from math import nan

from orion.kernel.calling import ANEW, NOWHERE, Argument
from orion.kernel.emit.arguments import place_of
from orion.kernel.emit.code import number
from orion.kernel.emit.facts import LoopFacts
from orion.kernel.emit.names import Names
from orion.kernel.emit.writer import Writer


def place_marks(facts: LoopFacts, names: Names, called: dict[Argument, str]) -> dict[str, str]:
    """For the first name of each choice the statement that notes the iteration that is running as its place."""
    values = []
    for name, direction in place_of(facts.nest):
        values.append(f"{'-' if direction < 0 else ''}{names.user(name)}" if name else "0")
    places: dict[str, list[str]] = {}
    anew: dict[str, str] = {}
    for argument, text in called.items():
        if argument.kind == "place" and argument.op == ANEW:
            anew[argument.name] = text
        elif argument.kind == "place":
            places.setdefault(argument.name, []).append(text)
    found = {}
    for name, texts in places.items():
        own = names.user(name)
        flag = [(anew[name], f"1 if {own} != {own} else {anew[name]}")] if name in anew else []
        pairs = [*zip(texts, values, strict=True), *flag]
        found[name] = f"{', '.join(place for place, _ in pairs)} = {', '.join(value for _, value in pairs)}"
    return found


def begin_places(names: Names, called: dict[Argument, str]) -> Writer:
    """No iteration of the tile has set anything yet. What begins anew after a NaN takes the first value, whatever it
    is."""
    writer = Writer(depth=1)
    dtypes = {argument.name: argument.dtype for argument in called if argument.kind == "chosen"}
    for argument, text in called.items():
        if argument.kind == "place" and argument.op == ANEW:
            writer.add(f"{text} = 0")
            writer.add(f"{names.user(argument.name)} = {number(nan, dtypes[argument.name]).text}")
        elif argument.kind == "place":
            writer.add(f"{text} = {NOWHERE}")
        elif argument.kind == "ended":
            writer.add(f"{text} = 0")
    return writer
