"""Arrays that a loop reads before any of its iterations has made them, as far as can be seen: no loop is made of those.

while len(v) > 0:          # the first round reads the argument, later ones what the round before made, which is
    v = v[v > 0]           # nothing that a kernel could have before the first
    n += 1
"""

from __future__ import annotations

from orion.ir.exposed import exposed_reads
from orion.ir.function import Function
from orion.ir.refuse import as_said, unsupported
from orion.typing.expression_types import Typing


def refuse_unmade_arrays(function: Function, typing: Typing) -> None:
    """UnsupportedLoopError where a function has such arrays, for Numba to run it as it is."""
    for name, span in exposed_reads(function.body, function.params).items():
        kind = typing.names.get(name)
        if kind is not None and kind.rank:
            said = as_said(name, span, function)
            what = f"`{said}` stands for an array of another round here"
            why = "the round before made it, and nothing after the loop needs it"
            hint = f"make `{said}` before the loop, by np.zeros or as a copy, and write its elements, `{said}[:] = …`"
            if None in kind.lengths:
                hint = "keep its elements in an array made before the loop, and how many they are in a scalar"
            raise unsupported(what, span, function.source, why=why, hint=hint, is_for_numba=True)
