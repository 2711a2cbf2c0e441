"""Generated source → compiled function."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaError

from orion.errors import UnsupportedLoopError, describe, of_user
from orion.kernel.build.cache import in_words, load_module, machine, tell_not_kept
from orion.kernel.build.folder import check_current_folder
from orion.kernel.build.machine_code import give_up_cache, load_machine_code
from orion.kernel.build.numba_words import of_kernel, place_in_source
from orion.kernel.build.told import told
from orion.kernel.calling import ABORT, GO, LEADING, RAISED, Argument, KernelSource

CONTROL = LEADING.index("control")
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
RUNTIME_FILES = ("calling.py", "../keyed_random.py", *(f"support/{name}.py" for name in SUPPORT))
NUMBA_SETTINGS = (
    "OPT", "CPU_NAME", "CPU_FEATURES", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "BOUNDSCHECK", "USING_SVML",
)  # fmt: skip
"""With these Numba makes other machine code: variables `NUMBA_…`, entries of its file, values set in `numba.config`."""

_compiling = threading.Lock()


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel that can be called as `orion.kernel.calling` says."""

    source: KernelSource
    walk: Callable[..., None]
    module: ModuleType

    @property
    def has_receive(self) -> bool:
        """Whether it has a function that applies updates which have come from elsewhere."""
        return bool(self.source.receives)

    @property
    def receive(self) -> Callable[..., bool]:
        """That function (`KernelSource.receives`)."""
        return getattr(self.module, "receive")  # type: ignore[no-any-return]  # noqa: B009

    def machine_code(self) -> str:
        """The assembly of the kernel."""
        dispatcher = getattr(self.module, self.source.entry)
        return "\n".join(dispatcher.inspect_asm().values())


def compile_kernel(source: KernelSource) -> CompiledKernel:
    """Compile a kernel, or take it from the disk cache. Raises UnsupportedLoopError where Numba cannot compile it."""
    module = load_compilable(module_name(source), source.text)
    dispatcher = getattr(module, source.entry)
    try:
        compile_dispatcher(module, dispatcher, signature(source))
    except NumbaError as error:
        raise _unsupported(error, source) from error
    return CompiledKernel(source, _guarded(dispatcher, source), module)


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


def compile_dispatcher(module: ModuleType, dispatcher: Any, signature: tuple[types.Type, ...]) -> None:
    """Compile a function of a generated module for one signature, or take it from the disk cache. Raises NumbaError,
    and StorageError where the current folder was deleted."""
    with _compiling:
        if dispatcher.overloads:
            return
        if not load_machine_code(dispatcher, signature):
            check_current_folder()
            try:
                dispatcher.compile(signature)
            except NumbaError:
                raise
            except Exception as error:  # the cache is damaged, which may show in any way, or cannot be written
                if isinstance(error, OSError):
                    tell_not_kept(in_words(error, dispatcher._cache.cache_path))
                give_up_cache(dispatchers(module))
                dispatcher.compile(signature)
        dispatcher.disable_compile()  # scalars are converted, and other arrays refused, rather than compiled for


def dispatchers(module: ModuleType) -> list[Any]:
    """The compiled functions of a generated module."""
    return [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]


def module_name(source: KernelSource) -> str:
    """A name that says what the kernel is, and a hash of all that its machine code depends on."""
    settings = [f"{name}={getattr(numba.config, name, None)}" for name in NUMBA_SETTINGS]
    parts = [source.text, repr(source.arguments), machine(), *settings, *_compilers()]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"orion_kernel_{source.name}_{digest[:24]}"


@cache
def _compilers() -> tuple[str, ...]:
    """What turns source into machine code here: versions, processor, and what generated source calls."""
    cpu = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    runtime = [(Path(__file__).parents[1] / name).read_text("utf-8") for name in RUNTIME_FILES]
    return (numba.__version__, llvmlite.__version__, cpu, *runtime)


def signature(source: KernelSource) -> tuple[types.Type, ...]:
    """The Numba types of the arguments of the walk."""
    flags = types.Array(types.int64, 1, "C")
    fixed = types.Array(types.int64, 1, "C", readonly=True)
    extents = types.Array(types.int64, source.extents_ndim, "C", readonly=True)
    leading = (fixed, types.int64, extents, fixed, fixed, fixed, flags, flags)
    return (*leading, *(_type(argument) for argument in source.arguments))


def _type(argument: Argument) -> types.Type:
    dtype = numba.from_dtype(np.dtype(argument.dtype))
    match argument.kind:
        case "scalar" | "count":
            return dtype
        case "key" | "order":
            return types.Array(dtype, 1, "C", readonly=True)
        case "value":
            return types.Array(dtype, 1, "C", readonly=not argument.writeable)
        case "copies" | "own":
            return types.Array(dtype, argument.ndim, "C")
        case "array":
            layout = "C" if argument.contiguous else "A"
            return types.Array(dtype, argument.ndim, layout, readonly=not argument.writeable)
        case _:
            return types.Array(dtype, 1, "C")


def _guarded(dispatcher: Callable[..., None], source: KernelSource) -> Callable[..., None]:
    """The walk as `orion.kernel.calling` describes it: an error that has a code is left to `control`."""

    def walk(*arguments: Any) -> None:
        try:
            dispatcher(*arguments)
        except Exception as error:
            left_by(error, source, arguments[CONTROL])

    return walk


def left_by(error: Exception, source: KernelSource, control: Any) -> None:
    """Note in the control row of a kernel that an error ended it, and raise the error; one that has a code is there
    already. What a signal handler raised goes on as it is."""
    if control[RAISED]:
        raise error
    if control[0] in (GO, ABORT):
        control[0] = ABORT
        better = of_user(told(error, source))
        if better is not error:
            raise better from error
        raise error


# ------------------------------------------------------------ errors


def _unsupported(error: NumbaError, source: KernelSource) -> UnsupportedLoopError:
    """Numba's refusal of generated source, told about the user's."""
    message = describe(
        "this cannot be compiled",
        span=place_in_source(error, source),
        source=source.user,
        why=of_kernel(error, source),
        hint="write it with scalars and explicit loops over elements, or move it out of the loop",
    )
    return UnsupportedLoopError(message)
