"""Expressions of scalars as instructions (`orion.kernel.instructions`), which do with numbers what Python does.

What Python does depends on whether a number is its own or NumPy's: `1 / 0.0` is an error, `1 / np.float64(0.0)` is not.
So instructions are written for the kinds of the values that there are when they are first followed. What a register
cannot hold, or would be an error in Python, ends the following at that statement: Python then says what is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from orion.dataclass import dataclass, field, replace
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
    Stmt,
    Unary,
    Var,
)
from orion.kernel import instructions as do
from orion.kernel.instructions import Row

Type = type[Any]
"""The class of the values of a register: one of KINDS."""

KINDS: tuple[Type, ...] = (int, float, np.float64, np.int64, bool, np.bool_)
"""Numbers of Python's come first: the class of a result is then that of the greatest place."""

NUMPYS = 2
"""The place of the first class of NumPy's numbers."""

MIXED: Type = object
"""In place of the class of a variable that may have none, or values that have nothing in common."""


class Whole:
    """In place of the class of a variable that has integers of Python's or of NumPy's, which depends on the way there:
    a second register, its tag, has the place of the class in KINDS."""


class Number:
    """In place of the class of a variable that has integers or floats, which depends on the way there: it has a float's
    bits, and a tag."""


INTEGERS: tuple[Type, ...] = (int, np.int64, bool, Whole)
FLOATS: tuple[Type, ...] = (float, np.float64, Number)
WHOLES: tuple[Type, ...] = (int, np.int64, Whole)
TRUTHS: tuple[Type, ...] = (bool, np.bool_)

OF_INTEGERS = {
    "+": do.ADD, "-": do.SUBTRACT, "*": do.MULTIPLY, "//": do.DIVIDE, "%": do.REMAINDER, "&": do.AND, "|": do.OR,
    "^": do.XOR,
}  # fmt: skip
OF_NUMPYS = OF_INTEGERS | {
    "+": do.WADD, "-": do.WSUBTRACT, "*": do.WMULTIPLY, "//": do.WDIVIDE, "%": do.WREMAINDER,
}  # fmt: skip
OF_FLOATS = {"+": do.FADD, "-": do.FSUBTRACT, "*": do.FMULTIPLY}
COMPARED = {"<": (do.LESS, do.FLESS), "<=": (do.AT_MOST, do.FAT_MOST), "==": (do.SAME, do.FSAME)}
MIRRORED = {">": "<", ">=": "<="}


class NotFollowedError(Exception):
    """There is something in some steps that only Python can do."""


class NewTagsError(Exception):
    """The classes of further variables are to be noted, from the beginning."""


@dataclass(frozen=True, slots=True)
class Value:
    """A register, the class of what it holds, and its tag where that depends on the way there."""

    register: int
    kind: Type
    tag: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """What stands where rows were written: a statement, or the test of one; and the classes of the variables there."""

    node: Stmt | Expr
    kinds: Mapping[str, Type]


@dataclass
class ExpressionWriter:
    """Writes instructions. `kinds` has the classes of variables where writing is at, `homes` their registers; `first`
    what registers have at first. `places[k]` is what row k was written for. `given` are extents of arrays. The classes
    of the variables that are `tagged` are noted in registers wherever these change."""

    given: Mapping[Expr, int]
    rows: list[Row] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    kinds: dict[str, Type] = field(default_factory=dict)
    homes: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    tagged: set[str] = field(default_factory=set)
    first: list[int] = field(default_factory=list)
    _constants: dict[tuple[Type, int], int] = field(default_factory=dict)
    _at: Place | None = None

    # ---------------------------------------------------------------- registers and rows

    def new(self, count: int = 1, bits: int = 0) -> int:
        """The first of so many new registers."""
        self.first += [bits] * count
        return len(self.first) - count

    def home(self, name: str) -> int:
        """The register of a variable."""
        if name not in self.homes:
            self.homes[name] = self.new()
        return self.homes[name]

    def constant(self, value: Any) -> Value:
        """A register that has a value and keeps it."""
        if type(value) not in KINDS or (type(value) is int and not -(2**63) <= value < 2**63):
            raise NotFollowedError
        key = type(value), bits_of(value)
        if key not in self._constants:
            self._constants[key] = self.new(bits=key[1])
        return Value(self._constants[key], type(value))

    def add(self, operation: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        """The number of a new row."""
        assert self._at is not None
        self.rows.append((operation, a, b, c))
        self.places.append(self._at)
        return len(self.rows) - 1

    def at(self, node: Stmt | Expr) -> None:
        """What is written from here on belongs to a statement, or to a test."""
        self._at = Place(node, dict(self.kinds))

    def land(self, jumps: Iterable[int]) -> None:
        """Have these jumps go to the next row."""
        for row in jumps:
            operation, *places = self.rows[row]
            places[0 if operation == do.JUMP else 2] = len(self.rows)
            self.rows[row] = operation, *places  # type: ignore[assignment]

    def result(self, operation: int, kind: Type, left: int, right: int = 0) -> Value:
        """A new register with what an operation gives."""
        self.add(operation, register := self.new(), left, right)
        return Value(register, kind)

    def put(self, name: str, value: Value) -> None:
        """Give a variable a value."""
        tag = self.tag_of(name) if value.kind in (Whole, Number) or name in self.tagged else 0
        if self.home(name) != value.register:
            self.add(do.COPY, self.home(name), value.register)
        self.kinds[name] = value.kind
        if tag and value.kind is not MIXED:
            self.add(do.COPY, tag, self.tag(value))

    def tag(self, value: Value) -> int:
        """A register with the place of a value's class."""
        if value.kind in (Whole, Number):
            return value.tag
        return self.constant(KINDS.index(value.kind)).register

    def tag_of(self, name: str) -> int:
        """The tag of a variable. NewTagsError where it was not noted from the beginning."""
        if name not in self.tagged:
            self.tagged.add(name)
            raise NewTagsError
        if name not in self.tags:
            self.tags[name] = self.new()
        return self.tags[name]

    def variable(self, name: str) -> Value:
        kind = self.kinds.get(name, MIXED)
        if kind is MIXED:
            raise NotFollowedError
        return Value(self.home(name), kind, self.tags.get(name, 0))

    # ---------------------------------------------------------------- expressions

    def value(self, expr: Expr) -> Value:
        """A register with the value of an expression."""
        match expr:
            case Const(value):
                return self.constant(value)
            case Var(name):
                return self.variable(name)
            case Dim() | Count():
                return Value(self.given[expr], int)
            case Unary(op, operand):
                return self._unary(op, operand)
            case Binary(op, left, right):
                return self._binary(op, self.value(left), self.value(right))
            case Compare((op,), (left, right)):
                return self._compared(op, self.value(left), self.value(right))
            case Logic() | Choose() | Compare():
                return self._decided(expr)
            case Call(function, arguments) if not expr.keywords:
                return self._called(function, arguments)
            case _:
                raise NotFollowedError

    def as_float(self, value: Value, operation: int = do.FLOAT) -> int:
        """A register with the float's bits of a value."""
        if value.kind in FLOATS:
            return value.register
        if value.kind not in INTEGERS:
            raise NotFollowedError
        return self.result(operation, float, value.register).register

    def truth(self, value: Value) -> int:
        """A register that is not 0 where a value is true."""
        if value.kind not in FLOATS:
            return value.register
        is_zero = self.result(do.FSAME, bool, value.register, self.constant(0.0).register)
        return self.result(do.SAME, bool, is_zero.register, self.constant(0).register).register

    def is_numpys(self, *values: Value) -> int:
        """A register that says whether one of some values is NumPy's."""
        tags = [self.tag(one) for one in values if one.kind is not bool]
        found = self.constant(0).register
        for tag in tags:
            own = self.result(do.LESS, bool, self.constant(NUMPYS - 1).register, tag).register
            found = self.result(do.OR, bool, found, own).register
        return found

    def of_two(self, is_numpys: int, operations: tuple[int, int], left: int, right: int) -> int:
        """What one of two operations gives: that on Python's numbers, or the one that a register says, on NumPy's."""
        found = self.new()
        others = self.add(do.WHEN, is_numpys, 1)
        self.add(operations[0], found, left, right)
        end = self.add(do.JUMP)
        self.land([others])
        self.add(operations[1], found, left, right)
        self.land([end])
        return found

    def _unary(self, op: str, operand: Expr) -> Value:
        value = self.value(operand)
        if op == "not":
            return self.result(do.SAME, bool, self.truth(value), self.constant(0).register)
        if value.kind in FLOATS and op == "-":
            found = self.result(do.FSUBTRACT, value.kind, self.constant(-0.0).register, value.register)
            return replace(value, register=found.register)
        if value.kind in INTEGERS and op == "-":
            return self._of_integers("-", self.constant(0), value)
        if op == "~" and value.kind in WHOLES:
            return self._of_integers("^", value, self.constant(-1))
        if op == "+" and value.kind in (*FLOATS, *WHOLES):
            return value
        raise NotFollowedError

    def _binary(self, op: str, left: Value, right: Value) -> Value:
        if left.kind in INTEGERS and right.kind in INTEGERS:
            return self._divided(left, right) if op == "/" else self._of_integers(op, left, right)
        kinds = {left.kind, right.kind}
        if not kinds <= {*INTEGERS, *FLOATS} or (Number in kinds and kinds.isdisjoint((float, np.float64))):
            raise NotFollowedError
        numbers = self.as_float(left), self.as_float(right)
        if op == "**" and kinds <= {float, int, bool}:
            return self.result(do.POWER, float, *numbers)
        if not kinds.isdisjoint((np.float64, np.int64)):
            operation = {**OF_FLOATS, "/": do.FDIVIDE}.get(op, -1)
            kind: Type = np.float64
        else:
            operation, kind = {**OF_FLOATS, "/": do.PDIVIDE}.get(op, -1), float
        if operation < 0:
            raise NotFollowedError
        if kind is np.float64 or kinds.isdisjoint((Whole, Number)):
            return self.result(operation, kind, *numbers)
        is_numpys = self.is_numpys(left, right)
        if op == "/":
            found = self.of_two(is_numpys, (do.PDIVIDE, do.FDIVIDE), *numbers)
        else:
            found = self.result(operation, kind, *numbers).register
        return self._float_by(is_numpys, found)

    def _float_by(self, is_numpys: int, register: int) -> Value:
        """A float that is NumPy's where a register says so."""
        tag = self.result(do.ADD, int, is_numpys, self.constant(KINDS.index(float)).register)
        return Value(register, Number, tag.register)

    def _of_integers(self, op: str, left: Value, right: Value) -> Value:
        """An operation on integers. Python's have as many bits as they need, NumPy's wrap around."""
        if op not in OF_INTEGERS:
            raise NotFollowedError
        kinds, numbers = {left.kind, right.kind}, (left.register, right.register)
        if np.int64 in kinds:
            return self.result(OF_NUMPYS[op], np.int64, *numbers)
        if Whole not in kinds:
            is_truth = kinds == {bool} and op in ("&", "|", "^")
            return self.result(OF_INTEGERS[op], bool if is_truth else int, *numbers)
        if op in ("//", "%"):
            operations = OF_INTEGERS[op], OF_NUMPYS[op]
            found = self.of_two(self.is_numpys(left, right), operations, *numbers)
        else:
            found = self.result(OF_INTEGERS[op], Whole, *numbers).register
        tags = [self.tag(one) for one in (left, right) if one.kind is not bool]
        tag = tags[0] if len(tags) == 1 else self.result(do.MOST, int, *tags).register
        return Value(found, Whole, tag)

    def _divided(self, left: Value, right: Value) -> Value:
        """`/` of integers. Floats that are the same numbers divide as Python's integers do."""
        kinds = {left.kind, right.kind}
        if np.int64 in kinds:
            return self.result(do.FDIVIDE, np.float64, self.as_float(left), self.as_float(right))
        numbers = self.as_float(left, do.EXACT), self.as_float(right, do.EXACT)
        if Whole not in kinds:
            return self.result(do.PDIVIDE, float, *numbers)
        is_numpys = self.is_numpys(left, right)
        return self._float_by(is_numpys, self.of_two(is_numpys, (do.PDIVIDE, do.FDIVIDE), *numbers))

    def _compared(self, op: str, left: Value, right: Value) -> Value:
        if op in MIRRORED:
            op, left, right = MIRRORED[op], right, left
        kinds = {left.kind, right.kind}
        kind: Type = np.bool_
        if kinds.isdisjoint((np.float64, np.int64, np.bool_)):
            kind = bool if kinds.isdisjoint((Whole, Number)) else MIXED
        if op == "!=":
            is_same = self._compared("==", left, right)
            return self.result(do.SAME, kind, is_same.register, self.constant(0).register)
        if op not in COMPARED or MIXED in kinds:
            raise NotFollowedError
        of_integers, of_floats = COMPARED[op]
        if kinds.isdisjoint(FLOATS):
            return self.result(of_integers, kind, left.register, right.register)
        return self.result(of_floats, kind, self.as_float(left, do.EXACT), self.as_float(right, do.EXACT))

    def _decided(self, expr: Expr) -> Value:
        """What one of several expressions gives, after a test: those that are not asked are not worked out."""
        if isinstance(expr, Choose):
            found, then, orelse = self.new(), expr.then, expr.orelse
            others = self.test(expr.test, False)
            kind = self._copied(found, self.value(then))
        else:  # a truth value
            found, then, orelse = self.new(), Const(True, expr.span), Const(False, expr.span)
            others = self.test(expr, False)
            if isinstance(expr, Compare):
                kinds = {self.value(one).kind for one in expr.operands}
            else:
                assert isinstance(expr, Logic)
                kinds = {self._kind_of(one) for one in expr.operands}
            if not kinds <= ({bool} if isinstance(expr, Logic) else {int, float, bool}):
                raise NotFollowedError
            kind = self._copied(found, self.value(then))
        end = self.add(do.JUMP)
        self.land(others)
        if self._copied(found, self.value(orelse)) is not kind:
            raise NotFollowedError
        self.land([end])
        return Value(found, kind)

    def _kind_of(self, expr: Expr) -> Type:
        """The class of a value, worked out without its rows."""
        rows = len(self.rows)
        kind = self.value(expr).kind
        del self.rows[rows:], self.places[rows:]
        return kind

    def _copied(self, register: int, value: Value) -> Type:
        self.add(do.COPY, register, value.register)
        return value.kind

    def _called(self, function: str, arguments: Sequence[Expr]) -> Value:
        values = [self.value(one) for one in arguments]
        kinds = {one.kind for one in values}
        if function in ("min", "max") and len(kinds) == 1 and len(values) > 1:
            return self._extreme(function, values)
        if len(values) != 1:
            raise NotFollowedError
        (value,) = values
        is_float, is_whole = value.kind in FLOATS, value.kind in WHOLES
        match function:
            case "abs" if is_float:
                return replace(value, register=self.result(do.FABS, value.kind, value.register).register)
            case "abs" if is_whole:
                opposite = self._of_integers("-", self.constant(0), value)
                return replace(opposite, register=self._greater(value, opposite))
            case "np.abs" | "np.absolute" | "np.fabs" if value.kind in (float, np.float64):
                return self.result(do.FABS, np.float64, value.register)
            case "float":
                return Value(self.as_float(value), float)
            case "int" if is_float:
                return self.result(do.TRUNCATE, int, value.register)
            case "int" if value.kind in INTEGERS:
                return Value(value.register, int)
            case "bool":
                truth = self.truth(value)
                is_false = self.result(do.SAME, bool, truth, self.constant(0).register)
                return self.result(do.SAME, bool, is_false.register, self.constant(0).register)
            case "np.sqrt":
                return self.result(do.ROOT, np.float64, self.as_float(value))
            case "math.sqrt":
                return self.result(do.PROOT, float, self.as_float(value))
            case _ if function == INTEGER and is_whole:
                return Value(value.register, int)
            case _:
                raise NotFollowedError

    def _greater(self, one: Value, other: Value) -> int:
        return self.result(do.MOST, int, one.register, other.register).register

    def _extreme(self, function: str, values: Sequence[Value]) -> Value:
        """Python's `min` and `max`: the first of their arguments, unless a later one is better."""
        kind = values[0].kind
        if kind in (int, np.int64):
            found = values[0]
            for one in values[1:]:
                found = self.result(do.LEAST if function == "min" else do.MOST, kind, found.register, one.register)
            return found
        if kind not in (float, np.float64):
            raise NotFollowedError
        best = self.new()
        self.add(do.COPY, best, values[0].register)
        for one in values[1:]:
            pair = (one.register, best) if function == "min" else (best, one.register)
            better = self.result(do.FLESS, bool, *pair)
            skip = self.add(do.WHEN, better.register, 0)
            self.add(do.COPY, best, one.register)
            self.land([skip])
        return Value(best, kind)

    # ---------------------------------------------------------------- tests

    def test(self, expr: Expr, wanted: bool) -> list[int]:
        """Jumps that are taken where a test is as `wanted`, else the next row is run: those that `land` completes."""
        match expr:
            case Unary("not", operand):
                return self.test(operand, not wanted)
            case Logic(op, operands):
                if (op == "or") == wanted:  # one of them is enough
                    return [jump for one in operands for jump in self.test(one, wanted)]
                skips = [jump for one in operands[:-1] for jump in self.test(one, not wanted)]
                jumps = self.test(operands[-1], wanted)
                self.land(skips)
                return jumps
            case Compare(ops, operands) if len(ops) > 1:
                if not all(isinstance(one, Var | Const | Dim | Count) for one in operands):
                    raise NotFollowedError  # each is to be worked out once
                pairs = zip(ops, operands, operands[1:], strict=False)
                parts = tuple(Compare((op,), pair, expr.span) for op, *pair in pairs)  # type: ignore[arg-type]
                return self.test(Logic("and", parts, expr.span), wanted)
            case _:
                return [self.add(do.WHEN, self.truth(self.value(expr)), int(wanted))]


def bits_of(value: Any) -> int:
    """The bits of a number as a register has them, as an integer with a sign.

    >>> bits_of(-3), bits_of(1.0) == 0x3FF << 52, bits_of(True)
    (-3, True, 1)
    """
    if isinstance(value, float):
        (found,) = struct.unpack("=q", struct.pack("=d", value))
        return int(found)
    return int(value)
