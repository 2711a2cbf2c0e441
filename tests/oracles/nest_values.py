"""Random subscripts, loop bounds and conditions, as text with known values.

What comes first among several options is the simplest: hypothesis shrinks towards it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.oracles.bounded import (
    SIZES,
    Bounded,
    constant,
    divided,
    greatest,
    least,
    loop_values,
    minus,
    modulo,
    named,
    plus,
    product,
    times,
    with_constant,
)  # fmt: skip
from tests.oracles.nests import COUNT_VALUES, INDEX_VALUES

DTYPES = {
    "a": ("float64", 1), "b": ("float64", 1), "A": ("float64", 2), "B": ("float64", 2), "T": ("float64", 3),
    "p": ("int64", 1), "q": ("int64", 1), "P": ("int64", 2), "x": ("float64", 1), "idx": ("int64", 1),
    "cnt": ("int64", 1),
}  # fmt: skip
"""Arrays and their numbers of dimensions; `x`, `idx` and `cnt` are only read."""

FILLS = {"x": "sign", "idx": "index", "cnt": "count"}
MODULUS = 97
ZERO = constant(0)
MANY = 99


@dataclass(frozen=True)
class Axis:
    """One subscript. `moves`: all such subscripts of an array axis are shifted together, so that the least is 0;
    others may be negative as they are, and then count from the end."""

    value: Bounded
    moves: bool


@dataclass
class Drawn:
    """What has been drawn so far, by `choose`: accesses, each with its axes, and the names that are used."""

    choose: Callable[[Sequence[Any]], Any]
    sizes: dict[str, tuple[int, int]]
    accesses: list[tuple[str, tuple[Axis, ...]]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    equal: list[tuple[tuple[str, int], tuple[str, int]]] = field(default_factory=list)
    """Axes of arrays that must have the same extent."""

    def pick(self, *options: Any) -> Any:
        return self.choose(options)

    def chance(self, one_in: int) -> bool:
        return bool(self.pick(*(False,) * (one_in - 1), True))

    # ------------------------------------------------------------ loop bounds

    def extent(self) -> Bounded:
        """A bound that does not depend on loop variables."""
        kind = self.pick("literal", "n", "n", "m", "m", "shape", "n - 1", "m + 1", "half")
        if kind == "literal":
            return constant(self.pick(*range(3, max(4, self.sizes["n"][0] + 1))))
        if kind == "shape":
            self.used.add("z")
            axis = self.pick(0, 1)
            small, large = self.sizes["nm"[axis]]
            return named(f"z.shape[{axis}]", (small, small), (large, large))
        name = "m" if kind.startswith("m") else "n"
        self.used.add(name)
        small, large = self.sizes[name]
        value = named(name, (small, small), (large, large))
        if kind == "half":
            return plus(divided(value, 2), 1)
        return plus(value, {"n - 1": -1, "m + 1": 1}.get(kind, 0))

    def whole_range(self, most: int) -> tuple[str, tuple[Any, Any], int]:
        """The same as `loop_range`, most often one whole extent in steps of 1, without outer variables."""
        start, stop = constant(self.pick(0, 0, 1)), plus(self.extent(), self.pick(0, 0, -1))
        values = loop_values(start, stop, 1)
        trips = values[1][1] - values[1][0] + 1
        return self.loop_range((), most) if trips > most or self.chance(10) else (_range(start, stop, 1), values, trips)

    def loop_range(self, outer: Sequence[Bounded], most: int) -> tuple[str, tuple[Any, Any], int]:
        """`range(…)`, the values of its variable, and the most trips that it makes, which are no more than `most`."""
        start, stop, step, known = self._bounds(outer)
        values = loop_values(start, stop, step)
        trips = min(known, (values[0][1] - values[0][0]) // abs(step) + 1)
        if trips > most:
            start, stop, step = constant(0), constant(min(most, 3)), 1
            values, trips = loop_values(start, stop, 1), min(most, 3)
        return _range(start, stop, step), values, trips

    def _bounds(self, outer: Sequence[Bounded]) -> tuple[Bounded, Bounded, int, int]:
        """Start, stop, step, and a known limit of the trips."""
        if outer and self.pick(False, True, True):
            return self._curved(outer) if self.chance(3) else self._triangle(outer)
        match self.pick("whole", "whole", "whole", "from 1", "down", "step", "shifted"):
            case "whole":
                return ZERO, self.extent(), 1, MANY
            case "from 1":
                return constant(self.pick(1, 2)), self.extent(), 1, MANY
            case "down":
                return plus(self.extent(), -1), constant(self.pick(-1, 0, 1)), self.pick(-1, -1, -2), MANY
            case "step":
                return constant(self.pick(0, 1)), self.extent(), self.pick(2, 3), MANY
            case _:
                shift = self.pick(-2, -1, 2)
                return constant(shift), plus(self.extent(), shift), 1, MANY

    def _triangle(self, outer: Sequence[Bounded]) -> tuple[Bounded, Bounded, int, int]:
        """Bounds with an outer variable."""
        u = self.pick(*outer)
        match self.pick("from", "from", "to", "below", "mirrored", "down", "down to", "step"):
            case "from":
                return plus(u, self.pick(0, 1, -1)), self.extent(), 1, MANY
            case "to":
                return ZERO, plus(u, self.pick(1, 0, 2)), 1, MANY
            case "below":
                return constant(1), plus(u, self.pick(0, 1)), 1, MANY
            case "mirrored":
                return ZERO, minus(self.extent(), u), 1, MANY
            case "down":
                return u, constant(self.pick(-1, 0)), self.pick(-1, -1, -2), MANY
            case "down to":
                return plus(self.extent(), -1), u, -1, MANY
            case _:
                return u, self.extent(), 2, MANY

    def _curved(self, outer: Sequence[Bounded]) -> tuple[Bounded, Bounded, int, int]:
        """Bounds with min, max, // and %, and bands around an outer variable."""
        u = self.pick(*outer)
        kinds = ("band", "clipped", "half", "rest", "least", "sum", "twice", "between", "floor", "back", "product")
        match self.pick(*kinds):
            case "band":
                width = self.pick(2, 3)
                return u, plus(u, width), 1, width
            case "clipped":
                return greatest(ZERO, plus(u, -1)), least(self.extent(), plus(u, 2)), 1, 3
            case "half":
                return divided(u, 2), self.extent(), 1, MANY
            case "rest":
                return modulo(u, self.pick(2, 3)), self.extent(), self.pick(1, 2, 3), MANY
            case "least":
                return ZERO, least(plus(u, 1), constant(self.pick(2, 3))), 1, 3
            case "sum":
                return ZERO, divided(plus(u, self.pick(*outer)), 2), 1, MANY
            case "twice":
                width = self.pick(2, 3)
                return times(2, u), plus(times(2, u), width), 1, width
            case "floor":
                return divided(plus(u, -3), 2), divided(plus(u, 4), 3), 1, MANY
            case "back":
                return modulo(minus(constant(2), u), 3), self.extent(), 1, MANY
            case "product":
                return ZERO, least(product(u, self.extent()), constant(3)), 1, 3
            case _:
                return divided(plus(u, 1), 2), plus(u, 1), 1, MANY

    # ------------------------------------------------------------ subscripts and accesses

    def access(self, array: str, names: Sequence[Bounded]) -> str:
        """An access to an array; a mark that stands for it until all subscripts are known."""
        ndim = DTYPES[array][1]
        own = names[-ndim:] if len(names) >= ndim else (*names,) * ndim
        axes = tuple(self.axis(own[axis] if own else None, names) for axis in range(ndim))
        return self.note(array, axes)

    def note(self, array: str, axes: tuple[Axis, ...]) -> str:
        self.used.add(array)
        self.accesses.append((array, axes))
        return f"⟨{len(self.accesses) - 1}⟩"

    def axis(self, own: Bounded | None, names: Sequence[Bounded]) -> Axis:
        """A subscript, most often with the loop variable `own`."""
        if own is None:
            return Axis(constant(self.pick(0, 1, 2, 3)), True)
        v = self.pick(*reversed(names)) if self.chance(3) else own
        kind = self.pick(*("plain",) * 6, *("near",) * 6, "mirrored", "scaled", "sum", "sum", "wild", "wild")
        match kind:
            case "plain":
                return Axis(v, True)
            case "near":
                return Axis(plus(v, self.pick(-1, 1, -2, 2, 3)), True)
            case "mirrored":
                return Axis(minus(constant(self.pick(3, 5, 8)), v), True)
            case "scaled":
                return Axis(plus(times(self.pick(2, 3), v), self.pick(0, 1, -1)), True)
            case "sum":
                u = self.pick(*names)
                two = self.pick(plus(v, u), minus(v, u), plus(v, times(2, u)), minus(times(2, v), u))
                return Axis(plus(two, self.pick(0, -1, 1)), True)
            case _:
                return self.wild_axis(v, names)

    def wild_axis(self, v: Bounded, names: Sequence[Bounded]) -> Axis:
        kinds = ("constant", "rest", "half", "wraps", "backwards", "last", "extent", "floor", *("indirect",) * 3)
        match self.pick(*kinds):
            case "constant":
                return Axis(constant(self.pick(0, 1, 2, 4)), True)
            case "rest":
                return Axis(modulo(v, self.pick(2, 3, 4)), True)
            case "half":
                return Axis(divided(v, 2), True)
            case "wraps":
                return Axis(plus(v, self.pick(-1, -2, -3)), False)
            case "backwards":
                return Axis(plus(times(-1, v), -1), False)
            case "last":
                return Axis(constant(self.pick(-1, -2)), False)
            case "extent":
                return Axis(minus(plus(self.extent(), -1), v), True)
            case "floor":
                return Axis(self.pick(divided(plus(v, -3), 2), modulo(minus(constant(2), v), 3)), True)
            case _:
                found = self.indirect(names)
                return Axis(self.pick(found, found, plus(found, 1), plus(found, v)), True)

    def indirect(self, names: Sequence[Bounded]) -> Bounded:
        """A subscript that is read from an array."""
        if self.chance(3):
            return modulo(named(self.note("p", (self.plain_axis(names),)), (0, 0), (0, 0)), INDEX_VALUES)
        span = 0, INDEX_VALUES - 1
        return named(self.note("idx", (self.plain_axis(names),)), span, span)

    def plain_axis(self, names: Sequence[Bounded]) -> Axis:
        v = self.pick(*reversed(names)) if names else constant(0)
        return Axis(plus(v, self.pick(0, 1, -1)), True)

    def count(self, names: Sequence[Bounded]) -> Bounded:
        """A number of trips that is read from an array."""
        span = 0, COUNT_VALUES - 1
        return named(self.note("cnt", (self.plain_axis(names),)), span, span)

    # ------------------------------------------------------------ conditions

    def condition(self, names: Sequence[Bounded], arrays: Sequence[str], scalars: Sequence[str]) -> str:
        kinds = ("affine", "affine", "affine", "data", "data", "both", "scalar")
        kind = self.pick(*kinds) if names else "data"
        if kind == "scalar" and scalars:
            return f"{self.pick(*scalars)} > {self.pick(0, 1)}"
        if kind in ("data", "scalar"):
            array = self.pick("x", "x", *arrays)
            return f"{self.access(array, names)} {self.pick('>', '<', '==')} 0"
        if kind == "both":
            op = self.pick("and", "or")
            return f"{self.affine_condition(names)} {op} {self.affine_condition(names)}"
        return self.affine_condition(names)

    def affine_condition(self, names: Sequence[Bounded]) -> str:
        v = self.pick(*reversed(names))
        match self.pick("compare", "compare", "two", "two", "rest", "sum", "extent"):
            case "compare":
                return f"{v} {self.pick('>', '<=', '==', '!=', '<')} {self.pick(1, 2, 3)}"
            case "two":
                return f"{v} {self.pick('>', '<=', '==', '!=')} {plus(self.pick(*names), self.pick(0, 1, -1))}"
            case "rest":
                return f"{modulo(v, self.pick(2, 3))} {self.pick('==', '!=')} 0"
            case "sum":
                return f"{plus(v, self.pick(*names))} {self.pick('<', '>=')} {self.pick(3, 4, 6)}"
            case _:
                return f"{v} < {plus(self.extent(), self.pick(-1, -2))}"


def _range(start: Bounded, stop: Bounded, step: int) -> str:
    if step != 1:
        return f"range({start}, {stop}, {step})"
    return f"range({stop})" if start.text == "0" else f"range({start}, {stop})"


# ---------------------------------------------------------------- subscripts once all are known


def finished_accesses(
    accesses: Sequence[tuple[str, tuple[Axis, ...]]],
    slack: int,
    equal: Sequence[tuple[tuple[str, int], tuple[str, int]]] = (),
) -> tuple[list[str], dict[str, tuple[tuple[int, ...], tuple[int, ...]]]]:
    """The texts of the accesses, shifted so that none leaves its array, and the (small, large) shape of each array."""
    spans: dict[tuple[str, int], list[Axis]] = {}
    for array, axes in accesses:
        for number, axis in enumerate(axes):
            spans.setdefault((array, number), []).append(axis)
    shifts: dict[tuple[str, int], int] = {}
    extents: dict[tuple[str, int], tuple[int, ...]] = {}
    for key, found in spans.items():
        moving = [axis.value.spans[size][0] for axis in found if axis.moves for size in SIZES]
        shifts[key] = -min(moving, default=0)
        extents[key] = tuple(max(_needs(axis, size, shifts[key]) for axis in found) + slack for size in SIZES)
    for _ in equal:  # each may move others
        for one, other in equal:
            pairs = zip(extents.get(one, (1, 1)), extents.get(other, (1, 1)), strict=True)
            extents[one] = extents[other] = tuple(max(pair) for pair in pairs)
    texts = []
    for array, axes in accesses:
        parts = [_shifted(axis, shifts[array, number]) for number, axis in enumerate(axes)]
        texts.append(f"{array}[{', '.join(parts)}]")
    shapes = {}
    for array in dict.fromkeys(name for name, _ in accesses):
        dims = range(DTYPES[array][1])
        shapes[array] = tuple(tuple(extents.get((array, dim), (3, 3))[size] for dim in dims) for size in SIZES)
    return texts, shapes  # type: ignore[return-value]


def _needs(axis: Axis, size: int, shift: int) -> int:
    low, high = axis.value.spans[size]
    return high + shift + 1 if axis.moves else max(high + 1, -low)


def _shifted(axis: Axis, shift: int) -> str:
    return with_constant(axis.value.text, shift) if axis.moves else axis.value.text
