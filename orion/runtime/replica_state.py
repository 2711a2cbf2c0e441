"""What checkpoints hold of replicated arrays: `x`, the centre, and `x.velocities` or `x.outer`, its momentum, where the
policy has such. Copies are not held: they begin as the centre again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from orion.arrays.replica import Replicated
from orion.errors import ArgumentError


def in_parts(values: Mapping[str, object]) -> dict[str, object]:
    """Values with the arrays that are held of a replica in its place."""
    found: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Replicated):
            found |= {name: value.array, **{part: getattr(value, own) for part, own in _momentum(name, value)}}
        else:
            found[name] = value
    return found


def _momentum(name: str, value: Replicated) -> Iterator[tuple[str, str]]:
    """The names of the momentum of a replica in a file, and in itself."""
    if value.has_velocities:
        yield f"{name}.velocities", "velocities"
    if value.has_outer:
        yield f"{name}.outer", "outer"


def check_momentum(file: object, into: Mapping[str, object], found: Mapping[str, object]) -> None:
    """ArgumentError where what was read from a file is not the momentum of the replicas among some values."""
    for name, value in into.items():
        for part, own in _momentum(name, value) if isinstance(value, Replicated) else ():
            have, like = found.get(part), getattr(value, own)
            if not isinstance(have, np.ndarray) or have.dtype != like.dtype or _shape(have, own) != _shape(like, own):
                raise ArgumentError(f"{file} has no `{part}` that fits the replica given as `{name}`")


def _shape(array: Any, own: str) -> tuple[int, ...]:
    """The shape for one worker."""
    return array.shape[own == "velocities" :]  # type: ignore[no-any-return]


def begin_again(into: Mapping[str, object], found: dict[str, Any]) -> dict[str, Any]:
    """Have the copies of replicas begin as the centre, which was filled, with the momentum that was read; what was read
    but for that."""
    found = dict(found)
    for name, value in into.items():
        if isinstance(value, Replicated):
            momentum = {own: found.pop(part) for part, own in _momentum(name, value)}
            value.begin(max(len(value.copies), len(momentum.get("velocities", ()))))
            value.reset()
            for own, kept in momentum.items():
                getattr(value, own)[: len(kept)] = kept
    return found


def centre_of(value: object) -> object:
    """What is filled of a value that takes the contents of a file."""
    return value.array if isinstance(value, Replicated) else value
