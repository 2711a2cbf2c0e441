"""Which iterations of a loop may not be exchanged, from what each of them reads and writes.

With R and W the maps from iterations to the elements of an array that they read and write, iterations x and y are in
conflict over it where some e has (x → e ∈ W and y → e ∈ R ∪ W) or (x → e ∈ R and y → e ∈ W): memory-based dependences
(Bernstein 1966). Where the loop has an order, x comes before y.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.ir.nodes import Subscript, Var
from orion.ir.printer import print_expr
from orion.sets.coalesced import coalesced
from orion.verify.events import Event, Iterations

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Conflict:
    """Pairs of iterations that must run in their order, or not at the same time, because of an array. `is_exact`: the
    text has no part that could not be read exactly, so that they do meet for some values of its data."""

    array: str
    relation: isl.Map
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Uses:
    """The maps x → e of all writes of an array, and of all that is done with it."""

    written: isl.Map
    touched: isl.Map
    is_exact: bool

    @property
    def is_written(self) -> bool:
        return not self.written.is_empty()


def uses_of(found: Iterations, context: isl.Context) -> dict[str, Uses]:
    """The uses of each array."""
    uses: dict[str, Uses] = {}
    for array in dict.fromkeys(event.array for event in found.events):
        events = [event for event in found.events if event.array == array]
        maps = [found.touched(event, context) for event in events]
        touched = union(maps)
        nothing = touched.empty(touched.get_space())
        written = union((nothing, *(one for one, event in zip(maps, events, strict=True) if event.is_write)))
        uses[array] = Uses(written, touched, found.is_exact and all(event.is_exact for event in events))
    return uses


def in_one_round(uses: Mapping[str, Uses], ordered: bool) -> Iterator[Conflict]:
    """The conflicts of iterations of one round of the loops around: what is not known is the same for both."""
    import islpy as isl

    for array, one in uses.items():
        pairs = _pairs(one.written, one.touched)
        space = pairs.get_space()
        order = isl.Map.lex_lt(space.domain()) if ordered else isl.Map.universe(space).subtract(isl.Map.identity(space))
        yield Conflict(array, any_parameters(pairs.intersect(order)), one.is_exact)


def in_other_rounds(uses: Mapping[str, Uses]) -> Iterator[Conflict]:
    """The conflicts of an iteration with those of later rounds: what is not known may differ."""
    for array, one in uses.items():
        yield Conflict(
            array, any_parameters(_pairs(any_parameters(one.written), any_parameters(one.touched))), one.is_exact
        )


def _pairs(written: isl.Map, touched: isl.Map) -> isl.Map:
    pairs = written.apply_range(touched.reverse())
    return coalesced(pairs.union(pairs.reverse()))


def any_parameters(relation: isl.Map | isl.Set) -> isl.Map | isl.Set:
    """A relation or a set for any values of its parameters."""
    import islpy as isl

    return relation.project_out(isl.dim_type.param, 0, relation.dim(isl.dim_type.param))


def union(maps: Iterable[isl.Map]) -> isl.Map:
    """All pairs of one map or another; there is one map at least."""
    return reduce(lambda one, other: one.union(other), maps)


def described(found: Iterations, conflict: Conflict, pair: isl.Map) -> str:
    """The two accesses that meet for a pair of iterations, in words."""
    events = [event for event in found.events if event.array == conflict.array]
    context = conflict.relation.get_ctx()
    for first in events:
        for second in events:
            if first.is_write or second.is_write:
                relation = found.touched(first, context).apply_range(found.touched(second, context).reverse())
                if not any_parameters(relation).intersect(pair).is_empty():
                    return f"{named(first)} and {named(second)}"
    return f"accesses to `{conflict.array}`"


def named(event: Event) -> str:
    """An access in words."""
    node = event.node
    text = print_expr(node) if isinstance(node, Subscript | Var) else event.array
    return f"`{text}` {'written' if event.is_write else 'read'} in line {node.span.line}"
