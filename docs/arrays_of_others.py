"""The table of arrays of other libraries: `python docs/arrays_of_others.py` rewrites it in the guide.

Each row is measured: a loop runs over a million elements, to each of which it adds 1 where they may be changed; else it
adds them up. Rows of libraries that are not installed stay as they are.
"""

from __future__ import annotations

import array
import ctypes
import mmap
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import orion
from orion.arrays.foreign import address_of, viewed

PAGE = Path(__file__).with_name("guides") / "arrays-of-others.md"
BEGIN, END = "<!-- table: written by `python docs/arrays_of_others.py` -->\n\n", "\n\n<!-- end of table -->"
HEADER = ("array", "dtype", "in place", "result", "bytes copied")

ELEMENTS = 1_000_000
CALLS = 5
"""Calls before the one that is measured: what they compile and keep is no copy of an argument."""


@orion.parallel_for
def add_one(x):
    for i in range(x.shape[0]):
        x[i] += 1
    return x


@orion.parallel_for
def total(x):
    found = 0.0
    for i in range(x.shape[0]):
        found += x[i]
    return x, found


class Exported:
    """An object whose only way to its memory is `__array_interface__`."""

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        self.memory = memory

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.memory.__array_interface__


@dataclass(frozen=True)
class Kind:
    """A kind of array: its name in the table, the library that it needs, what makes one of zeros, and where the memory
    of one begins by what the library itself says, if it does."""

    name: str
    make: Callable[[Any], Any]
    library: str = "numpy"
    start: Callable[[Any], int] | None = None


def _of_buffer(value: Any) -> int:
    return address_of(np.asarray(memoryview(value)))


def _of_tensor(value: Any) -> int:
    return int(value.data_ptr())


def _of_arrow(value: Any) -> int:
    return int(value.buffers()[1].address)


KINDS = (
    Kind("`torch.Tensor`", lambda torch: torch.zeros(ELEMENTS), "torch", _of_tensor),
    Kind("`torch.Tensor`, integers", lambda torch: torch.zeros(ELEMENTS, dtype=torch.int64), "torch", _of_tensor),
    Kind("`torch.Tensor`, every second element", lambda torch: torch.zeros(2 * ELEMENTS)[::2], "torch", _of_tensor),
    Kind("`jax.Array`", lambda jax: jax.numpy.zeros(ELEMENTS), "jax", lambda value: value.unsafe_buffer_pointer()),
    Kind(
        "column of a `pandas.DataFrame`",
        lambda pandas: pandas.DataFrame({"x": np.zeros(ELEMENTS), "n": 0})["x"],
        "pandas",
    ),
    Kind(
        "`pandas.Series`, `Int64` without gaps",
        lambda pandas: pandas.Series(np.zeros(ELEMENTS, int), dtype="Int64"),
        "pandas",
    ),
    Kind("`pandas.Index`", lambda pandas: pandas.Index(np.zeros(ELEMENTS)), "pandas"),
    Kind("`pyarrow.Array`", lambda pyarrow: pyarrow.array(np.zeros(ELEMENTS)), "pyarrow", _of_arrow),
    Kind(
        "object with `__array_interface__`",
        lambda np: Exported(np.zeros(ELEMENTS)),
        start=lambda one: address_of(one.memory),
    ),
    Kind('`array.array("d")`', lambda _: array.array("d", bytes(8 * ELEMENTS)), start=lambda one: one.buffer_info()[0]),
    Kind('`array.array("i")`', lambda _: array.array("i", bytes(4 * ELEMENTS)), start=lambda one: one.buffer_info()[0]),
    Kind("`bytearray`", lambda _: bytearray(ELEMENTS), start=_of_buffer),
    Kind("`bytes`", lambda _: bytes(ELEMENTS), start=_of_buffer),
    Kind('`memoryview`, cast to `"d"`', lambda _: memoryview(bytearray(8 * ELEMENTS)).cast("d"), start=_of_buffer),
    Kind("`mmap.mmap`", lambda _: mmap.mmap(-1, ELEMENTS), start=_of_buffer),
    Kind("array of `ctypes`", lambda _: (ctypes.c_double * ELEMENTS)(), start=ctypes.addressof),
)


def row_of(kind: Kind) -> tuple[str, ...]:
    """Measure one row of the table."""
    value = kind.make(import_module(kind.library))
    view = viewed(value)
    assert type(view) is np.ndarray, kind.name
    function = add_one if view.flags.writeable else total
    for _ in range(CALLS):
        function(value)
    tracemalloc.start()
    returned = function(value)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    returned = returned[0] if function is total else returned
    is_copied = most > view.nbytes // 10 or (kind.start is not None and kind.start(value) != address_of(view))
    first = value.memory[0] if isinstance(value, Exported) else value[0]
    in_place = "read-only" if function is total else "yes" if first == CALLS + 1 else "no"
    result = "the object" if returned is value else type(returned).__name__
    return kind.name, view.dtype.name, in_place, result, f"{view.nbytes:,}" if is_copied else "0"


def rows(known: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield all rows; those of libraries that are not installed as they are known."""
    for kind in KINDS:
        try:
            import_module(kind.library)
        except ImportError:
            if kind.name in known:
                yield known[kind.name]
        else:
            yield row_of(kind)


def written(page: str) -> str:
    """Return the page with its table measured."""
    before, _, rest = page.partition(BEGIN)
    table, _, after = rest.partition(END)
    lines = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in table.splitlines()[2:]]
    known = {cells[0]: cells for cells in lines}
    cells = [HEADER, ("---",) * len(HEADER), *rows(known)]
    return before + BEGIN + "\n".join(f"| {' | '.join(row)} |" for row in cells) + END + after


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
