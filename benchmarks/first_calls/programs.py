"""The programs whose first calls are measured: everyday loops, and PolyBench."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.everyday.case import Case
from benchmarks.everyday.cases import CASES
from benchmarks.polybench.kernel import Kernel
from benchmarks.polybench.kernels import KERNELS


@dataclass(frozen=True, slots=True)
class Program:
    """A function, and new arguments for each call of it."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]


def everyday(case: Case) -> Program:
    return Program(case.function, lambda: case.arguments(case.large))


def polybench(kernel: Kernel) -> Program:
    return Program(kernel.function, lambda: tuple(kernel.inputs("bench").values()))


PROGRAMS: dict[str, Callable[[], Program]] = {
    **{f"everyday.{case.name}": partial(everyday, case) for case in CASES},
    **{f"polybench.{kernel.name}": partial(polybench, kernel) for kernel in KERNELS},
}
