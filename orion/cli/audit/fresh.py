"""Values that share no memory with others: numbers and new arrays, by the text that makes them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

NUMPY = frozenset({"np", "numpy", "math", "cmath"})
SUBMODULES = frozenset({"fft", "linalg", "random"})
MAKERS = frozenset({
    "zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "arange", "linspace", "eye",
    "identity", "copy", "array", "dot", "vdot", "inner", "outer", "kron", "cross", "sum", "prod", "mean", "median",
    "std", "var", "min", "max", "amin", "amax", "nanmin", "nanmax", "nansum", "nanmean", "nanmedian", "nanstd",
    "nanvar", "ptp", "any", "all", "argmin", "argmax", "argsort", "sort", "searchsorted", "cumsum", "cumprod", "diff",
    "where", "nonzero", "flatnonzero", "count_nonzero", "concatenate", "stack", "hstack", "vstack", "column_stack",
    "tile", "repeat", "roll", "interp", "clip", "round", "unique", "bincount", "histogram", "take", "trace", "trapz",
    "percentile", "quantile", "tri", "convolve", "correlate", "cov", "corrcoef", "partition", "argpartition", "size",
    "shape", "ndim", "logspace", "geomspace", "vander", "append", "delete", "digitize", "average", "isclose",
    "allclose", "array_equal",
})  # fmt: skip
METHODS = frozenset({
    "all", "any", "argmax", "argmin", "argsort", "copy", "cumsum", "cumprod", "dot", "flatten", "item", "max", "mean",
    "min", "nonzero", "prod", "repeat", "std", "sum", "tolist", "var", "searchsorted",
})  # fmt: skip
BUILTINS = frozenset({"len", "int", "float", "bool", "complex", "abs", "round", "sum", "range", "prange", "divmod"})
SIZES = frozenset({"shape", "size", "ndim", "dtype", "itemsize", "nbytes"})
MAX_DEPTH = 4
MANY = 1_000

Finder = Callable[[ast.Call], ast.FunctionDef | None]
"""Returns the definition of a function that a call names, if its source is found."""


def is_fresh(value: ast.expr | None, find: Finder | None = None, depth: int = MAX_DEPTH) -> bool:
    """Whether a value is a number or a new array. With `find`, functions whose source it finds may return such."""
    match value:
        case ast.Constant() | ast.BinOp() | ast.Compare() | ast.UnaryOp():
            return True
        case ast.Attribute(_, name) | ast.Subscript(ast.Attribute(_, name)) if name in SIZES:
            return True
        case ast.Tuple(items):
            return all(is_fresh(item, find, depth) for item in items)
        case ast.Call(function, keywords=keywords):
            if any(keyword.arg in ("copy", "out", None) for keyword in keywords):
                return False
            return _makes(function) or (find is not None and _returns_fresh(value, find, depth))
        case _:
            return False


def _makes(function: ast.expr) -> bool:
    match function:
        case ast.Name(name):
            return name in BUILTINS
        case ast.Attribute(ast.Name("math" | "cmath")):
            return True
        case ast.Attribute(ast.Name(owner), name) if owner in NUMPY:
            return name in MAKERS or isinstance(getattr(np, name, None), np.ufunc) or _is_number_type(name)
        case ast.Attribute(ast.Attribute(ast.Name(owner), part), _) if owner in NUMPY:
            return part in SUBMODULES
        case ast.Attribute(_, name):
            return name in METHODS
        case _:
            return False


def _is_number_type(name: str) -> bool:
    kind = getattr(np, name, None)
    return isinstance(kind, type) and issubclass(kind, np.generic)


def _returns_fresh(call: ast.Call, find: Finder, depth: int) -> bool:
    """Whether a function returns nothing that it is given, as far as its own text shows."""
    definition = find(call) if depth else None
    if definition is None:
        return False
    returned = [one.value for one in ast.walk(definition) if isinstance(one, ast.Return) and one.value is not None]
    parts = [part for value in returned for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    given = dict(_given(definition))
    for part in parts:
        values = given.get(part.id, [None]) if isinstance(part, ast.Name) else [part]
        if not all(is_fresh(value, None if isinstance(value, ast.Name) else find, depth - 1) for value in values):
            return False
    return bool(parts)


def _given(definition: ast.FunctionDef) -> Iterator[tuple[str, list[ast.expr | None]]]:
    """The names of a function with the values that assignments give them; None stands for one that is not known."""
    found: dict[str, list[ast.expr | None]] = {}
    plain = set[int]()
    for node in ast.walk(definition):
        match node:
            case ast.arg(name):
                found.setdefault(name, []).append(None)
            case ast.Assign(targets, value):
                names = [target for target in targets if isinstance(target, ast.Name)]
                plain.update(map(id, names))
                for target in names:
                    found.setdefault(target.id, []).append(value)
            case ast.AugAssign(ast.Name() as target):
                plain.add(id(target))
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in plain:
            found.setdefault(node.id, []).append(None)
    yield from found.items()


@cache
def inputs_of(owner: str, name: str) -> int:
    """Return how many positional arguments a function of NumPy reads; it writes the one after them."""
    function = getattr(np, name, None) if owner in ("np", "numpy") else None
    if isinstance(function, np.ufunc):
        return function.nin
    try:
        parameters = list(inspect.signature(function).parameters) if callable(function) else []
    except (ValueError, TypeError):
        return MANY
    return min((parameters.index(one) for one in ("out", "copy") if one in parameters), default=MANY)
