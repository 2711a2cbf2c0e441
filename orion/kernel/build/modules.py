"""Generated modules: from source to machine code, or from the disk cache."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba import types
from numba.core.errors import NumbaError

from orion.errors import UnsupportedLoopError, describe
from orion.kernel.build.cache import in_words, load_module, machine, tell_not_kept
from orion.kernel.build.folder import check_current_folder
from orion.kernel.build.machine_code import give_up_cache, load_machine_code, set_up_compiler
from orion.kernel.build.slice_errors import short_slice_errors

SUPPORT = (
    "buffers",
    "complexes",
    "intrinsics",
    "keyed",
    "numpys",
    "overlapped",
    "replicas",
    "slices",
    "sums",
    "taking",
    "vectors",
)
RUNTIME_FILES = (
    "calling.py",
    "../keyed_random.py",
    "build/entries.py",
    "build/shared_values.py",
    "build/slice_errors.py",
    *(f"support/{name}.py" for name in SUPPORT),
)
NUMBA_SETTINGS = (
    "OPT", "CPU_NAME", "CPU_FEATURES", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "BOUNDSCHECK", "USING_SVML",
)  # fmt: skip
"""With these Numba makes other machine code: variables `NUMBA_…`, entries of its file, values set in `numba.config`."""

CPU_SETTINGS = ("CPU_NAME", "CPU_FEATURES", "ENABLE_AVX")
"""Those that choose the CPU."""

_compiling = threading.Lock()


def load_compilable(name: str, text: str) -> ModuleType:
    """The generated module of that name and source. UnsupportedLoopError where Numba's compiler is switched off: its
    decorators then hand back plain functions, and generated source calls what only machine code can do."""
    if numba.config.DISABLE_JIT or not _is_compilable():
        why = "loops run as machine code, made by Numba; this variable, or `disable_jit` in its file, switches it off"
        hint = "unset NUMBA_DISABLE_JIT and start Python again, or run the loop as it is written: `f.serial(...)`"
        raise UnsupportedLoopError(describe("NUMBA_DISABLE_JIT is set: no loop can be compiled", why=why, hint=hint))
    return load_module(name, text)


def _is_compilable() -> bool:
    """Whether what generated source calls was imported with the compiler switched on."""
    from orion.kernel.support.intrinsics import is_to_leave

    return not isinstance(is_to_leave, FunctionType)


def compile_dispatcher(
    module: ModuleType,
    dispatcher: Any,
    signature: tuple[types.Type, ...],
    load_shipped: Callable[[], bool] = lambda: False,
) -> None:
    """Compile a function of a generated module for one signature, or take it from the disk cache, or by `load_shipped`
    from elsewhere. Raises NumbaError, and StorageError where the current folder was deleted."""
    with _compiling:
        if dispatcher.overloads:
            return
        if not load_machine_code(dispatcher, signature) and not load_shipped():
            check_current_folder()
            set_up_compiler()
            _compile(module, dispatcher, signature)
        dispatcher.disable_compile()  # scalars are converted, and other arrays refused, rather than compiled for


def _compile(module: ModuleType, dispatcher: Any, signature: tuple[types.Type, ...]) -> None:
    with short_slice_errors():
        try:
            dispatcher.compile(signature)
        except NumbaError:
            raise
        except Exception as error:  # the cache is damaged, which may show in any way, or cannot be written
            if isinstance(error, OSError):
                tell_not_kept(in_words(error, dispatcher._cache.cache_path))
            give_up_cache(dispatchers(module))
            dispatcher.compile(signature)


def dispatchers(module: ModuleType) -> list[Any]:
    """The compiled functions of a generated module."""
    return [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]


def key_of(*parts: str) -> str:
    """Return a hash of a text, or several, and of all else that its machine code depends on."""
    settings = [f"{name}={getattr(numba.config, name, None)}" for name in NUMBA_SETTINGS]
    return hashlib.sha256("\0".join([*parts, machine(), *settings, *_compilers()]).encode()).hexdigest()[:24]


def key_for_any_cpu(*parts: str) -> str:
    """Return such a hash that is the same on every CPU: the CPU is told apart from it. It has Orion's version, too."""
    settings = [f"{name}={getattr(numba.config, name, None)}" for name in NUMBA_SETTINGS if name not in CPU_SETTINGS]
    version = sys.modules["orion"].__version__
    hashed = "\0".join([*parts, machine(), *settings, version, *_versions(), *_runtime()])
    return hashlib.sha256(hashed.encode()).hexdigest()[:24]


@cache
def _compilers() -> tuple[str, ...]:
    """What turns source into machine code here: versions, processor, and what generated source calls."""
    return (*_versions(), f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}", *_runtime())


def _versions() -> tuple[str, str]:
    return numba.__version__, llvmlite.__version__


@cache
def _runtime() -> tuple[str, ...]:
    return tuple((Path(__file__).parents[1] / name).read_text("utf-8") for name in RUNTIME_FILES)
