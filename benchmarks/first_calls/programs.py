"""The programs whose first calls are measured: everyday loops, PolyBench, and whole NumPy programs."""

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


WHOLE = (
    "cavity_flow", "channel_flow", "adi", "heat_3d", "horizontal_diffusion",
    "vertical_advection", "resnet_block", "conv2d_bias", "mlp", "softmax",
    "lenet", "correlation", "gram_schmidt", "contour_integral", "crc16",
    "mandelbrot", "self_energies", "n_body", "azimuthal_mean", "shortest_paths",
)  # fmt: skip
"""The names in `benchmarks.programs.all`, whose import imports Orion: it is timed where one of them is asked for."""


def whole(name: str) -> Program:
    from benchmarks.programs import all as every

    program = next(one for one in every.PROGRAMS if one.name == name)
    return Program(program.function.__wrapped__, lambda: program.arguments("large"))


PROGRAMS: dict[str, Callable[[], Program]] = {
    **{f"everyday.{case.name}": partial(everyday, case) for case in CASES},
    **{f"polybench.{kernel.name}": partial(polybench, kernel) for kernel in KERNELS},
    **{f"whole.{name}": partial(whole, name) for name in WHOLE},
}
