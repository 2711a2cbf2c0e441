"""A generated loop nest: the source of its function and its arguments; printed as a file that can be run again."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np

FILLS = ("value", "whole", "sign", "index", "count")
"""What arrays are filled with: numbers that are rounded when added; small whole numbers; -1, 0 and 1; subscripts, from
0 to 3; trip counts, from 0 to 2."""

INDEX_VALUES, COUNT_VALUES = 4, 3
_number = count()


@dataclass(frozen=True)
class ArraySpec:
    """An array argument: its shape at the small and at the larger size, and what it is filled with (`FILLS`)."""

    dtype: str
    fill: str
    small: tuple[int, ...]
    large: tuple[int, ...]


@dataclass(frozen=True)
class Nest:
    """A function called `nest`, by its source, and its arguments by name: arrays, and integers (small, large)."""

    source: str
    arrays: Mapping[str, ArraySpec]
    integers: Mapping[str, tuple[int, int]]
    seed: int

    def function(self) -> FunctionType:
        """The function object; its source can be found by `inspect`."""
        name = f"<random nest {next(_number)}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(keepends=True), name)
        scope: dict[str, object] = {"np": np}
        exec(compile(self.source, name, "exec"), scope)  # the text is ours
        function = scope["nest"]
        assert isinstance(function, FunctionType)
        return function

    def arguments(self, size: int = 0) -> dict[str, Any]:
        """New arguments of the small (0) or the larger (1) size, in the order of the parameters; always the same."""
        rng = np.random.default_rng(self.seed)
        found: dict[str, Any] = {}
        for name, spec in self.arrays.items():
            found[name] = filled(rng, spec, spec.large if size else spec.small)
        return found | {name: pair[size] for name, pair in self.integers.items()}

    def file_text(self, why: str, command: str) -> str:
        """A Python file that says what went wrong, and from which the nest can be read again."""
        arrays = "".join(f"    {name!r}: {spec!r},\n" for name, spec in self.arrays.items())
        header = "\n".join(f"# {line}".rstrip() for line in why.splitlines())
        return (
            f"{header}\n# {command}\n"
            "import numpy as np\n\nfrom tests.oracles.nests import ArraySpec\n\n"
            f"SEED = {self.seed}\nARRAYS = {{\n{arrays}}}\nINTEGERS = {dict(self.integers)!r}\n\n\n{self.source}"
        )

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {spec.dtype}{list(spec.small)}" for name, spec in self.arrays.items())
        numbers = ", ".join(f"{name}={small}" for name, (small, _) in self.integers.items())
        return f"{self.source}# {shapes}; {numbers}; seed {self.seed}\n"


def read_nest(text: str) -> Nest:
    """The nest of a file made by `Nest.file_text`."""
    scope: dict[str, Any] = {}
    exec(compile(text, "<nest file>", "exec"), scope)  # a file that the user names
    return Nest(text[text.index("def nest(") :], scope["ARRAYS"], scope["INTEGERS"], scope["SEED"])


def filled(rng: np.random.Generator, spec: ArraySpec, shape: tuple[int, ...]) -> np.ndarray:
    """An array of random numbers of the kind that the spec asks for."""
    match spec.fill:
        case "value":
            values = rng.integers(-40, 41, shape) / 10.0
        case "whole":
            values = rng.integers(-3, 4, shape)
        case "sign":
            values = rng.integers(-1, 2, shape)
        case "index":
            values = rng.integers(0, INDEX_VALUES, shape)
        case _:
            values = rng.integers(0, COUNT_VALUES, shape)
    return np.asarray(values, dtype=spec.dtype)
