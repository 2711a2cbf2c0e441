"""What checkpoints hold of accumulators: the value as `acc`, or the numbers of a tuple, as `acc.0`, `acc.1`, …"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orion.arrays.accumulator import Accumulator
from orion.errors import ArgumentError, describe


def in_numbers(values: Mapping[str, object]) -> dict[str, object]:
    """Values with the numbers of accumulators in the place of these."""
    found: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Accumulator):
            found |= zip(names_of(name, value), value.parts(value.value), strict=True)
        else:
            found[name] = value
    return found


def names_of(name: str, accumulator: Accumulator) -> list[str]:
    """The names of its numbers in a file."""
    if not accumulator.is_tuple:
        return [name]
    return [f"{name}.{k}" for k in range(len(accumulator.numbers))]


def values_in(file: object, into: Mapping[str, object], found: Mapping[str, object]) -> dict[str, Any]:
    """The values that a file has of the accumulators among what is given, by their names. ArgumentError where it has
    none that fits one."""
    return {name: _value_in(file, name, one, found) for name, one in into.items() if isinstance(one, Accumulator)}


def _value_in(file: object, name: str, one: Accumulator, found: Mapping[str, object]) -> Any:
    names = names_of(name, one)
    missing = [part for part in names if part not in found]
    hint = f"it has {', '.join(found)}"
    if missing:
        raise ArgumentError(describe(f"{file} has no `{missing[0]}` for the accumulator given as `{name}`", hint=hint))
    if f"{name}.{len(names)}" in found:
        what = f"`{name}` in {file} has more numbers than the accumulator given"
        raise ArgumentError(describe(what, hint=hint))
    return one.fitting(one.whole([found[part] for part in names]), f"`{name}` in {file}")


def take_values(into: Mapping[str, object], values: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Have accumulators take these values; what was read but for theirs."""
    rest = dict(found)
    for name, one in into.items():
        if isinstance(one, Accumulator):
            one.take(one.parts(values[name]))
            for part in names_of(name, one):
                del rest[part]
    return rest
