"""What of an array tiles touch, as an announcer lists it (`orion.dependence.announcer`): each row once, in the order in
which tiles need them; or as ranges of rows, tile by tile."""

from __future__ import annotations

from typing import Any

from orion.kernel.support.intrinsics import walk_function


@walk_function
def rows_in_turn(
    places: Any, starts: Any, stops: Any, seen: Any, rows: Any, need: Any
) -> int:  # pragma: no cover - compiled
    """The rows that some tiles touch, those of a tile that none before it touches after the others. Tile k has the
    accesses `places[starts[k] : stops[k]]`, each twice the number of a row, or one more. `seen` (rows of the array,)
    is 0 for all before and after this; `need[k]` is how many of the rows must be there before tile k. Returns how many
    there are."""
    count = 0
    for tile in range(len(starts)):
        for at in range(starts[tile], stops[tile]):
            row = places[at] >> 1
            if seen[row] == 0:
                seen[row] = 1
                rows[count] = row
                count += 1
        need[tile] = count
    for k in range(count):
        seen[rows[k]] = 0
    return count
