"""Kernels that the Python interpreter runs in place of machine code, as their compiling is most of what tests take.

Of the kernels of many files of tests (`MOSTLY`) one in twenty is compiled, always the same ones; with `make test-all`
all are. The others go through everything but Numba and LLVM: they are planned, proved and written as always, and run
by the runtime's own threads, on the arrays of the call. Always compiled is what the interpreter has no stand-in for
(sums of rows in registers), what it computes otherwise (complex and narrow numbers, sums of truth values), and what has
more to do than it does quickly.

A test that fails so fails. Where that is for what the interpreter computes otherwise, `is_for_the_interpreter` has to
say of such kernels that they are always compiled.
"""

from __future__ import annotations

import ctypes
import re
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from orion.kernel.build import compile as compiling
from orion.kernel.build import follow as following
from orion.kernel.build.walker import walker
from orion.kernel.calling import AHEAD, CONTROL_SIZE, FLAG_STRIDE, GO, NOWHERE, KernelSource, first_slots
from orion.kernel.instructions import RUNNING
from orion.kernel.support import taking
from tests.oracles.interpreted import STAND_INS, WALKER, Walked, kernel_code, tell_end
from tests.trials import ALL

ONE_IN = 20
STAGES = ("test_frontend_", "test_passes_", "test_rewrites_")
MOSTLY = {
    "test_accumulators_runs", "test_argument_cures",
    "test_array_order", "test_bars", "test_caps", "test_changed_bounds", "test_choices",
    "test_coalesce", "test_conditions", "test_counted_lists", "test_cures", "test_defaults",
    "test_dependence_element_sums", "test_dynamic", "test_early_exits", "test_element_stores", "test_everyday",
    "test_fills", "test_followed_random", "test_guarded_accesses", "test_hidden_names", "test_index_arrays",
    "test_indirect_loops", "test_inspected_loops",
    "test_inspector", "test_lengths", "test_lists_of_rows", "test_looked_through", "test_made_arrays",
    "test_many_sizes", "test_mapped_keys",
    "test_matrices", "test_names", "test_outside_arrays", "test_overlapping_rows", "test_plan_rounds",
    "test_plan_together", "test_polybench", "test_random_inspected", "test_random_reads", "test_ranged_subscripts",
    "test_renaming", "test_returned_arrays", "test_reused_loop_variables",
    "test_running_extremes", "test_scalars_after_loops", "test_short_circuit", "test_sparse_loops", "test_temporaries",
    "test_truth_values", "test_tsvc", "test_tsvc_indirect", "test_uncompiled", "test_whole_functions",
}  # fmt: skip
"""Files of tests of which that is so, and how the names of more of them begin: their loops are many, and what is tried
is what loops do, not how numbers are rounded or how wide they are."""

LONGEST = 60.0
"""Seconds that a tile waits for another one."""

MOST = 1500
"""The interpreter runs kernels whose arrays have no more elements than this, and no integers above it."""

OTHERWISE = {
    "bool", "complex64", "complex128", "float16", "float32", "int8", "int16", "uint8", "uint16", "uint32", "uint64"
}  # fmt: skip
"""What the interpreter, which has Python's numbers beside NumPy's, adds, rounds or wraps around otherwise."""

NAMES = frozenset(STAND_INS) | {
    "PATIENCE", "is_ready", "load_row", "math", "np", "prefetch_row", "spread", "store_row", "take"
}  # fmt: skip
_telling = threading.Lock()
compile_kernel, follow = compiling.compile_kernel, following.Follow


def are_mostly_uncompiled(test: pytest.Item) -> bool:
    """Whether that is so for a test. On Ray, kernels are run by other processes."""
    return is_mostly_uncompiled(test.path.stem) and not ALL and test.get_closest_marker("ray") is None


def is_mostly_uncompiled(file: str) -> bool:
    """Whether that is so for tests of a file that are not on Ray, unless everything is tried."""
    return file in MOSTLY or file.startswith(STAGES)


@contextmanager
def mostly_uncompiled() -> Iterator[None]:
    """Where this holds, threads of this process run nearly all kernels by the interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "compile_kernel", kernel)
        patch.setattr(following, "Follow", Followed)
        yield


def kernel(source: KernelSource) -> Any:
    """In place of `compile_kernel`."""
    return Uncompiled(source) if is_for_the_interpreter(source) else compile_kernel(source)


class Followed:
    """In place of what follows instructions. Where a kernel is compiled, its tiles are so called from here."""

    def __init__(self, sources: Sequence[KernelSource]) -> None:
        self.sources = sources
        self.scope = walking_scope()
        exec(WALKER, self.scope)
        self.scope["run_walk"] = self._walk

    def _walk(self, takes_tiles: bool, *given: Any) -> None:
        """Run the tiles of a loop, of whose walk the table says this."""
        self.scope["walk_taking" if takes_tiles else "walk"](*given)

    def table(self, loops: Sequence[tuple[Any, ...]]) -> Any:
        return following.Table(loops) if all(isinstance(one[0], int) for one in loops) else Table(loops)

    def __call__(self, rows: Any, registers: Any, table: Any, state: Any) -> None:
        if isinstance(table, following.Table):
            follow(self.sources)(rows, registers, table, state)
            return
        try:
            with np.errstate(all="ignore"):
                self.scope["follow"](rows, registers, table, state)
        except Exception as error:
            running = int(state[RUNNING])
            compiling.left_by(error, self.sources[running], table.loops[running][-1])


def is_for_the_interpreter(source: KernelSource) -> bool:
    if ALL or is_one_of_twenty(f"{source.text}{source.arguments}"):
        return False
    if any(argument.dtype in OTHERWISE for argument in source.arguments):
        return False
    return NAMES.issuperset(imported(source.text))


def is_one_of_twenty(text: str) -> bool:
    return zlib.crc32(text.encode()) % ONE_IN == 0


def imported(text: str) -> Iterator[str]:
    """The names that a generated module imports.

    >>> list(imported("import math\\nfrom numba import int64, uint64"))
    ['int64', 'uint64']
    """
    for names in re.findall(r"(?m)^from [\w.]+ import (.*)$", text):
        yield from names.split(", ")


class Uncompiled(Walked):
    """A kernel that the interpreter runs until there is too much to do; then it is compiled after all."""

    def __init__(self, source: KernelSource) -> None:
        self.source = source
        scope = walking_scope()
        exec(kernel_code(source.text), scope)
        tile = scope[source.entry]

        def entry(*arguments: Any) -> None:
            with np.errstate(all="ignore"):
                tile(*arguments)

        super().__init__(entry, source.takes_tiles, scope)
        self.walk = self

    def __call__(self, block: Any, tiles: Any, round: int, *flags: Any) -> None:
        extents, control, *arguments = block
        if any(is_large(one) for one in arguments):
            walk = compile_kernel(self.source).walk
            walk(walk.block(extents, control, arguments), tiles, round, *flags)
            return
        try:
            super().__call__(block, tiles, round, *flags)
        except Exception as error:
            compiling.left_by(error, self.source, control)

    def block(self, extents: Any, control: Any, arguments: Sequence[Any]) -> Block:
        return Block(self.source, super().block(extents, control, arguments))

    def pack(self, block: Block, extents: Any, control: Any, arguments: Sequence[Any]) -> None:
        block[:] = super().block(extents, control, arguments)


class Block(list[Any]):
    """The arguments of a kernel as they are, in place of a block."""

    def __init__(self, source: KernelSource, arguments: Any) -> None:
        super().__init__(arguments)
        self.source = source

    def copy(self) -> Block:
        return Block(self.source, self)


class Table:
    """What stands for the walker's table: it has the arrays themselves."""

    def __init__(self, loops: Sequence[tuple[Any, ...]]) -> None:
        self.loops = loops

    def __len__(self) -> int:
        return len(self.loops)

    def __getitem__(self, place: tuple[int, int]) -> Any:
        return self.loops[place[0]][place[1]]


class Slots:
    """A block by its slots: what registers have becomes what kernels take, and arrays are their own addresses."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def __setitem__(self, slot: int, value: Any) -> None:
        place = first_slots(self.block.source).index(slot)
        dtype = np.dtype(self.block.source.arguments[place].dtype)
        bits = np.array([value], np.int64)
        self.block[AHEAD + place] = bits.view(dtype)[0].item() if dtype.itemsize == 8 else dtype.type(value).item()

    def __getitem__(self, slot: int) -> Any:
        slots = first_slots(self.block.source)
        if slot in slots:
            return Address(self.block[AHEAD + slots.index(slot)], 0)
        return len(self.block[AHEAD + slots.index(slot - 1)])


class Address:
    """The place of an element of an array."""

    def __init__(self, array: Any, at: int) -> None:
        self.array, self.at = array, at

    def __add__(self, count: int) -> Address:
        return Address(self.array, self.at + count)


def loaded(place: Any) -> int:
    """The integer at an element of an array; at an address where the block is that of a compiled kernel."""
    if not isinstance(place, Address):
        return ctypes.c_int64.from_address(int(place)).value
    return int(place.array[place.at // 8 : place.at // 8 + 1].view(np.int64)[0])


def loaded_byte(place: Any) -> int:
    return int(place.array[place.at]) if isinstance(place, Address) else ctypes.c_uint8.from_address(int(place)).value


def store(place: Any, value: int) -> None:
    if isinstance(place, Address):
        place.array[place.at // 8 : place.at // 8 + 1].view(np.int64)[0] = value
    else:
        ctypes.c_int64.from_address(int(place)).value = value


def store_byte(place: Any, value: int) -> None:
    if isinstance(place, Address):
        place.array[place.at] = value
    else:
        ctypes.c_uint8.from_address(int(place)).value = int(value)


def as_float(bits: Any) -> Any:
    return np.array([bits], np.int64).view(np.float64)[0]


def as_bits(value: Any) -> int:
    return int(np.array([value], np.float64).view(np.int64)[0])


def single_bits(value: Any) -> int:
    raise AssertionError("kernels with other floats than float64 are compiled")


def is_past_product(one: Any, other: Any) -> bool:
    return not -(2**63) <= int(one) * int(other) < 2**63


def fixed_at(table: Table, row: int, column: int) -> Any:
    found = table[row, column // 2 + 1]
    return Slots(found) if isinstance(found, Block) else found


def array_at(table: Table, row: int, column: int) -> Any:
    return fixed_at(table, row, column)


def run_tile(entry: Any, block: Any, tile: int, round: int) -> None:
    block = block.block if isinstance(block, Slots) else block
    if isinstance(entry, int):
        none, number = np.zeros(tile + 2, np.int64), np.array([tile])
        done, control = np.zeros(FLAG_STRIDE * (tile + 1), np.int64), np.zeros(CONTROL_SIZE, np.int64)
        walker()(entry, block, number, round, none, none, none, done, control)
    else:
        entry(tile, round, *block)


def is_large(argument: Any) -> bool:
    return argument.size > MOST if isinstance(argument, np.ndarray) else abs(argument) > MOST


def walking_scope() -> dict[str, Any]:
    """What modules are run with, the walker beside them."""
    own = {**STAND_INS, **rows_in_memory(), "take": TAKING["take"], "PATIENCE": TAKING["PATIENCE"]}
    return {**own, "is_ready": is_ready, "finish": finish, **OF_TABLE}


def rows_in_memory() -> dict[str, Any]:
    """What stands for rows in registers: arrays. Each operation rounds each element once there, too."""

    def load_row(array: Any, at: int, length: int) -> Any:
        return array.reshape(-1)[at : at + length].copy()

    def store_row(array: Any, at: int, row: Any) -> None:
        array.reshape(-1)[at : at + row.size] = row

    def spread(value: Any, length: int) -> Any:
        return np.full(length, value)

    def prefetch_row(array: Any, at: int, length: int) -> None:
        pass

    return {"load_row": load_row, "store_row": store_row, "spread": spread, "prefetch_row": prefetch_row}


def told_one_by_one(tile: int, round: int, control: Any) -> None:
    with _telling:
        tell_end(tile, round, control)


def compare_exchange(array: Any, index: int, expected: int, value: int) -> bool:
    with _telling:
        is_so = bool(array[index] == expected)
        if is_so:
            array[index] = value
    return is_so


def rested(spins: int, most: int) -> int:
    time.sleep(0)
    return spins + 1


def load_acquire(array: Any, index: int) -> Any:
    return array[index]


OF_TABLE = {
    "fixed_at": fixed_at, "array_at": array_at, "run_tile": run_tile, "loaded": loaded,
    "loaded_byte": loaded_byte, "store": store, "store_byte": store_byte,
    "as_float": as_float, "as_bits": as_bits, "single_bits": single_bits,
    "is_past_product": is_past_product, "NOWHERE": NOWHERE,
}  # fmt: skip

TAKING: dict[str, Any] = {
    **STAND_INS, **{name: getattr(taking, name) for name in ("FLAG_STRIDE", "IMPATIENCE", "LEFT", "LOOKED_AT")},
    **{name: getattr(taking, name) for name in ("NO_MORE", "PATIENCE", "SPINS_BEFORE_YIELD")},
    "compare_exchange": compare_exchange, "load_acquire": load_acquire, "must_leave": STAND_INS["is_left"],
    "rested": rested, "tell_end": told_one_by_one,
}  # fmt: skip
"""What `take` calls. Itself it is what is compiled otherwise."""

for _name in ("_may_run", "_past_begun", "take"):
    TAKING[_name] = FunctionType(getattr(taking, _name).py_func.__code__, TAKING)


def is_ready(tile: int, round: int, wait_offsets: Any, waits: Any, lags: Any, done: Any, control: Any) -> bool:
    last = time.monotonic() + LONGEST
    for k in range(wait_offsets[tile], wait_offsets[tile + 1]):
        while control[0] == GO and done[waits[k] * FLAG_STRIDE] < round + 1 - lags[k]:
            if time.monotonic() > last:
                raise TimeoutError(f"tile {tile} waits for tile {waits[k]}")
            time.sleep(0)
    return bool(control[0] == GO)


def finish(tile: int, round: int, done: Any) -> None:
    done[tile * FLAG_STRIDE] = round + 1
