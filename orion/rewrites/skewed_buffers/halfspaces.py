"""Integer sets as linear inequalities over names, and the loops that go through them.

isl makes the best loops for a set, at a price that grows fast with its parameters. Here every inequality becomes a
bound of the innermost loop that it has the variable of: loops further out may have trips in which nothing is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import gcd
from typing import TYPE_CHECKING

from orion.ir.nodes import Binary, Call, Compare, Const, Expr, For, If, Logic, Range, Stmt
from orion.passes.between import SYNTHETIC
from orion.sets.names import number_of
from orion.source import Span

if TYPE_CHECKING:
    import islpy as isl

Form = Mapping[str, int]
"""A sum of names with integer factors; the name "" stands for 1. As an inequality: that the sum is ≥ 0."""


class InexactError(Exception):
    """A set has no exact form as inequalities."""


def combined(*terms: tuple[int, Form]) -> dict[str, int]:
    """The sum of forms with factors.

    >>> combined((2, {"i": 1, "": 3}), (-1, {"j": 1, "i": 2}))
    {'': 6, 'j': -1}
    """
    found: dict[str, int] = {}
    for factor, form in terms:
        for name, value in form.items():
            found[name] = found.get(name, 0) + factor * value
    return {name: value for name, value in found.items() if value}


def replaced(form: Form, values: Mapping[str, Form]) -> dict[str, int]:
    """The form with names replaced by forms.

    >>> sorted(replaced({"q": 2, "p": 1}, {"q": {"s": 1, "p": -1}}).items())
    [('p', -1), ('s', 2)]
    """
    return combined(*((factor, values.get(name, {name: 1})) for name, factor in form.items()))


def between(first: Form, form: Form, end: Form) -> list[dict[str, int]]:
    """first ≤ form < end."""
    return [combined((1, form), (-1, first)), combined((1, end), (-1, form), (-1, {"": 1}))]


def inequalities(values: isl.Set, dims: Sequence[str]) -> list[dict[str, int]]:
    """The inequalities of a set with dimensions of these names. InexactError where it is no single convex set."""
    import islpy as isl

    parts = values.remove_redundancies().get_basic_sets()
    if len(parts) != 1 or parts[0].dim(isl.dim_type.div):
        raise InexactError
    found = []
    for constraint in parts[0].get_constraints():
        form = {"": number_of(constraint.get_constant_val())}
        params = [values.get_dim_name(isl.dim_type.param, k) for k in range(values.dim(isl.dim_type.param))]
        for kind, names in ((isl.dim_type.param, params), (isl.dim_type.set, dims)):
            for position, name in enumerate(names):
                form[name] = number_of(constraint.get_coefficient_val(kind, position))
        form = {name: value for name, value in form.items() if value}
        found += [form] if not constraint.is_equality() else [form, combined((-1, form))]
    return found


def without(name: str, forms: Sequence[Form], exact: bool = True) -> list[dict[str, int]]:
    """The integer points for which some integer `name` fulfils all inequalities: Fourier–Motzkin elimination.

    From a·x ≥ A and b·x ≤ B, a and b > 0, it takes b·A ≤ a·B. That is exact for integers where a = 1 or b = 1, or where
    a·B − b·A is a constant ≥ (a − 1)(b − 1) (Pugh 1991, *The Omega test*). Elsewhere there may be points too many:
    InexactError where it has to be `exact`.
    """
    lower = [form for form in forms if form.get(name, 0) > 0]
    upper = [form for form in forms if form.get(name, 0) < 0]
    found = [dict(form) for form in forms if not form.get(name, 0)]
    for low in lower:
        for high in upper:
            a, b = low[name], -high[name]
            shadow = combined((b, low), (a, high))
            if exact and min(a, b) > 1 and (set(shadow) - {""} or shadow.get("", 0) < (a - 1) * (b - 1)):
                raise InexactError
            found.append(shadow)
    return simplified(found)


def simplified(forms: Iterable[Form]) -> list[dict[str, int]]:
    """The inequalities without those that always hold and those that another one implies.

    >>> simplified([{"i": 2, "": -3}, {"i": 1, "": -1}, {"": 5}])
    [{'i': 1, '': -2}]
    """
    least: dict[tuple[tuple[str, int], ...], int] = {}
    for form in forms:
        common = reduce(gcd, (value for name, value in form.items() if name), 0)
        if common == 0 and form.get("", 0) >= 0:
            continue
        key = tuple(sorted((name, value // max(common, 1)) for name, value in form.items() if name))
        constant = form.get("", 0) // max(common, 1)
        least[key] = min(constant, least.get(key, constant))
    return [{**dict(key), **({"": constant} if constant else {})} for key, constant in least.items()]


class Scanner:
    """Makes expressions and loops. `names` are what the names in forms stand for."""

    def __init__(self, names: Mapping[str, Expr], span: Span) -> None:
        self.names = names
        self.span = span

    def expression(self, form: Form) -> Expr:
        """The sum as an expression, positive terms first."""
        found: Expr | None = None
        for name, factor in sorted(form.items(), key=lambda item: (item[0] == "", item[1] < 0)):
            term: Expr = Const(abs(factor), self.span)
            if name:
                term = self.names[name] if abs(factor) == 1 else Binary("*", term, self.names[name], self.span)
            if found is None:
                found = term if factor > 0 else Binary("-", Const(0, self.span), term, self.span)
            else:
                found = Binary("+" if factor > 0 else "-", found, term, self.span)
        return found or Const(0, self.span)

    def loops(self, variables: Sequence[str], forms: Sequence[Form], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Loops over the variables, outermost first, that run the body for each point of a set."""
        rest = list(forms)
        for name in reversed(variables):
            own = [form for form in rest if form.get(name, 0)]
            rest = [form for form in rest if not form.get(name, 0)]
            lower = [self.bound(name, form) for form in own if form[name] > 0]
            upper = [self.bound(name, form) for form in own if form[name] < 0]
            if not lower or not upper:
                raise InexactError
            space = Range(name, self.extreme("max", lower), self.extreme("min", upper), Const(1, self.span), self.span)
            body = (For(space, body, SYNTHETIC, self.span),)
        tests = [Compare((">=",), (self.expression(form), Const(0, self.span)), self.span) for form in rest]
        if not tests:
            return body
        test: Expr = tests[0] if len(tests) == 1 else Logic("and", tuple(tests), self.span)
        return (If(test, body, (), self.span),)

    def bound(self, name: str, form: Form) -> Expr:
        """Where a variable begins (its factor is positive), or one past where it ends.

        a·x + r ≥ 0 is x ≥ ⌈−r / a⌉; −a·x + r ≥ 0 is x < ⌊r / a⌋ + 1 = ⌊(r + a) / a⌋.
        """
        factor = abs(form[name])
        rest = {part: value for part, value in form.items() if part != name}
        if form[name] > 0:  # the ceiling of −r / a
            value = self.expression(combined((-1, rest), (factor - 1, {"": 1})))
        else:
            value = self.expression(combined((1, rest), (factor, {"": 1})))
        return value if factor == 1 else Binary("//", value, Const(factor, self.span), self.span)

    def extreme(self, function: str, values: Sequence[Expr]) -> Expr:
        return reduce(lambda left, right: Call(function, (left, right), self.span), values)
