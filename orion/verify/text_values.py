"""Integer expressions of generated loops as text that isl reads: bounds, tests and the values of variables, exactly.

A *value* is a sum with integer factors (a form, whose names are isl parameters), the least or the greatest of values,
or one of two values by a test. Sums and multiples go inside; quotients, and whatever has to be a form, get names with a
definition. Integers are taken to have no bounds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import count, pairwise
from typing import TYPE_CHECKING

from orion.dataclass import dataclass, field
from orion.ir.constants import fold
from orion.ir.nodes import INTEGER, Binary, Call, Choose, Compare, Const, Count, Dim, Expr, Logic, Unary, Var
from orion.rewrites.skewed_buffers.halfspaces import Form, combined
from orion.sets.names import RESERVED, extent_name, isl_name, sum_text

if TYPE_CHECKING:
    import islpy as isl


class UnprovedError(Exception):
    """Something has no exact form in isl; never shown to users as an error."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least ("min") or greatest ("max") of some values."""

    kind: str
    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One value where a test holds, another where its opposite does; both tests are isl text."""

    test: str
    opposite: str
    then: Value
    orelse: Value


Value = Form | Extreme | Choice


@dataclass(frozen=True, slots=True)
class Definition:
    """The name of a value, and the condition that it is that value; of the least or greatest of two forms also those
    two, with `kind` "min" or "max"."""

    name: str
    text: str
    kind: str = ""
    parts: tuple[Form, ...] = ()


OPPOSITE = {"<=": ">", "<": ">=", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
TURNED = {">=": "<=", ">": "<"}
ONE: Form = {"": 1}


# ---------------------------------------------------------------- arithmetic


def constant(value: Value) -> int | None:
    """The number that a value is, or None."""
    return None if not isinstance(value, dict) or set(value) - {""} else int(value.get("", 0))


def extreme(kind: str, values: list[Value]) -> Value:
    """The least or greatest of values; of those that differ by a constant only the one that matters is kept."""
    flat = [part for value in values for part in _parts(value, kind)]
    found: list[Value] = []
    for value in flat:
        for position, other in enumerate(found):
            if value == other:
                break
            apart = _apart(value, other)
            if apart is not None:
                if (apart < 0) == (kind == "min"):
                    found[position] = value
                break
        else:
            found.append(value)
    return found[0] if len(found) == 1 else Extreme(kind, tuple(found))


def _parts(value: Value, kind: str) -> tuple[Value, ...]:
    return value.parts if isinstance(value, Extreme) and value.kind == kind else (value,)


def _apart(value: Value, other: Value) -> int | None:
    if isinstance(value, dict) and isinstance(other, dict):
        return constant(combined((1, value), (-1, other)))
    return None


def total(left: Value, right: Value) -> Value:
    match left, right:
        case (Extreme(kind, parts), other) | (other, Extreme(kind, parts)):
            return extreme(kind, [total(part, other) for part in parts])
        case (Choice(test, opposite, then, orelse), other) | (other, Choice(test, opposite, then, orelse)):
            return Choice(test, opposite, total(then, other), total(orelse, other))
    assert isinstance(left, dict)
    assert isinstance(right, dict)
    return combined((1, left), (1, right))


def multiple(value: Value, factor: int) -> Value:
    match value:
        case Extreme(kind, parts):
            turned = kind if factor >= 0 else {"min": "max", "max": "min"}[kind]
            return extreme(turned, [multiple(part, factor) for part in parts])
        case Choice(test, opposite, then, orelse):
            return Choice(test, opposite, multiple(then, factor), multiple(orelse, factor))
        case _:
            return combined((factor, value))


# ---------------------------------------------------------------- text


def names_of(text: str) -> list[str]:
    """The parameters in a condition."""
    return sorted(set(re.findall(r"[A-Za-z_]\w*", text)) - RESERVED)


def all_of(conditions: list[str]) -> str:
    return f"({' and '.join(conditions)})" if conditions else "true"


def any_of(conditions: list[str]) -> str:
    return f"({' or '.join(conditions)})" if conditions else "false"


def compared(left: Value, op: str, right: Value) -> str:
    """The condition `left op right`."""
    match op:
        case "<=" | "<":
            return _ordered(left, right, op == "<")
        case ">=" | ">":
            return _ordered(right, left, op == ">")
        case "==":
            return all_of([_ordered(left, right, False), _ordered(right, left, False)])
        case "!=":
            return any_of([_ordered(left, right, True), _ordered(right, left, True)])
        case _:
            raise UnprovedError(f"the comparison `{op}`")


def _ordered(left: Value, right: Value, strictly: bool) -> str:
    """left ≤ right or left < right. What is above a maximum is above all its parts, and so on."""
    match left, right:
        case Extreme(kind, parts), _:
            found = [_ordered(part, right, strictly) for part in parts]
            return all_of(found) if kind == "max" else any_of(found)
        case _, Extreme(kind, parts):
            found = [_ordered(left, part, strictly) for part in parts]
            return all_of(found) if kind == "min" else any_of(found)
        case Choice(test, opposite, then, orelse), _:
            sides = [test, _ordered(then, right, strictly)], [opposite, _ordered(orelse, right, strictly)]
            return any_of([all_of(side) for side in sides])
        case _, Choice(test, opposite, then, orelse):
            sides = [test, _ordered(left, then, strictly)], [opposite, _ordered(left, orelse, strictly)]
            return any_of([all_of(side) for side in sides])
    assert isinstance(left, dict)
    assert isinstance(right, dict)
    apart = combined((1, right), (-1, left), (-int(strictly), ONE))
    number = constant(apart)
    return f"{sum_text(apart)} >= 0" if number is None else "true" if number >= 0 else "false"


# ---------------------------------------------------------------- expressions


def shape_key(array: str, axis: int) -> str:
    """What the length of an axis is called in a `Scope`: no name of Python's."""
    return f"{array}.shape[{axis}]"


def size_key(array: str) -> str:
    """What the number of elements of an array is called in a `Scope`."""
    return f"{array}.size"


@dataclass
class Scope:
    """What names stand for at some place in the text: values, or None for what is not known; of that, what comes from
    elements of arrays, and may be any integer, is `of_data`; what is known of it by such elements is in `of_elements`
    (`orion.verify.elements`).

    A value that is no sum is given a name (`named`), with its definition in `definitions`. A name made here ends in
    __, which no other may (`prove_text` sees to that). `same` has the names of values that have one. `entered` are the
    definitions as isl sets, where they have been read.
    """

    numbers: Iterator[int] = field(default_factory=count)
    names: dict[str, Value | None] = field(default_factory=dict)
    of_data: set[str] = field(default_factory=set)
    of_elements: dict[str, Value] = field(default_factory=dict)
    same: dict[str, Form] = field(default_factory=dict)
    definitions: list[Definition] = field(default_factory=list)
    entered: list[isl.Set] = field(default_factory=list)

    def inner(self) -> Scope:
        """A scope inside of this one, with definitions of its own."""
        return Scope(self.numbers, dict(self.names), set(self.of_data), dict(self.of_elements), dict(self.same))

    def sharing(self) -> Scope:
        """A scope inside of this one that has its definitions too."""
        own = dict(self.names), set(self.of_data), dict(self.of_elements), dict(self.same)
        return Scope(self.numbers, *own, self.definitions, self.entered)

    def forget(self, names: Iterable[str]) -> None:
        gone = dict.fromkeys(names)
        self.names.update(gone)
        self.of_data.difference_update(gone)
        for name in gone:
            self.of_elements.pop(name, None)

    def value(self, expr: Expr) -> Value:
        """The value of an expression. UnprovedError where it is not affine."""
        match expr:
            case Const(int(number)) if not isinstance(number, bool):
                return {"": number} if number else {}
            case Var(name):
                known = self.names.get(name, {isl_name(name): 1})
                if known is None:
                    raise UnprovedError(f"the value of `{name}`")
                return known
            case Dim(array, axis):
                length = self.names.get(shape_key(array, axis))
                return {extent_name(array, axis): 1} if length is None else length
            case Count(array) if (known := self.names.get(size_key(array))) is not None:
                return known
            case Unary("-" | "+" as op, operand):
                return multiple(self.value(operand), -1 if op == "-" else 1)
            case Binary(op, left, right):
                return self.binary(op, self.value(left), self.value(right))
            case Call("int" | "math.floor" | "math.ceil" as function, (Binary("/", left, right),)):
                return self.rounded(function, self.value(left), self.value(right))
            case Call(function, (operand,)) if function == INTEGER:
                return self.value(operand)
            case Call("int" | "round" | "np.int64", (operand,)):
                known = self.value(operand)
                if constant(known) is None:  # it may be no integer
                    raise UnprovedError("a number as an integer")
                return known
            case Call("abs", (operand,)):
                known = self.value(operand)
                return extreme("max", [known, multiple(known, -1)])
            case Call("min" | "max" | "np.minimum" | "np.maximum" as function, arguments):
                kind = "min" if function in ("min", "np.minimum") else "max"
                found = extreme(kind, [self.value(part) for part in arguments])
                return self.same.get(repr(found), found)
            case Choose(test, then, orelse):
                sides = self.condition(test, True), self.condition(test, False)
                return Choice(*sides, self.value(then), self.value(orelse))
            case _:
                raise UnprovedError(f"the value of a `{type(expr).__name__}`")

    def binary(self, op: str, left: Value, right: Value) -> Value:
        if op == "+":
            return total(left, right)
        if op == "-":
            return total(left, multiple(right, -1))
        number = constant(right)
        if op == "*":
            left, number = (left, number) if number is not None else (right, constant(left))
            if number is not None:
                return multiple(left, number)
        elif op in ("//", "%") and number:
            plain = self.named(left, "of")
            sign = 1 if number > 0 else -1
            quotient = self.quotient(combined((sign, plain)), sign * number)  # a // -b = -a // b
            return quotient if op == "//" else total(plain, multiple(quotient, -number))
        elif number is not None and (known := constant(left)) is not None:
            folded = fold(op, known, number)
            if folded is not None:
                return {"": folded} if folded else {}
        raise UnprovedError(f"an operation `{op}` that is not affine")

    def rounded(self, function: str, left: Value, right: Value) -> Value:
        """A quotient of numbers as an integer, where float64 has all integers up to them."""
        whole, divisor = constant(left), constant(right)
        if whole is None or not divisor or max(abs(whole), abs(divisor)) > 2**53:
            raise UnprovedError("a quotient")
        real = whole / divisor
        if function == "int":
            found = int(real)
        else:
            found = math.ceil(real) if function == "math.ceil" else math.floor(real)
        return {"": found} if found else {}

    def condition(self, test: Expr, wanted: bool) -> str:
        """The condition that a test holds, or that it does not."""
        match test:
            case Logic(op, operands):
                found = [self.condition(operand, wanted) for operand in operands]
                return all_of(found) if (op == "and") == wanted else any_of(found)
            case Unary("not", operand):
                return self.condition(operand, not wanted)
            case Compare(ops, operands):
                values = pairwise([self.value(operand) for operand in operands])
                signs = [op if wanted else OPPOSITE[op] for op in ops]
                found = [compared(one, sign, other) for sign, (one, other) in zip(signs, values, strict=True)]
                return all_of(found) if wanted else any_of(found)
            case Const(bool(holds)):
                return "true" if holds == wanted else "false"
            case _:
                raise UnprovedError(f"a test by a `{type(test).__name__}`")

    # ------------------------------------------------------------ names for values

    def named(self, value: Value, base: str) -> Form:
        """A value as a form: itself, or a new name for it."""
        if isinstance(value, dict):
            return value
        key = repr(value)
        if key not in self.same:
            name = f"{isl_name(base)}_{next(self.numbers)}__"
            self.definitions.append(self.definition(name, value))
            self.same[key] = {name: 1}
        return self.same[key]

    def quotient(self, form: Form, divisor: int) -> Form:
        """⌊form / divisor⌋, the divisor being positive: a number d with divisor · d ≤ form < divisor · d + divisor."""
        whole = {name: factor // divisor for name, factor in form.items() if factor % divisor == 0}
        rest = {name: factor for name, factor in form.items() if factor % divisor}
        if not set(rest) - {""}:
            return combined((1, whole), (rest.get("", 0) // divisor, ONE))
        key = f"{divisor} {rest}"
        if key not in self.same:
            name = f"quotient_{next(self.numbers)}__"
            first = {name: divisor}
            text = all_of([compared(first, "<=", rest), compared(rest, "<", combined((1, first), (divisor, ONE)))])
            self.definitions.append(Definition(name, text))
            self.same[key] = {name: 1}
        return combined((1, whole), (1, self.same[key]))

    def definition(self, name: str, value: Value) -> Definition:
        """What a name stands for. Least and greatest are taken two at a time: isl puts the pieces of what is said of
        them together again, of two but not of three."""
        match value:
            case Extreme(kind, (part, *others)):
                first, second = self.named(part, "of"), self.named(extreme(kind, others), "of")
                op = "<=" if kind == "min" else ">="
                sides = (first, second), (second, first)
                text = any_of([all_of([compared({name: 1}, "==", a), compared(a, op, b)]) for a, b in sides])
                return Definition(name, text, kind, (first, second))
            case _:
                return Definition(name, compared({name: 1}, "==", value))
