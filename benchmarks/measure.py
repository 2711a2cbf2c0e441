"""Interleaved measurements, and what is kept of them."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Protocol

from orion.cores import cores


class Trainer(Protocol):
    """Something that runs epochs of SGD on ratings that it holds."""

    def train(self, epochs: int) -> None: ...


@dataclass(frozen=True)
class Measured:
    """All measurements of one contender in one benchmark: seconds (`s`, less is better) or a speed."""

    benchmark: str
    contender: str
    workers: int
    unit: str
    values: tuple[float, ...]
    notes: str = ""

    @property
    def name(self) -> str:
        return f"{self.contender} x{self.workers}"

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def best(self) -> float:
        return min(self.values) if self.unit == "s" else max(self.values)

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "median": self.median, "best": self.best}


@dataclass(frozen=True)
class Ratio:
    """One contender's figure over another's, and what it should be: at least, or at most, `target`.

    `medians` is what counts. `bests` is the ratio of the best measurements, which other work on the machine hardly
    touches: where the two differ much, the machine was busy.
    """

    benchmark: str
    what: str
    medians: float
    bests: float
    target: float | None = None
    at_most: bool = False

    @classmethod
    def between(cls, of: Measured, over: Measured, target: float | None = None, at_most: bool = False) -> Ratio:
        what = f"{of.name} / {over.name}"
        return cls(of.benchmark, what, of.median / over.median, of.best / over.best, target, at_most)

    @property
    def is_met(self) -> bool | None:
        if self.target is None:
            return None
        return self.medians <= self.target if self.at_most else self.medians >= self.target

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "met": self.is_met}


@dataclass
class Results:
    """What the benchmarks of one run gave."""

    measured: list[Measured] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "machine": machine(),
            "measured": [entry.to_dict() for entry in self.measured],
            "ratios": [ratio.to_dict() for ratio in self.ratios],
        }


def interleaved(contenders: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, tuple[float, ...]]:
    """Every contender's measurements, in rounds of one each, so that a slow minute slows all of them."""
    values: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, measure in contenders.items():
            values[name].append(measure())
    return {name: tuple(taken) for name, taken in values.items()}


def seconds(action: Callable[[], object]) -> float:
    """How long an action takes."""
    start = perf_counter()
    action()
    return perf_counter() - start


def machine() -> dict[str, Any]:
    """What the numbers depend on: processor, cores, versions."""
    packages = ("numpy", "numba", "llvmlite", "ray")
    return {
        "processor": _processor(),
        "cores": cores(),
        "load": os.getloadavg(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
