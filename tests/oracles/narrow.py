"""Integer arguments of few bits and without a sign, with values at the ends of what they can hold.

What plain Python computes with a NumPy scalar wraps around, or is refused where a Python integer does not fit. A nest
gets such an argument in some of its integer expressions: mostly so that the value is the old one if sums wrap around,
sometimes so that it is another one, and the arrays are then made as large as the subscripts need.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from tests.oracles.bounded import SIZES
from tests.oracles.carried import Recorder, Recording
from tests.oracles.nests import Nest
from tests.oracles.sizes import needed_extents, shapes_in_bounds
from tests.oracles.spelling import Choose, IntegerPlaces, minus, number, plus, times

NAME = "c8"
"""The argument's name."""

DTYPES = ("int8", "uint8", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
LARGEST_EXTENT = 600
"""A nest whose arrays would need more keeps its integers as they were."""

MOST_TRIPS = 3000
LOCAL = "d8"
"""A scalar of the function that is computed from the argument."""


def narrowed(nest: Nest, choose: Choose) -> Nest:
    """The nest with such an argument in some of its expressions; the nest as it was where nothing else fits."""
    dtype = choose(DTYPES)
    info = np.iinfo(dtype)
    ends = [1, 2, 3, int(info.max), int(info.max) - 1, int(info.max) - 4, int(info.max) // 2]
    value = choose(ends if info.min == 0 else [*ends, int(info.min), int(info.min) + 2, -1])
    tree = ast.parse(nest.source)
    inserter = _Inserter(choose, value)
    inserter.visit(tree)
    if not inserter.count:
        return nest
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.args.args.append(ast.arg(NAME))
    if inserter.uses_local:
        text = choose((f"{NAME} + 1", f"{NAME} - 1", f"-{NAME}", f"{NAME} * 2", f"1 + {NAME} * 1"))
        function.body.insert(0, ast.parse(f"{LOCAL} = {text}").body[0])
    source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return fitted(replace(nest, source=source, scalars={NAME: (dtype, value)})) or nest


class _Inserter(IntegerPlaces):
    def __init__(self, choose: Choose, value: int) -> None:
        self.choose, self.value = choose, value
        self.count, self.uses_local = 0, False

    def changed(self, expression: ast.expr) -> ast.expr:
        if self.choose((True, True, False)):
            return expression
        self.count += 1
        name = ast.Name(NAME, ast.Load())
        known = number(self.value)
        match self.choose(("back", "back", "front", "first", "twice", "plus", "minus", "half", "rest", "local")):
            case "back":
                return minus(plus(expression, name), known)
            case "front":
                return plus(expression, minus(name, known))
            case "first":
                return plus(name, minus(expression, known))
            case "twice":
                return minus(minus(plus(times(number(2), name), expression), name), known)
            case "plus":
                return plus(expression, name)
            case "minus":
                return minus(name, expression)
            case "half":
                return plus(expression, ast.BinOp(name, ast.FloorDiv(), number(max(2, abs(self.value) // 2))))
            case "rest":
                return plus(expression, ast.BinOp(name, ast.Mod(), number(3)))
            case _:
                self.uses_local = True
                local = ast.Name(LOCAL, ast.Load())
                return minus(plus(expression, local), known)


def fitted(nest: Nest) -> Nest | None:
    """The nest with arrays as large as its subscripts need at both sizes; None where it cannot be run so."""
    recording = Recording(nest)
    arrays = dict(nest.arrays)
    for size in SIZES:
        shapes = {name: spec.shape(size) for name, spec in nest.arrays.items()}
        known = {name: shapes[name] for name in shapes_in_bounds(nest)}
        integers = {name: pair[size] for name, pair in nest.integers.items()}
        needed = needed_extents(nest, recording, integers, known)
        if needed is None:
            return None
        for name, shape in needed.items():
            if max(shape, default=0) > LARGEST_EXTENT:
                return None
            arrays[name] = arrays[name].grown(size, shape)
    found = replace(nest, arrays=arrays)
    return found if all(is_short(found, recording, size) for size in SIZES) else None


def is_short(nest: Nest, recording: Recording, size: int) -> bool:
    """Whether the function runs, and in not too many trips: an integer that wraps around may be a large bound."""
    recorder = Recorder(recording.reductions, MOST_TRIPS)
    try:
        recording.run(recorder, nest.arguments(size))
    except (IndexError, OverflowError, TypeError, ValueError, ZeroDivisionError):
        return False
    return recorder.trips_left is not None and recorder.trips_left >= 0
