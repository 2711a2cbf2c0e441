"""A generated loop nest: the source of its function and its arguments; printed as a file that can be run again."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np

FILLS = ("value", "whole", "sign", "index", "count")
"""What arrays are filled with: numbers that are rounded when added; small whole numbers; -1, 0 and 1; subscripts, from
0 to 3; trip counts, from 0 to 2."""

INDEX_VALUES, COUNT_VALUES = 4, 3
HELPER = "again"
"""The name of the function that `nest` may call, which stands before it in the source."""

_number = count()


@dataclass(frozen=True)
class ArraySpec:
    """An array argument: its shape at the small and at the larger size, and what it is filled with (`FILLS`)."""

    dtype: str
    fill: str
    small: tuple[int, ...]
    large: tuple[int, ...]

    def shape(self, size: int) -> tuple[int, ...]:
        return self.large if size else self.small

    def grown(self, size: int, needed: tuple[int, ...]) -> ArraySpec:
        """At least so large at that size."""
        shape = tuple(max(pair) for pair in zip(self.shape(size), needed, strict=True))
        return replace(self, **{"large" if size else "small": shape})


@dataclass(frozen=True)
class Nest:
    """A function called `nest`, by its source, and its arguments by name: arrays, integers (small, large), and NumPy
    scalars (dtype, value), which are the same at both sizes."""

    source: str
    arrays: Mapping[str, ArraySpec]
    integers: Mapping[str, tuple[int, int]]
    seed: int
    scalars: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def has_slices(self) -> bool:
        """Whether it has statements over slices or rows, which kernels may leave to NumPy's functions as Numba has
        them: only compiled code shows what becomes of those."""
        has_slices = any(isinstance(node, ast.Slice) for node in ast.walk(ast.parse(self.source)))
        return has_slices or "row" in self.source or ".copy()" in self.source

    @property
    def has_views(self) -> bool:
        """Whether names stand for parts of arrays: the recorder of accesses does not know of them."""
        return "row" in self.source

    @property
    def has_other_loops(self) -> bool:
        """Whether it calls a helper function, or has a comprehension. The recorder of accesses gives the loops
        of these other numbers."""
        return any(isinstance(node, ast.ListComp) or _is_helper(node) for node in ast.walk(ast.parse(self.source)))

    @property
    def has_other_dtypes(self) -> bool:
        """Whether it has arrays whose numbers NumPy computes with in fewer bits than Python has."""
        return any(spec.dtype not in ("float64", "int64") for spec in self.arrays.values())

    def fixed(self) -> dict[str, Any]:
        """The NumPy scalars."""
        return {name: np.dtype(dtype).type(value) for name, (dtype, value) in self.scalars.items()}

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
            found[name] = filled(rng, spec, spec.shape(size))
        return found | {name: pair[size] for name, pair in self.integers.items()} | self.fixed()

    def file_text(self, why: str, command: str) -> str:
        """A Python file that says what went wrong, and from which the nest can be read again."""
        arrays = "".join(f"    {name!r}: {spec!r},\n" for name, spec in self.arrays.items())
        header = "\n".join(f"# {line}".rstrip() for line in why.splitlines())
        return (
            f"{header}\n# {command}\n"
            "import numpy as np\n\nfrom tests.oracles.nests import ArraySpec\n\n"
            f"SEED = {self.seed}\nARRAYS = {{\n{arrays}}}\nINTEGERS = {dict(self.integers)!r}\n"
            f"SCALARS = {dict(self.scalars)!r}\n\n\n{self.source}"
        )

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {spec.dtype}{list(spec.small)}" for name, spec in self.arrays.items())
        numbers = ", ".join(f"{name}={small}" for name, (small, _) in self.integers.items())
        scalars = ", ".join(f"{name} {dtype} {value}" for name, (dtype, value) in self.scalars.items())
        return f"{self.source}# {shapes}; {numbers}; {scalars}; seed {self.seed}\n"


def _is_helper(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == HELPER


def read_nest(text: str) -> Nest:
    """The nest of a file made by `Nest.file_text`."""
    scope: dict[str, Any] = {}
    exec(compile(text, "<nest file>", "exec"), scope)  # a file that the user names
    source = text[re.search(r"(?m)^def ", text).start() :]  # type: ignore[union-attr]
    return Nest(source, scope["ARRAYS"], scope["INTEGERS"], scope["SEED"], scope.get("SCALARS", {}))


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
