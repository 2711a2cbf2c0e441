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

from orion.kernel.build.entries import FLAGS, FOLLOW, WALK, own_address_of
from orion.kernel.build.modules import compile_dispatcher, key_of, load_compilable
from orion.kernel.build.perf import name_for_perf
from orion.kernel.build.walker_text import TEXT

_TABLE = types.Array(types.int64, 2, "C")
AGAIN = (FLAGS, _TABLE, FLAGS, _TABLE, _TABLE, _TABLE)
PACKS = (FLAGS, _TABLE, FLAGS)


NOTHING = np.zeros(0, np.int64)
"""The block of a tile without arguments."""

NOTHING.setflags(write=False)


@cache
def _compiled(name: str, *signature: types.Type) -> Any:
    module = walker_module()
    function = getattr(module, name)
    compile_dispatcher(module, function, signature)
    name_for_perf(function, f"orion::{name}")
    return function


def walker(takes_tiles: bool = False) -> Any:
    """Return the compiled function, `walk_taking` where workers take tiles of each other."""
    return _compiled("walk_taking" if takes_tiles else "walk", *WALK)


@cache
def walk_address(takes_tiles: bool) -> int:
    """Return the address by which `follow` calls it."""
    return own_address_of(walker(takes_tiles))


def packing() -> Any:
    """Return the compiled function that puts arrays into blocks."""
    return _compiled("pack", *PACKS)


def repeating() -> Any:
    """Return the compiled function that makes ready for arrays like those before."""
    return _compiled("again", *AGAIN)


def follower() -> Any:
    """Return the compiled function that follows instructions: it is given these, int64 (rows, 4), the registers, the
    table, int64 (loops + 1, COLUMNS), and the state."""
    return _compiled("follow", *FOLLOW)


@cache
def server() -> Callable[..., None]:
    """Return the compiled function of a worker that does what is posted (`orion.kernel.parking`): it is given its box,
    int64 (1, BOX)."""
    return partial(_compiled("serve", types.int64, _TABLE), own_address_of(follower()))


@cache
def leader() -> Callable[..., bool]:
    """Return that of worker 0: it is given the boxes, int64 (workers, BOX), what `follow` is, the control rows, and
    whether it was called already."""
    lead = _compiled("lead", types.int64, _TABLE, *FOLLOW, _TABLE, types.boolean)
    return partial(lead, own_address_of(follower()))


def gatherer() -> Any:
    """Return the compiled function that waits until all workers have done what was posted, given boxes and control
    rows."""
    return _compiled("gather", _TABLE, _TABLE)


def meeting_walk() -> Callable[..., None]:
    """Return the walk of a barrier, which is called as that of a kernel, without a block."""
    return partial(walker(), 0, NOTHING)


def walker_module() -> ModuleType:
    """Return the module of the walkers, not compiled yet."""
    return load_compilable(f"orion_walker_{key_of(TEXT)}", TEXT)
