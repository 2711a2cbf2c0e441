"""The processor that kernels are compiled for, and the settings of Numba that kernels depend on."""

from __future__ import annotations

import os

import llvmlite.binding as llvm
from numba.core import config

from orion.dataclass import dataclass

SETTINGS = ("NUMBA_DISABLE_JIT", "NUMBA_OPT", "NUMBA_ENABLE_AVX", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
"""Variables of the environment that may make kernels slow."""


@dataclass(frozen=True, slots=True)
class Target:
    """A processor by its name in LLVM, the bits of its vector registers as kernels use them, Numba's own threading
    layer, and the settings that are made in the environment."""

    cpu: str
    vectors: int
    layer: str
    settings: dict[str, str]


def target() -> Target:
    """Return the processor of this process, or the one that Numba's settings name."""
    from orion.kernel.support.vectors import native_lanes

    settings = {name: os.environ[name] for name in SETTINGS if os.environ.get(name)}
    return Target(config.CPU_NAME or llvm.get_host_cpu_name(), 32 * native_lanes(), config.THREADING_LAYER, settings)
