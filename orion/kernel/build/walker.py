"""The walker: the functions that run the tiles of whatever loop, in the order of a worker.

They are compiled once for a machine, and kept on disk like kernels. For each tile they wait for the flags of others,
call the entry of the kernel (`orion.kernel.build.entries`), look whether the loop is to be left, and set the tile's own
flag. `walk` runs the tiles that it is given; `walk_taking` takes them one by one, those of other workers too. Where
there is no entry, 0, tiles do nothing but wait and tell: so workers meet. `follow` runs serial loops around planned
ones by their instructions (`orion.kernel.instructions`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np
from numba import types

from orion.kernel.build.entries import FIXED, FLAGS
from orion.kernel.build.modules import compile_dispatcher, key_of, load_compilable
from orion.kernel.build.walker_text import TEXT

SIGNATURE = (types.int64, FIXED, FIXED, types.int64, FIXED, FIXED, FIXED, FLAGS, FLAGS)
_TABLE = types.Array(types.int64, 2, "C")
_FIXED_TABLE = types.Array(types.int64, 2, "C", readonly=True)
AGAIN = (FLAGS, _TABLE, FLAGS, _TABLE, _TABLE, _TABLE)
PACKS = (FLAGS, types.Array(types.int64, 2, "C"), FLAGS)
FOLLOWS = (_FIXED_TABLE, FLAGS, _FIXED_TABLE, FLAGS)


NOTHING = np.zeros(0, np.int64)
"""The block of a tile without arguments."""

NOTHING.setflags(write=False)


@cache
def walker(takes_tiles: bool = False) -> Any:
    """Return the compiled function, `walk_taking` where workers take tiles of each other."""
    module = walker_module()
    function = module.walk_taking if takes_tiles else module.walk
    compile_dispatcher(module, function, SIGNATURE)
    return function


@cache
def packing() -> Any:
    """Return the compiled function that puts arrays into blocks."""
    function = walker_module().pack
    compile_dispatcher(walker_module(), function, PACKS)
    return function


@cache
def repeating() -> Any:
    """Return the compiled function that makes ready for arrays like those before."""
    function = walker_module().again
    compile_dispatcher(walker_module(), function, AGAIN)
    return function


@cache
def follower() -> Any:
    """Return the compiled function that follows instructions: it is given these, int64 (rows, 4), the registers, the
    table, int64 (loops + 1, COLUMNS), and the state."""
    walker(), walker(takes_tiles=True)
    function = walker_module().follow
    compile_dispatcher(walker_module(), function, FOLLOWS)
    return function


@cache
def server() -> Any:
    """Return the compiled function of a worker that does what is posted (`orion.kernel.parking`): it is given its box,
    int64 (BOX,)."""
    return _leading("serve", (FLAGS,))


@cache
def leader() -> Any:
    """Return that of worker 0: it is given the boxes, int64 (workers, BOX), what `follow` is, the control rows, and
    whether it was called already."""
    return _leading("lead", (_TABLE, *FOLLOWS, _TABLE, types.boolean))


@cache
def gatherer() -> Any:
    """Return the compiled function that waits until all workers have done what was posted, given boxes and control
    rows."""
    return _leading("gather", (_TABLE, _TABLE))


def _leading(name: str, signature: tuple[types.Type, ...]) -> Any:
    follower()
    function = getattr(walker_module(), name)
    compile_dispatcher(walker_module(), function, signature)
    return function


def meeting_walk() -> Callable[..., None]:
    """Return the walk of a barrier, which is called as that of a kernel, without a block."""
    return partial(walker(), 0, NOTHING)


def walker_module() -> ModuleType:
    """Return the module of the walkers, not compiled yet."""
    return load_compilable(f"orion_walker_{key_of(TEXT)}", TEXT)
