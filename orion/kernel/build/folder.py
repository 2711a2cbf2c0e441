"""The current folder, which Numba needs while it compiles: its errors name files relative to it."""

from __future__ import annotations

from pathlib import Path

from orion.errors import StorageError, describe


def check_current_folder() -> None:
    """Raise StorageError where the current folder was deleted."""
    try:
        Path.cwd()
    except FileNotFoundError:
        why = "Numba needs it while it compiles"
        hint = "go to a folder that there is, `os.chdir(…)` or `cd`, and call again"
        raise StorageError(describe("the current folder was deleted", why=why, hint=hint)) from None
