"""The functions, methods and attributes that a loop body may use: one table, by canonical name.

A row says everything that the compiler knows of a function: the type of its result, which arguments it takes, what
Numba compiles for it, and what it costs. NumPy's functions of each element need no row: NumPy's own table has their
types. Those that have one are compiled otherwise than by name, or cost less than a call.

`docs/how-it-works/extending.md` says how to add one.
"""

from __future__ import annotations

from enum import Enum
from functools import cache

import numpy as np

from orion.dataclass import dataclass
from orion.ir.nodes import INTEGER, LIST, NARROW, STORE
from orion.typing.arguments import Rule
from orion.typing.complex_types import complex_number, conjugated, part_of_complex
from orion.typing.dtypes import Kind, float_result, sum_result
from orion.typing.further_results import float_limit, integer_limit, keyed, number, trace, with_axis
from orion.typing.results import (
    absolute,
    added_up,
    array_like,
    chosen,
    clipped,
    conversion,
    converted,
    counted,
    cumulated,
    determinant,
    diagonal,
    differences,
    dot,
    elementwise,
    extreme,
    filled_array,
    flat,
    float_of_array,
    fold,
    found_positions,
    identity,
    item_of,
    joined,
    new_array,
    outer,
    places,
    positions,
    power,
    product,
    product_of_rows,
    quantile,
    reshaped,
    rounded,
    rounded_elements,
    same_kind,
    same_shape,
    shape_of,
    solution,
    some_of_row,
    spaced,
    transposed,
    window,
    written_out,
)  # fmt: skip
from orion.typing.value_type import BOOL, FLOAT, INT, NONE


class Form(Enum):
    """What a call is compiled as (`orion.kernel.emit.calls`)."""

    NAMED = "what Numba has by that name, its result converted where NumPy gives another dtype"
    ELEMENTS = "a function of each element: Python's numbers take the dtype of what they meet"
    CONVERSION = "a conversion to a dtype"
    MATH = "a function of `math`, of floats"
    SUM = "a sum of elements: of rows, by vector instructions"
    PRODUCT = "a product of rows or matrices"
    COPY = "its first argument; a copy where that must be"
    NEW = "an array whose dtype is spelt out"
    KEYED = "a random number by key: its integers of 64 bits"
    ATTRIBUTE = "an attribute"


class Own(Enum):
    """Where Orion's function of that name is compiled (`orion.kernel.support.numpys` has it, for scalars and for rows)
    as Numba's has other zeros or infinities than NumPy's, or there is none."""

    NEVER = "Numba's is NumPy's"
    FLOATS = "where the result is of floats"
    HELPERS = "there, and in functions of the user that are compiled as they are, whatever they are given"
    ALWAYS = "everywhere: Numba has none"


class Cost(Enum):
    """What a call costs, for the prediction of times."""

    VECTOR = "LLVM has a vector instruction for it"
    CHEAP = "no more than its elements"
    SLOW = "a call for each element"


@dataclass(frozen=True, slots=True)
class Known:
    """A row: what is known of a function.

    `result` is the rule for its type. At most `most` arguments may stand without a keyword (None: any number): a
    further one could be the array for the result, or is not compiled; `instead` says what to write instead of it.
    `keywords` are the keyword arguments that are compiled. `form` is what it is compiled as. `own` says where Orion's
    function is compiled in place of Numba's. `lanes` is the operation on rows in registers that it is
    (`orion.kernel.support.vectors`). `fill`: every element of the result is that number. `reads_row`: its first
    argument is a row or more, which tells the ranks of parameters where there are no types (`orion.cli.guess`).
    `is_view`: the result may be a view of the first argument. `writes`: it changes that in place.
    `of_complex`: it takes complex numbers, or makes them. `calls_blas`: Numba calls BLAS or LAPACK for it.
    `needs_elements`: NumPy has an IndexError where that has none, and Numba nothing that says so.
    """

    result: Rule
    most: int | None = None
    instead: str = ""
    keywords: tuple[str, ...] = ()
    form: Form = Form.NAMED
    cost: Cost = Cost.SLOW
    own: Own = Own.NEVER
    lanes: str = ""
    fill: int | None = None
    reads_row: bool = False
    is_view: bool = False
    writes: bool = False
    needs_elements: bool = False
    of_complex: bool = False
    calls_blas: bool = False


ALONG = "write a loop over the other axes; for a row leave the axis out"
"""What to write instead of an axis."""

LIKE = ("shape", "fill_value", "dtype")
FLOATS = (
    "math.acos math.acosh math.asin math.asinh math.atan math.atan2 math.atanh math.copysign math.cos math.cosh "
    "math.degrees math.erf math.erfc math.exp math.expm1 math.fmod math.gamma math.hypot math.lgamma math.log10 "
    "math.log1p math.log2 math.pow math.radians math.sin math.sinh math.tan math.tanh"
)

INTEGER_LIMITS, FLOAT_LIMITS = ("min", "max", "bits"), ("min", "max", "eps", "tiny", "smallest_normal", "resolution")
"""The attributes of np.iinfo and np.finfo that are known: `iinfo:max`, `finfo:eps` of the dtype of an array."""

ROWS: tuple[tuple[str, Known], ...] = (
    # Python's
    ("abs", Known(absolute, cost=Cost.VECTOR, of_complex=True)),
    (
        "complex",
        Known(complex_number, 2, "write `complex(x, y)`", form=Form.CONVERSION, cost=Cost.CHEAP, of_complex=True),
    ),
    ("min max", Known(extreme, cost=Cost.VECTOR)),
    ("round", Known(rounded)),
    ("pow", Known(power, most=2, instead="write a loop of products, each `% m`")),
    (
        "sum",
        Known(
            added_up,
            most=1,
            instead="write `s = start`, and a loop that adds the elements to it",
            form=Form.SUM,
            cost=Cost.CHEAP,
        ),
    ),
    ("len", Known(lambda given: INT, of_complex=True)),
    ("int", Known(number(INT), form=Form.CONVERSION, cost=Cost.CHEAP)),
    ("float", Known(number(FLOAT), form=Form.CONVERSION, cost=Cost.VECTOR)),
    ("bool", Known(number(BOOL), form=Form.CONVERSION)),
    # of `math`
    (FLOATS, Known(number(FLOAT), form=Form.MATH)),
    ("math.sqrt", Known(number(FLOAT), form=Form.MATH, cost=Cost.VECTOR)),
    ("math.fabs", Known(number(FLOAT), form=Form.MATH, cost=Cost.CHEAP)),
    ("math.log", Known(number(FLOAT), 1, "write `math.log(x) / math.log(base)`", form=Form.MATH)),
    ("math.floor math.ceil math.trunc math.gcd", Known(number(INT), form=Form.MATH)),
    ("math.isnan math.isinf math.isfinite", Known(number(BOOL), form=Form.MATH)),
    # one value of all elements, or of those along an axis
    (
        "np.sum .sum",
        Known(
            fold(sum_result),
            2,
            "name the dtype, `dtype=np.float64`",
            ("axis", "dtype"),
            Form.SUM,
            Cost.CHEAP,
            reads_row=True,
            of_complex=True,
        ),
    ),
    ("np.prod .prod", Known(fold(sum_result), 2, "", ("axis",), cost=Cost.CHEAP, reads_row=True)),
    ("np.min np.max .min .max", Known(fold(same_kind), 2, "", ("axis",), cost=Cost.CHEAP, reads_row=True)),
    (
        "np.mean .mean",
        Known(
            fold(float_result),
            2,
            "convert before or after, with `.astype(np.float64)`",
            ("axis",),
            cost=Cost.CHEAP,
            reads_row=True,
            of_complex=True,
        ),
    ),
    (
        "np.std np.var .std .var",
        Known(fold(float_result), 1, ALONG, cost=Cost.CHEAP, reads_row=True),
    ),
    ("np.any np.all .any .all", Known(fold(lambda kind: Kind("bool")), 1, ALONG, cost=Cost.CHEAP)),
    (
        "np.argmin np.argmax .argmin .argmax",
        Known(fold(lambda kind: Kind("int64")), 2, "", ("axis",), cost=Cost.CHEAP, reads_row=True),
    ),
    ("np.median", Known(float_of_array, 1, ALONG)),
    ("np.trace", Known(trace, 1, "add up its elements in a loop, `A[i, i + k]`", cost=Cost.CHEAP)),
    (
        "np.percentile np.quantile",
        Known(quantile, 2, ALONG, needs_elements=True),
    ),
    # products
    ("np.dot .dot", Known(dot, 2, form=Form.PRODUCT, cost=Cost.CHEAP, reads_row=True, calls_blas=True)),
    ("np.vdot", Known(product_of_rows, form=Form.PRODUCT, cost=Cost.CHEAP, reads_row=True, calls_blas=True)),
    ("np.inner", Known(product_of_rows, form=Form.PRODUCT, cost=Cost.CHEAP, calls_blas=True)),
    ("np.matmul", Known(product, 2, form=Form.PRODUCT, cost=Cost.CHEAP, calls_blas=True)),
    ("np.outer", Known(outer, 2, cost=Cost.CHEAP)),
    # new arrays
    ("np.zeros", Known(new_array, keywords=LIKE, form=Form.NEW, fill=0, of_complex=True)),
    ("np.ones", Known(new_array, keywords=LIKE, form=Form.NEW, fill=1, of_complex=True)),
    ("np.empty", Known(new_array, keywords=LIKE, form=Form.NEW, of_complex=True)),
    (LIST, Known(new_array, of_complex=True)),
    ("np.full", Known(filled_array, keywords=LIKE, form=Form.NEW, of_complex=True)),
    ("np.zeros_like", Known(array_like(1), keywords=LIKE, fill=0, of_complex=True)),
    ("np.ones_like", Known(array_like(1), keywords=LIKE, fill=1, of_complex=True)),
    ("np.empty_like", Known(array_like(1), keywords=LIKE, of_complex=True)),
    ("np.full_like", Known(array_like(2), keywords=LIKE, of_complex=True)),
    ("np.copy", Known(array_like(1), 1, "", LIKE, Form.COPY, Cost.CHEAP, of_complex=True)),
    (".copy", Known(array_like(1), 1, form=Form.COPY, cost=Cost.CHEAP, reads_row=True, of_complex=True)),
    ("np.arange", Known(counted, keywords=("dtype",))),
    ("np.linspace", Known(spaced, 3, "write `np.arange(n) * step + start`", keywords=("num",))),
    ("np.hanning np.hamming np.blackman np.bartlett", Known(window)),
    ("np.concatenate np.hstack", Known(joined, 1, "join rows of one dimension")),
    ("np.array", Known(written_out, keywords=("dtype",))),
    ("np.eye", Known(identity, keywords=("k", "dtype"))),
    ("np.identity", Known(identity, keywords=("dtype",))),
    # of the same elements
    ("np.transpose", Known(transposed, 1, "write its subscripts the other way round, `A[j, i]`", is_view=True)),
    ("np.ravel .ravel", Known(flat, 1, is_view=True)),
    (".flatten", Known(flat, 1)),
    ("np.reshape .reshape", Known(reshaped, is_view=True)),
    ("np.flip", Known(same_shape, 1, ALONG, is_view=True)),
    ("np.expand_dims", Known(with_axis, 2, is_view=True, of_complex=True)),
    ("np.diag", Known(diagonal, keywords=("k",), is_view=True)),
    ("np.sort", Known(same_shape, 1, ALONG)),
    ("np.unique", Known(some_of_row, 1)),
    ("np.diff", Known(differences, 1, "write it as often as is wanted, `np.diff(np.diff(x))`")),
    ("np.flatnonzero", Known(places, 1)),
    ("np.argsort .argsort", Known(positions, 1, ALONG, keywords=("kind",))),
    ("np.searchsorted", Known(found_positions, keywords=("side",))),
    (".astype", Known(converted, keywords=("dtype", "copy", "casting", "order", "subok"), of_complex=True)),
    (".item", Known(item_of, 1, "write its subscript, `x[2]` for `x.item(2)`")),
    (".fill", Known(lambda given: NONE, reads_row=True, writes=True)),
    (".sort", Known(lambda given: NONE, 1, ALONG, writes=True)),
    # of each element
    ("np.round", Known(rounded_elements, 2, keywords=("decimals",))),
    ("np.clip", Known(clipped, 3, keywords=("a_min", "a_max"))),
    ("np.where", Known(chosen, of_complex=True)),
    ("np.cumsum .cumsum np.cumprod", Known(cumulated, 1, ALONG)),
    ("np.abs", Known(elementwise, form=Form.ELEMENTS, cost=Cost.VECTOR, lanes="row_abs", of_complex=True)),
    (
        "np.absolute np.conj np.conjugate",
        Known(elementwise, form=Form.ELEMENTS, of_complex=True),
    ),
    (".conj .conjugate", Known(conjugated, 1, cost=Cost.CHEAP, is_view=True, of_complex=True)),
    ("np.fabs", Known(elementwise, form=Form.ELEMENTS, cost=Cost.CHEAP)),
    ("np.sqrt", Known(elementwise, form=Form.ELEMENTS, cost=Cost.VECTOR, lanes="row_sqrt", of_complex=True)),
    ("np.exp", Known(elementwise, form=Form.ELEMENTS, lanes="row_exp", of_complex=True)),
    ("np.log", Known(elementwise, form=Form.ELEMENTS, lanes="row_log", of_complex=True)),
    ("np.floor", Known(elementwise, form=Form.ELEMENTS, lanes="row_floor")),
    ("np.ceil", Known(elementwise, form=Form.ELEMENTS, lanes="row_ceil")),
    (
        "np.minimum",
        Known(elementwise, form=Form.ELEMENTS, cost=Cost.VECTOR, own=Own.HELPERS, lanes="row_minimum"),
    ),
    (
        "np.maximum",
        Known(elementwise, form=Form.ELEMENTS, cost=Cost.VECTOR, own=Own.HELPERS, lanes="row_maximum"),
    ),
    ("np.sign np.spacing", Known(elementwise, form=Form.ELEMENTS, own=Own.HELPERS)),
    ("np.floor_divide np.remainder", Known(elementwise, form=Form.ELEMENTS, own=Own.FLOATS)),
    # random numbers by key
    ("orion.random orion.random.normal", Known(keyed(0, FLOAT), form=Form.KEYED)),
    ("orion.random.integers", Known(keyed(2, INT), form=Form.KEYED)),
    # linear algebra
    ("np.linalg.norm", Known(float_of_array, 2, ALONG, ("ord",), cost=Cost.CHEAP, reads_row=True, calls_blas=True)),
    ("np.linalg.det", Known(determinant, calls_blas=True, of_complex=True)),
    ("np.linalg.inv np.linalg.solve np.linalg.cholesky", Known(solution, calls_blas=True, of_complex=True)),
    # dtypes, attributes, and what the compiler itself puts into loops
    ("np.float32 np.float64", Known(conversion, form=Form.CONVERSION, cost=Cost.CHEAP)),
    ("attribute:shape", Known(shape_of, form=Form.ATTRIBUTE, of_complex=True)),
    (
        "attribute:size attribute:nnz attribute:ndim",
        Known(lambda given: INT, form=Form.ATTRIBUTE, of_complex=True),
    ),
    ("attribute:real attribute:imag", Known(part_of_complex, form=Form.ATTRIBUTE, is_view=True, of_complex=True)),
    (" ".join(f"iinfo:{name}" for name in INTEGER_LIMITS), Known(integer_limit, form=Form.ATTRIBUTE)),
    (" ".join(f"finfo:{name}" for name in FLOAT_LIMITS), Known(float_limit, form=Form.ATTRIBUTE)),
    ("attribute:T", Known(transposed, form=Form.ATTRIBUTE, is_view=True, of_complex=True)),
    (INTEGER, Known(lambda given: INT, cost=Cost.CHEAP)),
    (NARROW, Known(lambda given: given.type(0), cost=Cost.CHEAP)),
    (STORE, Known(lambda given: NONE, cost=Cost.CHEAP, of_complex=True)),
)

FUNCTIONS = {name: known for names, known in ROWS for name in names.split()}
"""The row of each name."""

DTYPE = Known(conversion, form=Form.CONVERSION, of_complex=True)
OF_ELEMENTS = Known(elementwise, form=Form.ELEMENTS)
"""The rows of dtypes and of functions of each element that have none of their own."""

NOT_COMPILED = frozenset(["heaviside", "bitwise_count"])
"""Functions of each element that Numba does not have."""


@cache
def known(name: str) -> Known | None:
    """The row of a function; None for one that can't be compiled and typed.

    >>> known("np.exp").lanes, known("np.tan").form.name, known("np.int8").form.name, known("np.loadtxt")
    ('row_exp', 'ELEMENTS', 'CONVERSION', None)
    """
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    return DTYPE if is_dtype(name) else OF_ELEMENTS if is_elementwise(name) else None


def form_of(name: str) -> Form | None:
    """What a call of a function is compiled as; None for those of the user, and for such as Orion makes."""
    row = known(name)
    return None if row is None else row.form


def cost_of(name: str) -> Cost:
    """What a call costs.

    >>> cost_of("np.sqrt").name, cost_of("np.exp").name, cost_of("helper:f").name
    ('VECTOR', 'SLOW', 'SLOW')
    """
    row = known(name)
    return Cost.SLOW if row is None else row.cost


def may_be_view(name: str) -> bool:
    """Whether what a function returns may be another view of its first argument rather than a new array."""
    row = known(name)
    return row is not None and row.is_view


def writes(name: str) -> bool:
    """Whether a method changes its array in place; one that is not known may.

    >>> writes(".sort"), writes(".copy"), writes(".partition"), writes("np.exp")
    (True, False, True, False)
    """
    row = known(name)
    return name.startswith(".") if row is None else row.writes


def reads_row(name: str) -> bool:
    """Whether the first argument of a function is a row or more."""
    row = known(name)
    return row is not None and row.reads_row


def is_elementwise(name: str) -> bool:
    """Whether it is a NumPy function of each element by itself, with one result.

    >>> is_elementwise("np.exp"), is_elementwise("np.maximum"), is_elementwise("np.sum"), is_elementwise("np.matmul")
    (True, True, False, False)
    """
    found = vars(np).get(name.removeprefix("np.")) if name.startswith("np.") else None
    is_one = isinstance(found, np.ufunc) and found.signature is None and found.nout == 1
    return is_one and (name in FUNCTIONS or name.removeprefix("np.") not in NOT_COMPILED)


def takes_floats(name: str) -> bool:
    """Whether all arguments of a function of each element may be floats.

    >>> takes_floats("np.hypot"), takes_floats("np.ldexp")
    (True, False)
    """
    found = getattr(np, name.removeprefix("np."))
    return f"{'d' * found.nin}->d" in found.types


def operands(name: str) -> int:
    """How many arrays a function of each element is given before the one for its result.

    >>> operands("np.sqrt"), operands("np.add")
    (1, 2)
    """
    return int(getattr(np, name.removeprefix("np.")).nin)


def is_dtype(name: str) -> bool:
    """Whether it is one of NumPy's scalar types, such as "np.float32".

    >>> is_dtype("np.int64"), is_dtype("np.sum"), is_dtype("np.str_")
    (True, False, False)
    """
    found = vars(np).get(name.removeprefix("np.")) if name.startswith("np.") else None
    return isinstance(found, type) and issubclass(found, np.bool | np.integer | np.floating | np.complexfloating)
