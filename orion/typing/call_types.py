"""The type of a call: whether a function takes what it is given, and what it then returns."""

from __future__ import annotations

from collections.abc import Mapping, Set

from orion.ir.nodes import Call
from orion.typing.arguments import Arguments
from orion.typing.complex_types import check_complex
from orion.typing.functions import ALONG, Form, Known, known, operands
from orion.typing.problems import TypeProblem
from orion.typing.results import NOT_BY_NUMBA, conversion, converted, elementwise
from orion.typing.rewritten import stored, with_fewer, with_one_limit, without_argument
from orion.typing.rewritten_loops import of_each_row, summed_from
from orion.typing.value_type import ValueType

INSTEAD = {
    "axis": ALONG,
    "keepdims": "leave it out: the result without that axis can be used in a loop over it",
    "ddof": "leave it out, and multiply a variance by `n / (n - ddof)`, a deviation by its square root",
    "endpoint": "write `start + np.arange(n) * step`",
    "initial": "leave it out, and combine the result with that value",
    "dtype": "convert before or after, with `.astype(np.float64)`",
}
"""Keyword argument → what to write instead."""


def call_type(call: Call, types: tuple[ValueType, ...], dtypes: Mapping[str, str], single: Set[str]) -> ValueType:
    """The type of the result; `single` is as in `Typing`. TypeProblem where the function does not take such
    arguments."""
    name = call.function
    row = known(name)
    assert row is not None, name  # `orion.frontend.parse_calls` has looked
    limit = operands(name) if row.result is elementwise else row.most
    if (limit is not None and len(types) > limit) or any(key == "out" for key, _ in call.keywords):
        raise _too_many(call, types, row, limit or 0)
    for key, _ in call.keywords:
        if key not in row.keywords:
            hint = INSTEAD.get(key, "write its arguments by position, or leave it out")
            what, text = (
                f"`{name.removeprefix('.')}` with `{key}=` is not supported",
                without_argument(call, types, key, dtypes, row.most),
            )
            raise TypeProblem(what, NOT_BY_NUMBA, hint, replaced_by=text, rewritten=of_each_row(call, types))
    if any(kind.dtype == "none" for kind in types):
        hint = "leave it out, or use a number, such as -1 or np.nan"
        raise TypeProblem(f"`{name}` is given None", "", hint, replaced_by=with_one_limit(call))
    found = row.result(Arguments(call, types, dtypes, single))
    fills = name in ("np.full", "np.full_like")
    converts = fills or row.result in (conversion, converted) or (row.form is Form.SUM and "dtype" in dtypes)
    check_complex(name, types, found, of_complex=row.of_complex, converts=converts)
    return found


def _too_many(call: Call, types: tuple[ValueType, ...], row: Known, limit: int) -> TypeProblem:
    name, text = call.function, with_fewer(call, types)
    if row.instead and row.instead != ALONG:
        what = f"`{name}` with a further argument is not supported"
        instead = summed_from if name == "sum" and types[0].rank == 1 else None
        return TypeProblem(what, NOT_BY_NUMBA, row.instead, replaced_by=text, rewritten=instead)
    what = f"`{name}` is given more arguments than are supported"
    if row.instead:
        return TypeProblem(what, NOT_BY_NUMBA, row.instead, replaced_by=text, rewritten=of_each_row(call, types))
    why = "a further one could be the array for the result: a write that the analysis would not see"
    return TypeProblem(
        what, why, "assign the result, `a[:] = …`", replaced_by=stored(call) if len(types) == limit + 1 else None
    )
