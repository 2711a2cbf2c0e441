"""The plan of a decorated function without a call: types guessed from its body, sizes as far as they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from orion.api import ParallelFunction
from orion.errors import ArgumentError
from orion.inspect.guess import Known, guess_types
from orion.loop.parse import parse_function
from orion.loop.types import ArrayType, ScalarType, SparseType, Types
from orion.plan.planner import Sizes, plan_program
from orion.planned import Plan
from orion.prepare import Preparation


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says of arguments, by their names, and the number of workers."""

    shapes: Mapping[str, tuple[int, ...]]
    sparse: Mapping[str, int]
    elements: Mapping[str, int]
    dtypes: Mapping[str, str]
    integers: Mapping[str, int]
    workers: int

    def names(self) -> Iterator[str]:
        """All names that it speaks of."""
        for part in (self.shapes, self.sparse, self.elements, self.dtypes, self.integers):
            yield from part


def plan_function(function: ParallelFunction, definition: ast.FunctionDef, given: Given) -> Plan:
    """The plan of a function. Sizes that are not given are symbols.

    Raises `ArgumentError` for a dtype that does not exist, or a shape that does not fit; `UnsupportedLoopError` for
    code that cannot be compiled.
    """
    types = _types(function, definition, given)
    typed = Preparation(function.__wrapped__, function.options).typed(types)
    shapes = {name: given.shapes[name] for name in types if name in given.shapes}
    integers = {name: given.integers[name] for name in typed.parameters if name in given.integers}
    counts = {name: given.elements[name] for name in types if name in given.elements}
    sizes = Sizes(shapes, integers, counts, given.workers, symbolic=True)
    return Plan(plan_program(typed.analysed, typed.types, sizes), sizes, {})


def _types(function: ParallelFunction, definition: ast.FunctionDef, given: Given) -> Types:
    parsed = parse_function(function.__wrapped__)
    known = Known(
        ranks={name: len(shape) for name, shape in given.shapes.items() if name not in given.sparse},
        sparse=given.sparse,
        dtypes={name: _dtype(name, dtype) for name, dtype in given.dtypes.items()},
        scalars=dict.fromkeys(given.integers, "int") | _annotated(definition),
    )
    types = guess_types(parsed, known)
    for name, shape in given.shapes.items():
        kind = types.get(name)
        if isinstance(kind, ArrayType | SparseType) and kind.ndim != len(shape):
            what = "keys" if isinstance(kind, SparseType) else "dimensions"
            raise ArgumentError(f"`{name}` has {kind.ndim} {what}, and --shape {name} gives {len(shape)}")
        if isinstance(kind, ScalarType):
            raise ArgumentError(f"`{name}` is used as a scalar, and --shape {name} gives it a shape")
    return types


def _dtype(name: str, text: str) -> str:
    try:
        return np.dtype(text).name
    except TypeError:
        raise ArgumentError(f"--dtype {name}={text}: NumPy has no dtype of that name") from None


def _annotated(definition: ast.FunctionDef) -> dict[str, str]:
    """The parameters annotated as Python scalars."""
    head = definition.args
    return {
        argument.arg: argument.annotation.id
        for argument in (*head.posonlyargs, *head.args, *head.kwonlyargs)
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id in ("int", "float", "bool")
    }
