"""What Numba raises where an array is assigned to a part of another shape, with a text that is made when it is read.

Numba's own text is made by compiled code, for which it compiles its strings: two seconds for a row that is assigned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.extending import register_jitable


class SliceError(ValueError):
    """Numba's error, given the shapes of the part and of what is assigned to it.

    >>> print(SliceError((2,), (3,)))
    cannot assign slice of shape (2,) from input of shape (3,)
    """

    def __str__(self) -> str:
        return f"cannot assign slice of shape {self.args[0]} from input of shape {self.args[1]}"


@register_jitable  # type: ignore[untyped-decorator]
def raise_for_shapes(given: Any, wanted: Any) -> None:
    """Raise it; `given` is the shape of what is assigned."""
    raise SliceError(wanted, given)


@contextmanager
def short_slice_errors() -> Iterator[None]:
    """What Numba compiles meanwhile raises this error."""
    from numba.np import arrayobj  # which runs of code from the disk do without

    with global_compiler_lock:
        own = arrayobj.raise_with_shape_context
        arrayobj.raise_with_shape_context = raise_for_shapes
        try:
            yield
        finally:
            arrayobj.raise_with_shape_context = own
