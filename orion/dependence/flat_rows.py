"""Whether the subscripts of flattened arrays stay within their rows: (b) and (c) of `orion.passes.delinearize`.

For a subscript q * m + r that is used for every x in a domain D(p), with p the sizes and m one of them, and N the
length of the array,

    (b)  {x ∈ D(p) : r(x, p) < 0 or r(x, p) >= m} = ∅
    (c)  m divides N, or {x ∈ D(p) : q(x, p) < 0 or q(x, p) >= N // m} = ∅

at the values of p that are known, whatever the others are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from orion.dependence.bounds import BoundsChecks, fix_parameters
from orion.ir.function import Function, Rows
from orion.ir.nodes import Dim, Subscript, Var, every
from orion.sets.names import extent_name, isl_name, parameter_list


def stays_in_rows(
    function: Function, checks: Iterable[BoundsChecks], values: Mapping[str, int], longer: Collection[str]
) -> bool:
    """Whether all subscripts of the `rows` of a function do, at these values of isl's parameters. Where one is sure to
    leave its array they do not count as such, so that the refusal is in the user's terms.

    `checks` are those of all loops of the function, for arrays of rows. `longer` are the arrays with elements behind
    the last whole row.
    """
    import islpy as isl

    checks = tuple(checks)
    arrays = {one.array for one in function.rows}
    own = [check for loop in checks for check in loop.checks if check.array in arrays]
    used = every(Subscript, *function.body)
    spans = {node.span for node in used if node.base.name in arrays}
    if spans - {check.span for check in own} or any(span in spans for loop in checks for span, _ in loop.unchecked):
        return False
    equal = isl.Set(lengths_of_rows(function.rows))
    for check in own:
        outside, wraps = (isl.Set(text, equal.get_ctx()) for text in (check.outside, check.wraps))
        is_error = check.is_certain and check.names <= values.keys()
        wanted = [outside, wraps] if check.axis or check.array in longer else [outside] if is_error else []
        if not all(fix_parameters(one.intersect_params(equal), values).is_empty() for one in wanted):
            return False
    return True


def lengths_of_rows(rows: Iterable[Rows]) -> str:
    """The lengths of rows as an isl set of parameters: the extents of the arrays but the first."""
    pairs = [pair for one in rows for pair in _equations(one)]
    names = {name for pair in pairs for name in pair}
    return f"{parameter_list(names)}{{ : {' and '.join(f'{extent} = {width}' for extent, width in pairs)} }}"


def _equations(rows: Rows) -> Iterator[tuple[str, str]]:
    for axis, width in enumerate(rows.widths, start=1):
        match width:
            case Var(name):
                yield extent_name(rows.array, axis), isl_name(name)
            case Dim(array, other):
                yield extent_name(rows.array, axis), extent_name(array, other)
            case _:
                pass
