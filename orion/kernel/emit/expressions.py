"""Expressions as Numba source: scalars, and whole rows where NumPy's own operations are used.

Every piece of code has the dtype that NumPy gives the expression (NEP 50): Python scalars take the dtype of what they
meet, by an explicit conversion, since Numba would widen instead (float32 * 0.5 is a float64 there).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from orion.ir.constants import constant_value
from orion.ir.nodes import (
    INTEGER,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Count,
    Dim,
    Expr,
    Logic,
    Range,
    Subscript,
    Unary,
    Var,
    every,
    holds,
)  # fmt: skip
from orion.ir.refuse import unsupported
from orion.kernel.calling import Site
from orion.kernel.emit.code import (
    AND,
    ATOM,
    BIT_OR,
    CHOOSE,
    COMPARE,
    NOT,
    OR,
    SIGN,
    Code,
    call,
    infix,
    infix_compare,
    is_small,
    numba_result,
    number,
    numpy_name,
)  # fmt: skip
from orion.kernel.emit.facts import LoopFacts
from orion.kernel.emit.intervals import Intervals
from orion.kernel.emit.names import Names
from orion.kernel.emit.writer import InPlace, Writer
from orion.passes.kernel_limits import misfit
from orion.source import Span
from orion.typing.narrow import ANY
from orion.typing.value_type import INT, ValueType, fits, literal_limits

GUARDED = {"**": "int_power", "<<": "shifted_left", ">>": "shifted_right", "//": "floor_divided"}
"""Operators of integers that the machine has not for every right side → the functions that have them."""

EACH = {"//": "floor_divide_each", "%": "remainder_each"}
"""Operators of rows and matrices of floats that Numba computes otherwise than NumPy → the functions that do."""

NARROW_BITS = 16
"""Subscripts that are elements of at most as many bits are inside of every axis long enough for all of their values."""


class Expressions(ABC):
    """Emits expressions. `calls.Calls` adds calls of functions, `rows.Rows` rows held in registers."""

    def __init__(self, facts: LoopFacts, names: Names, writer: Writer) -> None:
        self.facts = facts
        self.names = names
        self.writer = writer
        self.sites: list[Site] = []
        self.conversions: dict[tuple[str, str], str] = {}
        self.inputs = frozenset(facts.scalar_inputs())
        self.row_variables: set[str] = set()
        self.inside: dict[tuple[str, str, int], str] = {}
        self.intervals = Intervals(facts)
        self._types: dict[int, tuple[Expr, ValueType]] = {}
        self.depth = 0
        """How many expressions are being emitted, one inside the other."""

    # ------------------------------------------------------------ entry points

    def expression(self, expr: Expr) -> Code:
        """The code of an expression of any rank, of the dtype that `typing` gives it."""
        self.depth += 1
        try:
            code = self.of_any_kind(expr)
        finally:
            self.depth -= 1
        return self.apart(code, expr) if self.depth else code

    def apart(self, code: Code, expr: Expr) -> Code:
        """A part of an expression. Numba makes one loop of operations on rows and whole arrays, and computes with
        integers in 64 bits in it: what comes of narrower ones is an array of its own, of NumPy's dtype."""
        kind = self.type_of(expr) if isinstance(expr, Binary | Unary | Call) else None
        if kind is None or not kind.rank or kind.dtype.startswith("float") or np.dtype(kind.dtype).itemsize == 8:
            return code
        return Code(f"{code.at(ATOM)}.astype(np.{numpy_name(kind.dtype)})", code.dtype)

    def of_any_kind(self, expr: Expr) -> Code:
        match expr:
            case Const(value):
                return self.constant(value, expr)
            case Var(name):
                return self.variable(name)
            case Dim(array, axis):
                return self.extent(array, axis)
            case Count(array):
                return self.count(array)
            case Unary(op, operand):
                return self.unary(op, operand, expr)
            case Binary(op, left, right):
                return self.binary(op, left, right, expr)
            case Compare(ops, operands):
                return self.comparison(ops, operands)
            case Logic(op, operands):
                is_number = self.type_of(expr).dtype != "bool"
                return self.deciding(op, operands, expr) if is_number else self.logic(op, operands)
            case Choose(test, then, orelse):
                return self.choice(test, then, orelse, expr)
            case Call():
                return self.call(expr)
            case Subscript():
                return Code(self.element(expr), self.type_of(expr).dtype)
            case _:
                raise self.refuse(expr, "this cannot stand here")

    @abstractmethod
    def call(self, expr: Call) -> Code:
        """A call of a function as Numba source."""

    def type_of(self, expr: Expr) -> ValueType:
        """The type of an expression, which is found once: names keep their types, and new ones come with theirs."""
        known = self._types.get(id(expr))
        if known is None:
            known = self._types[id(expr)] = expr, self.facts.typing.of(expr)
        return known[1]

    def refuse(self, expr: Expr, what: str, why: str = "", hint: str = "") -> Exception:
        return unsupported(what, expr.span, self.facts.nest.function.source, why=why, hint=hint)

    # ------------------------------------------------------------ new names

    def declare(self, wish: str, kind: ValueType) -> str:
        """A new scalar of the generated code."""
        name = self.names.temporary(wish)
        typing = self.facts.typing
        self.facts = replace(self.facts, typing=typing.having({name: kind}))
        return name

    def declare_row_variable(self) -> str:
        """A new variable that counts through the elements of a row, all of which it may name without a check."""
        name = self.declare("k", INT)
        self.row_variables.add(name)
        return name

    # ------------------------------------------------------------ leaves

    def constant(self, value: complex | None, expr: Expr) -> Code:
        if value is None:
            raise self.refuse(expr, "None is not supported here", hint="use a number, such as -1 or np.nan")
        return number(value, self.type_of(expr).dtype)

    def variable(self, name: str) -> Code:
        text = self.names.user(name)
        if self.facts.array(name) is None:
            return Code(text, self.facts.declared(name))
        dtype = self.facts.typing.name(name).dtype
        return Code(f"{text}[..., :{self.facts.shapes[name][-1]}]" if self.facts.is_padded(name) else text, dtype)

    def extent(self, array: str, axis: int) -> Code:
        rank = self.facts.typing.name(array).rank
        axis = axis + rank if axis < 0 else axis
        is_sparse = self.facts.sparse(array) is not None  # of which kernels are given parts alone
        if is_sparse or (axis == rank - 1 and self.facts.is_padded(array)):
            return Code(str(self.facts.shapes[array][axis]), "int64")
        return Code(f"{self.names.user(array)}.shape[{axis}]", "int64")

    def count(self, array: str) -> Code:
        if self.facts.sparse(array) is not None:
            return Code(self.names.user(array), "int64")
        return Code(f"{self.variable(array).text}.size", "int64")

    # ------------------------------------------------------------ conversions

    def converted(self, code: Code, dtype: str, rank: int = 0) -> Code:
        """The value as `dtype`. A scalar that the loop takes from outside is converted once, before the loop."""
        if code.dtype == dtype:
            return code
        if rank > 0:
            return Code(f"{code.at(ATOM)}.astype(np.{numpy_name(dtype)})", dtype)
        name = next((name for name in self.inputs if self.names.user(name) == code.text), None)
        if name is not None:
            key = (name, dtype)
            if key not in self.conversions:
                self.conversions[key] = self.names.fresh(f"{name}_{dtype}")
            return Code(self.conversions[key], dtype)
        return call(dtype, code, dtype=dtype)

    def operand(self, expr: Expr, dtype: str) -> Code:
        """A scalar or row expression as `dtype`."""
        if isinstance(expr, Const) and expr.value is not None:
            if not fits(expr.value, dtype):
                raise self.refuse(expr, *misfit(expr.value, dtype))
            return number(expr.value, dtype)
        return self.converted(self.expression(expr), dtype, self.type_of(expr).rank)

    def bound(self, expr: Expr) -> Code:
        """A bound of a range or of a slice, or a subscript, as an integer of 64 bits with a sign."""
        if self.type_of(expr).dtype == "uint64":
            return call("signed", self.expression(expr), dtype="int64")
        return self.operand(expr, "int64")

    def range_bounds(self, space: Range, *, is_held: bool = True) -> tuple[Code, Code, Code]:
        """The start, stop and step of a range. One that may be too wide for the machine's own is held to its width,
        unless `is_held` is False."""
        start, stop, step = (self.bound(bound) for bound in (space.start, space.stop, space.step))
        first, end = self.unsigned(space.start), self.unsigned(space.stop)
        if first is not None:
            site = str(self.site("", space.start.span))
            start = call("signed_start", first, stop, step, end or stop, site, dtype="int64")
        if end is not None:
            stop = call("signed_stop", start, end, step, str(self.site("", space.stop.span)), dtype="int64")
        if is_held and not self.intervals.is_narrow(space):
            stop = call("held_stop", start, stop, step, str(self.site("", space.span)), dtype="int64")
        self.intervals.note(space)
        return start, stop, step

    def unsigned(self, expr: Expr) -> Code | None:
        """A bound of 64 bits without a sign as it is; None for any other."""
        while isinstance(expr, Call) and expr.function == INTEGER:
            expr = expr.arguments[0]
        return self.expression(expr) if self.type_of(expr).dtype == "uint64" else None

    def test(self, expr: Expr) -> Code:
        """A condition: any scalar, taken as true where it is not zero."""
        code = self.logic(expr.op, expr.operands) if isinstance(expr, Logic) else self.expression(expr)
        return code if code.dtype == "bool" else infix_compare("!=", code, number(0, "int64"))

    # ------------------------------------------------------------ operators

    def unary(self, op: str, operand: Expr, expr: Expr) -> Code:
        if op == "not":
            return Code(f"not {self.test(operand).at(NOT)}", "bool", NOT)
        kind = self.type_of(expr)
        code = self.operand(operand, kind.dtype)
        found = code.dtype if code.dtype == "bool" else numba_result("-", code.dtype, code.dtype, kind.rank)
        return self.narrowed(Code(f"{op}{code.at(SIGN)}", found, SIGN), kind)

    def binary(self, op: str, left: Expr, right: Expr, expr: Expr) -> Code:
        kind = self.type_of(expr)
        if op == "@":
            return self.product(left, right, kind)
        return self.arithmetic(op, left, right, kind)

    def product(self, left: Expr, right: Expr, kind: ValueType) -> Code:
        """A product of rows or matrices; that of two rows needs no BLAS."""
        operands = self.operand(left, kind.dtype), self.operand(right, kind.dtype)
        if not self.type_of(left).rank == self.type_of(right).rank == 1:
            return call("np.dot", *operands, dtype=kind.dtype)
        if kind.dtype.startswith("float"):
            function = "dot_of_rows" if self.facts.fastmath else "dot_of_rows_in_order"
            return call(function, *operands, dtype=kind.dtype)
        return self.narrowed(call("dot_of_rows_in_order", *operands, dtype="int64"), kind)

    def arithmetic(self, op: str, left: Expr, right: Expr, kind: ValueType) -> Code:
        """`left op right` of the given type, operands converted where Numba would compute in another dtype."""
        if self.is_guarded(op, right, kind):
            return self.guarded(op, left, right, kind)
        if kind.is_complex and not kind.rank and (op == "**" or (op == "/" and not kind.weak)):
            return self.of_complex(op, left, right, kind)
        power = literal_limits(right) if op == "**" and kind.dtype.startswith("float") else None
        if power is not None and power[0] < 0:
            return self.reciprocal(left, right, -power[0], kind)
        if kind.rank and op in EACH and kind.dtype.startswith("float"):
            return call(EACH[op], self.operand(left, kind.dtype), self.operand(right, kind.dtype), dtype=kind.dtype)
        if op == "**" and isinstance(right, Const) and right.value == 0.5 and self.type_of(left).rank:
            return call("np.sqrt", self.operand(left, kind.dtype), dtype=kind.dtype)  # so NumPy does for arrays
        if op == "%" and kind.dtype == "int64" and not kind.rank and self.intervals.is_near(left, right):
            return call("near_remainder", self.expression(left), self.expression(right), dtype="int64")
        a, b = self.expression(left), self.divisor(op, left, right)
        if op == "**" and isinstance(right, Const) and isinstance(right.value, int) and a.dtype == kind.dtype:
            found = numba_result(op, a.dtype, b.dtype, kind.rank) if kind.is_integer else a.dtype
            return self.narrowed(infix(op, a, b, found), kind)
        if op == "**" and kind == ValueType("float64", weak=kind.weak) and self.type_of(right).fits_int64:
            return self.power(left, right, kind)
        is_power = op == "**" and kind.dtype.startswith("float") and not kind.weak  # Numba's of integers raises, of 0.0
        if is_power or numba_result(op, a.dtype, b.dtype, kind.rank) != kind.dtype:
            a, b = self.operand(left, kind.dtype), self.operand(right, kind.dtype)
        a, b = self.fitting(left, a, right, kind), self.fitting(right, b, left, kind)
        return self.narrowed(infix(op, a, b, numba_result(op, a.dtype, b.dtype, kind.rank)), kind)

    def fitting(self, expr: Expr, code: Code, other: Expr, kind: ValueType) -> Code:
        """A Python integer that meets a narrower one of NumPy's, refused at run time where it does not fit that. What
        changes from iteration to iteration is not checked where it meets elements of arrays: that would cost more than
        most loops do."""
        is_python = self.type_of(expr).weak and self.type_of(expr).is_integer and not isinstance(expr, Const)
        names = list(every((Var, Subscript), expr))
        is_fixed = all(isinstance(part, Var) and part.name in self.inputs for part in names)
        is_scalar = is_fixed or not holds(Subscript, other)
        is_narrow = kind.is_integer and kind.dtype != "int64" and not kind.weak and (is_fixed or not kind.rank)
        if not (is_python and is_scalar and is_narrow):
            return code
        narrow = self.converted(code, kind.dtype)
        site = str(self.site(kind.dtype, expr.span))
        return call("fitting", self.expression(expr), narrow, site, dtype=kind.dtype)

    def reciprocal(self, left: Expr, right: Expr, power: int, kind: ValueType) -> Code:
        """`left ** -power`. Numba's own raises ZeroDivisionError for NumPy's floats too."""
        base = self.operand(left, kind.dtype)
        if self.type_of(left).weak:
            base = call("nonzero", base, str(self.site("", right.span)), dtype=kind.dtype)
        whole = infix("**", base, number(power, "int64"), kind.dtype)
        return infix("/", number(1, kind.dtype), whole, kind.dtype)

    def of_complex(self, op: str, left: Expr, right: Expr, kind: ValueType) -> Code:
        """A power of a complex number, which is one by a constant (`orion.typing.results`), or a quotient."""
        base = self.operand(left, kind.dtype)
        if op == "/":
            return call("complex_divided", base, self.operand(right, kind.dtype), dtype=kind.dtype)
        power = constant_value(right)
        if power in (0, 1):
            return base if power else number(1, kind.dtype)
        return call("complex_power", base, str(power), dtype=kind.dtype)

    def power(self, left: Expr, right: Expr, kind: ValueType) -> Code:
        """`left ** right`, a float of 64 bits to an integer that is no constant."""
        operands = self.operand(left, kind.dtype), self.converted(self.expression(right), "int64")
        if kind.weak:
            return call("python_power", *operands, str(self.site("", right.span)), dtype=kind.dtype)
        return call("float_power", *operands, dtype=kind.dtype)

    def is_guarded(self, op: str, right: Expr, kind: ValueType) -> bool:
        """Whether the machine's own operation on integers is not that of NumPy for every right side."""
        if op not in GUARDED or not kind.is_integer or kind.rank or is_small(right):
            return False
        low, high = (self.intervals.of(right) if op in ("<<", ">>") else None) or ANY
        return low < 0 or high >= 64

    def guarded(self, op: str, left: Expr, right: Expr, kind: ValueType) -> Code:
        """A shift, power or quotient of integers for any right side."""
        wide = "uint64" if kind.dtype.startswith("uint") else "int64"
        divisor = self.converted(self.divisor(op, left, right), wide if op == "//" else "int64")
        if op == "//" and wide == "uint64":
            return self.narrowed(infix(op, self.operand(left, wide), divisor, wide), kind)
        site = [str(self.site("", right.span))] if op == "**" else []
        return self.narrowed(call(GUARDED[op], self.operand(left, wide), divisor, *site, dtype=wide), kind)

    def divisor(self, op: str, left: Expr, right: Expr) -> Code:
        """The right side of an operation, checked where it may be a divisor that Python refuses."""
        code = self.expression(right)
        if self.may_divide_by_zero(op, left, right):
            code = call("nonzero", code, str(self.site("", right.span)), dtype=code.dtype)
        return code

    def may_divide_by_zero(self, op: str, left: Expr, right: Expr) -> bool:
        """Whether Python would raise ZeroDivisionError where the divisor is 0: NumPy's scalars only warn."""
        is_python = self.type_of(left).weak and self.type_of(right).weak
        literal = right.operand if isinstance(right, Unary) else right
        return op in ("/", "//", "%") and is_python and not (isinstance(literal, Const) and literal.value)

    def narrowed(self, code: Code, kind: ValueType) -> Code:
        """Integers that Numba widened, at the width that NumPy keeps."""
        return self.converted(code, kind.dtype, kind.rank)

    def comparison(self, ops: tuple[str, ...], operands: tuple[Expr, ...]) -> Code:
        codes = [self.compared(operand, operands) for operand in operands[:2]]
        with self.in_place():  # what follows is not evaluated where the comparison is decided
            codes += [self.compared(operand, operands) for operand in operands[2:]]
        rest = (f" {op} {code.at(BIT_OR)}" for op, code in zip(ops, codes[1:], strict=True))
        return Code(codes[0].at(BIT_OR) + "".join(rest), "bool", COMPARE)

    def compared(self, operand: Expr, operands: tuple[Expr, ...]) -> Code:
        """An operand of a comparison; a Python float takes the dtype of the floats that it is compared with."""
        kinds = [self.type_of(other) for other in operands]
        strong = {kind.dtype for kind in kinds if not kind.weak}
        if self.type_of(operand).weak and strong == {"float32"}:
            return self.operand(operand, "float32")
        return self.expression(operand)

    def logic(self, op: str, operands: tuple[Expr, ...]) -> Code:
        level = AND if op == "and" else OR
        codes = [self.test(operands[0])]
        with self.in_place():
            codes += [self.test(operand) for operand in operands[1:]]
        return Code(f" {op} ".join(code.at(level + 1) for code in codes), "bool", level)

    def deciding(self, op: str, operands: tuple[Expr, ...], expr: Expr) -> Code:
        """`operands[0] op operands[1] …` where that is the value of the operand which decides, a number. Nothing that
        is evaluated twice changes anything: calls of helpers that write arrays are refused inside expressions."""
        first, *others = operands
        rest = others[0] if len(others) == 1 else Logic(op, tuple(others), expr.span)
        return self.choice(first, first, rest, expr) if op == "or" else self.choice(first, rest, first, expr)

    def choice(self, test: Expr, then: Expr, orelse: Expr, expr: Expr) -> Code:
        dtype = self.type_of(expr).dtype
        condition = self.test(test)
        with self.in_place():
            a, b = self.operand(then, dtype), self.operand(orelse, dtype)
        return Code(f"{a.at(OR)} if {condition.at(OR)} else {b.at(CHOOSE)}", dtype, CHOOSE)

    def in_place(self) -> InPlace:
        """Inside, an expression may not be preceded by statements: it may not be evaluated, or more than once."""
        return InPlace(self.writer)

    # ------------------------------------------------------------ subscripts

    @abstractmethod
    def element(self, subscript: Subscript) -> str:
        """`base[…]`, an element or a part, with every subscript that is not proved to be inside checked."""

    def site(self, array: str, span: Span) -> int:
        """The number of a place that is checked when the loop runs."""
        site = Site(array, span)
        if site not in self.sites:
            self.sites.append(site)
        return self.sites.index(site)
