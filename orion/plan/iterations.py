"""How iterations and values of a loop are called: by names that the user wrote, else by numbers and lines.

Loops over arrays (`for x in v`) and array statements (`a += b`) become `for`s over variables that no source has. These
are not told: "iterations 0 and 1 of the loop in line 8", "element 3 of line 9", "an element of `idx`".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto

from orion.cost.extents import evaluated
from orion.dataclass import dataclass, replace
from orion.dependence.access import Dependence
from orion.ir.function import Function, written_names
from orion.ir.kept import kept
from orion.ir.nodes import Binary, Const, Range, names_in
from orion.ir.printer import print_expr
from orion.ir.program import LoopNest, OfNewOrder
from orion.reasons import Reason
from orion.sets.affine import has_unit_step

NAME = r"[A-Za-z_]\w*"

Values = Mapping[str, int]
"""The values of isl's parameters in a call."""


class _Kind(Enum):
    """What a loop dimension is to the user: a variable or a formula, a `for` whose variable has no name in the source,
    an axis of an array statement, or a coordinate of an order that Orion made."""

    NAMED = auto()
    FOR = auto()
    AXIS = auto()
    OTHER = auto()


WORDS = {_Kind.FOR: ("iteration", "the loop in line"), _Kind.AXIS: ("element", "line")}
"""What has the numbers of a dimension without a name, and of what."""


DIFFERENT = "different iterations"
"""Those that agree in none of their variables for sure, nor are at one distance."""


@dataclass(frozen=True, slots=True)
class _Dim:
    """A loop dimension as it is told. `name` is that of a named one, and `line` that of a `for` or a statement."""

    kind: _Kind
    name: str = ""
    line: int = 0


def iterations_in_words(dependence: Dependence, nest: LoopNest) -> str:
    """Which iterations conflict, from the distance vector.

    With a constant distance in every dimension: "iterations (i) and (i+1)", in values of the variables, where a trip
    may be further than 1. Otherwise by the dimensions they agree in. A dimension may have a formula as its name:
    "iterations (0, +1) apart in (t, t + i)".
    """
    dims = _dims(nest)
    distance = [_ahead(nest, dim, trips) for dim, trips in enumerate(dependence.distance)]
    if all(step is not None for step in distance) and any(distance):
        return _apart(distance, dims)
    same = [_same(dim, at, dims) for at, (dim, step) in enumerate(zip(dims, distance, strict=True)) if step == 0]
    if len(same) == len(dims):
        is_said = all(dim.kind is _Kind.NAMED for dim in dims)
        return f"elements with the same key ({', '.join(same)})" if is_said else "elements with the same keys"
    return f"iterations with the same {' and '.join(same)}" if same else DIFFERENT


def pair_in_words(pair: Sequence[Sequence[int]], nest: LoopNest, known: Values) -> str:
    """Two iterations at these coordinates, as "i=0, j=1 and i=0, j=2"; empty where they cannot be told apart."""
    dims = _dims(nest)
    if all(dim.kind is _Kind.NAMED for dim in dims):
        first, second = (
            ", ".join(f"{dim.name}={_value(nest, at, values[at])}" for at, dim in enumerate(dims)) for values in pair
        )
        return "" if first == second else f"{first} and {second}"
    numbers = [[_number(nest, at, values[at], known, dim) for at, dim in enumerate(dims)] for values in pair]
    if numbers[0] == numbers[1] or any(None in one for one in numbers):
        return ""
    said, at = list[str](), 0
    while at < len(dims):
        end = _end_of_alike(dims, at)
        said.append(_numbered(dims[at], *(", ".join(map(str, one[at:end])) for one in numbers), several=end > at + 1))
        at = end
    return ", ".join(said)


def values_of(coordinates: Sequence[int], nest: LoopNest, known: Values) -> list[int | str]:
    """What the variables of a loop are at some coordinates; as text where that is not a number."""
    found: list[int | str] = []
    for dim, coordinate in enumerate(coordinates):
        space, ahead = _range(nest, dim), _ahead(nest, dim, coordinate)
        if space is None or has_unit_step(space):
            found.append(coordinate)
            continue
        start = evaluated(space.start, known)
        value = None if start is None or ahead is None else start + ahead
        found.append(_value(nest, dim, coordinate) if value is None else value)
    return found


def loop_in_words(nest: LoopNest, dim: int) -> str:
    """The loop of a dimension: "the loop over `i`", or "the loop in line 8" where nobody wrote its variable."""
    found = _dims(nest)[dim]
    return f"the loop over `{found.name}`" if found.kind is _Kind.NAMED else f"the loop in line {nest.span.line}"


def in_source_names(reason: Reason, function: Function) -> Reason:
    """A reason without names that Orion made: "an element of `idx`" for `idx[j_index]`."""
    message, hint = (_in_source_names(text, function) for text in (reason.message, reason.hint))
    return reason if (message, hint) == (reason.message, reason.hint) else replace(reason, message=message, hint=hint)


def _in_source_names(text: str, function: Function) -> str:
    def said(found: re.Match[str]) -> str:
        names = re.findall(NAME, found[1])
        made = [] if written_names(function).issuperset(names) else [one for one in names if one in _made(function)]
        if not made:
            return found[0]
        array = re.match(rf"({NAME})\[", found[1])
        if array and array[1] not in made:
            return f"an element of `{array[1]}`"
        rest = [f"`{one}`" for one in dict.fromkeys(names) if one in written_names(function)]
        return f"a value computed from {', '.join(rest)}" if rest else "a value"

    return re.sub(r"`([^`]*)`", said, text)


@kept
def _made(function: Function) -> frozenset[str]:
    """The names of a function that its source does not have."""
    return frozenset(names_in(*function.body) - written_names(function))


# ---------------------------------------------------------------- what a dimension is called


def _dims(nest: LoopNest) -> list[_Dim]:
    written = written_names(nest.function)
    fors = {one.span for one in nest.function.fors}
    found = []
    for at, name in enumerate(nest.dims):
        is_plain = nest.elements is None and not isinstance(nest.form, OfNewOrder)
        own = nest.ranges[at].var if is_plain else name
        if written.issuperset(re.findall(NAME, own)):
            found.append(_Dim(_Kind.NAMED, own))
        elif is_plain:
            span = nest.loops[at].span
            found.append(_Dim(_Kind.FOR if span in fors else _Kind.AXIS, line=span.line))
        else:
            found.append(_Dim(_Kind.OTHER))
    return found


def _apart(distance: Sequence[int | None], dims: Sequence[_Dim]) -> str:
    """Iterations at a constant distance."""
    if all(dim.name.isidentifier() for dim in dims):
        names = [dim.name for dim in dims]
        there = ", ".join(name if not step else f"{name}{step:+d}" for name, step in zip(names, distance, strict=True))
        return f"iterations ({', '.join(names)}) and ({there})"
    if len(dims) == 1 and not dims[0].name:
        return f"iterations {abs(distance[0] or 0)} apart"
    apart = ", ".join(f"{step:+d}" if step else "0" for step in distance)
    if any(dim.kind is _Kind.OTHER for dim in dims):
        return f"iterations ({apart}) apart in the order that they run in"
    names = [dim.name or f"{WORDS[dim.kind][1]} {dim.line}" for dim in dims]
    return f"iterations ({apart}) apart in ({', '.join(names)})"


def _same(dim: _Dim, at: int, dims: Sequence[_Dim]) -> str:
    """What iterations have in common that agree in a dimension."""
    if dim.kind is _Kind.NAMED:
        return dim.name
    if dim.kind is _Kind.OTHER:
        return f"coordinate {at} of the order that they run in"
    noun, where = WORDS[dim.kind]
    alike = [number for number, one in enumerate(dims) if one == dim]
    return f"{noun if len(alike) == 1 else f'index {alike.index(at)}'} of {where} {dim.line}"


def _end_of_alike(dims: Sequence[_Dim], at: int) -> int:
    """Where the dimensions of one statement, or of one `for` as over `np.ndindex`, end: their numbers are told
    together."""
    end = at + 1
    while dims[at].kind in WORDS and end < len(dims) and dims[end] == dims[at]:
        end += 1
    return end


def _numbered(dim: _Dim, first: str, second: str, *, several: bool) -> str:
    """A dimension in two iterations: "iterations 0 and 1 of the loop in line 8". `several`: each is several numbers."""
    if dim.kind is _Kind.NAMED:
        return f"{dim.name}={first}" if first == second else f"{dim.name}={first} and {dim.name}={second}"
    noun, where = WORDS[dim.kind]
    if several:
        first, second = f"({first})", f"({second})"
    numbers = f"{noun} {first}" if first == second else f"{noun}s {first} and {second}"
    return f"{numbers} of {where} {dim.line}"


# ---------------------------------------------------------------- what it is at a coordinate


def _number(nest: LoopNest, at: int, coordinate: int, known: Values, dim: _Dim) -> int | str | None:
    """The value of a named dimension at a coordinate, of any other the number of the trip, from 0; None where that is
    not known."""
    if dim.kind is _Kind.NAMED:
        return _value(nest, at, coordinate)
    space = _range(nest, at)
    if dim.kind is _Kind.OTHER or space is None:
        return None
    if not has_unit_step(space):
        return coordinate
    start = evaluated(space.start, known)
    return None if start is None else coordinate - start


def _value(nest: LoopNest, dim: int, coordinate: int) -> str:
    """What the variable of a loop is at a coordinate: that is the number of the trip, where the step is not 1."""
    space = _range(nest, dim)
    if space is None or has_unit_step(space):
        return str(coordinate)
    ahead = _ahead(nest, dim, coordinate)
    if ahead is None:
        factor = "" if coordinate == 1 else f"{coordinate}*"
        return f"{print_expr(space.start)}+{factor}{print_expr(space.step)}"
    match space.start:
        case Binary("+", start, Const(int(amount))):
            ahead += amount
        case Binary("-", start, Const(int(amount))):
            ahead -= amount
        case start:
            pass
    known = evaluated(start, {})
    if known is not None:
        return str(known + ahead)
    return print_expr(start) + (f"{ahead:+d}" if ahead else "")


def _range(nest: LoopNest, dim: int) -> Range | None:
    """The range of a dimension; None where that is a key of a sparse array, or a formula."""
    if nest.elements is not None or isinstance(nest.form, OfNewOrder):
        return None
    return nest.ranges[dim]


def _ahead(nest: LoopNest, dim: int, trips: int | None) -> int | None:
    """How much the variable of a loop grows in so many trips; None where that is not known."""
    space = _range(nest, dim)
    if not trips or space is None:
        return trips
    step = evaluated(space.step, {})
    return None if step is None else trips * step
