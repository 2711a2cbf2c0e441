"""Random statements over slices and rows: shifted, reversed and strided ones of one array, rows by other names.

Both sides of an assignment have slices of one length whatever the extent of the axis, as long as it has the room that
they are noted with. Most overlap: NumPy reads the whole right-hand side before it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.oracles.bounded import Bounded
from tests.oracles.nest_values import DTYPES, MODULUS, Axis, Drawn

if TYPE_CHECKING:
    from tests.oracles.nest_strategy import Maker, Place

Room = tuple[int, int]
"""The extent that an axis must have, at the small and at the larger size."""

ROW = "row"
"""The name of rows (`Nest.has_views`)."""


def whole(text: str, room: Room) -> Axis:
    """A slice, as an axis of an access."""
    return Axis(Bounded(text, ((0, room[0] - 1), (0, room[1] - 1))), False)


def slice_pair(drawn: Drawn, names: Sequence[Bounded]) -> tuple[str, str, Room]:
    """Two slices of one axis with as many elements."""
    growing = [v for v in names if min(low for low, _ in v.spans) >= 0]
    kind = drawn.pick("shift", "shift", "literal", "literal", *("variable",) * 3 if growing else ("size",), "size")
    if kind == "shift":
        k = drawn.pick(1, 1, 2)
        pairs = (f"{k}:", f":-{k}"), (f":-{k}", f"{k}:"), (":", "::-1"), ("1:", ":0:-1"), (":-1", "-2::-1")
        return (*drawn.pick(*pairs), (k + 2, k + 2))
    if kind == "variable":
        v = drawn.pick(*growing)
        room = tuple(high + 4 for _, high in v.spans)
        pairs = (f"{v} + 1:", f"{v}:-1"), (f"{v}:-1", f"{v} + 1:"), (f":{v}", f"1:{v} + 1")
        pairs += ((f"{v}:{v} + 2", f"{v} + 1:{v} + 3"),)
        return *drawn.pick(*pairs), (room[0], room[1])
    if kind == "size":
        drawn.used.add("n")
        small, large = drawn.sizes["n"]
        pairs = (":n", "1:n + 1"), ("1:n + 1", ":n"), ("n:0:-1", ":n"), (":2 * n:2", ":n")
        pairs += (("n:2 * n", "n - 1:2 * n - 1"),)
        return *drawn.pick(*pairs), (2 * small + 1, 2 * large + 1)
    k = drawn.pick(2, 3, 4)
    pairs = (f":{2 * k}:2", f":{k}"), (f"1:{1 + 2 * k}:2", f"{k}:0:-1"), (f"2:{2 + k}", f"{1 + k}:1:-1")
    pairs += (f":{k}", f"-{k}:"), (f"-{k}:", f":{k}"), (f"{k + 2}:2:-1", f"1:{k + 1}"), (f":{k}", f":{2 * k}:2")
    return *drawn.pick(*pairs), (2 * k + 1, 2 * k + 1)


def slice_statement(maker: Maker, place: Place) -> list[str]:
    """`a[i, 1:] = a[i, :-1]` and the like."""
    drawn = maker.drawn
    array = drawn.pick(*maker.arrays)
    to, source, room = slice_pair(drawn, place.names)
    across = drawn.pick(*range(DTYPES[array][1]))
    others = [drawn.axis(place.names[-1] if place.names else None, place.names) for _ in range(DTYPES[array][1])]

    def access(text: str, fresh: bool) -> str:
        axes = list(others)
        if fresh:
            axes = [drawn.axis(place.names[-1] if place.names else None, place.names) for _ in others]
        axes[across] = whole(text, room)
        return drawn.note(array, tuple(axes))

    target, read = access(to, False), access(source, drawn.chance(4))
    if DTYPES[array][0] == "int64":
        return [drawn.pick(f"{target} = {read}", f"{target} = ({read} * 3 - {access(to, False)}) % {MODULUS}")]
    forms = (
        f"{target} = {read}", f"{target} = {read}", f"{target} = 0.5 * {read}", f"{target} += 0.5 * {read}",
        f"{target} = {read} - {maker.term(array, place)}", f"{target} = 0.5 * ({access(to, False)} + {read})",
        f"{target} -= {read}", f"{target} = 0.25 * {access(source, True)} + 0.5 * {read}",
    )  # fmt: skip
    return [drawn.pick(*forms)]


def row_statement(maker: Maker, place: Place) -> list[str]:
    """Statements over whole rows: shared by iterations, private to one, under a name of their own."""
    drawn = maker.drawn
    array = drawn.pick(*(name for name in maker.arrays if DTYPES[name][1] == 2), "A")
    is_integer = DTYPES[array][0] == "int64"

    def row(fresh: bool = True) -> str:
        axis = drawn.axis(place.names[-1] if place.names else None, place.names) if fresh else own
        return drawn.note(array, (axis, whole(":", (3, 3))) if drawn.chance(4) else (axis,))

    own = drawn.axis(place.names[-1] if place.names else None, place.names)
    drawn.accesses.append((array, (own, whole(":", (3, 3)))))  # the room that subscripts of a row need
    mine, other = row(False), row()
    match drawn.pick("plain", "plain", "vector", "vector", "copy", "view", "swap"):
        case "vector" if not is_integer:
            vector = drawn.note("a", (whole(":", (3, 3)),))
            drawn.equal.append((("a", 0), (array, 1)))
            forms = (f"{vector} += {other}", f"{vector} = {mine}", f"{mine} -= 0.5 * {vector}", f"a += {other}")
            return [drawn.pick(*forms)]
        case "copy":
            return [f"{ROW} = {mine}.copy()", f"{mine} = {other}", f"{other} = {ROW}"]
        case "view":
            uses = (f"{ROW}[1:] = {ROW}[:-1]", f"{ROW}[0] = {ROW}[-1]", f"{ROW} -= {other}", f"{ROW}[:] = {other}")
            return [f"{ROW} = {mine}", drawn.pick(*uses), *([f"{other} = {ROW}"] if drawn.chance(3) else [])]
        case "swap":
            return [f"{ROW} = {mine}.copy()", f"{ROW}[1:] = {ROW}[:-1]", f"{other} = {ROW}"]
        case _ if is_integer:
            return [f"{mine} = ({other} + {row()}) % {MODULUS}"]
        case _:
            return [
                drawn.pick(f"{mine} = 0.5 * ({other} + {row()})", f"{mine} += 0.5 * {other}", f"{mine} *= 0.5",
                           f"{mine} = {other} - {maker.term(array, place)}")
            ]  # fmt: skip
