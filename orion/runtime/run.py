"""The run stage: a prepared program and the caller's arrays in; arrays changed, the function's result out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orion.runtime.prepared import PreparedProgram
from orion.runtime.session import Session, current_session


def run_program(prepared: PreparedProgram, arguments: Mapping[str, object], session: Session | None = None) -> Any:
    """Run a program in a session (the current one by default) and return what the user's function returns.

    `arguments` has a value for every parameter of the function: dense arrays as `ndarray` or `DenseArray`,
    sparse ones as `SparseArray`, scalars as they are. Types, layouts, aliases and bounds have been checked,
    and the schedules fit the number of workers of the session (with one worker, any schedule will do: its
    tiles are run in the serial order). Arrays change in place. Raises the first error of any worker,
    `OutOfBoundsError` for a subscript that is checked at run time, `WorkerLostError`, and KeyboardInterrupt,
    once all workers have left the program; the session can be used after each.
    """
    return (session or current_session()).run(prepared, arguments)
