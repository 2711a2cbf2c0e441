"""Arguments of many other sizes for a nest: every size that its arrays allow is one that its plan holds for.

Integer arguments and the shapes that bounds mention are drawn, or given; every array is then made as large as its
subscripts need, and sometimes larger, because negative subscripts count from its end.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np

from tests.oracles.carried import Recorder, Recording
from tests.oracles.nests import COUNT_VALUES, INDEX_VALUES, Nest, filled

SIZES = (-2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 17, 20)
SLACKS = (0, 0, 0, 1, 2, 5)
MOST_ELEMENTS = 400_000
"""Arrays that would have more are not made: that size is left out."""

MOST_TRIPS = 20_000
"""Trips after which a run at another size is cut short; what it has found until then is true."""

Extents = dict[str, tuple[int, ...]]


@dataclass
class Measurer(Recorder):
    """Notes the least and the greatest subscript of every array axis; there are no arrays."""

    fills: Mapping[str, str] = field(default_factory=dict)
    random: random.Random = field(default_factory=lambda: random.Random(0))
    spans: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def read(self, name: str, array: Any, index: Any) -> Any:
        self.write(name, array, index, None)
        match self.fills[name]:
            case "count":
                return np.int64(self.random.randrange(COUNT_VALUES))
            case "index":
                return np.int64(self.random.randrange(INDEX_VALUES))
            case "whole":
                return np.int64(self.random.randint(-3, 3))
            case _:
                return np.float64(self.random.choice((-1.0, 0.0, 1.0)))

    def write(self, name: str, array: Any, index: Any, value: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        whole = (slice(None),) * (len(array.shape) - len(parts))
        here = [needed_by(part) for part in (*parts, *whole)]
        spans = self.spans.setdefault(name, here)
        both = zip(spans, here, strict=True)
        self.spans[name] = [(min(old[0], new[0]), max(old[1], new[1])) for old, new in both]

    def get(self, name: str, value: Any) -> Any:
        return value

    def set(self, name: str, value: Any) -> Any:
        return value


class Shaped:
    """In place of an array: all that it has is a shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def needed_by(part: Any) -> tuple[int, int]:
    """The least and the greatest subscript that an axis must have room for. Slices are cut off at the ends of an array;
    all the same the nest is to keep their lengths."""
    if not isinstance(part, slice):
        return int(part), int(part)
    bounds = [int(bound) for bound in (part.start, part.stop) if bound is not None]
    return min([0, *bounds]), max([0, *(bound - 1 for bound in bounds)])


def needed_extents(nest: Nest, recording: Recording, integers: Mapping[str, int], known: Extents) -> Extents | None:
    """The least shapes that the subscripts fit in, with these integer arguments; those in `known` stay as they are.
    None where the function cannot be run with them at all: an integer that does not fit into its type, a name that a
    loop without trips leaves without a value."""
    fills = {name: spec.fill for name, spec in nest.arrays.items()}
    measurer = Measurer(recording.reductions, 4 * MOST_TRIPS, fills=fills)
    shapes = {name: Shaped(known.get(name, spec.small)) for name, spec in nest.arrays.items()}
    try:
        recording.run(measurer, {**shapes, **integers, **nest.fixed()})
    except (IndexError, OverflowError, TypeError, UnboundLocalError, ValueError, ZeroDivisionError):
        return None
    found: Extents = {}
    for name, spec in nest.arrays.items():
        spans = measurer.spans.get(name, [(0, 0)] * len(spec.small))
        found[name] = known.get(name) or tuple(max(high + 1, -low) for low, high in spans)
    return found


def other_arguments(
    nest: Nest, recording: Recording, hints: Iterable[Mapping[str, int]], count: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Arguments of other sizes: first those with the sizes of `hints`, then with `count` that are drawn. A hint gives
    sizes by name, `a__0` for the extent of an array; what it leaves open is drawn. Sizes that the arrays do not allow
    are left out."""
    choice = random.Random(seed)
    for hint in chain(hints, repeat({}, count)):
        integers = {name: hint.get(name, choice.choice(SIZES)) for name in nest.integers}
        known: Extents = {}
        for name in shapes_in_bounds(nest):
            axes = range(len(nest.arrays[name].small))
            known[name] = tuple(max(0, hint.get(f"{name}__{axis}", choice.choice(SIZES))) for axis in axes)
        shapes = needed_extents(nest, recording, integers, known)
        if shapes is None:
            continue
        for name, shape in shapes.items():
            if name not in known:
                wanted = [hint.get(f"{name}__{axis}", 0) for axis in range(len(shape))]
                slack = [0 if given else choice.choice(SLACKS) for given in wanted]
                shapes[name] = tuple(max(w, n) + s for w, n, s in zip(wanted, shape, slack, strict=True))
        arguments = made(nest, integers, shapes)
        if arguments is not None:
            yield arguments


def shapes_in_bounds(nest: Nest) -> list[str]:
    """The arrays whose shape is mentioned by name."""
    return [name for name in nest.arrays if f"{name}.shape" in nest.source]


def made(nest: Nest, integers: Mapping[str, int], shapes: Extents) -> dict[str, Any] | None:
    """Arguments of these sizes; None where that would be too much."""
    if sum(int(np.prod(shape)) for shape in shapes.values()) > MOST_ELEMENTS:
        return None
    rng = np.random.default_rng(nest.seed)
    return {name: filled(rng, spec, shapes[name]) for name, spec in nest.arrays.items()} | dict(integers) | nest.fixed()


def facts_at(recording: Recording, arguments: Mapping[str, Any]) -> list[Any] | None:
    """The facts of every `for` at these sizes; None where a subscript that depends on data leaves its
    array, slices are not of one length, a name has no value, or an integer does not fit."""
    try:
        return recording.facts(arguments, MOST_TRIPS)
    except (IndexError, OverflowError, UnboundLocalError, ValueError, ZeroDivisionError):
        return None
