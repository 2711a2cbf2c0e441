"""Runs all tests as if on other CPUs: what BLAS, NumPy and the compiler make of this one's instructions is taken away.

    python tests/cpus.py                                    # every CPU that this machine can stand for
    python tests/cpus.py --cpu znver4 -n0 tests/test_promise.py

Results that depend on how a CPU's vectors round show up here as failures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm
from numpy._core._multiarray_umath import __cpu_dispatch__

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Cpu:
    """A CPU by the name that LLVM has for it, and the one that OpenBLAS has; `numpy` are the groups of features that
    NumPy finds on it beyond its baseline.
    """

    name: str
    openblas: str
    numpy: tuple[str, ...]
    needs: tuple[str, ...]
    """The features without which OpenBLAS's code for it cannot run."""


AVX2 = ("AVX2", "FMA3", "X86_V3")
AVX512 = (*AVX2, "AVX512F", "AVX512CD", "AVX512_SKX", "X86_V4")
CPUS = (
    Cpu("haswell", "Haswell", AVX2, ("avx2", "fma")),
    Cpu("skylake-avx512", "SkylakeX", AVX512, ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl")),
    Cpu("znver3", "Zen", AVX2, ("avx2", "fma")),
    Cpu(
        "znver4",
        "Cooperlake",
        (*AVX512, "AVX512_CLX", "AVX512_CNL", "AVX512_ICL"),
        ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512bf16"),
    ),
)


def missing(cpu: Cpu) -> list[str]:
    """What this machine lacks to stand for a CPU."""
    has = llvm.get_host_cpu_features()
    return [feature for feature in cpu.needs if not has.get(feature)]


def environment(cpu: Cpu) -> dict[str, str]:
    """The variables that make BLAS, NumPy and Numba take this machine for that CPU.

    NumPy is told only of features that it chooses by at run time: of others it warns. Numba gets the CPU's features
    without those that this machine lacks.
    """
    lacking = sorted(name for name, has in llvm.get_host_cpu_features().items() if not has)
    return {
        "OPENBLAS_CORETYPE": cpu.openblas,
        "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in __cpu_dispatch__ if name not in cpu.numpy),
        "NUMBA_CPU_NAME": cpu.name,
        "NUMBA_CPU_FEATURES": ",".join(f"-{name}" for name in lacking),
    }


def run(cpu: Cpu, arguments: list[str]) -> str:
    """Run pytest as if on a CPU; what came of it, in words."""
    lacking = missing(cpu)
    if lacking:
        return f"not run, this machine has no {', '.join(lacking)}"
    print(f"\n== as if on {cpu.name}", flush=True)
    command = [sys.executable, "-m", "pytest", *arguments]
    code = subprocess.run(
        command, cwd=ROOT, env={"ORION_TESTS": "all"} | os.environ | environment(cpu), check=False
    ).returncode
    return "passed" if code == 0 else f"failed: pytest ended with {code}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="append", choices=[cpu.name for cpu in CPUS], help="only this one")
    chosen, arguments = parser.parse_known_args()
    cpus = [cpu for cpu in CPUS if not chosen.cpu or cpu.name in chosen.cpu]
    came = {cpu.name: run(cpu, arguments or ["--numprocesses", "2", "--dist", "worksteal"]) for cpu in cpus}
    print()
    for name, outcome in came.items():
        print(f"{name:16}{outcome}")
    return int(any(outcome.startswith("failed") for outcome in came.values()))


if __name__ == "__main__":
    sys.exit(main())
