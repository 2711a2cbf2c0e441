"""Generated source → compiled function."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.errors import UnsupportedLoopError, describe, of_user
from orion.kernel.build.canonical import Canonical, canonical
from orion.kernel.build.entries import OWN, Packer, address_of
from orion.kernel.build.modules import compile_dispatcher, key_of, load_compilable
from orion.kernel.build.numba_words import of_kernel, place_in_source
from orion.kernel.build.perf import is_on, name_for_perf
from orion.kernel.build.recorded import record
from orion.kernel.build.shipped import load_shipped
from orion.kernel.build.told import told
from orion.kernel.build.walker import packing, walker
from orion.kernel.calling import ABORT, AHEAD, GO, RAISED, SCALARS, Argument, KernelSource

RECEIVE = "receive"
"""The function of a module that applies updates which have come from elsewhere (`KernelSource.receives`)."""


class KernelWalk:
    """The walk of a kernel, as `orion.kernel.calling` says. An error that has a code is left to `control`."""

    def __init__(self, source: KernelSource, dispatcher: Any) -> None:
        self.source = source
        self.entry = address_of(dispatcher)
        self._packer = Packer(signature(source)[OWN:], packing())
        self._walk = walker(source.takes_tiles)

    def block(self, extents: Any, control: Any, arguments: Sequence[Any]) -> NDArray[np.int64]:
        """The arguments of tiles as their entry takes them; those that are None are put later."""
        return self._packer.block((extents, control, *arguments))

    def pack(self, block: NDArray[np.int64], extents: Any, control: Any, arguments: Sequence[Any]) -> None:
        """Put other arguments of tiles into a block, but for those that are None."""
        self._packer.pack(block, (extents, control, *arguments))

    def put(self, block: NDArray[np.int64], position: int, argument: Any) -> None:
        """Put the kernel's scalar at that position into a block."""
        self._packer.put(block, AHEAD + position, argument)

    def __call__(
        self, block: NDArray[np.int64], tiles: Any, round: int, wait_offsets: Any, waits: Any, lags: Any, done: Any,
        control: Any,
    ) -> None:  # fmt: skip
        try:
            self._walk(self.entry, block, tiles, round, wait_offsets, waits, lags, done, control)
        except Exception as error:
            left_by(error, self.source, control)


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel that can be called."""

    source: KernelSource
    walk: KernelWalk
    module: ModuleType

    @property
    def has_receive(self) -> bool:
        """Whether it has a function that applies updates which have come from elsewhere."""
        return bool(self.source.receives)

    @property
    def receive(self) -> Any:
        """That function (`KernelSource.receives`)."""
        return self.module.receive


def compile_kernel(source: KernelSource) -> CompiledKernel:
    """Compile a kernel, or take it from the disk cache, or from the package of the loop. Raises UnsupportedLoopError
    where Numba cannot compile it."""
    record(source)
    shared, kinds = shared_text(source), signature(source)
    own = _name_for_perf(source) if is_on() else ""  # two loops at one address have one name
    module = load_compilable(module_name(shared, kinds, own), shared.text)
    dispatcher = getattr(module, source.entry)
    try:
        compile_dispatcher(
            module, dispatcher, kinds, lambda: load_shipped(module, dispatcher, shared.text, kinds, source.user.file)
        )
    except NumbaError as error:
        raise _unsupported(error, source, shared) from error
    name_for_perf(dispatcher, _name_for_perf(source))
    return CompiledKernel(source, KernelWalk(source, dispatcher), module)


def shared_text(source: KernelSource) -> Canonical:
    """Return the text of a kernel as it is compiled."""
    return canonical(source.text, frozenset({source.entry, RECEIVE}))


def module_name(shared: Canonical, kinds: tuple[types.Type, ...], own: str = "") -> str:
    """A name with a hash of all that the machine code of a kernel depends on, and of what else it is to be told by."""
    return f"orion_kernel_{key_of(shared.text, *map(str, kinds), own)}"


def _name_for_perf(source: KernelSource) -> str:
    """The user's function, file and line of a kernel."""
    function, line = place_of(source)
    return f"orion::{function}:{source.user.file}:{line}"


def place_of(source: KernelSource) -> tuple[str, int]:
    """Return the user's function of a kernel, and the line of its loop."""
    first = min((span for span in source.lines if span is not None and not span.inlined), default=None)
    return source.name.rpartition("_")[0], source.user.first_line if first is None else first.line


def signature(source: KernelSource) -> tuple[types.Type, ...]:
    """The Numba types of the arguments of a tile."""
    flags = types.Array(types.int64, 1, "C")
    extents = types.Array(types.int64, source.extents_ndim, "C", readonly=True)
    return (types.int64, types.int64, extents, flags, *(_type(argument) for argument in source.arguments))


def _type(argument: Argument) -> types.Type:
    dtype = numba.from_dtype(np.dtype(argument.dtype))
    match argument.kind:
        case kind if kind in SCALARS:
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


def _unsupported(error: NumbaError, source: KernelSource, shared: Canonical) -> UnsupportedLoopError:
    """Numba's refusal of generated source, told about the user's."""
    message = describe(
        "this cannot be compiled",
        span=place_in_source(error, source),
        source=source.user,
        why=of_kernel(error, source, shared),
        hint="write it with scalars and explicit loops over elements, or move it out of the loop",
    )
    return UnsupportedLoopError(message)
