"""Runs a prepared program without compiling: generated kernels in the Python interpreter, workers taking turns.

Everything else is the runtime's own: skeleton, parts of loops, barriers, partial results. One worker runs at a time; at
the start of each tile an `Order` says which one goes on, among those whose tile has all that it waits for. So the tiles
of several workers are interleaved in any order that the waits of the schedule and each worker's own order allow.
"""

from __future__ import annotations

import math
import random
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from orion.kernel import instructions
from orion.kernel.build import walker
from orion.kernel.calling import ABORT, AHEAD, ENDED, FLAG_STRIDE, GO, OUT_OF_BOUNDS, KernelSource, Walk, end_mark
from orion.kernel.emit.names import INTRINSICS, NUMBERS, NUMPYS
from orion.kernel.support import intrinsics, numbers, numpys, slices
from orion.runtime.arguments import DataSource
from orion.runtime.memory import allocate_run_memory
from orion.runtime.parts import loop_parts, worker_tiles
from orion.runtime.prepared import PreparedProgram
from orion.runtime.skeleton import make_skeleton
from orion.runtime.threads.backend import LoadedProgram, run_locally


class StuckError(AssertionError):
    """No worker can go on: tiles wait for each other."""


# ---------------------------------------------------------------- what generated kernels import


def unsigned(value: Any) -> int:
    """A subscript that was proved to be inside its array."""
    number = int(value)
    if number < 0:
        raise AssertionError(f"a subscript that was proved to be inside its array is {number}")
    return number


def checked(at: int, extent: int, axis: int, site: int, control: Any) -> int:
    wrapped = int(at) + extent if at < 0 else int(at)
    if not 0 <= wrapped < extent:
        control[:5] = OUT_OF_BOUNDS, site, at, extent, axis
        raise IndexError("a subscript leaves its array")
    return wrapped


def is_inside(at: int, extent: int) -> bool:
    return 0 <= at < extent


def add_to_sum(total: Any, term: Any) -> Any:
    return total + term


def dot_of_rows(left: Any, right: Any) -> Any:
    return intrinsics.dot_of_rows_in_order(left, right)


def run_tile(entry: Callable[..., None], block: Any, tile: int, round: int) -> None:
    """Call a tile; the block has its arguments as they are."""
    entry(tile, round, *block)


def same(block: Any) -> Any:
    return block


def undecorated(function: Callable[..., None]) -> Callable[..., None]:
    return function


def converted(dtype: str) -> Callable[[Any], Any]:
    """The conversion to a dtype as machine code does it: integers keep their last bits."""

    def convert(value: Any) -> Any:
        return np.asarray(value).astype(dtype)[()]

    return convert


UNWRITTEN = {"f": np.nan, "c": np.nan, "i": -77, "u": 77, "b": True}
"""A value of each kind that no nest gives an element on purpose."""


class Numpy:
    """NumPy for generated kernels: memory that holds nothing yet is full of what nobody wrote."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty_like(self, array: Any) -> Any:
        return np.full_like(array, UNWRITTEN[array.dtype.kind])


def is_left(control: Any) -> bool:
    return bool(control[0] != GO)


def has_raised(_: Any) -> bool:
    """Nothing raises in another way than by `control` here."""
    return False


def is_after_end(tile: int, round: int, control: Any) -> bool:
    return bool(control[ENDED] > end_mark(tile, round))


def tell_end(tile: int, round: int, control: Any) -> None:
    control[ENDED] = max(control[ENDED], end_mark(tile, round))


def nothing() -> None:
    """Machine code alone makes anything of it."""


STAND_INS: dict[str, Any] = {
    **{name: converted(name) for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32")},
    **{name: getattr(intrinsics, name) for name in INTRINSICS},  # those that are plain Python are used as they are
    **{name: getattr(numbers, name) for name in NUMBERS},
    **{name: getattr(numpys, name) for name in NUMPYS},
    "np": Numpy(), "math": math, "uint64": unsigned, "int64": int, "float64": np.float64, "float32": np.float32,
    "tile_function": undecorated, "part_function": undecorated, "walk_function": undecorated,
    "run_tile": run_tile, "address": same, "helper_function": undecorated, "checked": checked,
    "is_inside": is_inside, "add_to_sum": add_to_sum, "dot_of_rows": dot_of_rows,
    "assign_part": slices.assign_part, "is_left": is_left, "is_alarmed": is_left,
    "is_to_leave": is_left, "has_raised": has_raised, "end_raising": has_raised, "seldom": nothing, "likely": same,
    "is_after_end": is_after_end, "tell_end": tell_end,
    **{name: value for name, value in vars(instructions).items() if name.isupper()},
}  # fmt: skip


def kernel_code(text: str) -> CodeType:
    """The code of a generated module without its imports of NumPy, of Numba and of what is compiled by it."""
    text = re.sub(r"(?m)^import numpy as np$|^from (numba|orion\.kernel\.[\w.]+) import (\([^)]*\)|.*)$", "", text)
    return compile(text, "<kernel>", "exec")


WALKER = kernel_code(walker.TEXT)
"""The walker itself, with what it calls as here."""


class Walked:
    """The walk of a kernel whose blocks are lists of its arguments. `entry` is its tile, 0 for tiles that do
    nothing."""

    def __init__(self, entry: Callable[..., None] | int, takes_tiles: bool, scope: dict[str, Any]) -> None:
        exec(WALKER, scope)
        self.entry = entry
        self.walking = scope["walk_taking" if takes_tiles else "walk"]

    def block(self, extents: Any, control: Any, arguments: Sequence[Any]) -> Any:
        return [extents, control, *arguments]

    def put(self, block: Any, position: int, argument: Any) -> None:
        block[AHEAD + position] = argument

    def __call__(self, block: Any, tiles: Any, round: int, *flags: Any) -> None:
        self.walking(self.entry, block, tiles, round, *flags)


class Guarded(Walked):
    """A walk that leaves errors which have a code to `control`."""

    def __call__(self, block: Any, tiles: Any, round: int, *flags: Any) -> None:
        control = flags[-1]
        try:
            super().__call__(block, tiles, round, *flags)
        except Exception:
            if control[0] in (GO, ABORT):
                control[0] = ABORT
                raise


# ---------------------------------------------------------------- turns


@dataclass
class Order:
    """Which worker goes on, by a seed: at random, or the first of a random ranking that can, as far as it can."""

    seed: int
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.greedy = self.seed % 2 == 1
        self.ranking = self.random.sample(range(16), 16)

    def next(self, workers: Sequence[int]) -> int:
        return min(workers, key=self.ranking.__getitem__) if self.greedy else self.random.choice(workers)


class Turns:
    """Stands for the pool of threads, and for `is_ready` and `finish` of generated kernels."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.running = 0
        self.locks: list[threading.Semaphore] = []
        self.waiting: dict[int, Callable[[], bool]] = {}
        self.wide: frozenset[str] = frozenset()

    def run(self, body: Callable[[int], None], workers: int, _abort: Callable[[], None]) -> None:
        """Run `body(number)` of every worker to its end; `body` keeps its errors."""
        self.locks = [threading.Semaphore(0) for _ in range(workers)]
        self.waiting = {number: lambda: True for number in range(workers)}
        threads = [threading.Thread(target=self.member, args=(body, number)) for number in range(1, workers)]
        for thread in threads:
            thread.start()
        self.member(body, 0)
        for thread in threads:
            thread.join()

    def member(self, body: Callable[[int], None], number: int) -> None:
        if number == 0:
            self.give_way()
        else:
            self.locks[number].acquire()
        try:
            with np.errstate(all="ignore"):
                body(number)
        finally:
            del self.waiting[number]
            if self.waiting:
                self.pass_on(self.choose())

    def choose(self) -> int:
        """The worker that goes on; one of those left where none can, to say so."""
        able = [number for number, is_ready in self.waiting.items() if is_ready()]
        return self.order.next(able or list(self.waiting))

    def pass_on(self, number: int) -> None:
        self.running = number
        self.locks[number].release()

    def give_way(self) -> None:
        """Let another worker go on, if the order says so, until it says that this one does."""
        own = self.running
        chosen = self.choose()
        if chosen != own:
            self.pass_on(chosen)
            self.locks[own].acquire()
        if not self.waiting[own]():
            raise StuckError("no worker can go on: tiles wait for each other")

    def is_ready(
        self, tile: int, round: int, wait_offsets: Any, waits: Any, lags: Any, done: Any, control: Any
    ) -> bool:
        needed = [
            (int(waits[k]) * FLAG_STRIDE, round + 1 - int(lags[k]))
            for k in range(wait_offsets[tile], wait_offsets[tile + 1])
        ]
        if len(self.waiting) > 1 or needed:
            self.waiting[self.running] = lambda: control[0] != GO or all(done[at] >= least for at, least in needed)
            self.give_way()
        return bool(control[0] == GO)

    def take(
        self, tiles: Any, own: int, other: int, patience: int, round: int, wait_offsets: Any, waits: Any, lags: Any,
        done: Any, control: Any,
    ) -> tuple[int, int, int, int]:  # fmt: skip
        """A tile that may run, which nobody has begun, and is begun then: any, whoever it was dealt to; for a worker
        that is given its own tiles alone the next one."""
        count = len(wait_offsets) - 1
        is_alone = len(tiles) < count
        tiles = tiles if is_alone else tiles[(len(tiles) - count) // 2 :][:count]

        def waiting() -> list[int]:
            left = [int(tile) for tile in tiles if done[tile * FLAG_STRIDE + 1] <= round]
            return left[:1] if is_alone else left

        def may_run() -> list[int]:
            return [
                tile
                for tile in waiting()
                if all(
                    done[int(waits[k]) * FLAG_STRIDE] >= round + 1 - int(lags[k])
                    for k in range(wait_offsets[tile], wait_offsets[tile + 1])
                )
            ]

        self.waiting[self.running] = lambda: control[0] != GO or not waiting() or bool(may_run())
        self.give_way()
        if control[0] != GO or not waiting():
            return -1, own, other, patience
        tile = self.order.random.choice(may_run())
        done[tile * FLAG_STRIDE + 1] = round + 1
        return tile, own, other, patience

    def finish(self, tile: int, round: int, done: Any) -> None:
        done[tile * FLAG_STRIDE] = round + 1

    def walk(self, code: CodeType, kernel: KernelSource) -> Walk:
        """The walk of a kernel as a Python function that takes turns."""
        return self.walk_with(code, kernel, {"finish": self.finish}, {})

    def walk_with(
        self, code: CodeType, kernel: KernelSource, given: Mapping[str, Any], instead: Mapping[str, Any]
    ) -> Walk:
        """The same with functions for the kernel's imports, and others in place of its own."""
        scope = self.scope(given)
        exec(code, scope)
        scope |= instead
        tile = scope[kernel.entry]
        own = tile.__code__.co_varnames[: tile.__code__.co_argcount]
        wide = [name in self.wide for name in own]

        def widened(*arguments: Any) -> None:
            tile(*(np.int64(one) if is_wide else one for one, is_wide in zip(arguments, wide, strict=True)))

        return Guarded(widened, kernel.takes_tiles, scope)

    def meeting(self) -> Callable[..., None]:
        """The walk of a barrier."""
        return partial(Guarded(0, False, self.scope({"finish": self.finish})), [])

    def scope(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {**STAND_INS, "is_ready": self.is_ready, "take": self.take, "PATIENCE": 1, **given}


# ---------------------------------------------------------------- running


class NoWatch:
    """Stands for the clock that has the main thread look for signals: the interpreter does that by itself."""

    def begin(self, rows: Any) -> None:
        pass

    def end(self) -> None:
        pass


def run_interpreted(
    prepared: PreparedProgram, codes: Sequence[CodeType], arguments: Mapping[str, Any], order: Order
) -> Any:
    """Run a program on as many workers as its schedules are for; arrays change in place, the result is returned."""
    return run_with(Turns(order), prepared, codes, arguments)


def run_with(turns: Turns, prepared: PreparedProgram, codes: Sequence[CodeType], arguments: Mapping[str, Any]) -> Any:
    """The same with workers that take these turns. Arguments that are NumPy's integers of 64 bits stay so, as they do
    in machine code: beside others they are not as narrow as those, which Python's are."""
    workers = prepared.workers
    turns.wide = frozenset(name for name, value in arguments.items() if isinstance(value, np.int64))
    walks = tuple(turns.walk(code, loop.kernel) for code, loop in zip(codes, prepared.loops, strict=True))
    memory = allocate_run_memory(prepared)
    loaded = LoadedProgram(
        sources=tuple(DataSource(loop) for loop in prepared.loops),
        skeleton=make_skeleton(prepared),
        memory=memory,
        parts=tuple(
            loop_parts(prepared, memory, walks, worker_tiles(prepared, number, workers), number)
            for number in range(workers)
        ),
        meet=turns.meeting() if workers > 1 else None,
    )
    return run_locally(prepared, loaded, arguments, turns, NoWatch())  # type: ignore[arg-type]
