"""A race over an element in words."""

from __future__ import annotations

from orion.cli.audit.races import EARLY, LOST, OVERWRITTEN, STALE, Conflict, Races
from orion.cli.audit.raising import file_of
from orion.cli.audit.values import Finding, Race, Side, Verdict
from orion.dataclass import replace
from orion.ir.constants import constant_value
from orion.ir.printer import print_expr
from orion.sets.names import extent_name
from orion.source import Span

HINTS = {
    LOST: "let each iteration update elements of its own, or add up in a scalar, which Numba combines",
    STALE: "read from a copy of `{array}` that is made before the loop",
    EARLY: "read from a copy of `{array}` that is made before the loop",
    OVERWRITTEN: "let each iteration write elements of its own; make an array for temporary values inside the loop",
}


def race_finding(conflict: Conflict, races: Races) -> Finding:
    """Return a conflict as the verdict on its loop."""
    first, second = conflict.first, conflict.second
    array = first.array
    element = f"{array}[{_subscript(conflict, races)}]"
    one, other = (_iteration(value, races) for value in (conflict.met.first, conflict.met.second))
    sides = (
        Side(one, first.is_write, _place(first.span), first.text),
        Side(other, second.is_write, _place(second.span), second.text),
    )
    sizes = _sizes(conflict, races)
    race = Race(array, element, conflict.effect, *sides, sizes)
    return Finding(Verdict.RACE, "AUD101", _told(race), hint=HINTS[conflict.effect].format(array=array), race=race)


def _subscript(conflict: Conflict, races: Races) -> str:
    """The subscript of the element of a conflict; of a flattened array as row and place in it."""
    places = [str(one) for one in conflict.met.element]
    rows = next((one for one in races.model.nest.function.rows if one.array == conflict.first.array), None)
    if rows is None:
        return ", ".join(places)
    found, *rest = places
    for width, place in zip(rows.widths, rest, strict=True):
        found = (
            f"{found} * {print_expr(width)} + {place}"
            if found.isdigit()
            else f"({found}) * {print_expr(width)} + {place}"
        )
    return found


def _place(span: Span) -> Span:
    """A place as its user knows it."""
    return replace(span.in_source, file=file_of(span.file))


def _told(race: Race) -> str:
    one, other = race.first, race.second
    lines = (
        f"line {one.span.line}" if one.span.line == other.span.line else f"lines {one.span.line} and {other.span.line}"
    )
    match race.effect:
        case "lost update":
            return (
                f"iterations {one.iteration} and {other.iteration} both update `{race.element}` ({lines}): where both "
                "read it before either writes it, one update is lost"
            )
        case "stale read":
            return (
                f"iteration {one.iteration} writes `{race.element}` in line {one.span.line}, and iteration "
                f"{other.iteration} reads it in line {other.span.line}: it reads the old value where it comes first"
            )
        case "early write":
            return (
                f"iteration {one.iteration} reads `{race.element}` in line {one.span.line}, and iteration "
                f"{other.iteration} writes it in line {other.span.line}: it reads the new value where it comes second"
            )
        case _:
            return (
                f"iterations {one.iteration} and {other.iteration} write different values in `{race.element}` "
                f"({lines}): "
                "what is left there, and what is read from it, depends on which comes last"
            )


def _iteration(value: int, races: Races) -> str:
    """The value of the loop variable in an iteration, which is its trip number where the step is not 1."""
    (space,) = races.model.nest.ranges
    if races.model.space.values:
        start, step = constant_value(space.start), constant_value(space.step)
        if not isinstance(start, int) or not isinstance(step, int):
            return f"number {value}"
        value = start + step * value
    return f"{space.var} = {value}"


def _sizes(conflict: Conflict, races: Races) -> dict[str, int]:
    """The sizes of the meeting, by what they are called in Python."""
    shown = {}
    arrays = {one.array: one for one in races.model.references}
    for name, value in conflict.met.sizes.items():
        text = name
        for array, reference in arrays.items():
            for axis in range(len(reference.axes)):
                if name == extent_name(array, axis):
                    text = f"{array}.shape[{axis}]"
        shown[text] = value
    return shown
