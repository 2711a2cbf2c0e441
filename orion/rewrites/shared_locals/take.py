"""Arrays that the rounds of a serial loop make for themselves, as arrays that all workers share.

    for t in range(rounds):
        B = A.copy()
        for i in range(1, n - 1):
            A[i] = B[i - 1] + B[i + 1]

As an array of its own, B goes with the iteration of t that makes it, and only one worker can run that. As a parameter
that each round fills again (`orion.passes.local_arrays`) it is shared by the workers, which then run the loop over i
together. Where iterations of the outer loop can be shared out, each keeps the arrays that it makes. So do iterations
of loops inside it:

    for t in range(rounds):
        acc = np.zeros(n)               # shared
        for i in range(n):
            for j in range(n):
                d = pos[j] - pos[i]     # of its own for each (i, j): as one array, it would make the loop over i serial
                acc[i] += d @ d

What loops further in make is shared only where sharing what is made further out makes nothing parallel.
"""

from __future__ import annotations

from orion.analysis.one_loop import AnalysedLoop
from orion.errors import UnsupportedLoopError
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import For, walk
from orion.ir.program import OfSource, OfStatements
from orion.ir.types import Types
from orion.passes.between import separate
from orion.passes.homes import living_between, loops_of
from orion.passes.sizes import with_arrays
from orion.rewrites.rewrite import OfFunction
from orion.source import Span
from orion.typing.expression_types import Typing


def find(loop: AnalysedLoop, typing: Typing) -> tuple[tuple[str, ...], ...]:
    """The arrays that a loop makes which is serial as a whole, with loops of the source in it: those that live between
    the loops in its body, then also those that live between loops in these, and so on, at last all."""
    if not is_serial(loop, loop.nest.span):
        return ()
    body = loop.nest.loops[0].body
    arrays = assigned_names(body) & {name for name, kind in typing.names.items() if kind.rank}
    arrays -= {*loop.nest.function.params}
    found: dict[tuple[str, ...], None] = {}
    shared: set[str] = set()
    inside = [body]
    while inside:
        shared |= {name for one in inside for name in living_between(one, arrays)}
        found[tuple(sorted(shared))] = None
        inside = [inner.body for one in inside for inner in loops_of(one)]
    return tuple(filter(None, found))


def apply(function: Function, types: Types, typing: Typing, arrays: tuple[str, ...]) -> Function | None:
    """The function with these arrays shared by all workers; None where it has no such form."""
    try:
        return separate(with_arrays(function, typing, arrays), types)
    except UnsupportedLoopError:
        return None


def is_serial(loop: AnalysedLoop, span: Span) -> bool:
    """Whether a loop, which begins there, is serial as a whole, with loops of the source in it."""
    nest = loop.nest
    is_whole = nest.span == span and isinstance(nest.form, OfSource | OfStatements) and not loop.candidates
    nodes = (node for statement in nest.loops[0].body for node in walk(statement))
    return is_whole and any(isinstance(node, For) and node.index >= 0 for node in nodes)


SHARED_LOCALS = OfFunction(
    "shared_locals", "arrays that the rounds of a serial loop make are shared by all workers", find, apply
)
