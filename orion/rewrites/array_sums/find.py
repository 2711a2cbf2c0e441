"""Array elements that iterations only add to, whichever they are: histograms and their like.

An array X is summed by a loop where all that the loop does with X are updates

    X[f] = X[f] ∘ v,  by one operator ∘ that is associative and commutative, neither f nor v reading X.

In whatever order and grouping the updates are made, X ends with the same values (floats: but for rounding). So groups
of iterations may update copies of X, which begin with the value that changes nothing and are combined into X at the end
(Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, on reductions; Rauchwerger and Padua 1995, *The
LRPD test*, on those into array elements).

Of an array of integers only updates by integers count: an element that a float is added to is rounded each time. So is
one that a minimum or maximum is stored in which its dtype does not hold: integers wrap around, which keeps sums and
products but not the order of numbers. `X[f] = min(v, X[f])` of floats is no such update: a NaN makes it begin anew.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from orion.dependence.access import ElementSum, LoopDependences
from orion.dependence.scalars import FUNCTIONS, OPERATORS
from orion.errors import UnsupportedLoopError
from orion.ir.nodes import Assign, Binary, Call, Expr, Node, Subscript, Update, Var, count_names, every
from orion.ir.program import LoopNest, OfNewOrder
from orion.ir.spans import without_spans
from orion.ir.types import ArrayType, Types
from orion.source import Span
from orion.typing.expression_types import Typing, UntypedNameError
from orion.typing.infer import infer_types

EXTREMES = ("min", "max")


def with_element_sums(analysis: LoopDependences, nest: LoopNest, types: Types) -> LoopDependences:
    """The analysis of a loop without the dependences on arrays that it only sums into, which it names."""
    if analysis.reasons or analysis.scalars.carried or isinstance(nest.form, OfNewOrder):
        return analysis
    names = dict.fromkeys(d.array for d in analysis.dependences if isinstance(types.get(d.array), ArrayType))
    found = {name: sum_into(name, nest, types) for name in names}
    sums = tuple(
        ElementSum(name, one[0], one[1], tuple(d for d in analysis.dependences if d.array == name))
        for name, one in found.items()
        if one is not None
    )
    rest = tuple(d for d in analysis.dependences if found.get(d.array) is None)
    return replace(analysis, dependences=rest, sums=sums)


def sum_into(name: str, nest: LoopNest, types: Types) -> tuple[str, Span] | None:
    """The operator by which a loop updates elements of an array, and the first place; None where it does more with
    it."""
    kind = types.get(name)
    if not isinstance(kind, ArrayType) or not kind.writeable or kind.dtype == "bool":
        return None
    updates = [(node, found) for node in every((Update, Assign), *nest.body) if (found := _updates(node, name))]
    inside = count_names((node for node, _ in updates), name)
    everywhere = count_names(nest.loops[:1], name)
    operators = {op for _, (op, _) in updates}
    if len(operators) != 1 or inside != everywhere:
        return None
    (op,) = operators
    if np.dtype(kind.dtype).kind in "fc" and any(_begins_anew(node, name) for node, _ in updates):
        return None
    values = [value for _, (_, value) in updates]
    if np.dtype(kind.dtype).kind in "iu" and not _are_integers(values, kind.dtype, nest, types, keep=op in EXTREMES):
        return None
    return op, updates[0][0].span


def _updates(node: Node, name: str) -> tuple[str, Expr] | None:
    """The operator by which a statement updates an element (or row) of the array, and what with."""
    match node:
        case Update(Subscript(Var(base), index), op, value) if base == name and op in OPERATORS:
            return None if count_names((*index, value), name) else (OPERATORS[op], value)
        case Assign(Subscript(Var(base), index) as target, value) if base == name and not count_names(index, name):
            return _combined(value, target, name)
        case _:
            return None


def _combined(value: Expr, target: Subscript, name: str) -> tuple[str, Expr] | None:
    """The operator that combines the target with something else in `value`, and that."""
    match value:
        case Binary(op, left, right) if op in OPERATORS:
            parts, found = (left, right), OPERATORS[op]
            if op == "-" and not _is(left, target):
                return None
        case Call(function, (left, right)) if function in FUNCTIONS and not value.keywords:
            parts, found = (left, right), FUNCTIONS[function]
        case _:
            return None
    others = [part for part in parts if not _is(part, target)]
    return (found, others[0]) if len(others) == 1 and not count_names(others, name) else None


def _begins_anew(node: Node, name: str) -> bool:
    """Whether an update by Python's `min` or `max` takes any value in place of a NaN, and NaN in place of any: so it
    does where the element is not the first argument."""
    match node:
        case Assign(Subscript(), Call("min" | "max", (first, *_))):
            return not count_names((first,), name)
        case _:
            return False


def _is(expr: Expr, target: Subscript) -> bool:
    return without_spans(expr) == without_spans(target)


def _are_integers(values: list[Expr], dtype: str, nest: LoopNest, types: Types, *, keep: bool) -> bool:
    """Whether values and elements of that dtype give integers, all of them of that dtype if `keep`."""
    try:
        typing: Typing = infer_types(nest.function, types)
        kinds = [typing.of(value) for value in values]
        found = [np.dtype(dtype if kind.weak else np.result_type(dtype, kind.dtype)) for kind in kinds]
        are_integers = all(np.dtype(kind.dtype).kind in "iub" for kind in kinds)
        return are_integers and all(one.kind in "iu" and (not keep or one == dtype) for one in found)
    except (UntypedNameError, UnsupportedLoopError, TypeError):
        return False
