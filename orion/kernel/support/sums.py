"""Sums over rows, each in an order that depends on the length of the row alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from orion.kernel.support.vectors import I32, Row, _suffix, call, function_of, split

Combine = Callable[[Any, Any], Any]
MOST_SUMS = 4


def _half(builder: Any, vector: Any, first: int) -> Any:
    half = vector.type.count // 2
    undefined = ir.Constant(vector.type, ir.Undefined)
    lanes = ir.Constant(ir.VectorType(I32, half), list(range(first * half, (first + 1) * half)))
    return builder.shuffle_vector(vector, undefined, lanes)


def _tree(vectors: list[Any], combine: Combine) -> Any:
    """Combine the vectors pairwise until one is left."""
    while len(vectors) > 1:
        pairs = [vectors[k : k + 2] for k in range(0, len(vectors), 2)]
        vectors = [combine(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return vectors[0]


def fold(builder: Any, vectors: list[Any], combine: Combine) -> Any:
    """One scalar from vectors of lanes 2ᵏ: the widest first, halved, joined by the narrower ones as their width is
    met."""
    by_width: dict[int, list[Any]] = {}
    for vector in vectors:
        by_width.setdefault(vector.type.count, []).append(vector)
    width = max(by_width)
    folded = _tree(by_width.pop(width), combine)
    while width > 1:
        folded = combine(_half(builder, folded, 0), _half(builder, folded, 1))
        width //= 2
        if width in by_width:
            folded = combine(folded, _tree(by_width.pop(width), combine))
    return builder.extract_element(folded, I32(0))


def _products(builder: Any, left: list[Any], right: list[Any]) -> list[Any]:
    """Products of the vectors, summed up in a few vectors of each width.

    One such sum takes the fewest instructions, and the core works on several iterations at a time; only long rows gain
    from more (measured: one at 2 vectors, two at 7).
    """
    few = min(MOST_SUMS, 1 + len(left) // 4)
    sums: dict[int, list[Any]] = {}
    for k, (a, b) in enumerate(zip(left, right, strict=True)):
        same = sums.setdefault(a.type.count, [])
        if len(same) < few:
            same.append(builder.fmul(a, b))
        else:
            same[k % few] = call(builder, "fmuladd", [a, b, same[k % few]])
    return [vector for same in sums.values() for vector in same]


def _in_order(builder: Any, vectors: list[Any]) -> Any:
    """The sum of all elements, from first to last."""
    total = ir.Constant(vectors[0].type.element, -0.0)
    for vector in vectors:
        element = vector.type.element
        function_type = ir.FunctionType(element, [element, vector.type])
        name = f"llvm.vector.reduce.fadd.{_suffix(vector.type)}"
        function = cgutils.get_or_insert_function(builder.module, function_type, name)
        total = builder.call(function, [total, vector])
    return total


def _dot(builder: Any, left: list[Any], right: list[Any]) -> Any:
    """The sum of the products, reassociated: a few vectors of partial sums, folded by halves."""
    return fold(builder, _products(builder, left, right), builder.fadd)


def _dot_in_order(builder: Any, left: list[Any], right: list[Any]) -> Any:
    """The sum of the products from first to last, each rounded."""
    return _in_order(builder, [builder.fmul(a, b) for a, b in zip(left, right, strict=True)])


def _extreme(name: str) -> Callable[..., Any]:
    """The element that an LLVM intrinsic keeps of all."""
    return lambda builder, vectors: fold(builder, vectors, lambda a, b: call(builder, name, [a, b]))


def _function_of_rows(count: int, name: str, of_vectors: Callable[..., Any]) -> Any:
    """A function of so many rows of one type: what `of_vectors` gives for their vectors."""

    def typer(*rows: Any) -> Any:
        row = rows[0]
        if not isinstance(row, Row) or len({*rows}) > 1:
            return None

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return of_vectors(builder, *(split(builder, row, value, row) for value in args))

        return row.dtype(*rows), generate

    return function_of(count, name, typer)


dot = _function_of_rows(2, "dot", _dot)
dot_in_order = _function_of_rows(2, "dot_in_order", _dot_in_order)
row_sum = _function_of_rows(1, "row_sum", lambda builder, vectors: fold(builder, vectors, builder.fadd))
row_max = _function_of_rows(1, "row_max", _extreme("maximum"))
row_min = _function_of_rows(1, "row_min", _extreme("minimum"))
row_sum_in_order = _function_of_rows(1, "row_sum_in_order", _in_order)
