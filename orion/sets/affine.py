"""Which expressions are affine, and their isl text.

Affinity is decided here, on the loop language, before isl sees anything: isl's parser knows no source positions, and a
refusal must name the user's expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, reduce

from orion.dataclass import dataclass, field
from orion.ir.constants import fold
from orion.ir.nodes import (
    INTEGER,
    NARROW,
    Binary,
    Call,
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
    walk,
)  # fmt: skip
from orion.ir.printer import print_expr
from orion.reasons import Hint
from orion.sets.names import extent_name, isl_name, number_text, product_text
from orion.source import Span


@dataclass(frozen=True, slots=True)
class Affine:
    """An affine expression over loop variables and integer parameters, as isl text.

    `names` are the isl names that occur in it; `value` is its value where none do. `least` are the expressions that
    it is the minimum of, and `most` those that it is the maximum of, where it is one: a bound is then several.
    `factors` are those of its names and, under "", its constant term, where it is nothing but a sum of these.
    """

    text: str
    names: frozenset[str]
    value: int | None = None
    least: tuple[str, ...] = ()
    most: tuple[str, ...] = ()
    factors: tuple[tuple[str, int], ...] | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def as_upper(self) -> tuple[str, ...]:
        """What something is less than where it is less than this: each of these."""
        return self.least or (self.text,)

    @property
    def as_lower(self) -> tuple[str, ...]:
        """What something is greater than where it is greater than this: each of these."""
        return self.most or (self.text,)


@dataclass(frozen=True, slots=True)
class NotAffine:
    """Why an expression is not affine: a reason code of `orion.reasons`, a clause, and the place. `hint` is what to
    write instead, where more is known of that than the code says."""

    code: str
    why: str
    span: Span
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexArray(NotAffine):
    """In a `Scope`: an array of integers, of so many `axes`, that nothing writes, so that its elements are values."""

    axes: int


@dataclass(frozen=True, slots=True)
class Read:
    """A value that is read from such an array, `array[subscripts]`. `name` is that of the value in isl: two reads of
    one iteration with the same name have the same value."""

    name: str
    array: str
    subscripts: tuple[Affine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReads(NotAffine):
    """An expression that is not affine because it has values in it that are read from arrays: `form` is what it is of
    these values, the `reads`."""

    form: Affine
    reads: tuple[Read, ...]


Form = Affine | NotAffine
Scope = Mapping[str, Form]
"""What each integer scalar in reach stands for: itself (a loop variable or parameter), an affine expression that was
assigned to it, or something unknown."""


def affine_form(expr: Expr, scope: Scope) -> Form:
    """The affine form of an integer expression, or why it has none.

    Affine are: integer constants, names whose form in `scope` is affine, array extents, sums, differences, products
    with a constant, floor division and modulo by a constant, and (piecewise) minima and maxima.
    """
    match expr:
        case Const(value=bool()):
            return NotAffine("ORN103", "a truth value is used as a subscript", expr.span)
        case Const(value=int(value)):
            return integer(value)
        case Var(name):
            unknown = NotAffine("ORN103", f"`{name}` is not an integer known before the loop", expr.span)
            return scope.get(name) or unknown
        case Dim(array, axis):
            return itself(extent_name(array, axis))
        case Unary("+", operand):
            return affine_form(operand, scope)
        case Unary("-", operand):
            return _binary("*", integer(-1), affine_form(operand, scope), expr)
        case Binary(op, left, right):
            return _binary(op, affine_form(left, scope), affine_form(right, scope), expr)
        case Call(function, (operand,)) if function == INTEGER:
            return affine_form(operand, scope)
        case Call(function, (operand,)) if function == NARROW:
            return _narrow(operand, affine_form(operand, scope))
        case Subscript(Var(name), index) if is_element(scope.get(name), index):
            return _of_read(name, [affine_form(part, scope) for part in index], expr)
        case Call("min" | "max" as name, (first, *others)) if others:
            forms = (affine_form(one, scope) for one in others)
            return reduce(lambda left, right: _extreme(name, left, right), forms, affine_form(first, scope))
        case _:
            return _refusal(expr)


def is_element(base: Form | None, index: tuple[Expr, ...]) -> bool:
    """Whether a subscript of a name with this form is one element of an array that nothing writes."""
    return isinstance(base, IndexArray) and base.axes == len(index)


def _of_read(array: str, subscripts: list[Form], expr: Subscript) -> NotAffine:
    """An element of an array that nothing writes, at an affine place."""
    refused = _refusal(expr)
    affine = tuple(form for form in subscripts if isinstance(form, Affine))
    if len(affine) < len(subscripts):
        return refused
    where = ", ".join(form.text for form in affine)
    read = Read(f"{isl_name(array)}__at_{where.encode().hex()}", array, affine)
    return OfReads(refused.code, refused.why, refused.span, refused.hint, form=itself(read.name), reads=(read,))


def without_reads(form: NotAffine) -> NotAffine:
    """The same, with nothing known of it."""
    return NotAffine(form.code, form.why, form.span, form.hint)


def _narrow(expr: Expr, form: Form) -> NotAffine:
    """Why an operation that may leave its dtype is not affine."""
    if isinstance(form, NotAffine):
        return without_reads(form)
    text = print_expr(expr)
    why = f"`{text}` is computed in fewer than 64 bits, or without a sign, and may not fit"
    hint = "pass Python integers, or convert NumPy's before they are computed with: `int(n)`"
    return NotAffine("ORN103", why, expr.span, hint)


def _extreme(name: str, left: Form, right: Form) -> Form:
    for form in (left, right):
        if isinstance(form, NotAffine):
            return without_reads(form)
    assert isinstance(left, Affine)
    assert isinstance(right, Affine)
    if left.value is not None and right.value is not None:
        return integer((min if name == "min" else max)(left.value, right.value))
    text, names = f"{name}({left.text}, {right.text})", left.names | right.names
    if name == "min":
        return Affine(text, names, least=(*left.as_upper, *right.as_upper))
    return Affine(text, names, most=(*left.as_lower, *right.as_lower))


def _binary(op: str, left: Form, right: Form, expr: Expr) -> Form:
    if isinstance(left, OfReads) or isinstance(right, OfReads):
        return _binary_of_reads(op, left, right, expr)
    if isinstance(left, NotAffine):
        return left
    if isinstance(right, NotAffine):
        return right
    names = left.names | right.names
    if left.value is not None and right.value is not None:
        value = fold(op, left.value, right.value)
        if value is not None:
            return integer(value)
    elif op in ("+", "-"):
        return Affine(f"({left.text} {op} {right.text})", names, factors=_sum(left, right, 1 if op == "+" else -1))
    elif op == "*" and left.value is not None:
        return _product(left.value, right)
    elif op == "*" and right.value is not None:
        return _product(right.value, left)
    elif op in ("//", "%") and right.value:
        return _divided(op, left, right.value)
    hint = Hint.FLATTENED if op == "*" and left.names != right.names else ""
    return NotAffine("ORN103", f"`{print_expr(expr)}` is not affine", expr.span, hint)


def _binary_of_reads(op: str, left: Form, right: Form, expr: Expr) -> NotAffine:
    """The same where values are read: what it would be of these."""
    first = left if isinstance(left, NotAffine) else right
    assert isinstance(first, NotAffine)
    sides = [side.form if isinstance(side, OfReads) else side for side in (left, right)]
    form = _binary(op, sides[0], sides[1], expr)
    if not isinstance(form, Affine):
        return without_reads(first)
    reads = tuple(dict.fromkeys(read for side in (left, right) if isinstance(side, OfReads) for read in side.reads))
    return OfReads(first.code, first.why, first.span, first.hint, form=form, reads=reads)


@lru_cache(maxsize=1024)
def integer(value: int) -> Affine:
    """The form of a constant."""
    return Affine(number_text(value), frozenset(), value, factors=(("", value),))


@lru_cache(maxsize=1024)
def itself(name: str) -> Affine:
    """The form of a name of isl's."""
    return Affine(name, frozenset({name}), factors=((name, 1),))


def _sum(left: Affine, right: Affine, sign: int) -> tuple[tuple[str, int], ...] | None:
    """The factors of the sum of two forms, or of their difference."""
    if left.factors is None or right.factors is None:
        return None
    found = dict(left.factors)
    for name, factor in right.factors:
        found[name] = found.get(name, 0) + sign * factor
    return tuple(found.items())


def _product(factor: int, form: Affine) -> Affine:
    """A multiple of a form. What is a number becomes one again: isl reads no product of numbers before a name."""
    if form.value is not None:
        return integer(factor * form.value)
    factors = form.factors and tuple((name, factor * own) for name, own in form.factors)
    return Affine(product_text(factor, form.text), form.names, factors=factors)


def _divided(op: str, form: Affine, divisor: int) -> Affine:
    """A form // or % a constant: isl divides by positive numbers, and x // -d = -x // d, x % -d = -(-x % d)."""
    if divisor < 0:
        opposite = _divided(op, _product(-1, form), -divisor)
        return opposite if op == "//" else _product(-1, opposite)
    number = number_text(divisor)
    text = f"floor(({form.text})/{number})" if op == "//" else f"(({form.text}) mod {number})"
    return Affine(text, form.names)


def _refusal(expr: Expr) -> NotAffine:
    text = print_expr(expr)
    for node in walk(expr):
        if isinstance(node, Subscript):
            return NotAffine("ORN102", f"`{text}` is read from an array when the loop runs", expr.span)
    if isinstance(expr, Count):
        return NotAffine("ORN103", f"`{text}` is a product of extents", expr.span)
    return NotAffine("ORN103", f"`{text}` is not affine", expr.span)


def step_form(expr: Expr, scope: Scope) -> Form:
    """The form of the step of a range: a constant that is not 0. A step of another size has no known sign, and with it
    no side is known from which the bounds limit the variable."""
    form = affine_form(expr, scope)
    if isinstance(form, Affine) and not form.value:
        return NotAffine("ORN103", f"the step `{print_expr(expr)}` is not a constant", expr.span, Hint.STEP)
    return form


def has_unit_step(space: Range) -> bool:
    """Whether the coordinate of a loop is the value of its variable, in analyses, schedules and kernels alike: the step
    is 1, however it is written. Else it is the number of the trip.

    >>> from orion.source import Span
    >>> span = Span("f.py", 1, 0, 1, 1)
    >>> n = Const(9, span)
    >>> steps = Const(1, span), Unary("-", Const(-1, span), span), Const(-1, span)
    >>> [has_unit_step(Range("i", n, n, step, span)) for step in steps]
    [True, True, False]
    """
    form = affine_form(space.step, {})
    return isinstance(form, Affine) and form.value == 1


def parameter(name: str) -> Affine:
    """The form of an integer that keeps its value while the loop runs."""
    return itself(isl_name(name))


# ---------------------------------------------------------------- conditions


@dataclass(frozen=True, slots=True)
class Condition:
    """An affine condition as isl text, and the isl names that occur in it."""

    text: str
    names: frozenset[str]

    def negated(self) -> Condition:
        return Condition(f"not ({self.text})", self.names)


def affine_condition(expr: Expr, scope: Scope) -> Condition | None:
    """The condition as isl text where it compares affine expressions; None where it does not.

    >>> from orion.source import Span
    >>> span = Span("f.py", 1, 0, 1, 1)
    >>> found = affine_condition(Compare(("<",), (Var("i", span), Const(3, span)), span), {"i": parameter("i")})
    >>> found.text
    '(i < 3)'
    """
    match expr:
        case Compare(ops, operands):
            forms = [affine_form(operand, scope) for operand in operands]
            affine = [form for form in forms if isinstance(form, Affine)]
            if len(affine) < len(forms) or not set(ops) <= COMPARISONS.keys():
                return None
            parts = [f"{a.text} {COMPARISONS[op]} {b.text}" for a, op, b in zip(affine, ops, affine[1:], strict=False)]
            return Condition(f"({' and '.join(parts)})", frozenset().union(*(form.names for form in affine)))
        case Logic(op, operands):
            conditions = [affine_condition(operand, scope) for operand in operands]
            known = [condition for condition in conditions if condition is not None]
            if len(known) < len(conditions):
                return None
            text = f" {op} ".join(condition.text for condition in known)
            return Condition(f"({text})", frozenset().union(*(condition.names for condition in known)))
        case Unary("not", operand):
            inner = affine_condition(operand, scope)
            return None if inner is None else inner.negated()
        case _:
            return None


COMPARISONS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
