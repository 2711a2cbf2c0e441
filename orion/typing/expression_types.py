"""The type of an expression, from the types of the names in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

from orion.dataclass import dataclass, field, replace
from orion.errors import UnsupportedLoopError
from orion.ir.as_statements import as_branches
from orion.ir.cures import over_elements
from orion.ir.nodes import (
    RAISE,
    RETURNED,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Count,
    Dim,
    Dtype,
    Expr,
    Logic,
    Slice,
    Subscript,
    Tuple,
    Unary,
    Var,
    Word,
)  # fmt: skip
from orion.ir.printer import print_expr
from orion.ir.program import Buffer
from orion.ir.refuse import is_as_written, unsupported
from orion.ir.spans import NOWHERE, without_spans
from orion.ir.types import SparseType, Types
from orion.source import Replacement, SourceText
from orion.typing.call_types import call_type
from orion.typing.complex_types import check_complex_power
from orion.typing.dtypes import operator_result
from orion.typing.further_results import element_of
from orion.typing.problems import TypeProblem
from orion.typing.results import product_type
from orion.typing.rewritten_axes import picked_apart
from orion.typing.value_type import BOOL, COMPLEX, FLOAT, INT, NONE, ValueType, broadcast, join_values, shaped

X_Y: tuple[Expr, Expr] = (Var("x", NOWHERE), Var("y", NOWHERE))
"""What stands for two values of which no more is known."""

HelperType = Callable[[str, tuple[ValueType, ...]], ValueType]


class UntypedNameError(Exception):
    """A name has no type yet."""


@dataclass(frozen=True, slots=True)
class Typing:
    """The types of a function's names, and through them of any expression over those names.

    `helper_type` gives the type of what a helper function returns, from its name and the types of its arguments.
    `truths` are the names that are given truth values among others, and whether such are NumPy's; `single` those whose
    Python numbers fit single precision.
    """

    arguments: Types
    names: Mapping[str, ValueType]
    source: SourceText
    helper_type: HelperType
    truths: Mapping[str, bool] = field(default_factory=dict)
    single: Set[str] = frozenset()
    found: dict[int, tuple[Expr, ValueType]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Types by the identity of expressions, which are kept so that no other has it."""

    def name(self, name: str) -> ValueType:
        """The type of a scalar, a row or an array by its name. KeyError for a name that is not the function's."""
        return self.names[name]

    def having(self, names: Mapping[str, ValueType]) -> Typing:
        """The types with those of some more names, or other ones."""
        found = replace(self, names={**self.names, **names})
        if self.names.keys().isdisjoint(names):
            found.found.update(self.found)
        return found

    def of(self, expr: Expr) -> ValueType:
        """The type of an expression over the function's names. UnsupportedLoopError where it has none."""
        known = self.found.get(id(expr))
        if known is not None:
            return known[1]
        try:
            kind = self._type(expr)
        except TypeProblem as problem:
            what, why, hint = problem.what, problem.why, problem.hint
            is_known, text = problem.is_for_numba, problem.replaced_by
            found = None if problem.rewritten is None else problem.rewritten(expr.span, self.source)
            if found is not None:
                raise unsupported(what, expr.span, self.source, why=why, hint=hint, replacement=found) from problem
            raise self.refuse(expr, what, why, hint, is_for_numba=is_known, replaced_by=text) from problem
        self.found[id(expr)] = expr, kind
        return kind

    def refuse(
        self,
        expr: Expr,
        what: str,
        why: str = "",
        hint: str = "",
        *,
        is_for_numba: bool = False,
        replaced_by: str | None = None,
        whole: Expr | None = None,
    ) -> UnsupportedLoopError:
        """The error to raise for an expression. `replaced_by` does the same as it, or as the whole that it is in."""
        old = whole or expr
        is_told = replaced_by is not None and is_as_written(old, self.source)
        found = Replacement(old.span, replaced_by) if is_told and replaced_by else None
        known = is_for_numba
        return unsupported(what, expr.span, self.source, why=why, hint=hint, is_for_numba=known, replacement=found)

    def _type(self, expr: Expr) -> ValueType:
        match expr:
            case Const(value):
                return constant_type(value)
            case Var(name):
                if name not in self.names:
                    raise UntypedNameError(name)
                return self.names[name]
            case Dim(array, axis):
                rank = self._type(Var(array, expr.span)).rank
                if not -rank <= axis < rank:
                    raise TypeProblem(f"`{array}` has {rank} dimensions" if rank else f"`{array}` is a scalar")
                return INT
            case Count():
                return INT
            case Unary(op, operand):
                return self._unary(op, operand)
            case Binary(op, left, right):
                return self._binary(op, left, right)
            case Compare():
                return self._compare(expr)
            case Logic(_, operands):
                return self._joined([self.condition(operand) for operand in operands], operands)
            case Choose(test, then, orelse):
                self.condition(test)
                return self._joined([self.of(then), self.of(orelse)], (then, orelse))
            case Call():
                return self._call(expr)
            case Subscript():
                return self._subscript(expr)
            case Tuple(items):
                return ValueType("tuple", items=tuple(self.of(item) for item in items))
            case Word() | Dtype() | Slice():
                raise TypeProblem(f"`{print_expr(expr)}` cannot stand here")

    # ------------------------------------------------------------ operators

    def condition(self, expr: Expr) -> ValueType:
        """The type of a condition: a scalar."""
        found = self.of(expr)
        if found.rank or found.items or found.dtype == "none":
            hint = "use np.all or np.any, or compare one element"
            raise self.refuse(expr, "a condition is not a scalar", "NumPy does not say whether an array is true", hint)
        return found

    def _unary(self, op: str, operand: Expr) -> ValueType:
        if op == "not":
            self.condition(operand)
            return BOOL
        found = self._number(operand)
        if found.dtype == "bool" and found.weak:
            return INT
        if found.dtype == "bool" and op != "~":
            raise TypeProblem(f"`{op}` of a truth value", "NumPy has no such operation", "write `~` or `not`")
        if op == "~" and (found.is_complex or found.dtype.startswith("float")):
            raise TypeProblem(f"`~` of a {'complex' if found.is_complex else 'floating-point'} number")
        return found

    def _binary(self, op: str, left: Expr, right: Expr) -> ValueType:
        a, b = self._number(left), self._number(right)
        if op == "@":
            return product_type(a, b)
        if op == "**" and (a.is_complex or b.is_complex):
            check_complex_power(b, _integer(right))
        if (
            op == "**"
            and a.weak
            and b == INT
            and not a.is_complex
            and (isinstance(right, Unary) or (_integer(right) or 0) < 0)
        ):
            return FLOAT  # a Python int to a negative power
        return operation_type(op, a, b, (left, right))

    def _compare(self, expr: Compare) -> ValueType:
        types = [self._number(operand) for operand in expr.operands]
        if len(types) > 2 and any(kind.rank for kind in types):
            why = "Python joins the comparisons by `and`, which takes scalars"
            raise TypeProblem("a chain of comparisons of arrays", why, "write them one by one, joined by `&`")
        pairs = zip(expr.ops, types, types[1:], strict=False)
        found = [operation_type(op, a, b) for op, a, b in pairs]
        return found[0] if len(found) == 1 else BOOL

    def _number(self, expr: Expr) -> ValueType:
        found = self.of(expr)
        if found.items or found.dtype == "none":
            raise self.refuse(expr, "this is not a number or an array", hint="use numbers, and arrays of numbers")
        if isinstance(expr, Var) and isinstance(kind := self.arguments.get(expr.name), SparseType):
            rows = f", or over a row, `for j, value in {expr.name}[i]:`" if kind.ndim == 2 else ""
            hint = f"write a loop in the decorated function, `{over_elements(expr.name, kind)}`{rows}"
            raise self.refuse(expr, f"`{expr.name}` is a sparse array", "only its elements have values", hint)
        return found

    def _joined(self, types: list[ValueType], values: tuple[Expr, ...]) -> ValueType:
        found = join_values(types, values, self.single)
        if found is None:
            what, hint = "the alternatives have different shapes", "choose with an `if` statement"
            raise TypeProblem(what, "", hint, rewritten=as_branches)
        return found

    # ------------------------------------------------------------ calls and subscripts

    def _call(self, call: Call) -> ValueType:
        name = call.function
        if name == "attribute:dtype":
            raise TypeProblem("`dtype` is used as a value", "", "use it as an argument, `np.zeros(n, dtype=a.dtype)`")
        if name == RETURNED:
            return self._returned(call)
        if name.startswith(RAISE):
            for part in call.arguments[1:]:
                self._told(part)
            return NONE
        types = tuple(INT if _is_dtype(argument) else self.of(argument) for argument in call.arguments)
        if name.startswith("helper:"):
            return self.helper_type(name.removeprefix("helper:"), types)
        given = (*enumerate(call.arguments), *call.keywords)
        dtypes = {str(key): self._dtype_of(value) for key, value in given if _is_dtype(value)}
        return call_type(call, types, dtypes, self.single)

    def _returned(self, call: Call) -> ValueType:
        """A part, by slices, of a part of an array."""
        base, *index = call.arguments
        found = self.of(base)
        if len(index) > found.rank:
            what = f"this has {found.rank} dimensions and is given {len(index)} subscripts"
            raise TypeProblem(what, "", "leave subscripts out")
        lengths = [self._axis(part, length)[0] for part, length in zip(index, found.lengths, strict=False)]
        return replace(found, lengths=(*lengths, *found.lengths[len(index) :]))

    def _told(self, part: Expr) -> None:
        """Refuse what the text of an error cannot tell: every worker makes it, and some have no arrays."""
        if self.of(part).rank:
            hint = "tell one of its elements, or its shape: `{x.shape}`"
            raise self.refuse(part, "an array in the text of an error is not supported", "", hint)

    def _dtype_of(self, expr: Expr) -> str:
        match expr:
            case Dtype(name):
                return name
            case Call(_, (owner,)):
                return self.of(owner).dtype
            case _:
                raise TypeProblem("this is no dtype")

    def _subscript(self, expr: Subscript) -> ValueType:
        base = self._number(expr.base)
        if len(expr.index) > base.rank:
            if not base.rank:
                raise TypeProblem(f"`{expr.base.name}` is a scalar and has no elements")
            dimensions = "1 dimension" if base.rank == 1 else f"{base.rank} dimensions"
            what = f"`{expr.base.name}` has {dimensions} and is given {len(expr.index)} subscripts"
            hint = f"pass an array of {len(expr.index)} dimensions, or leave subscripts out"
            raise TypeProblem(what, "", hint)
        lengths: list[Expr | None] = []
        axis = 0
        for part in expr.index:
            self._refuse_truth(part, expr)
            lengths += self._axis(part, base.lengths[axis])
            axis += self._axes_taken(part)
            if axis > base.rank:
                raise self.refuse(part, "a mask has more dimensions than what it picks from")
        self._check_pick(expr)
        lengths += base.lengths[axis:]
        return ValueType(base.dtype, base.weak, len(lengths), tuple(lengths))

    def _axis(self, part: Expr, extent: Expr | None) -> list[Expr | None]:
        """The lengths of the axes that one subscript leaves: none for a number, one for a slice, an array or a mask."""
        if isinstance(part, Slice):
            for bound in (part.lower, part.upper, part.step):
                if bound is not None:
                    self.require_integer(bound, "the bound of a slice")
            return [slice_length(part, extent)]
        found = self._number(part)
        if found.dtype.startswith("float"):
            hint = "convert it with `int(…)`"
            if isinstance(part, Var) and part.name not in self.arguments:
                hint += f"; if `{part.name}` is a loop variable, use another name for the float that it is also given"
            raise self.refuse(part, "a subscript is a floating-point number", hint=hint)
        if found.is_complex:
            raise self.refuse(part, "a subscript is a complex number")
        if found.rank == 0:
            return []
        if found.dtype == "bool":
            return [None]
        if found.rank > 1:
            hint = "write loops over the subscripts"
            raise self.refuse(part, f"an array of subscripts has {found.rank} dimensions", hint=hint, is_for_numba=True)
        return [found.lengths[0]]

    def _refuse_truth(self, part: Expr, place: Subscript) -> None:
        """Refuse a truth value as a subscript of a place."""
        if isinstance(part, Slice) or self.of(part).rank or self.truth(part) is None:
            return
        others = tuple(one for one in place.index if one is not part)
        whole = replace(place, index=others or (Slice(None, None, None, part.span),))
        why = "NumPy takes it for a mask, not for the number 0 or 1"
        word, text = "is" if self.of(part).dtype == "bool" else "may be", print_expr(part)
        hint = f"for the mask write `{print_expr(whole)}` in an `if {text}:`, for the number `int({text})`"
        raise self.refuse(part, f"a subscript {word} a truth value", why, hint)

    def _axes_taken(self, part: Expr) -> int:
        if isinstance(part, Slice):
            return 1
        found = self.of(part)
        return max(1, found.rank) if found.dtype == "bool" else 1

    def _check_pick(self, expr: Subscript) -> None:
        """Refuse arrays as subscripts whose result NumPy puts together in other ways than one axis for another."""
        others = [part for part in expr.index if isinstance(part, Slice) or not self.of(part).rank]
        arrays = [part for part in expr.index if part not in others]
        if not arrays:
            return
        if len(arrays) > 1:
            why = "NumPy pairs such arrays up with one another"
            what = "several arrays as subscripts are not supported"
            raise self.refuse(arrays[1], what, why, "write a loop", is_for_numba=True)
        last = [part for part in expr.index[expr.index.index(arrays[0]) :] if part is not arrays[0]]
        if any(not isinstance(part, Slice) for part in last):
            hint = "give what it picks a name first: `rows = A[picks]`, or `column = A[:, j]`"
            what, text = "an array of subscripts before a number is not supported", self._picked(expr, arrays[0])
            raise self.refuse(arrays[0], what, hint=hint, is_for_numba=True, replaced_by=text, whole=expr)
        slices = [part for part in others if isinstance(part, Slice)]
        is_plain = all(part.lower is part.upper is part.step is None for part in slices)
        if slices and (len(slices) < len(others) or not is_plain):
            hint = "give the part a name first: `row = A[i]`, then `row[picks]`"
            what = "an array of subscripts beside a slice or a number is not supported"
            text = self._picked(expr, arrays[0])
            raise self.refuse(arrays[0], what, hint=hint, is_for_numba=True, replaced_by=text, whole=expr)

    def _picked(self, expr: Subscript, picks: Expr) -> str | None:
        is_number = [not isinstance(part, Slice) and not self.of(part).rank for part in expr.index]
        return picked_apart(expr, picks, self.of(picks), is_number=is_number)

    def truth(self, expr: Expr) -> bool | None:
        """Whether a scalar that may be a truth value, as it is or as one of several values, may be one of NumPy's; None
        where it is none."""
        match expr:
            case Var(name) if name in self.truths and self.of(expr).dtype != "bool":
                return self.truths[name]
            case Choose(_, then, orelse):
                parts: tuple[Expr, ...] = (then, orelse)
            case Logic(_, operands) | Call("min" | "max", operands):
                parts = operands
            case _:
                found = self.of(expr)
                return not found.weak if found.dtype == "bool" and not found.rank else None
        every = [truth for truth in map(self.truth, parts) if truth is not None]
        return any(every) if every else None

    def check_integer(self, expr: Expr, what: str) -> None:
        """Refuse a truth value of NumPy's where Python takes integers, and truth values of its own, alone."""
        if self.truth(expr):
            why = "Python takes True and False for 1 and 0 there, but no truth value of NumPy's"
            raise self.refuse(expr, f"{what} is a truth value of NumPy's", why, "convert it with `int(…)`")

    def require_integer(self, expr: Expr, what: str) -> None:
        """Refuse anything but an integer, `what` says of what, and a truth value of NumPy's."""
        self.check_integer(expr, what)
        found = self._number(expr)
        if found.rank:
            hint = f"write {element_of(expr, found, '{}' if found.is_integer else 'int({})')}"
            raise self.refuse(expr, f"{what} is an array", "it is one integer", hint)
        if not (found.is_integer or found.dtype == "bool"):
            text = print_expr(expr)
            real = f"{text}.real" if isinstance(expr, Var) else f"({text}).real"
            hint = f"write `int({real})`, say" if found.is_complex else f"write `int({text})`"
            raise self.refuse(expr, f"{what} is not an integer", f"it is {found.dtype}", hint)


def constant_type(value: object) -> ValueType:
    """The type of a Python scalar."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT
    return COMPLEX if isinstance(value, complex) else FLOAT if isinstance(value, float) else NONE


def operation_type(op: str, left: ValueType, right: ValueType, written: tuple[Expr, Expr] = X_Y) -> ValueType:
    """The type of `left op right`, element by element; `written` is what stands for the two."""
    try:
        shape = broadcast(left, right)
    except ValueError as error:
        raise TypeProblem(f"the lengths {error} do not fit together") from error
    try:
        return shaped(operator_result(op, left.kind, right.kind), shape)
    except TypeError as error:
        why, hint = _undefined(op, (left, right), written)
        raise TypeProblem(f"`{op}` is not defined for {left.dtype} and {right.dtype}", why, hint) from error


def _undefined(op: str, kinds: tuple[ValueType, ValueType], values: tuple[Expr, Expr]) -> tuple[str, str]:
    """Return why an operation is not defined for two values, and what to write instead."""
    written = tuple(map(print_expr, values))
    if any(kind.is_complex for kind in kinds):
        return "", "use their parts, `z.real` and `z.imag`, or `abs(z)`"
    if any(kind.items for kind in kinds):
        text = next(text for kind, text in zip(kinds, written, strict=True) if kind.items)
        return "a tuple is no row", f"write it as an array, `np.array({text})`"
    floats = [one for one in zip(kinds, written, strict=True) if one[0].dtype.startswith("float")]
    if op in ("&", "|", "^", "<<", ">>") and floats:
        whole = " and ".join(f"`{text}.astype(np.int64)`" if kind.rank else f"`int({text})`" for kind, text in floats)
        return "it works on the bits of integers", f"convert what is a float, {whole}"
    return "NumPy has none for truth values", "convert them: `int(x)`, or `x.astype(np.int64)` of an array"


def slice_length(part: Slice, extent: Expr | None) -> Expr | None:
    """How long a slice is: the whole extent, or what constant bounds leave of it; None where it depends on more.

    A length that would be negative (`a[3:]` of two elements) stands for no elements.

    >>> from orion.ir.nodes import Dim
    >>> from orion.ir.printer import print_expr
    >>> part = Slice(Const(1, NOWHERE), Unary("-", Const(1, NOWHERE), NOWHERE), None, NOWHERE)
    >>> print_expr(slice_length(part, Dim("a", 0, NOWHERE)))
    'a.shape[0] - 2'
    """
    if part.step is not None or extent is None:
        return None
    if part.lower is None and part.upper is None:
        return extent
    lower = 0 if part.lower is None else _integer(part.lower)
    upper = 0 if part.upper is None else _integer(part.upper)
    if part.upper is not None and upper == 0:
        return Const(0, NOWHERE)
    if lower is None or upper is None or lower < 0 or upper > 0:
        return None  # from the end, or up to a place that may lie past the end
    removed = lower - upper
    return extent if removed == 0 else without_spans(Binary("-", extent, Const(removed, NOWHERE), NOWHERE))


def _integer(expr: Expr) -> int | None:
    match expr:
        case Const(int(value)):
            return value
        case Unary("-", Const(int(value))):
            return -value
        case _:
            return None


def _is_dtype(expr: Expr) -> bool:
    return isinstance(expr, Dtype) or (isinstance(expr, Call) and expr.function == "attribute:dtype")


def with_buffers(typing: Typing, buffers: Iterable[Buffer]) -> Typing:
    """The types with the buffers of a loop: rows of the dtypes of their arrays."""
    lengths = {b: (Const(b.length, NOWHERE),) for b in buffers}
    rows = {b.name: ValueType(typing.name(b.array).dtype, False, 1, length) for b, length in lengths.items()}
    return typing.having(rows)


def with_names(typing: Typing, integers: Iterable[str], truths: Iterable[str]) -> Typing:
    """The types with some more names: Python's integers and truth values."""
    return typing.having({**dict.fromkeys(integers, INT), **dict.fromkeys(truths, BOOL)})
