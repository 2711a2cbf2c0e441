"""A loop of the source as statements that another order moves, and the pairs of their instances that keep their order.

Which parts of the text are statements is claimed by who made the order. It is checked that they are all of the text,
each once; their domains, what they read and write, and which of them come first are read from the source here. With
W and R the maps from instances to elements, and < the written order (Feautrier 1992),

    x → y  where  x < y  and  x → e ∈ W, y → e ∈ R ∪ W  or  x → e ∈ R, y → e ∈ W  for some e.

A scalar counts as an array without dimensions, unless each statement that has it gives it a value before reading it and
nothing after the loop needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.errors import PlanError
from orion.ir.assigned import assigned_names
from orion.ir.exposed import exposed_scalars
from orion.ir.function import Function
from orion.ir.nodes import For, Range, Stmt, every, names_in
from orion.ir.types import Types
from orion.sets.coalesced import coalesced
from orion.sets.names import isl_name
from orion.verify.conflicts import Uses, uses_of
from orion.verify.events import Event, Iterations, defined
from orion.verify.reading import Reader
from orion.verify.text_of import bare
from orion.verify.text_values import UnprovedError, Value, compared, names_of

if TYPE_CHECKING:
    import islpy as isl


MAX_PIECES = 8
"""What would make the set of sizes fall into more pieces is left out."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of a loop's text that is said to be a statement, inside of these loops."""

    name: str
    loops: tuple[For, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement at `place`: place[d] is its position in the body of loop d - 1, of all that contain it. `uses` are
    those of its instances."""

    name: str
    loops: tuple[For, ...]
    body: tuple[Stmt, ...]
    place: tuple[int, ...]
    domain: isl.Set
    instances: Iterations
    uses: Mapping[str, Uses]


@dataclass(frozen=True, slots=True)
class Source:
    """A loop of the source: its statements, the pairs x → y by the statements at their ends, and what holds of names
    that the text has, as conditions on isl's parameters with the names in them. `leaving` are sizes at which subscripts
    leave their arrays for sure, so that there is an error and no order to keep, beside those that no pair has."""

    statements: tuple[Statement, ...]
    forwards: Mapping[tuple[str, str], Sequence[isl.Map]]
    known: tuple[isl.Set, ...]
    leaving: tuple[isl.Set, ...]
    is_exact: bool
    context: isl.Context

    def union(self) -> isl.UnionMap:
        """All pairs x → y of different instances."""
        import islpy as isl

        found = isl.UnionMap("{ }", self.context)
        for relations in self.forwards.values():
            for relation in relations:
                found = found.union(isl.UnionMap.from_map(relation))
        return found


def read_source(
    function: Function,
    types: Types,
    loop: For,
    claims: Sequence[Claim],
    context: isl.Context,
) -> Source:
    """The loop of a function, `claims` being its statements: those of another loop in its place (`stored`), if theirs
    is another. PlanError where they are not."""
    text = claims[0].loops[0] if claims else loop
    placed = [*_placed(text, (text,), (0,), (), [*claims])]
    reader = _Finder(function, types, _passed_on(function, loop, text, claims), loop, placed, context)
    reader.go()
    statements = tuple(reader.named(number, context) for number in range(len(placed)))
    sizes, leaving = _sizes(statements, context)
    forwards: dict[tuple[str, str], list[isl.Map]] = {}
    for first in statements:
        for second in statements:
            relations = [*in_order(first, second, context)]
            relations = [possible for one in relations if not (possible := one.intersect_params(sizes)).is_empty()]
            if relations:
                forwards[first.name, second.name] = relations
    is_exact = all(one.instances.is_exact and all(e.is_exact for e in one.instances.events) for one in statements)
    return Source(statements, forwards, tuple(reader.known), leaving, is_exact, context)


def _sizes(statements: Sequence[Statement], context: isl.Context) -> tuple[isl.Set, tuple[isl.Set, ...]]:
    """The sizes at which no subscript leaves its array for sure, as far as they are few sets, and those of others."""
    import islpy as isl

    sizes = isl.Set("{ : }", context)
    rest = []
    for one in statements:
        for event in one.instances.events:
            for leaving in one.instances.leaving(event, context):
                fewer = coalesced(sizes.subtract(leaving))
                if fewer.n_basic_set() <= MAX_PIECES:
                    sizes = fewer
                else:
                    rest.append(leaving)
    return sizes, tuple(rest)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A claim that is found in the text at `place`; `before[d]` is what stands before it in the body of its loop d."""

    claim: Claim
    place: tuple[int, ...]
    before: tuple[tuple[Stmt, ...], ...]

    def passed(self) -> tuple[tuple[Stmt, ...], ...]:
        """What stands before the claim, if it gives values to names that the claim has."""
        used = names_in(*self.claim.body, *(loop.space for loop in self.claim.loops))
        return self.before if any(not used.isdisjoint(assigned_names(body)) for body in self.before) else ()


def _placed(
    loop: For,
    around: tuple[For, ...],
    place: tuple[int, ...],
    before: tuple[tuple[Stmt, ...], ...],
    claims: list[Claim],
) -> Iterator[_Placed]:
    """The claims in the order of the text."""
    at = position = 0
    body = loop.body
    while at < len(body):
        first = claims[0] if claims else None
        if first and first.loops == around and body[at : at + len(first.body)] == first.body:
            yield _Placed(claims.pop(0), (*place, position), (*before, body[:at]))
            at += len(first.body)
        else:
            inner = body[at]
            if not isinstance(inner, For) or not first or len(first.loops) <= len(around):
                raise PlanError("what is moved is not what the loop does")
            yield from _placed(inner, (*around, inner), (*place, position), (*before, body[:at]), claims)
            at += 1
        position += 1
    if len(around) == 1 and claims:
        raise PlanError("what is moved is more than the loop does")


def _passed_on(function: Function, loop: For, text: For, claims: Sequence[Claim]) -> frozenset[str]:
    """The scalars that pass values from one instance of a statement to another, or out of the loop."""
    variables = {space.var for space in every(Range, text)}
    names = assigned_names((text,)) - variables
    after = live_after(function.body, loop)
    exposed = {name for claim in claims for name in exposed_scalars(claim.body, ())}
    return frozenset(names & (after | exposed))


def live_after(body: Sequence[Stmt], loop: For) -> frozenset[str]:
    """The names that may be read after a loop of a body before they are assigned: in what follows, and in further trips
    of the loops around it."""
    return frozenset(exposed_scalars(bare(_following(body, loop)), ()))


def _following(body: Sequence[Stmt], loop: For) -> Iterator[Stmt]:
    for at, statement in enumerate(body):
        if statement is loop or statement == loop:
            yield from body[at + 1 :]
            return
        blocks = [block for name in ("body", "orelse") if (block := getattr(statement, name, ()))]
        for block in blocks:
            if any(inner == loop for inner in every(For, *block)):
                yield from _following(block, loop)
                if not hasattr(statement, "orelse"):
                    yield statement  # another trip of it
                yield from body[at + 1 :]
                return


class _Finder(Reader):
    """Reads a function up to a loop, and the statements in that."""

    def __init__(
        self,
        function: Function,
        types: Types,
        scalars: frozenset[str],
        loop: For,
        claims: Sequence[_Placed],
        context: isl.Context,
    ) -> None:
        super().__init__(function, types, {}, scalars)
        self._loop, self._claims, self._context = loop, claims, context
        self.known: list[isl.Set] = []

    def go(self) -> None:
        self.block(self.function.body)
        if len(self.found) != len(self._claims):
            raise PlanError("the loop is not in the source")

    def loop(self, statement: For, body: Sequence[Stmt], bounds: tuple[Value | None, ...]) -> None:
        if self.events is not None:
            super().loop(statement, body, bounds)
        elif statement == self._loop:
            self._note_known()
            for number, one in enumerate(self._claims):
                self.nest(number, one.claim.loops, one.claim.body, one.passed())
        elif any(inner == self._loop for inner in every(For, *body)):
            with self.repeated(statement):
                self.block(body)

    def _note_known(self) -> None:
        """What names stand for that the loop does not change: a text may have either."""
        changed = assigned_names((self._loop,))
        for name in sorted(names_in(self._loop) - changed):
            value = self.at.scope.names.get(name)
            if value is not None and value != {isl_name(name): 1} and name not in self.types:
                self.known.append(self.equal(name, self.at.scope.named(value, name)))

    def equal(self, name: str, value: Value) -> isl.Set:
        """That a name has a value, as a condition on isl's parameters."""
        import islpy as isl

        text, hidden = defined([compared({isl_name(name): 1}, "==", value)], self.at.scope.definitions)
        params = sorted(set(names_of(text)) - {*hidden})
        exists = f"exists {', '.join(hidden)}: " if hidden else ""
        return isl.Set(f"[{', '.join(params)}] -> {{ : {exists}({text}) }}", self._context)

    def named(self, number: int, context: isl.Context) -> Statement:
        claim, found = self._claims[number].claim, self.found[number]
        if not found.is_complete:
            raise UnprovedError("a loop whose bounds are not affine")
        domain, place = found.domain(context).set_tuple_name(claim.name), self._claims[number].place
        return Statement(claim.name, claim.loops, claim.body, place, domain, found, uses_of(found, context))


# ---------------------------------------------------------------- what keeps its order


def in_order(first: Statement, second: Statement, context: isl.Context) -> Iterator[isl.Map]:
    """The instances of two statements that must keep their order, those of the first being the earlier."""
    import islpy as isl

    order = _written_order(first, second, context)
    if order is None:
        return
    names = first.name, second.name
    for array in first.uses.keys() & second.uses.keys():
        mine, its = first.uses[array], second.uses[array]
        for left, right in ((mine.written, its.touched), (mine.touched, its.written)):
            relation = left.apply_range(right.reverse()).intersect(order)
            relation = relation.set_tuple_name(isl.dim_type.in_, names[0]).set_tuple_name(isl.dim_type.out, names[1])
            if not relation.is_empty():
                yield relation


def _written_order(first: Statement, second: Statement, context: isl.Context) -> isl.Map | None:
    """x → y where x comes before y as the loops are written; None where there is no such pair."""
    import islpy as isl

    common = 0
    while common < min(len(first.loops), len(second.loops)) and first.place[: common + 1] == second.place[: common + 1]:
        common += 1
    mine = [f"x{level}" for level in range(len(first.loops))]
    others = [f"y{level}" for level in range(len(second.loops))]
    ways = []
    for level in range(common + 1):
        same = [f"{x} = {y}" for x, y in zip(mine[:level], others[:level], strict=True)]
        if level < common:
            ways.append(" and ".join([*same, f"{mine[level]} < {others[level]}"]))
        elif first.place[level:] < second.place[level:]:
            ways.append(" and ".join(same) or "true")
    if not ways:
        return None
    text = " or ".join(f"({way})" for way in ways)
    return isl.Map(f"{{ [{', '.join(mine)}] -> [{', '.join(others)}] : {text} }}", context)


def met(source: Source) -> Iterator[tuple[Event, Event, isl.Map]]:
    """The pairs of accesses in statements with the instances that meet by them."""
    import islpy as isl

    for one in source.statements:
        for other in source.statements:
            for first in one.instances.events:
                for second in other.instances.events:
                    if first.array == second.array and (first.is_write or second.is_write):
                        left, right = (
                            at.instances.touched(event, source.context).set_tuple_name(isl.dim_type.in_, at.name)
                            for at, event in ((one, first), (other, second))
                        )
                        yield first, second, left.apply_range(right.reverse())
