"""The plan of a decorated function without a call: types guessed from its body, sizes as far as they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orion.api import ParallelFunction
from orion.errors import ArgumentError
from orion.inspect.guess import Known, guess_types
from orion.loop.parse import parse_function
from orion.loop.types import SparseType, Types
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

    Raises `ArgumentError` for a shape that does not fit, and `UnsupportedLoopError` for code that cannot be compiled.
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
        dtypes=given.dtypes,
        scalars=dict.fromkeys(given.integers, "int") | _annotated(definition),
    )
    types = guess_types(parsed, known)
    for name, shape in given.shapes.items():
        kind = types.get(name)
        if isinstance(kind, SparseType) and kind.ndim != len(shape):
            raise ArgumentError(f"`{name}` has {kind.ndim} keys, and --shape {name} gives {len(shape)}")
    return types


def _annotated(definition: ast.FunctionDef) -> dict[str, str]:
    """The parameters annotated as Python scalars."""
    head = definition.args
    return {
        argument.arg: argument.annotation.id
        for argument in (*head.posonlyargs, *head.args, *head.kwonlyargs)
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id in ("int", "float", "bool")
    }
