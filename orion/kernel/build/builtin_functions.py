"""Python's own functions that Numba lacks, in functions that it compiles as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numba.core import types
from numba.extending import overload


def backwards(values: Any) -> Any:
    """`reversed(values)`, of ranges and of arrays of one axis.

    >>> list(backwards(range(0, 7, 3)))
    [6, 3, 0]
    """
    return reversed(values)


@overload(backwards)  # type: ignore[untyped-decorator]
def _backwards(values: Any) -> Callable[[Any], Any] | None:
    if isinstance(values, types.RangeType):  # type: ignore[attr-defined]

        def of_range(values: Any) -> Any:  # pragma: no cover - compiled
            last = values.start + (len(values) - 1) * values.step
            return range(last, values.start - values.step, -values.step)

        return of_range
    if isinstance(values, types.Array) and values.ndim == 1:

        def of_array(values: Any) -> Any:  # pragma: no cover - compiled
            return values[::-1]

        return of_array
    return None


backwards.__qualname__ = "reversed"  # as Numba's messages have it


IN_PLACE: Mapping[str, Any] = {"reversed": backwards}
"""What stands for them, by their names."""
