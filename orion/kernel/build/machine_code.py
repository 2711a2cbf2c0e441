"""Machine code from Numba's disk cache, without setting up Numba's compiler first; and that set up without SciPy, and
with names of functions that no other process gives.

Numba loads every type and function that it knows before it looks into its cache (0.3 s, nearly half of it SciPy's
linear algebra). To run code that is there already, its runtime for arrays and the code itself are enough (0.02 s).
"""

from __future__ import annotations

import contextlib
import os
from importlib.util import find_spec
from typing import Any

from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys


def load_machine_code(dispatcher: Any, signature: Any) -> bool:
    """Give the dispatcher the cached code for the signature; False where there is none that can be loaded.

    What this does is a part of Numba's own `Dispatcher.compile`. Whatever goes wrong, that is there to fall back on.
    """
    try:
        with global_compiler_lock:
            rtsys.initialize(dispatcher.targetctx)
            found = dispatcher._cache._load_overload(signature, dispatcher.targetctx)
            if found is None:
                return False
            add_machine_code(dispatcher, found)
            return True
    except Exception:
        return bool(dispatcher.overloads)


def add_machine_code(dispatcher: Any, found: Any) -> None:
    """Give the dispatcher what was compiled, and has been loaded."""
    dispatcher.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
    dispatcher.add_overload(found)


def set_up_compiler() -> None:
    """Number functions apart from those of other processes, and import a module of Numba's that would import SciPy's
    linear algebra just to learn that there is one.

    Numba imports it again where a product or a decomposition is compiled. Whatever goes wrong, Numba's own way is left.
    """
    if not isinstance(FunctionIdentity._unique_ids, _Numbers):
        FunctionIdentity._unique_ids = _Numbers()
    with contextlib.suppress(Exception), global_compiler_lock:
        from numba.np import linalg

        ensure_blas = linalg.ensure_blas
        linalg.ensure_blas = _find_blas
        try:
            import numba.np.arraymath  # noqa: F401
        finally:
            linalg.ensure_blas = ensure_blas


class _Numbers:
    """Random numbers for the names of compiled functions. Numba counts from 1 in each process: where code of two
    processes is loaded from disk, functions of one name, types and number are one to LLVM, whatever they do
    (https://github.com/numba/numba/issues/10486)."""

    def __next__(self) -> int:
        return int.from_bytes(os.urandom(8), "little")


def _find_blas() -> None:
    """Raise ImportError where there is no SciPy."""
    if find_spec("scipy") is None:
        raise ImportError("no SciPy")


def give_up_cache(dispatchers: list[Any]) -> None:
    """Take away what is in the cache for these functions, and compile them without it."""
    for dispatcher in dispatchers:
        with contextlib.suppress(OSError):
            dispatcher._cache.flush()
        dispatcher._cache = NullCache()
