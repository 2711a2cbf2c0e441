"""Where a slice begins and ends, and the calls in which that holds.

For an axis of n elements `lo:hi` stands for the places from lo to hi - 1 where

    0 <= lo <= hi <= n,

with n added to a bound that is written as a negative number or as `-k` for k > 0; a bound that is left out is 0 or n.
(NumPy, "Indexing on ndarrays", Basic indexing.) In all iterations of the loops around that is a condition on sizes:

    { p : for all iterations x, (p, x) in bounds }  =  complement of the parameters of { (p, x) : x not in bounds }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orion.dataclass import dataclass
from orion.dependence.conditions import as_assumed
from orion.dependence.model import inner_constraints
from orion.dependence.references import InnerLoop
from orion.ir.assumed import OfSizes
from orion.ir.constants import constant_value
from orion.ir.nodes import Binary, Compare, Const, Expr, For, Range, Slice, Unary
from orion.ir.spans import NOWHERE, without_spans
from orion.ir.sums import plus
from orion.sets.affine import Affine, Form, affine_condition, affine_form, parameter
from orion.sets.linear import is_sure
from orion.sets.maps import Maps
from orion.sets.names import isl_name, parameter_list
from orion.sets.reader import conjuncts

ZERO = Const(0, NOWHERE)


@dataclass(frozen=True, slots=True)
class Extent:
    """The places `start` to `stop` - 1 of an axis, where `holds`."""

    start: Expr
    stop: Expr
    holds: tuple[Compare, ...]


def extent_of(part: Slice | None, length: Expr) -> Extent:
    """The places that a slice of an axis of this length stands for; None: all.

    >>> from orion.ir.nodes import Dim
    >>> from orion.ir.printer import print_expr
    >>> inner = Slice(Const(1, NOWHERE), Const(-1, NOWHERE), None, NOWHERE)
    >>> found = extent_of(inner, Dim("a", 0, NOWHERE))
    >>> print_expr(found.start), print_expr(found.stop), [print_expr(one) for one in found.holds]
    ('1', 'a.shape[0] - 1', ['0 <= 1 <= a.shape[0] - 1 <= a.shape[0]'])
    """
    length = without_spans(length)
    if part is None:
        return Extent(ZERO, length, ())
    start, *of_start = (ZERO,) if part.lower is None else _bound(part.lower, length)
    stop, *of_stop = (length,) if part.upper is None else _bound(part.upper, length)
    return Extent(start, stop, (at_most(ZERO, start, stop, length), *of_start, *of_stop))  # type: ignore[arg-type]


def at_most(*values: Expr) -> Compare:
    """That each value is at most the next one."""
    return Compare(("<=",) * (len(values) - 1), values, NOWHERE)


def equal(one: Expr, other: Expr) -> Compare:
    return Compare(("==",), (one, other), NOWHERE)


def inside(place: Expr, length: Expr) -> Compare:
    """That a number is a subscript of an axis of this length."""
    negative = Unary("-", length, NOWHERE)
    return Compare(("<=", "<"), (negative, without_spans(place), length), NOWHERE)


def _bound(bound: Expr, length: Expr) -> tuple[Expr, ...]:
    """A bound that counts from the beginning, and what must hold for that beside its range."""
    bound = without_spans(bound)
    number = constant_value(bound)
    if number is not None:
        return (Const(number, NOWHERE) if number >= 0 else plus(length, number),)
    match bound:
        case Unary("-", operand):
            return Binary("-", length, operand, NOWHERE), at_most(Const(1, NOWHERE), operand)
        case _:
            return (bound,)


def condition(
    index: int,
    holds: Sequence[Compare],
    around: Sequence[For],
    scope: Mapping[str, Form],
    known: frozenset[str],
    maps: Maps | None = None,
) -> OfSizes | None:
    """The calls in which comparisons hold in all iterations of the loops `around`, as a condition of the `for` of that
    number; None where that cannot be told, or there are none. `scope` has the forms of names outside these loops, and
    `known` the parameters that a call has values for. What isl reads is kept in `maps`.
    """
    maps = maps or Maps()
    ranges = [loop.space for loop in around if isinstance(loop.space, Range)]
    own = {space.var: parameter(space.var) for space in ranges}
    if len(ranges) < len(around):
        return None
    inside = [affine_condition(one, {**scope, **own}) for one in holds]
    found = [one for one in inside if one is not None]
    if len(found) < len(inside):
        return None
    limits: list[str] = []
    names = {name for one in found for name in one.names}
    for space in reversed(ranges):  # of a loop that has nothing to do with it, it does not matter whether it is run
        if isl_name(space.var) not in names or own.pop(space.var, None) is None:
            continue
        forms = [affine_form(bound, {**scope, **own}) for bound in (space.start, space.stop, space.step)]
        limits += inner_constraints(InnerLoop(isl_name(space.var), *forms))
        names |= {name for form in forms if isinstance(form, Affine) for name in form.names}
    variables = sorted(names & {isl_name(space.var) for space in ranges})
    names -= {*variables}
    if not names <= known:
        return None
    head, at = parameter_list(names), f"[{', '.join(variables)}]"
    parts = dict.fromkeys(part for one in found for part in conjuncts(one.text[1:-1]) or (one.text,))
    wanted = [part for part in parts if not is_sure(part)]
    if variables:
        domain, broken = " and ".join(limits) or "true", " or ".join(f"not ({one})" for one in wanted) or "false"
        free = maps.set(f"{head}{{ {at} : {domain} and ({broken}) }}").params().complement()
    else:
        free = maps.set(f"{head}{{ {at} : {' and '.join(wanted) or 'true'} }}").params()
    sizes = " and ".join(f"{name} >= 0" for name in sorted(names) if "__" in name) or "true"
    free = free.gist(maps.set(f"{head}{{ : {sizes} }}")).coalesce()
    return None if free.is_empty() else as_assumed(index, free)
