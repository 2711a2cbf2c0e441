"""Functions that Numba lacks, or has otherwise, in functions that it compiles as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba.core import types
from numba.core.typing.npydecl import parse_dtype
from numba.extending import overload
from numba.np.numpy_support import as_dtype


def backwards(values: Any) -> Any:
    """`reversed(values)`, of ranges and of arrays of one axis.

    >>> list(backwards(range(0, 7, 3)))
    [6, 3, 0]
    """
    return reversed(values)


backwards.__name__ = backwards.__qualname__ = "reversed"  # as Numba's messages have it


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


def array_of(values: Any, dtype: Any = None) -> Any:
    """`np.array(values)`; of a list without items too, whose items would be rows.

    >>> array_of([(1, 2), (3, 4)]).tolist()
    [[1, 2], [3, 4]]
    """
    return np.array(values, dtype)


array_of.__name__ = array_of.__qualname__ = "array"


@overload(array_of)  # type: ignore[untyped-decorator]
def _array_of(values: Any, dtype: Any = None) -> Callable[..., Any]:
    axes, made = _axes(values)
    if dtype not in (None, types.none) and not isinstance(dtype, types.Omitted):  # type: ignore[attr-defined]
        made = as_dtype(parse_dtype(dtype))
    if len(axes) < 2:

        def as_numba_has_it(values: Any, dtype: Any = None) -> Any:  # pragma: no cover - compiled
            return np.array(values, dtype)

        return as_numba_has_it

    def of_rows(values: Any, dtype: Any = None) -> Any:  # pragma: no cover - compiled
        return np.array(values, made) if len(values) else np.empty(axes, made)

    return of_rows


def _axes(kind: Any) -> tuple[tuple[int, ...], Any]:
    """The shape of the array of a list without items, and its dtype; no axes of what is no list of numbers."""
    axes: list[int] = []
    kinds = [kind]
    while isinstance(kinds[0], types.List | types.BaseTuple) and len({*map(_length, kinds)}) == 1:  # type: ignore[attr-defined]
        axes.append(_length(kinds[0]))
        kinds = [one for kind in kinds for one in ([kind.dtype] if isinstance(kind, types.List) else kind.types)]  # type: ignore[attr-defined]
    is_known = axes[:1] == [0] and kinds and all(isinstance(one, types.Number | types.Boolean) for one in kinds)
    return (tuple(axes), np.result_type(*map(as_dtype, kinds))) if is_known else ((), None)


def _length(kind: Any) -> int:
    """How many items a tuple of the type has; none of them where it is that of a list."""
    return len(kind.types) if isinstance(kind, types.BaseTuple) else 0  # type: ignore[attr-defined]


IN_PLACE: Mapping[str, Any] = {"reversed": backwards}
"""What stands for them, by their names."""
