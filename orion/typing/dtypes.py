"""NumPy's rules for the dtype of a result (NEP 50: https://numpy.org/neps/nep-0050-scalar-promotion.html)."""

from __future__ import annotations

from functools import cache

import numpy as np

from orion.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A dtype by name. A `weak` one is that of a Python scalar, which takes the dtype of what it meets."""

    dtype: str
    weak: bool = False


PYTHON_INT = Kind("int64", weak=True)
PYTHON_RANK = {"bool": 0, "int64": 1, "float64": 2, "complex128": 3}
PYTHON_TYPES: dict[str, type] = {"bool": bool, "int64": int, "float64": float, "complex128": complex}
UFUNCS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "true_divide", "//": "floor_divide", "%": "remainder",
    "**": "power", "@": "multiply", "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "left_shift",
    ">>": "right_shift", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal",
    "!=": "not_equal",
}  # fmt: skip
"""Operator → the NumPy function whose dtype rules it follows."""


@cache
def promote(first: Kind, second: Kind) -> Kind:
    """The dtype that holds values of both.

    >>> promote(Kind("float32"), Kind("float64", weak=True)), promote(Kind("int32"), Kind("float64", weak=True))
    (Kind(dtype='float32', weak=False), Kind(dtype='float64', weak=False))
    """
    if first.weak and second.weak:
        return max(first, second, key=lambda kind: PYTHON_RANK[kind.dtype])
    return Kind(np.result_type(_example(first), _example(second)).name)


def _example(kind: Kind) -> np.dtype[np.generic] | complex:
    return PYTHON_TYPES[kind.dtype]() if kind.weak else np.dtype(kind.dtype)


@cache
def operator_result(op: str, left: Kind, right: Kind) -> Kind:
    """The dtype of `left op right`. TypeError where NumPy has no such operation.

    >>> operator_result("/", Kind("int32"), Kind("int32"))
    Kind(dtype='float64', weak=False)
    >>> operator_result("/", Kind("int64", weak=True), Kind("int64", weak=True))
    Kind(dtype='float64', weak=True)
    >>> operator_result("*", Kind("float32"), Kind("float64", weak=True))
    Kind(dtype='float32', weak=False)
    """
    if not (left.weak and right.weak):
        if op in ("<", "<=", ">", ">=") and "c" in np.dtype(left.dtype).kind + np.dtype(right.dtype).kind:
            raise TypeError(f"`{op}` of complex numbers")  # NumPy compares their parts, Python does not
        return elementwise_result(UFUNCS[op], left, right)
    wider = promote(left, right)
    if wider.dtype == "complex128" and op not in ("+", "-", "*", "/", "**", "==", "!="):
        raise TypeError(f"`{op}` of complex numbers")
    if op in ("<", "<=", ">", ">=", "==", "!="):
        return Kind("bool", weak=True)
    if op == "/":
        return promote(wider, Kind("float64", weak=True))
    if op in ("&", "|", "^", "<<", ">>"):
        if wider.dtype == "float64":
            raise TypeError(f"`{op}` of floating-point numbers")
        return Kind("int64", weak=True) if op in ("<<", ">>") else wider
    return Kind("int64", weak=True) if wider.dtype == "bool" else wider


@cache
def elementwise_result(ufunc: str, *operands: Kind) -> Kind:
    """The dtype of NumPy's function of each element, by NumPy's own table. TypeError where it has none.

    >>> elementwise_result("sqrt", Kind("int64", weak=True)), elementwise_result("exp", Kind("float32"))
    (Kind(dtype='float64', weak=False), Kind(dtype='float32', weak=False))
    """
    function = getattr(np, ufunc)
    kinds = tuple(_operand(kind) for kind in operands)
    return Kind(function.resolve_dtypes((*kinds, None))[-1].name)


def _operand(kind: Kind) -> np.dtype[np.generic] | type:
    # NumPy's table takes Python's int and float as weak; a Python bool is a NumPy bool there.
    return PYTHON_TYPES[kind.dtype] if kind.weak and kind.dtype != "bool" else np.dtype(kind.dtype)


@cache
def sum_result(kind: Kind) -> Kind:
    """The dtype of a sum or product over an array: small integers are summed as int64 or uint64."""
    found = np.dtype(kind.dtype)
    if found.kind == "b" or (found.kind == "i" and found.itemsize < 8):
        return Kind("int64")
    if found.kind == "u" and found.itemsize < 8:
        return Kind("uint64")
    return Kind(kind.dtype)


def float_result(kind: Kind) -> Kind:
    """The dtype of a mean, a deviation or a linear solution: float64 unless the data is of a floating-point type, or of
    complex numbers."""
    return Kind(kind.dtype if kind.dtype.startswith(("float", "complex")) else "float64")
