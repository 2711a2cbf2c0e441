"""Machine code on disk of functions that Numba compiles as they are, beside that of generated modules."""

from __future__ import annotations

import contextlib
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock

from orion.kernel.build.cache import in_words, machine_code_folder, tell_not_kept
from orion.kernel.build.checked import CheckedFiles
from orion.kernel.build.machine_code import add_machine_code, set_up_compiler


def load_function(dispatcher: Any, key: str) -> bool:
    """Give the dispatcher the machine code of that key; False where there is none that can be loaded."""
    try:
        with global_compiler_lock:
            parts = _files(key).load(key)
            if parts is None:
                return False
            set_up_compiler()
            dispatcher.targetctx.refresh()  # what the code calls in Numba's library is found by name
            found = CompileResult._rebuild(dispatcher.targetctx, *parts)
            add_machine_code(dispatcher, found)
            return True
    except Exception:  # what damaged or foreign files may end in: it is compiled
        return bool(dispatcher.overloads)


def save_function(dispatcher: Any, key: str) -> None:
    """Write the machine code of a compiled function, if it is the same in every process, and can be written."""
    (found,) = dispatcher.overloads.values()
    if found.lifted or found.library.has_dynamic_globals:
        return
    with contextlib.suppress(Exception), global_compiler_lock:  # what cannot be pickled is not kept
        parts = found._reduce()
        try:
            _files(key).save(key, parts)
        except OSError as error:
            tell_not_kept(in_words(error))


def _files(key: str) -> CheckedFiles:
    stem = f"orion_function_{key}"
    return CheckedFiles(str(machine_code_folder(stem)), stem, "")
