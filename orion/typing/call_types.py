"""The type of what a function of Python, `math` or NumPy returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from orion.frontend.functions import ARRAYS_LIKE, MATH, NEW_ARRAYS, PRODUCTS, REDUCTIONS, is_dtype, is_elementwise
from orion.ir.nodes import INTEGER, NARROW, Call, Const, Dtype, Expr, Tuple, Unary
from orion.ir.spans import without_spans
from orion.typing.dtypes import Kind, elementwise_result, float_result, operator_result, promote, sum_result
from orion.typing.value_type import BOOL, FLOAT, INT, NONE, ValueType, broadcast, join_values, scalar, shaped

MATH_INTEGERS = frozenset({"math.floor", "math.ceil", "math.trunc", "math.gcd"})
MATH_TESTS = frozenset({"math.isnan", "math.isinf", "math.isfinite"})


NOT_BY_NUMBA = "Numba, which compiles the loop, does not take it"


class TypeProblem(Exception):  # noqa: N818  (becomes an UnsupportedLoopError where the place is known)
    """Why an expression has no type."""

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.hint = what, why, hint


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call is given. `dtypes` are the keyword arguments that are dtypes."""

    call: Call
    types: tuple[ValueType, ...]
    dtypes: Mapping[str, str]

    def type(self, position: int) -> ValueType:
        if position >= len(self.types):
            hint = "write its arguments by position" if self.call.keywords else ""
            raise TypeProblem(f"`{self.call.function}` is given too few arguments", "", hint)
        return self.types[position]

    def dtype(self, position: int) -> str | None:
        """The dtype that is asked for, by keyword or at that position."""
        if "dtype" in self.dtypes:
            return self.dtypes["dtype"]
        argument = self.call.arguments[position] if position < len(self.call.arguments) else None
        return argument.name if isinstance(argument, Dtype) else None

    def keyword(self, name: str, position: int | None = None) -> Expr | None:
        by_name = dict(self.call.keywords).get(name)
        given = self.call.arguments
        return given[position] if by_name is None and position is not None and position < len(given) else by_name


ALONG_AXES = frozenset({"sum", "argmin", "argmax"})
"""The reductions that are compiled along one axis, too."""

MOST_ARGUMENTS = {
    "np.clip": 3, "np.round": 2, "np.cumsum": 1, ".cumsum": 1, "np.cumprod": 1, "np.median": 1, "np.copy": 1,
    "np.dot": 2, ".dot": 2, "np.matmul": 2, "np.outer": 2, "np.sort": 1, ".sort": 1, "np.flip": 1, "np.transpose": 1,
    "np.ravel": 1, ".ravel": 1, ".flatten": 1, "np.argsort": 1, ".argsort": 1, ".item": 1, ".copy": 1, "sum": 1,
    "np.linalg.norm": 2, "pow": 2, "math.log": 1,
} | {prefix + name: 1 + (name in ALONG_AXES) for prefix in ("np.", ".") for name in REDUCTIONS}  # fmt: skip
"""Function → how many arguments may stand without a keyword: a further one could be the array for the result, or is
not compiled."""

KEYWORDS = {
    "np.sum": {"axis", "dtype"}, ".sum": {"axis", "dtype"}, "np.round": {"decimals"}, "np.clip": {"a_min", "a_max"},
    "np.searchsorted": {"side"}, "np.argsort": {"kind"}, ".argsort": {"kind"}, "np.diag": {"k"},
    "np.eye": {"k", "dtype"}, "np.identity": {"dtype"}, "np.arange": {"dtype"}, "np.linalg.norm": {"ord"},
    ".astype": {"dtype", "copy", "casting", "order", "subok"},
} | {f"np.{name}": {"shape", "fill_value", "dtype"} for name in (*NEW_ARRAYS, *ARRAYS_LIKE)} | {
    prefix + name: {"axis"} for prefix in ("np.", ".") for name in ("argmin", "argmax")
}  # fmt: skip
"""Function → the keyword arguments that are compiled; no others are."""

FEWER = {
    "sum": "write `s = start`, and a loop that adds the elements to it",
    "pow": "write a loop of products, each `% m`",
    "math.log": "write `math.log(x) / math.log(base)`",
}
"""Function → what to write instead of its last argument."""

INSTEAD = {
    "axis": "write a loop over the other axes; of `mean`, `np.sum(a, axis=0) / a.shape[0]`",
    "keepdims": "leave it out: the result without that axis can be used in a loop over it",
    "ddof": "leave it out, and multiply a variance by `n / (n - ddof)`, a deviation by its square root",
    "initial": "leave it out, and combine the result with that value",
    "dtype": "convert before or after, with `.astype(np.float64)`",
}
"""Keyword argument → what to write instead."""


def call_type(call: Call, types: tuple[ValueType, ...], dtypes: Mapping[str, str]) -> ValueType:
    """The type of the result. TypeProblem where the function does not take such arguments."""
    given = Arguments(call, types, dtypes)
    name = call.function
    if len(types) > MOST_ARGUMENTS.get(name, len(types)) or any(key == "out" for key, _ in call.keywords):
        raise _too_many(name)
    for key, _ in call.keywords:
        if key not in KEYWORDS.get(name, ()):
            hint = INSTEAD.get(key, "write its arguments by position, or leave it out")
            raise TypeProblem(f"`{name.removeprefix('.')}` with `{key}=` is not supported", NOT_BY_NUMBA, hint)
    if any(kind.dtype == "none" for kind in types):
        raise TypeProblem(f"`{name}` is given None", "", "leave it out, or use a number, such as -1 or np.nan")
    if name in RULES:
        return RULES[name](given)
    short = name.removeprefix("np.").removeprefix(".")
    if short in REDUCTIONS:
        return _reduction(given, short)
    if name in MATH:
        return INT if name in MATH_INTEGERS else BOOL if name in MATH_TESTS else FLOAT
    if short in NEW_ARRAYS:
        return _new_array(given, short)
    if short in ARRAYS_LIKE:
        return replace(_array(given), dtype=given.dtype(2 if short == "full_like" else 1) or given.type(0).dtype)
    if short in PRODUCTS:
        return _product(given, short)
    if is_dtype(name):
        return shaped(Kind(short), given.type(0))
    if is_elementwise(name):
        return _elementwise(given, short)
    raise TypeProblem(f"`{name}` is not known", "", "write it with operators, other functions or a loop")


def _too_many(name: str) -> TypeProblem:
    if name in FEWER:
        return TypeProblem(f"`{name}` with a further argument is not supported", NOT_BY_NUMBA, FEWER[name])
    what = f"`{name}` is given more arguments than are supported"
    if name.removeprefix("np.").removeprefix(".") in REDUCTIONS - ALONG_AXES:
        return TypeProblem(what, NOT_BY_NUMBA, INSTEAD["axis"])
    why = "a further one could be the array for the result: a write that the analysis would not see"
    return TypeProblem(what, why, "assign the result, `a[:] = …`")


def product_type(left: ValueType, right: ValueType) -> ValueType:
    """The type of `left @ right` for rows and matrices."""
    if not left.rank or not right.rank:
        raise TypeProblem("`@` of a scalar", "it multiplies rows and matrices", "write `*`")
    if left.rank > 2 or right.rank > 2:
        raise TypeProblem("`@` of arrays of more than two dimensions", "", "write a loop")
    inner = left.lengths[-1], right.lengths[0]
    if all(isinstance(length, Const) for length in inner) and inner[0] != inner[1]:
        raise TypeProblem("the lengths of the two sides of `@` do not fit together")
    lengths = (*left.lengths[:-1], *right.lengths[1:])
    kind = promote(left.kind, right.kind)
    if lengths and not kind.dtype.startswith("float"):
        what = f"`@` of matrices of {kind.dtype}"
        raise TypeProblem(what, NOT_BY_NUMBA, "write it as loops, or pass `A.astype(np.float64)` for each")
    return ValueType(kind.dtype, False, len(lengths), lengths)


# ---------------------------------------------------------------- groups of functions


def _reduction(given: Arguments, name: str) -> ValueType:
    array = _array(given)
    results = {
        "sum": sum_result(array.kind), "prod": sum_result(array.kind), "mean": float_result(array.kind),
        "std": float_result(array.kind), "var": float_result(array.kind), "any": Kind("bool"), "all": Kind("bool"),
        "argmin": Kind("int64"), "argmax": Kind("int64"),
    }  # fmt: skip
    kind = results.get(name, Kind(array.dtype))
    if name in ("sum", "prod", "mean") and "dtype" in given.dtypes:
        kind = Kind(given.dtypes["dtype"])
    axis = given.keyword("axis", 1)
    if axis is None:
        return scalar(kind)
    number = axis.value if isinstance(axis, Const) else None
    if isinstance(axis, Unary) and isinstance(axis.operand, Const) and isinstance(axis.operand.value, int):
        number = array.rank - axis.operand.value
    if not isinstance(number, int) or not 0 <= number < array.rank:
        raise TypeProblem("`axis` is not the number of an axis of the array", "", "write a constant, `axis=0`")
    lengths = array.lengths[:number] + array.lengths[number + 1 :]
    return ValueType(kind.dtype, False, len(lengths), lengths)


def _new_array(given: Arguments, name: str) -> ValueType:
    filled = given.type(1).dtype if name == "full" else "float64"
    lengths = _lengths(given, 0)
    return ValueType(given.dtype(2 if name == "full" else 1) or filled, False, len(lengths), lengths)


def _lengths(given: Arguments, position: int) -> tuple[Expr | None, ...]:
    """The lengths that a shape argument gives: a number, or a tuple of numbers."""
    kind = given.type(position)
    shape = given.call.arguments[position]
    if isinstance(shape, Tuple):
        return tuple(without_spans(item) for item in shape.items)
    if kind.items:
        return (None,) * len(kind.items)
    if kind.rank or not kind.is_integer:
        raise TypeProblem("a shape is not an integer or a tuple of integers")
    return (without_spans(shape),)


def _product(given: Arguments, name: str) -> ValueType:
    left, right = given.type(0), given.type(1)
    if name == "outer" and left.rank == right.rank == 1:
        return ValueType(promote(left.kind, right.kind).dtype, False, 2, left.lengths + right.lengths)
    if name == "dot" and not (left.rank and right.rank):
        raise TypeProblem("`dot` of a scalar", NOT_BY_NUMBA, "write `*`")
    if name in ("vdot", "inner", "outer") and (left.rank != 1 or right.rank != 1):
        raise TypeProblem(f"`{name}` of other than two rows", "", "write a loop")
    return product_type(left, right)


def _elementwise(given: Arguments, name: str) -> ValueType:
    try:
        shape = broadcast(*given.types)
        result = elementwise_result(name, *(kind.kind for kind in given.types))
    except (TypeError, ValueError) as error:
        dtypes = " and ".join(kind.dtype for kind in given.types)
        raise TypeProblem(f"`{given.call.function}` is not defined for {dtypes} of these shapes") from error
    if result.dtype == "float16":  # NumPy's choice for bool and for integers of 8 bits
        dtypes = " and ".join(dict.fromkeys(kind.dtype for kind in given.types))
        hint = f"convert what it is given, `np.{name}(a.astype(np.float64))`"
        raise TypeProblem(f"`{given.call.function}` of {dtypes} gives float16", NOT_BY_NUMBA, hint)
    return shaped(result, shape)


def _array(given: Arguments) -> ValueType:
    array = given.type(0)
    if not array.rank:
        raise TypeProblem(f"`{given.call.function.lstrip('.')}` of a scalar", "", "it takes a row or an array")
    return array


# ---------------------------------------------------------------- single functions


def _extreme(given: Arguments) -> ValueType:
    """Python's `min` and `max`, of several scalars or of one row."""
    if len(given.types) == 1:
        return scalar(Kind(_array(given).dtype))
    if any(kind.rank for kind in given.types):
        raise TypeProblem("a minimum or maximum of arrays", "", "write np.minimum or np.maximum")
    found = join_values(given.types, given.call.arguments)
    if found is None:
        raise TypeProblem("a minimum or maximum of what is not numbers")
    return found


def _absolute(given: Arguments) -> ValueType:
    kind = given.type(0)
    if kind.weak:
        return INT if kind.dtype == "bool" else kind
    return _elementwise(given, "abs")


def _rounded(given: Arguments) -> ValueType:
    if given.type(0).dtype == "bool" and not given.type(0).weak:
        raise TypeProblem("`round` of a truth value", "NumPy has none for it", "leave it out")
    return INT if len(given.types) == 1 and not given.type(0).rank else given.type(0)


def _same_shape(given: Arguments) -> ValueType:
    return given.type(0)


def _rounded_elements(given: Arguments) -> ValueType:
    if given.type(0).dtype == "bool":
        raise TypeProblem("`round` of truth values", NOT_BY_NUMBA, "leave it out, or write `a.astype(np.float64)`")
    return given.type(0)


def _cumulated(given: Arguments) -> ValueType:
    array = _array(given)
    if array.rank > 1:
        raise TypeProblem("a cumulated sum of more than one dimension", "", "write a loop")
    return shaped(sum_result(array.kind), array)


def _clipped(given: Arguments) -> ValueType:
    kind = promote(promote(given.type(0).kind, given.type(1).kind), given.type(2).kind)
    return shaped(Kind(kind.dtype), broadcast(*given.types[:3]))


def _chosen(given: Arguments) -> ValueType:
    if len(given.types) != 3:
        raise TypeProblem("np.where with one argument", "how many elements it finds is not known", "write a loop")
    kind = promote(given.type(1).kind, given.type(2).kind)
    return shaped(Kind(kind.dtype), broadcast(*given.types))


def _counted(given: Arguments) -> ValueType:
    integers = all(kind.is_integer for kind in given.types)
    length = without_spans(given.call.arguments[0]) if len(given.types) == 1 and integers else None
    return ValueType(given.dtype(3) or ("int64" if integers else "float64"), False, 1, (length,))


def _positions(given: Arguments) -> ValueType:
    return shaped(Kind("int64"), _row(given))


def _found_positions(given: Arguments) -> ValueType:
    _row(given)
    return shaped(Kind("int64"), given.type(1))


def _row(given: Arguments) -> ValueType:
    array = _array(given)
    if array.rank > 1:
        name = given.call.function.lstrip(".")
        raise TypeProblem(f"`{name}` of an array of more than one dimension", NOT_BY_NUMBA, "loop over its rows")
    return array


def _transposed(given: Arguments) -> ValueType:
    array = given.type(0)
    return replace(array, lengths=array.lengths[::-1])


def _flat(given: Arguments) -> ValueType:
    array = _array(given)
    return array if array.rank == 1 else replace(array, rank=1, lengths=(None,))


def _diagonal(given: Arguments) -> ValueType:
    array = _array(given)
    lengths = array.lengths * 2 if array.rank == 1 else (None,)
    return replace(array, rank=len(lengths), lengths=lengths)


def _identity(given: Arguments) -> ValueType:
    lengths = _lengths(given, 0)
    if len(given.types) > 1 and not isinstance(given.call.arguments[1], Dtype):
        return ValueType(given.dtype(3) or "float64", False, 2, lengths + _lengths(given, 1))
    return ValueType(given.dtype(1) or "float64", False, 2, lengths * 2)


def _float_of_array(given: Arguments) -> ValueType:
    return scalar(float_result(_array(given).kind))


def _of_floats(given: Arguments) -> None:
    """Systems, inverses and determinants are compiled for arrays of floats alone; norms are computed as floats."""
    if any(kind.rank and not kind.dtype.startswith("float") for kind in given.types):
        hint = "convert it, `a.astype(np.float64)`"
        raise TypeProblem(f"`{given.call.function}` of an array of integers", NOT_BY_NUMBA, hint)


def _determinant(given: Arguments) -> ValueType:
    _of_floats(given)
    return _float_of_array(given)


def _solution(given: Arguments) -> ValueType:
    _of_floats(given)
    last = given.types[-1]
    return shaped(float_result(promote(given.type(0).kind, last.kind)), last)


def _converted(given: Arguments) -> ValueType:
    dtype = given.dtype(1)
    if dtype is None:
        raise TypeProblem("`astype` without a dtype", "", "write `a.astype(np.float32)`")
    if len(given.types) > 2 or {key for key, _ in given.call.keywords} - {"dtype"}:
        raise TypeProblem("`astype` with more than a dtype", "", "write `a.astype(np.float32)`")
    return shaped(Kind(dtype), given.type(0))


def _item(given: Arguments) -> ValueType:
    kind = given.type(0)
    return BOOL if kind.dtype == "bool" else INT if kind.is_integer else FLOAT


def _power(given: Arguments) -> ValueType:
    left, right = given.type(0), given.type(1)
    if left.rank or right.rank:
        raise TypeProblem("`pow` of an array", NOT_BY_NUMBA, "write `**`")
    return shaped(operator_result("**", left.kind, right.kind), broadcast(left, right))


def _added_up(given: Arguments) -> ValueType:
    """Python's `sum`: 0 and the elements one after the other, truth values as 0 and 1."""
    array = _array(given)
    if array.rank > 1:
        what = f"`sum` of an array of {array.rank} dimensions"
        raise TypeProblem(what, "Python adds up its rows", "write `np.sum(a, axis=0)`, or `np.sum(a)` for one number")
    return scalar(operator_result("+", INT.kind, array.kind))


def _shape(given: Arguments) -> ValueType:
    return INT if len(given.types) == 2 else ValueType("tuple", items=(INT,) * given.type(0).rank)


RULES: dict[str, Callable[[Arguments], ValueType]] = {
    "abs": _absolute,
    "min": _extreme,
    "max": _extreme,
    "round": _rounded,
    "pow": _power,
    "sum": _added_up,
    "len": lambda given: INT,
    "int": lambda given: INT,
    INTEGER: lambda given: INT,
    NARROW: lambda given: given.type(0),
    "float": lambda given: FLOAT,
    "bool": lambda given: BOOL,
    "np.sort": _same_shape,
    "np.flip": _same_shape,
    "np.round": _rounded_elements,
    "np.cumsum": _cumulated,
    "np.cumprod": _cumulated,
    "np.clip": _clipped,
    "np.where": _chosen,
    "np.arange": _counted,
    "np.argsort": _positions,
    "np.searchsorted": _found_positions,
    "np.transpose": _transposed,
    "np.ravel": _flat,
    "np.diag": _diagonal,
    "np.eye": _identity,
    "np.identity": _identity,
    "np.median": _float_of_array,
    "np.linalg.norm": _float_of_array,
    "np.linalg.det": _determinant,
    "np.linalg.inv": _solution,
    "np.linalg.solve": _solution,
    ".cumsum": _cumulated,
    ".ravel": _flat,
    ".flatten": _flat,
    ".argsort": _positions,
    ".astype": _converted,
    ".item": _item,
    ".fill": lambda given: NONE,
    ".sort": lambda given: NONE,
    "attribute:shape": _shape,
    "attribute:size": lambda given: INT,
    "attribute:nnz": lambda given: INT,
    "attribute:ndim": lambda given: INT,
    "attribute:T": _transposed,
}
