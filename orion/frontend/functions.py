"""The functions, methods and attributes that a loop body may use, by canonical name."""

from __future__ import annotations

import math
from types import BuiltinFunctionType

import numpy as np

BUILTINS = frozenset({"abs", "min", "max", "len", "int", "float", "bool", "round", "sum", "pow"})

MATH = frozenset(
    "math." + name
    for name in [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "ceil",
        "copysign",
        "cos",
        "cosh",
        "degrees",
        "erf",
        "erfc",
        "exp",
        "expm1",
        "fabs",
        "floor",
        "fmod",
        "gamma",
        "gcd",
        "hypot",
        "isfinite",
        "isinf",
        "isnan",
        "lgamma",
        "log",
        "log10",
        "log1p",
        "log2",
        "pow",
        "radians",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    ]
)

REDUCTIONS = frozenset(["sum", "prod", "min", "max", "mean", "std", "var", "any", "all", "argmin", "argmax"])
NEW_ARRAYS = frozenset(["zeros", "ones", "empty", "full"])
ARRAYS_LIKE = frozenset(["zeros_like", "ones_like", "empty_like", "full_like", "copy"])
PRODUCTS = frozenset(["dot", "vdot", "inner", "matmul", "outer"])
SAME_SHAPE = frozenset(["sort", "cumsum", "cumprod", "round", "clip", "flip"])
OTHER_NUMPY = frozenset(
    ["arange", "where", "argsort", "searchsorted", "transpose", "ravel", "diag", "eye", "identity", "median"]
)
LINEAR_ALGEBRA = frozenset(["linalg.norm", "linalg.solve", "linalg.inv", "linalg.det"])

NUMPY = frozenset(
    "np." + name
    for group in (REDUCTIONS, NEW_ARRAYS, ARRAYS_LIKE, PRODUCTS, SAME_SHAPE, OTHER_NUMPY, LINEAR_ALGEBRA)
    for name in group
)

NOT_COMPILED = frozenset(["heaviside", "bitwise_count"])
"""Functions of each element that Numba does not have."""

METHODS = frozenset(
    "." + name
    for name in (*REDUCTIONS, "copy", "dot", "astype", "item", "fill", "sort", "cumsum", "ravel", "flatten", "argsort")
)

WRITING_METHODS = frozenset({".fill", ".sort"})
"""The methods that change their array in place."""
VIEWING = frozenset({"attribute:T", "np.transpose", ".ravel", "np.ravel", "np.flip", "np.diag"})
"""What may give another view of its first argument rather than a new array."""

ALIASES = {"absolute": "abs", "amax": "max", "amin": "min", "conjugate": "conj"}
"""NumPy's own name of a function → the name that a loop is printed with."""


def canonical_name(function: object) -> str | None:
    """How a function from Python, `math` or NumPy is called in the loop language; None for any other object.

    >>> canonical_name(np.absolute), canonical_name(math.exp), canonical_name(len), canonical_name(np.linalg.norm)
    ('np.abs', 'math.exp', 'len', 'np.linalg.norm')
    """
    name = getattr(function, "__name__", "")
    if not name or not callable(function):
        return None
    module = getattr(function, "__module__", None)
    if isinstance(function, type | BuiltinFunctionType) and module == "builtins":
        return str(name)
    if vars(np).get(name) is function:
        return "np." + ALIASES.get(name, name)
    if getattr(np.linalg, name, None) is function:
        return "np.linalg." + name
    if getattr(math, name, None) is function:
        return "math." + name
    return None


def is_known(name: str) -> bool:
    """Whether a function of that canonical name can be compiled and typed.

    >>> is_known("np.sqrt"), is_known("np.float32"), is_known("np.loadtxt"), is_known(".copy")
    (True, True, False, True)
    """
    return name in BUILTINS | MATH | NUMPY | METHODS or is_elementwise(name) or is_dtype(name)


def is_elementwise(name: str) -> bool:
    """Whether it is a NumPy function of each element by itself, with one result.

    >>> is_elementwise("np.exp"), is_elementwise("np.maximum"), is_elementwise("np.sum"), is_elementwise("np.matmul")
    (True, True, False, False)
    """
    found = vars(np).get(name.removeprefix("np.")) if name.startswith("np.") else None
    is_one = isinstance(found, np.ufunc) and found.signature is None and found.nout == 1
    return is_one and name.removeprefix("np.") not in NOT_COMPILED


def takes_floats(name: str) -> bool:
    """Whether all arguments of a function of each element may be floats.

    >>> takes_floats("np.hypot"), takes_floats("np.ldexp")
    (True, False)
    """
    found = getattr(np, name.removeprefix("np."))
    return f"{'d' * found.nin}->d" in found.types


def is_dtype(name: str) -> bool:
    """Whether it is one of NumPy's scalar types, such as "np.float32".

    >>> is_dtype("np.int64"), is_dtype("np.sum"), is_dtype("np.str_")
    (True, False, False)
    """
    found = vars(np).get(name.removeprefix("np.")) if name.startswith("np.") else None
    return isinstance(found, type) and issubclass(found, np.bool | np.integer | np.floating)
