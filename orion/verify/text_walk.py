"""What the text of generated loops runs, and in which order, as isl sets: nothing is asked of who wrote the text.

The loops are gone through from the inside out. For each piece of text E(u) is the set of instances of statements that
it runs, u being the variables of the loops around it. A statement is known by its text; its instance is the values
that its loop variables have there. With → the dependences that are to be kept, and x → x for every instance,

    pieces a, b one after the other:       no x ∈ E_b(u), y ∈ E_a(u) with x → y;   E(u) = E_a(u) ∪ E_b(u)
    a loop over v:                         no x ∈ E(u, v'), y ∈ E(u, v) with v < v', x → y;   E(u) = ⋃ E(u, v)
    an `if` with a test c:                 E(u) = {E_then(u) : c(u)} ∪ {E_else(u) : ¬c(u)}

so that every dependence goes forwards in the text and no instance is run twice. That E is what should be run is for
the caller to compare. All sets are exact; what has no exact form is an `UnprovedError`. The order is that of
Feautrier 1992 and of Kelly and Pugh 1995, level by level rather than as one vector of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from orion.dataclass import dataclass, field
from orion.errors import PlanError
from orion.ir.assigned import assigned_places
from orion.ir.nodes import Assign, Call, Const, Expr, For, If, Pass, Range, Stmt, Subscript, Var, names_in
from orion.ir.program import Buffer
from orion.rewrites.skewed_buffers.halfspaces import Form
from orion.sets.names import isl_name, number_text, sum_text
from orion.verify.statements import Statement
from orion.verify.text_buffers import Touch, are_copies, closed, copied, touched
from orion.verify.text_sets import Found, Path, coalesced, has_parameter, part_within, renamed, united, without
from orion.verify.text_values import (
    Definition,
    Scope,
    UnprovedError,
    Value,
    all_of,
    compared,
    constant,
    multiple,
    names_of,
    total,
)

if TYPE_CHECKING:
    import islpy as isl

MAX_UNION = 4
"""Whether one of two unions lies in the other is asked of no more pieces: of six with 71 conditions it took isl 4 s."""

MANY_CONDITIONS = 8
"""A set with more is made simpler by all that holds before a variable is taken away: from 73 came 588, in 3 s."""

MAX_STEP = 64
"""The greatest step of a loop that is a variable."""


@dataclass(frozen=True, slots=True)
class RunningGreatest:
    """A name that is the greatest of `start` and the ends of earlier trips, from which each trip goes on to its own
    `end`, unless `first` is greater; `body` without its last statement, which keeps the name up to date."""

    name: str
    start: Form
    first: Expr
    end: Expr
    body: tuple[Stmt, ...]


def running_greatest(loop: Stmt, scope: Scope) -> RunningGreatest | None:
    """The loop as one that goes on from the greatest end of its earlier trips, if it is one:

    for …: low = max(first, m); high = end; for c in range(low, high): …; m = max(m, high)
    """
    match loop:
        case For(
            _,
            (
                Assign(Var(low), Call("max", (first, Var(name)))),
                Assign(Var(high), end),
                For(Range(var, Var(low_), Var(high_), Const(1)), cells),
                Assign(Var(name_), Call("max", (Var(old), Var(new)))),
            ) as body,
        ) if (low_, high_, name_, old, new) == (low, high, name, name, high):
            start = scope.names.get(name)
            inside = {var, *assigned_places(cells)}
            changed = {low, high, name, *inside}
            if isinstance(start, dict) and name not in inside and changed.isdisjoint(names_in(first, end)):
                return RunningGreatest(name, start, first, end, body[:-1])
    return None


@dataclass
class Walk:
    """Goes through a text. `forwards` are the relations that are to go forwards, by the statements at their ends, but
    for sizes that are in `leaving`, `is_exact` whether these are dependences for sure, and `live` the names that stand
    for parameters here: those of the text, and of the loops that are open. `changed` are the names that the text has
    been found to assign beside what statements do. `steps` has the trips of each loop that is open, for each step that
    it may have: on the path there are but their limits."""

    context: isl.Context
    statements: Sequence[Statement]
    forwards: Mapping[tuple[str, str], Sequence[isl.Map]]
    is_exact: bool
    leaving: tuple[isl.Set, ...]
    path: Path
    live: set[str]
    buffers: Mapping[str, Buffer]
    changed: set[str] = field(default_factory=set)
    steps: list[list[isl.Set]] = field(default_factory=list)

    # ------------------------------------------------------------ pieces of text

    def block(self, body: Sequence[Stmt], scope: Scope) -> Found:
        """The pieces of a body, one after the other."""
        scope, depth = scope.inner(), len(self.path.exact)
        pieces: list[Found] = []
        at = 0
        while at < len(body):
            piece, count = self.piece(body, at, scope)
            pieces.append(piece)
            at += count
            self.enter_definitions(scope)
        found = self.in_sequence(pieces)
        return self.left(found, scope, depth)

    def in_sequence(self, pieces: Sequence[Found]) -> Found:
        found: Found = {}
        for piece in pieces:
            self.forbid(piece, found)
            found = united(found, piece)
        found = {key: self.tidied(values) for key, values in found.items()}
        return closed(pieces, found, self.buffers, self.is_impossible)

    def piece(self, body: Sequence[Stmt], at: int, scope: Scope) -> tuple[Found, int]:
        """The piece of a body that begins at a place, and how many statements of the text it is."""
        instance = self.instance(body, at, scope)
        if instance is not None:
            return instance
        match body[at]:
            case Pass():
                return {}, 1
            case Assign(Subscript()) as copy:
                return self.noted(copied(copy, self.buffers), scope), 1
            case Assign(Var(name), value):
                self.changed.add(name)
                try:
                    scope.names[name] = scope.named(scope.value(value), name)
                except UnprovedError:
                    scope.forget({name})
                return {}, 1
            case If() as branch:
                return self.branch(branch, scope), 1
            case For(Range() as space, inner):
                greatest = running_greatest(body[at], scope)
                scope.forget(assigned_places((body[at],)))  # an earlier trip may have assigned them
                if greatest is not None:
                    return self.loop(space, scope, lambda inside: self.up_to(greatest, space, inside)), 1
                return self.loop(space, scope, lambda inside: self.block(inner, inside)), 1
            case other:
                raise UnprovedError(f"a `{type(other).__name__}` among the generated loops")

    def branch(self, branch: If, scope: Scope) -> Found:
        sides: list[tuple[isl.Set, Found]] = []
        for wanted, body in ((True, branch.body), (False, branch.orelse)):
            holds = self.condition(scope.condition(branch.test, wanted))
            self.enter_definitions(scope)
            depth = len(self.path.exact)
            self.path.enter(holds)
            sides.append((holds, self.block(body, scope)))
            self.path.leave(depth)
        scope.forget(assigned_places((*branch.body, *branch.orelse)))
        (first, then), (second, orelse) = sides
        found: Found = {}
        for name in then | orelse:
            found[name] = self.either(then.get(name), first, orelse.get(name), second)
        return found

    def either(self, one: isl.Set | None, first: isl.Set, other: isl.Set | None, second: isl.Set) -> isl.Set:
        """{one : first} ∪ {other : second}, one of the two conditions holding. Where both are the same when the second
        holds, that is the one; and so the other way round."""
        if one is None or other is None:
            assert one is not None or other is not None
            return other.intersect_params(second) if other is not None else one.intersect_params(first)  # type: ignore[union-attr]
        for holds, general in ((second, one), (first, other)):
            for here in (holds, holds.intersect(self.path.nearby())):
                if one.intersect_params(here).is_equal(other.intersect_params(here)):
                    return general
        return coalesced(one.intersect_params(first).union(other.intersect_params(second)))

    # ------------------------------------------------------------ loops

    def loop(self, space: Range, scope: Scope, inside: Callable[[Scope], Found]) -> Found:
        """A loop, with what is inside it. Names for its bounds are made in the scope around it: other loops share
        them."""
        name = isl_name(space.var)
        if name in self.live:
            raise UnprovedError(f"a loop over `{name}` where `{name}` is something else")
        start, stop, step = scope.value(space.start), scope.value(space.stop), scope.value(space.step)
        if constant(step) != 1:
            start, stop, step = (scope.named(value, space.var) for value in (start, stop, step))
        self.enter_definitions(scope)
        limits = all_of([compared(start, "<=", {name: 1}), compared({name: 1}, "<", stop)])
        spacings, depth = self.spacings(start, step), len(self.path.exact)
        self.path.enter(self.condition(limits))
        trips = [all_of([limits, *(text.format(name) for text in texts)]) for texts in spacings]
        self.steps.append([self.condition(text) for text in trips])
        self.changed.add(space.var)
        self.live.add(name)
        inner = scope.inner()
        inner.names[space.var] = {name: 1}
        found = inside(inner)
        self.forbid_across(found, name, step)
        self.live.remove(name)
        self.path.leave(depth)
        summed: Found = {}
        for trip in self.steps.pop():
            summed = united(summed, {key: self.of_trips(values, trip, name) for key, values in found.items()})
        return summed

    def of_trips(self, values: isl.Set, trip: isl.Set, name: str) -> isl.Set:
        """What the trips of a loop run together. The fewer conditions there are, the fewer come of taking the variable
        away (a lower and an upper bound make one each): those that hold around the loop go before."""
        here = values.intersect_params(trip)
        here = here.gist_params(self.path.about(here))
        if max((piece.n_constraint() for piece in here.get_basic_sets()), default=0) > MANY_CONDITIONS:
            here = here.gist_params(self.path.nearby())  # takes longer, for conditions on other names too
        return without(here, name)

    def spacings(self, start: Value, step: Value) -> list[list[str]]:
        """What holds of the variable of a loop for its step, for each value that the step may have."""
        if constant(step) == 1:
            return [[]]
        assert isinstance(start, dict)
        assert isinstance(step, dict)
        from_start = f"({{}} - ({sum_text(start)}))"
        number = constant(step)
        if number is not None:
            if number <= 0:
                raise UnprovedError("a loop that goes backwards")
            return [[f"{from_start} mod {number_text(number)} = 0"]]
        low, high = self.range_of(step)
        if not 1 <= low <= high <= MAX_STEP:
            raise UnprovedError("a step that may be zero, or is large")
        return [
            [f"{sum_text(step)} = {number_text(size)}", f"{from_start} mod {number_text(size)} = 0"]
            for size in range(low, high + 1)
        ]

    def range_of(self, form: Form) -> tuple[int, int]:
        """The least and greatest value of a form here."""
        import islpy as isl

        values = isl.Set(f"[{', '.join(names_of(sum_text(form)))}] -> {{ [v] : v = {sum_text(form)} }}", self.context)
        for holds in self.path.exact:
            values = values.intersect_params(holds)
        values = values.project_out(isl.dim_type.param, 0, values.dim(isl.dim_type.param))
        if values.is_empty() or not values.is_bounded():
            raise UnprovedError("a step that is not known")
        return int(values.dim_min_val(0).to_python()), int(values.dim_max_val(0).to_python())

    def forbid_across(self, found: Found, name: str, step: Value) -> None:
        """No later trip of a loop may have what must come before something in an earlier one."""
        later = f"{name}_later__"
        depth = len(self.path.exact)
        self.path.enter(renamed(self.path.exact[-1], name, later))
        number = constant(step)
        apart = compared(total({name: 1}, step), "<=", {later: 1})
        if number not in (None, 1):
            apart = all_of([apart, f"({later} - {name}) mod {number_text(number)} = 0"])
        order = self.condition(apart)
        self.forbid({key: renamed(values, name, later) for key, values in found.items()}, found, order)
        self.path.leave(depth)

    def up_to(self, greatest: RunningGreatest, space: Range, scope: Scope) -> Found:
        """What a trip of a loop copies that leaves out what lies below the greatest end of earlier trips.

        A trip r copies the c with max(first(r), m) ≤ c < end(r), m the greatest of `start` and the ends of earlier
        trips. All of them together copy what they would with m = `start`, if for no earlier trip s there is a c with
        max(first(r), start) ≤ c < min(end(r), end(s)) and c < first(s): then the first trip whose end is above c
        copies it. How often something is copied does not matter.
        """
        name, later = isl_name(space.var), f"{isl_name(space.var)}_later__"
        scope.names[greatest.name] = greatest.start
        cell: Form = {"c__": 1}
        first, end = scope.value(greatest.first), scope.value(greatest.end)
        if scope.definitions:
            raise UnprovedError("a quotient in a loop from the greatest end of earlier trips")
        wanted = [compared(value, "<=", cell) for value in (first, greatest.start)]
        copied_later = self.cells(all_of([*wanted, compared(cell, "<", end)]))
        left_out = self.cells(all_of([compared(cell, "<", first), compared(cell, "<", end)]))
        depth = len(self.path.exact)
        order = compared(total({name: 1}, {"": 1}), "<=", {later: 1})
        for holds in (renamed(self.path.exact[-1], name, later), self.condition(order)):
            self.path.enter(holds)
        if not self.is_impossible(renamed(copied_later, name, later).intersect(left_out)):
            raise PlanError("the generated loops leave out what no earlier trip has copied back")
        self.path.leave(depth)
        found = self.block(greatest.body, scope)
        if not are_copies(found):
            raise UnprovedError("a loop from the greatest end of earlier trips")
        return found

    def cells(self, text: str) -> isl.Set:
        import islpy as isl

        params = [name for name in names_of(text) if name != "c__"]
        return isl.Set(f"[{', '.join(params)}] -> {{ [c__] : {text} }}", self.context)

    # ------------------------------------------------------------ instances of statements

    def instance(self, body: Sequence[Stmt], at: int, scope: Scope) -> tuple[Found, int] | None:
        """The instance of a statement whose text begins here, and the length of that text; None where there is none."""
        texts = [(s, touched(body[at : at + len(s.body)], s, self.buffers)) for s in self.statements]
        matches = [(statement, touches) for statement, touches in texts if touches is not None]
        if not matches:
            return None
        longest = max(len(statement.body) for statement, _ in matches)
        (statement, touches), *others = [match for match in matches if len(match[0].body) == longest]
        if others:
            raise UnprovedError("two statements with the same text")
        found = {statement.name: self.instances(statement, scope), **self.noted(touches, scope)}
        scope.forget(assigned_places(statement.body))
        return found, longest

    def instances(self, statement: Statement, scope: Scope) -> isl.Set:
        """The instance of a statement here: its coordinates are the values of its loop variables, or the numbers of
        their trips where the step is not 1 (`orion.rewrites.reorder.writer.value_at`)."""
        import islpy as isl

        dims = [f"c{number}__" for number in range(len(statement.loops))]
        conditions = []
        for dim, loop in zip(dims, statement.loops, strict=True):
            space = loop.space
            assert isinstance(space, Range)
            step = constant(scope.value(space.step))
            if step is None or space.var not in scope.names:
                raise UnprovedError(f"the value of `{space.var}`")
            place = {dim: 1} if step == 1 else total(multiple({dim: 1}, step), scope.value(space.start))
            conditions.append(compared(place, "==", scope.value(Var(space.var, space.span))))
        text = all_of(conditions)
        params = [name for name in names_of(text) if name not in dims]
        found = f"[{', '.join(params)}] -> {{ {statement.name}[{', '.join(dims)}] : {text} }}"
        return isl.Set(found, self.context)

    def noted(self, touches: Sequence[Touch], scope: Scope) -> Found:
        """The elements of arrays that are in buffers, and their places there."""
        found: Found = {}
        for touch in touches:
            found = united(found, {touch.key: touch.pairs(scope, self.context)})
        return found

    # ------------------------------------------------------------ what is proved

    def forbid(self, late: Found, early: Found, params: isl.Set | None = None) -> None:
        """PlanError where something in `late` must come before something in `early`, or is in it."""
        for source, sources in late.items():
            for sink, sinks in early.items():
                for relation in self.forwards.get((source, sink), ()):
                    turned = relation.intersect_domain(sources).intersect_range(sinks)
                    turned = turned if params is None else turned.intersect_params(params)
                    found = self.witness(turned)
                    for leaving in self.leaving if found is not None else ():
                        turned = turned.intersect_params(leaving.complement())
                        found = self.witness(turned)
                        if found is None:
                            break
                    if found is not None:
                        what = f"{source} before {sink}" if source != sink else f"{source} in its order, and once"
                        message = f"the generated loops do not run {what}: {found.sample()}"
                        if self.is_exact or (source == sink and _is_run_twice(found)):
                            raise PlanError(message)
                        raise UnprovedError(message)

    def is_impossible(self, relation: isl.Map | isl.Set) -> bool:
        """Whether a relation or a set is empty here."""
        return self.witness(relation) is None

    def witness(self, relation: isl.Map | isl.Set) -> isl.Map | isl.Set | None:
        """A part of a relation or a set, not empty, for which all conditions hold here."""
        import islpy as isl

        if relation.is_empty():
            return None
        split = [holds for holds in reversed(self.path.exact) if holds.n_basic_set() > 1]
        found = part_within(relation.intersect_params(self.path.nearby()), split)
        if found is None or not self.steps:
            return found
        for trips in self.steps:  # looked at only here: sets of every second number cost much
            relation = relation.intersect_params(reduce(isl.Set.union, trips))
        return part_within(relation.intersect_params(self.path.nearby()), split)

    def tidied(self, values: isl.Set) -> isl.Set:
        """A set that is the same here, of fewer pieces where isl finds it. Elsewhere it may be another: where the text
        is left for which a condition holds, that is put to all sets again."""
        if values.n_basic_set() < 2:
            return values
        here = self.path.about(values)
        other = coalesced(values.intersect_params(here)).gist_params(here)
        return other if other.n_basic_set() < values.n_basic_set() else values

    # ------------------------------------------------------------ conditions

    def condition(self, text: str) -> isl.Set:
        import islpy as isl

        return isl.Set(f"[{', '.join(names_of(text))}] -> {{ : {text} }}", self.context)

    def enter_definitions(self, scope: Scope) -> None:
        """The definitions that a scope has got since are conditions on the path."""
        for definition in scope.definitions[len(scope.entered) :]:
            holds = self.condition(definition.text)
            negative = self.condition(compared({definition.name: 1}, "<", {}))
            if holds.intersect(negative).intersect(self.path.nearby()).is_empty():
                holds = holds.subtract(negative)  # of numbers that are no integers that need not follow
            scope.entered.append(holds)
            self.path.enter(holds)

    def left(self, found: Found, scope: Scope, depth: int) -> Found:
        """What is found in a scope, without the names that were made in it; `depth` is that of the path before it."""
        for definition, holds in reversed([*zip(scope.definitions, scope.entered, strict=True)]):
            for key, values in found.items():
                if has_parameter(values, definition.name):
                    found[key] = self.without_name(values, definition, holds)
        self.path.leave(depth)
        return found

    def without_name(self, values: isl.Set, definition: Definition, holds: isl.Set) -> isl.Set:
        """A set E(u) for the value of u. Where E only grows with u, E(min(a, b)) = E(a) ∩ E(b) and E(max(a, b)) =
        E(a) ∪ E(b); where it only shrinks, the other way round."""
        name, other = definition.name, f"{definition.name}other__"
        if definition.kind and values.n_basic_set() <= MAX_UNION:
            changed = renamed(values, name, other)
            for sign, both in ((">=", definition.kind == "min"), ("<=", definition.kind == "max")):
                if changed.intersect_params(self.condition(f"{name} {sign} {other}")).is_subset(values):
                    parts = [self.condition(compared({name: 1}, "==", part)) for part in definition.parts]
                    first, second = (without(values.intersect_params(part), name) for part in parts)
                    return first.intersect(second) if both else coalesced(first.union(second))
        return without(values.intersect_params(holds), name)


def _is_run_twice(pairs: isl.Map) -> bool:
    """Whether one of the pairs of instances of a statement is of an instance and itself."""
    import islpy as isl

    return not pairs.intersect(isl.Map.identity(pairs.get_space())).is_empty()
