"""Numbers for the symbols of an analysis: array extents, integer arguments, and the extents of loop dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from orion.dependence.bounds import fix_parameters
from orion.dependence.names import extent_name, isl_name
from orion.loop.types import Shapes


def parameter_values(shapes: Shapes, integers: Mapping[str, int]) -> dict[str, int]:
    """The values of isl parameters: `array.shape[axis]` for every array, and integer arguments by name.

    >>> parameter_values({"W": (10, 4)}, {"n": 3})
    {'W__0': 10, 'W__1': 4, 'n': 3}
    """
    values = {extent_name(name, axis): extent for name, shape in shapes.items() for axis, extent in enumerate(shape)}
    return values | {isl_name(name): int(value) for name, value in integers.items()}


def coordinate_ranges(domain: str, dims: int, values: Mapping[str, int]) -> tuple[tuple[int, int] | None, ...]:
    """Per loop dimension the half-open range of its coordinates, or None where it is not bounded with these values.

    >>> coordinate_ranges("[n] -> { [i, j] : 0 <= i < n and i <= j < n }", 2, {"n": 4})
    ((0, 4), (0, 4))
    """
    import islpy as isl

    iterations = fix_parameters(isl.Set(domain), values)
    if iterations.is_empty():
        return ((0, 0),) * dims
    found: list[tuple[int, int] | None] = []
    for dim in range(dims):
        low, high = iterations.dim_min_val(dim), iterations.dim_max_val(dim)
        both = low.is_int() and high.is_int()
        found.append((int(low.to_python()), int(high.to_python()) + 1) if both else None)
    return tuple(found)


def bounded_dims(domain: str, dims: int) -> tuple[int, ...]:
    """The loop dimensions whose coordinates are bounded once all parameters have values: those that can be cut."""
    import islpy as isl

    iterations = isl.Set(domain)
    bounded = []
    for dim in range(dims):
        rest = iterations.project_out(isl.dim_type.set, dim + 1, iterations.dim(isl.dim_type.set) - dim - 1)
        rest = rest.project_out(isl.dim_type.set, 0, dim)
        if rest.dim_has_lower_bound(isl.dim_type.set, 0) and rest.dim_has_upper_bound(isl.dim_type.set, 0):
            bounded.append(dim)
    return tuple(bounded)
