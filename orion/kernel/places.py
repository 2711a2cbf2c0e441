"""The places that scalars are taken from: which iteration set them last (`orion.dependence.choices`)."""

from __future__ import annotations

from orion.kernel.arguments import place_of
from orion.kernel.calling import NOWHERE, Argument
from orion.kernel.facts import LoopFacts
from orion.kernel.names import Names
from orion.kernel.writer import Writer


def place_marks(facts: LoopFacts, names: Names, called: dict[Argument, str]) -> dict[str, str]:
    """For the first name of each choice the statement that notes the iteration that is running as its place."""
    values = []
    for name, direction in place_of(facts.nest):
        values.append(f"{'-' if direction < 0 else ''}{names.user(name)}" if name else "0")
    places: dict[str, list[str]] = {}
    for argument, text in called.items():
        if argument.kind == "place":
            places.setdefault(argument.name, []).append(text)
    return {name: f"{', '.join(texts)} = {', '.join(values)}" for name, texts in places.items()}


def begin_places(called: dict[Argument, str]) -> Writer:
    """No iteration of the tile has set anything yet."""
    writer = Writer(depth=1)
    for argument, text in called.items():
        if argument.kind == "place":
            writer.add(f"{text} = {NOWHERE}")
    return writer
