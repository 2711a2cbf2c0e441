"""The calls of the examples: each function that an example decorates, with the arguments of its first call in a short
run of the example."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import orion
from orion.api import ParallelFunction
from orion.arrays.dense import DenseArray

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

SMALL = (
    ("sgd_mf", "--size 100k --rank 4 --epochs 1 --no-compare"),
    ("sgd_mf", "--size 100k --rank 4 --epochs 1 --no-compare --optimizer adagrad"),
    ("gauss_seidel", "--side 70 --rounds 1 --sweeps 6"),
    ("kmeans", "--points 600 --width 4 --clusters 5 --iterations 1"),
    ("pagerank", "--pages 400 --links 4 --iterations 1"),
    ("pagerank", "--pages 400 --links 4 --iterations 1 --how push"),
    ("pagerank", "--pages 400 --links 4 --iterations 1 --how sweep"),
    ("gbt", "--rows 600 --features 6 --trees 1"),
    ("gbt", "--rows 600 --features 6 --trees 1 --objective regression"),
    ("lda", "--documents 60 --vocabulary 80 --length 20 --topics 4 --sweeps 1"),
    ("tensor_cp", "--shape 20 16 12 --nonzeros 1500 --rank 3 --iterations 1"),
    ("tensor_cp", "--shape 20 16 12 --nonzeros 1500 --rank 3 --iterations 1 --how sgd"),
    ("triangular", "--side 14 --iterations 1"),
    ("triangular", "--side 14 --iterations 1 --how sor"),
    ("graph", "--pages 300 --links 3"),
)
"""Examples, and the options of short runs of them."""


@dataclass(frozen=True)
class Call:
    """A call of a decorated function of an example."""

    name: str
    function: ParallelFunction
    arguments: Mapping[str, Any]

    def fresh(self) -> dict[str, Any]:
        """The arguments, with copies of dense arrays."""
        return {name: _copied(value) for name, value in self.arguments.items()}


class _Noted:
    """Stands for a decorated function, and notes the arguments of its first call."""

    def __init__(self, name: str, function: ParallelFunction, found: dict[str, Call]) -> None:
        self._name, self._function, self._found = name, function, found

    def __call__(self, *given: Any, **named: Any) -> Any:
        if self._name not in self._found:
            bound = signature(self._function).bind(*given, **named).arguments
            call = Call(self._name, self._function, bound)
            self._found[self._name] = Call(self._name, self._function, call.fresh())
        return self._function(*given, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def example_calls() -> Iterator[Call]:
    """The first call of each decorated function of the examples."""
    found: dict[str, Call] = {}
    for example, options in SMALL:
        with patch.object(sys, "path", [str(EXAMPLES), *sys.path]):
            module = import_module(example)
        noted = {
            name: _Noted(f"{example}.{name}", one, found)
            for name, one in vars(module).items()
            if isinstance(one, ParallelFunction)
        }
        with patch.multiple(module, **noted), redirect_stdout(StringIO()):
            assert module.main(["--backend", "threads", "--workers", "1", *options.split()]) in (0, None), example
    yield from found.values()


def _copied(value: Any) -> Any:
    if isinstance(value, DenseArray):
        return orion.array(value.to_numpy())
    return value.copy() if isinstance(value, np.ndarray) else value
