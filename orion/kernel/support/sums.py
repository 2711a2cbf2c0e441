"""Sums over rows, each in an order that depends on the length of the row alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from orion.kernel.support.vectors import I32, Row, _suffix, call, split

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


def _in_order(builder: Any, vectors: list[Any], start: Any) -> Any:
    """The sum of all elements, from first to last."""
    for vector in vectors:
        element = vector.type.element
        function_type = ir.FunctionType(element, [element, vector.type])
        name = f"llvm.vector.reduce.fadd.{_suffix(vector.type)}"
        function = cgutils.get_or_insert_function(builder.module, function_type, name)
        start = builder.call(function, [start, vector])
    return start


def _are_rows(*kinds: Any) -> bool:
    return all(isinstance(kind, Row) for kind in kinds) and len(set(kinds)) == 1


@intrinsic  # type: ignore[untyped-decorator]
def dot(typing: Any, left: Any, right: Any) -> Any:
    """The sum of the products, reassociated: a few vectors of partial sums, folded by halves."""
    if not _are_rows(left, right):
        return None

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = [split(builder, left, value, left) for value in args]
        return fold(builder, _products(builder, *vectors), builder.fadd)

    return left.dtype(left, right), generate


@intrinsic  # type: ignore[untyped-decorator]
def dot_in_order(typing: Any, left: Any, right: Any) -> Any:
    """The sum of the products from first to last, each rounded."""
    if not _are_rows(left, right):
        return None

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = [split(builder, left, value, left) for value in args]
        products = [builder.fmul(a, b) for a, b in zip(*vectors, strict=True)]
        return _in_order(builder, products, ir.Constant(left.element, -0.0))

    return left.dtype(left, right), generate


def _fold_function(name: str, combine: str) -> Any:
    """A function of one row that folds its elements by an instruction or an LLVM intrinsic."""

    def function(typing: Any, row: Any) -> Any:
        if not _are_rows(row):
            return None

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            def pair(a: Any, b: Any) -> Any:
                return builder.fadd(a, b) if combine == "fadd" else call(builder, combine, [a, b])

            return fold(builder, split(builder, row, args[0], row), pair)

        return row.dtype(row), generate

    function.__name__ = function.__qualname__ = name
    return intrinsic(function)


row_sum = _fold_function("row_sum", "fadd")
row_max = _fold_function("row_max", "maximum")
row_min = _fold_function("row_min", "minimum")


@intrinsic  # type: ignore[untyped-decorator]
def row_sum_in_order(typing: Any, row: Any) -> Any:
    """The sum of the elements from first to last."""
    if not _are_rows(row):
        return None

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _in_order(builder, split(builder, row, args[0], row), ir.Constant(row.element, -0.0))

    return row.dtype(row), generate
