"""A serial loop around planned ones, compiled as one function that calls their walks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import types

from orion.kernel.build.compile import compile_dispatcher, left_by, load_compilable, module_name, signature
from orion.kernel.calling import LEADING, KernelSource

HEAD = (
    "from orion.kernel.support.intrinsics import end_raising, has_raised, is_alarmed, is_left",
    "from orion.kernel.support.intrinsics import is_to_leave, walk_function",
)
ROUND = LEADING.index("round")
FLAGS = len(LEADING) - 1
STATE = 4
"""The position of `state` among the arguments."""


def compile_serial_loop(
    lines: Sequence[str],
    meeting: KernelSource,
    started: Sequence[tuple[KernelSource, Sequence[int]]],
    dtypes: Sequence[str],
) -> Callable[..., None]:
    """Compile the function of an `orion.runtime.rounds.Rounds`, or take it from the disk cache.

    `meeting` is the kernel that its text calls as `meet`; `started` are those that it calls as `walk0`, …, each with
    the positions of the arguments that are passed on; `dtypes` are those of its last arguments. All these kernels have
    been compiled. `state[0]` says to which of them an error belongs, as its place in `started`.
    """
    imports = [f"from {module_name(meeting)} import {meeting.entry} as meet"]
    imports += [f"from {module_name(s)} import {s.entry} as walk{k}" for k, (s, _) in enumerate(started)]
    text = "\n".join([*HEAD, *imports, "", "", "@walk_function", *lines]) + "\n"
    name = f"orion_rounds_{started[0][0].name}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    module = load_compilable(name, text)
    kinds: list[types.Type] = [types.int64] * STATE + [types.Array(types.int64, 1, "C"), *_flags(meeting)]
    for source, passed in started:
        kinds += [*_flags(source), *(signature(source)[len(LEADING) + position] for position in passed)]
    kinds += [numba.from_dtype(np.dtype(dtype)) for dtype in dtypes]
    compile_dispatcher(module, module.rounds, tuple(kinds))
    lengths = [FLAGS + len(passed) for _, passed in started]
    controls = [STATE + FLAGS + sum(lengths[:place]) + FLAGS for place in range(len(started))]
    return _guarded(module.rounds, [source for source, _ in started], controls)


def _flags(source: KernelSource) -> tuple[types.Type, ...]:
    """The types of the leading arguments of a walk without the round."""
    leading = signature(source)[: len(LEADING)]
    return (*leading[:ROUND], *leading[ROUND + 1 :])


def _guarded(
    dispatcher: Callable[..., None], sources: Sequence[KernelSource], controls: Sequence[int]
) -> Callable[..., None]:
    """The function, with its errors treated as a walk's; `controls` are the positions of the control rows."""

    def rounds(*arguments: Any) -> None:
        try:
            dispatcher(*arguments)
        except Exception as error:
            place = int(arguments[STATE][0])
            left_by(error, sources[place], arguments[controls[place]])

    return rounds
