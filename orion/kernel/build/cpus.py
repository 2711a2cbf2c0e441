"""CPUs that kernels are compiled for ahead of time, and which of them this machine is.

LLVM names CPUs, but does not say what those have that it knows by name. So a kernel is compiled for a CPU with the
features of a level of x86-64 (https://gitlab.com/x86-psABIs/x86-64-ABI) alone, all others switched off: then it is
known what it needs.
"""

from __future__ import annotations

import platform
import subprocess
import sys

import llvmlite.binding as llvm
from numba.core import config

from orion.dataclass import dataclass

_V1 = ("64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
_V2 = (*_V1, "cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
LEVELS = {"x86-64": _V1, "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
"""CPUs that stand for all that have these features, the best last."""

GENERIC = "x86-64-v3"
HOST = "host"

PROBE = """
import sys
import llvmlite.binding as llvm
from numba.core.codegen import initialize_llvm

kind = "<16 x float>"
text = f"define {kind} @add({kind} %x, {kind} %y) {{ %z = fadd {kind} %x, %y ret {kind} %z }}"
initialize_llvm()
machine = llvm.Target.from_default_triple().create_target_machine(cpu=sys.argv[1], features="+64bit")
code = machine.emit_assembly(llvm.parse_assembly(text))
print("zmm" in code, "ymm" in code)
"""
"""Prints whether a CPU has registers of 512 and 256 bits. LLVM says of a name that it does not know, on the standard
error stream, that it ignores it; and may end the process."""


class UnknownCpuError(ValueError):
    """No CPU that kernels can be compiled for; the text says why."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU by its name in LLVM, and the features that code for it needs."""

    name: str
    needs: tuple[str, ...]

    @property
    def is_level(self) -> bool:
        """Whether it stands for all CPUs that have its features."""
        return self.name in LEVELS

    @property
    def features(self) -> str:
        """Its features as LLVM is told of them: all that it does not need are switched off."""
        known = sorted({*llvm.get_host_cpu_features(), *self.needs})
        return ",".join(f"{'+' if name in self.needs else '-'}{name}" for name in known)

    def fits(self, host: Cpu) -> bool:
        """Whether code for it may run on that machine: on a CPU of its name, or of any if it is a level."""
        return (self.is_level or self.name == host.name) and set(self.needs) <= set(host.needs)


def cpu_of(name: str) -> Cpu:
    """Return the CPU of that name, as LLVM has it, or of `host`. UnknownCpuError where there is none."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise UnknownCpuError(f"kernels are compiled ahead of time for x86-64 alone, not for {platform.machine()}")
    if name == HOST:
        return this_cpu()
    if name in LEVELS:
        return Cpu(name, LEVELS[name])
    command = [sys.executable, "-c", PROBE, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not name or done.returncode or "not a recognized" in done.stderr:
        raise UnknownCpuError(
            f"LLVM knows no CPU `{name}`; there are {', '.join(LEVELS)}, `{HOST}` for the one of this machine, and "
            "names such as skylake-avx512 or znver4"
        )
    is_512, is_256 = (word == "True" for word in done.stdout.split())
    return Cpu(name, _V4 if is_512 else _V3 if is_256 else _V2)


def this_cpu() -> Cpu:
    """Return the CPU of this machine, with all features that Numba uses of it."""
    has = [name for name, has in llvm.get_host_cpu_features().items() if has]
    return Cpu(llvm.get_host_cpu_name(), tuple(name for name in has if config.ENABLE_AVX or not name.startswith("avx")))


def is_chosen() -> bool:
    """Whether settings of Numba choose the CPU that this process compiles for."""
    return config.CPU_NAME is not None or config.CPU_FEATURES is not None
