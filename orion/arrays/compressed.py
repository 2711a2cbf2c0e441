"""The arrays and integers that hold a sparse matrix, by which loops go through it (`orion.frontend.matrices`)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from orion.arrays.sparse import SparseArray
from orion.errors import ArgumentError, describe

FORMATS = {"indptr": ("csr", "csc"), "indices": ("csr", "csc"), "row": ("coo",), "col": ("coo",)}
"""Which formats of SciPy have an attribute, where not all have it."""

LINES = ("rows", "columns")


def is_matrix(value: Any) -> bool:
    """Whether it is one of SciPy's sparse matrices, or a sparse array."""
    return isinstance(value, SparseArray) or hasattr(value, "tocoo")


def part_of(matrix: Any, name: str, attribute: str) -> Any:
    """An array or a number that a matrix, argument `name`, has: `indptr`, `shape_0`, `rows_indptr`. ArgumentError where
    it has none.

    >>> import numpy as np, scipy.sparse
    >>> identity = scipy.sparse.csr_array(np.eye(2))
    >>> part_of(identity, "A", "indptr"), part_of(identity, "A", "nnz")
    (array([0, 1, 2], dtype=int32), 2)
    """
    lines, _, array = attribute.partition("_")
    if lines in LINES and isinstance(matrix, SparseArray) and matrix.ndim != 2:
        what = f"argument `{name}` has {matrix.ndim} dimensions"
        raise ArgumentError(describe(what, why="only of sparse arrays of two are there rows and columns"))
    if lines == "shape":
        return int(matrix.shape[int(array)])
    if attribute == "nnz":
        return int(matrix.nnz)
    if lines in LINES:
        return _of_sparse(matrix, name, LINES.index(lines), array)
    formats = FORMATS.get(attribute, ("csr", "csc", "coo"))
    if matrix.format not in formats:
        what = f"argument `{name}` is a {type(matrix).__name__}"
        why = f"`{attribute}` is that of a matrix in the format {' or '.join(formats)}"
        raise ArgumentError(describe(what, why=why, hint=f"pass `{name}.to{formats[0]}()`, made once before the call"))
    return getattr(matrix, attribute)


def _of_sparse(matrix: Any, name: str, dim: int, array: str) -> NDArray[Any]:
    if not isinstance(matrix, SparseArray):
        what = f"argument `{name}` is a {type(matrix).__name__}, whose rows Python does not give as pairs"
        hint = f"pass `orion.from_scipy({name})`, or write `for p in range({name}.indptr[i], …)`"
        raise ArgumentError(describe(what, hint=hint))
    found = matrix.lines(dim)
    match array:
        case "indptr":
            return found.indptr
        case "indices":
            return found.indices
    _, _, number = array.partition("_")
    if bool(number) != matrix.values_are_tuple or int(number or 0) >= len(found.values):
        many = f"tuples of {len(found.values)}" if matrix.values_are_tuple else "single numbers"
        what = f"the values of argument `{name}` are {many}"
        raise ArgumentError(describe(what, hint="write as many names in the `for`: `for j, (a, b) in R[i]:`"))
    return found.values[int(number or 0)]
