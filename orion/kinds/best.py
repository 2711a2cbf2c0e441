"""Which array goes on which kind of memory: placements by name, and the one that takes the least time where kinds have
room for so much only."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import inf
from typing import TYPE_CHECKING

from orion.arrays.sizes import size_in_bytes
from orion.dataclass import dataclass
from orion.errors import PlanError, describe, did_you_mean
from orion.inspect.text.words import bytes_in_words, time_in_words
from orion.kinds.measured import MeasuredKinds
from orion.printable import printable

if TYPE_CHECKING:
    from orion.estimate import Estimate

MEASURE = (
    'call `f.measure(..., kinds={"dram": None, "file": "/a/folder"})` with such arguments, and as many workers, first'
)

MOST_TRIED = 20_000
"""Up to so many placements all are tried; else arrays are placed one by one, those first that gain most per byte."""


def checked_placement(measured: MeasuredKinds | None, placement: Mapping[str, str]) -> dict[str, str]:
    """The kind of each array; those that are not named are on the first. PlanError where a name is unknown."""
    if not isinstance(placement, Mapping):
        hint = 'write `placement={"W": "file"}`'
        raise PlanError(describe(f"`placement` is a dict of arrays and kinds, not {placement!r}", hint=hint))
    if measured is None:
        raise PlanError(f"times are not known on any kind of memory: {MEASURE}")
    for name, kind in placement.items():
        if name not in measured.arrays:
            known = ", ".join(f"`{one}`" for one in measured.arrays)
            hint = did_you_mean(str(name), measured.arrays, f"those that can be placed: {known}")
            why = "only NumPy arrays that are arguments have a place"
            raise PlanError(describe(f"no array `{name}` was measured", why=why, hint=hint))
        checked_kind(measured, kind)
    return {name: placement.get(name, measured.kinds[0]) for name in measured.arrays}


def checked_kind(measured: MeasuredKinds, kind: object) -> None:
    """PlanError where a kind of memory was not measured."""
    if kind not in measured.kinds:
        known = ", ".join(f"`{one}`" for one in measured.kinds)
        raise PlanError(describe(f"no kind of memory `{kind}` was measured", hint=f"those that were: {known}"))


@dataclass(frozen=True, slots=True)
class PlacedArray:
    """Where an array goes, and what speaks for it: `seconds[kind]` are what a call on one worker takes more with this
    array on that kind than on the one that it goes on; less than 0 where that one has no room."""

    array: str
    bytes: int
    kind: str
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Best:
    """The placement that takes the least time among those for which there is room. `estimate` is that of the call with
    it; `on_one` and `all_on[kind]` are seconds on one worker, with it and with all arrays on one kind. `left[kind]` are
    the bytes that are free then, infinite where no capacity was given."""

    placement: Mapping[str, str]
    arrays: tuple[PlacedArray, ...]
    estimate: Estimate
    on_one: float
    all_on: Mapping[str, float]
    left: Mapping[str, float]

    def __str__(self) -> str:
        others = ", ".join(f"all on {kind} {time_in_words(one * 1e9)}" for kind, one in self.all_on.items())
        lines = [f"On one worker {time_in_words(self.on_one * 1e9)}; {others}."]
        for one in self.arrays:
            lines.append(f"  {one.array}, {bytes_in_words(one.bytes)}, on {one.kind}: {self._why(one)}")
        for kind, left in self.left.items():
            if left < inf:
                lines.append(f"  {bytes_in_words(int(left))} of {kind} are left")
        return printable("\n".join(lines))

    def _why(self, one: PlacedArray) -> str:
        found = []
        for kind, seconds in one.seconds.items():
            if kind == one.kind:
                continue
            more = "more" if seconds >= 0 else "less"
            room = "" if one.bytes <= self.left[kind] else ", which has no room left,"
            found.append(f"on {kind}{room} the call takes {time_in_words(abs(seconds) * 1e9)} {more}")
        return "; ".join(found)


def room_of(measured: MeasuredKinds, capacity: Mapping[str, object]) -> dict[str, float]:
    """The bytes that each kind has room for. PlanError where a kind is unknown, or a size none."""
    if not isinstance(capacity, Mapping):
        hint = 'write `capacity={"dram": "2GB"}`'
        raise PlanError(describe(f"`capacity` is a dict of kinds and sizes, not {capacity!r}", hint=hint))
    for kind in capacity:
        checked_kind(measured, kind)
    sizes = {kind: size_in_bytes(size, f"capacity[{kind!r}]", PlanError) for kind, size in capacity.items()}
    return {kind: sizes.get(kind, inf) for kind in measured.kinds}


def costs_of(measured: MeasuredKinds) -> dict[str, dict[str, float]]:
    """What a call on one worker takes more with one array on a kind than on the first one."""
    first = dict.fromkeys(measured.arrays, measured.kinds[0])
    least = measured.seconds_on_one(first)
    return {
        name: {kind: measured.seconds_on_one({**first, name: kind}) - least for kind in measured.kinds}
        for name in measured.arrays
    }


def best_placement(measured: MeasuredKinds, room: Mapping[str, float]) -> dict[str, str]:
    """The placement that takes the least time on one worker. PlanError where there is no room for all arrays."""
    costs = costs_of(measured)
    names, kinds = [*measured.arrays], measured.kinds
    if len(kinds) ** len(names) > MOST_TRIED:
        return _one_by_one(measured, costs, room)
    best: tuple[float, dict[str, str]] | None = None
    for chosen in product(kinds, repeat=len(names)):
        placement = dict(zip(names, chosen, strict=True))
        if min(left_of(measured, placement, room).values()) < 0:
            continue
        cost = sum(costs[name][kind] for name, kind in placement.items())
        if best is None or cost < best[0]:
            best = cost, placement
    if best is None:
        raise _no_room(measured, room)
    return best[1]


def _one_by_one(
    measured: MeasuredKinds, costs: Mapping[str, Mapping[str, float]], room: Mapping[str, float]
) -> dict[str, str]:
    """A placement for many arrays: those first that lose most per byte on the worst kind for them."""
    left, placement = dict(room), dict[str, str]()

    def worth(name: str) -> float:
        return (max(costs[name].values()) - min(costs[name].values())) / max(1, measured.arrays[name])

    for name in sorted(measured.arrays, key=worth, reverse=True):
        fits = [kind for kind in measured.kinds if measured.arrays[name] <= left[kind]]
        if not fits:
            raise _no_room(measured, room)
        placement[name] = min(fits, key=costs[name].__getitem__)
        left[placement[name]] -= measured.arrays[name]
    return {name: placement[name] for name in measured.arrays}


def left_of(measured: MeasuredKinds, placement: Mapping[str, str], room: Mapping[str, float]) -> dict[str, float]:
    """The bytes that are free on each kind; less than 0 where it has no room."""
    left = dict(room)
    for name, kind in placement.items():
        left[kind] -= measured.arrays[name]
    return left


def _no_room(measured: MeasuredKinds, room: Mapping[str, float]) -> PlanError:
    sizes = ", ".join(f"`{name}` {bytes_in_words(size)}" for name, size in measured.arrays.items())
    has = ", ".join(f"{kind} {bytes_in_words(int(size))}" for kind, size in room.items() if size < inf)
    hint = "leave out the capacity of a kind that has room for what is left"
    return PlanError(describe(f"there is no room for all arrays: {has}", why=f"they are {sizes}", hint=hint))


def proposal(
    measured: MeasuredKinds, placement: Mapping[str, str], room: Mapping[str, float], estimate: Estimate
) -> Best:
    """A placement with what speaks for it."""
    costs, kinds = costs_of(measured), measured.kinds
    arrays = tuple(
        PlacedArray(name, measured.arrays[name], kind, {k: costs[name][k] - costs[name][kind] for k in kinds})
        for name, kind in placement.items()
    )
    all_on = {kind: measured.seconds_on_one(dict.fromkeys(measured.arrays, kind)) for kind in kinds}
    on_one = measured.seconds_on_one(placement)
    return Best(placement, arrays, estimate, on_one, all_on, left_of(measured, placement, room))
