"""A function written out for each of the ways in which its names stand for arrays.

A state says which array each name stands for. Statements that only give names other arrays change the state and are
gone; a statement that makes a new array writes it into memory that no name needs any more. Where branches end in
different states, what comes after them is written out for each. A loop goes from state to state as a finite automaton
does: where that is one way, its rounds are written out one after the other (`orion.passes.array_rounds`); where it
depends on values, a number says in each round which state it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from orion.dataclass import dataclass, field, replace
from orion.errors import UnsupportedLoopError
from orion.ir.assigned import leaves_loop
from orion.ir.exposed import exposed_reads
from orion.ir.function import Function, Turn
from orion.ir.nodes import (
    Assign,
    Break,
    Compare,
    Const,
    Continue,
    Count,
    Dim,
    Elements,
    Expr,
    For,
    If,
    Logic,
    Node,
    Pass,
    Range,
    Return,
    Stmt,
    Tuple,
    Unary,
    Var,
    While,
    every,
    names_in,
)  # fmt: skip
from orion.ir.refuse import unsupported
from orion.ir.renaming import renamed
from orion.passes.array_memory import Memory
from orion.passes.array_rounds import Rounds, as_integer, is_counted
from orion.source import Span

MOST_STATES = 8
MOST_STATEMENTS = 4000
"""What is written out at most; more than that takes too long to compile."""

State = frozenset[tuple[str, str]]
"""Names, each with the array that it stands for, where that has another name. Others stand for the array of their own
name, or are not read any more."""


class TooManyStatesError(Exception):
    """`refusal` says that names stand for more arrays than a function is written out for."""

    def __init__(self, refusal: UnsupportedLoopError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


After = Callable[[State], tuple[Stmt, ...]]
N = TypeVar("N", bound=Node)


def nothing(_: State) -> tuple[Stmt, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Around:
    """What comes after some statements: `future` are statements that may be run then, `after` writes out those that are
    next, `leave` what comes before a `break`, `again` what comes before a `continue`."""

    future: tuple[Stmt, ...]
    after: After = nothing
    leave: After = nothing
    again: After = nothing


@dataclass(frozen=True, slots=True)
class Ways:
    """The states in which a round of a loop may begin, that of the first round first, each with those in which the next
    may; and the states in which the loop may be left."""

    steps: dict[State, set[State]]
    exits: frozenset[State]


@dataclass(slots=True)
class States:
    """Writes out a function. `moving` are the names that stand for several arrays, `number` that of the next loop."""

    function: Function
    moving: frozenset[str]
    memory: Memory
    number: int
    seen: set[int] = field(default_factory=set)
    stands: dict[int, dict[str, str]] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    size: int = 0

    def written_out(self) -> tuple[Stmt, ...]:
        return self.block(self.function.body, frozenset(), Around(()))

    # ------------------------------------------------------------ statements

    def block(self, body: tuple[Stmt, ...], state: State, around: Around) -> tuple[Stmt, ...]:
        """Statements that begin in a state, and what comes after them."""
        found: list[Stmt] = []
        for place, statement in enumerate(body):
            rest = body[place + 1 :]
            match statement:
                case Assign() if self.moves(statement):
                    new, state = self.assigned(statement, dict(state), (*rest, *around.future))
                    found += new
                case Break():
                    return (*found, *around.leave(state), statement)
                case Continue():
                    return (*found, *around.again(state), statement)
                case Return():
                    return (*found, self.named(statement, state))
                case If() if self.moves(statement) or leaves_loop(statement):
                    return (*found, *self.branch(statement, state, rest, around))
                case For() | While() if self.moves(statement):
                    return (*found, *self.loop(statement, state, rest, around))
                case _:
                    found.append(self.named(statement, state))
        return (*found, *around.after(state))

    def moves(self, statement: Stmt) -> bool:
        """Whether a name may stand for another array after a statement, or inside it."""
        return any(not self.moving.isdisjoint(_given(node)) for node in every(Assign, statement))

    def branch(self, statement: If, state: State, rest: tuple[Stmt, ...], around: Around) -> tuple[Stmt, ...]:
        """An `if`, and what comes after it: once, or where its branches end in different states in both."""
        inner = replace(around, future=(*rest, *around.future))
        ends: set[State] = set()

        def write(after: After) -> If:
            test, inside = self.named(statement.test, state), replace(inner, after=after)
            body, orelse = (self.block(side, state, inside) for side in (statement.body, statement.orelse))
            return replace(statement, test=test, body=body or (Pass(statement.span),), orelse=orelse)

        self.tried(lambda: write(lambda end: _noted(ends, self.live(end, inner.future))))
        if len(ends) > 1:
            return (write(lambda end: self.block(rest, end, around)),)
        found = write(nothing)
        return (found, *(new for end in ends for new in self.block(rest, end, around)))

    def tried(self, write: Callable[[], object]) -> None:
        """Write something out only to see in which states it ends."""
        number, seen = self.number, set(self.seen)
        write()
        self.number, self.seen = number, seen

    def named(self, node: N, state: State) -> N:
        """Code that changes no state, by the names of the arrays, and with numbers of its own for its loops."""
        self.size += 1
        if self.size > MOST_STATEMENTS:
            raise self.too_many(node.span)
        names = dict(state)
        found = renamed(node, names) if not names.keys().isdisjoint(_mentioned(node)) else node
        found = self.numbered(self.memory.with_lengths(found))
        self.note(found, {name: array for name, array in state if name in _mentioned(node)})
        return found

    def note(self, node: Node, names: dict[str, str]) -> None:
        """Note of the loops in some code which arrays names of the source are there."""
        for loop in every(For, node):
            self.stands[loop.index] = names

    def numbered(self, node: N) -> N:
        """The code with new numbers for the `for`s that have been written out before."""
        found: Any = node
        match node:
            case For(_, body, index):
                if index in self.seen:
                    index, self.number = self.number, self.number + 1
                self.seen.add(index)
                found = replace(node, index=index, body=tuple(map(self.numbered, body)))
            case While(_, body):
                found = replace(node, body=tuple(map(self.numbered, body)))
            case If(_, body, orelse):
                first, second = (tuple(map(self.numbered, block)) for block in (body, orelse))
                found = replace(node, body=first, orelse=second)
            case _:
                pass
        return found  # type: ignore[no-any-return]

    def live(self, state: State, future: tuple[Stmt, ...]) -> State:
        """What of a state matters for what may be run: names that it reads before it gives them another array."""
        asked = {part.array for part in every((Dim, Count, Elements), *future)}
        read = asked | exposed_reads(future, ()).keys()
        return frozenset(pair for pair in state if pair[0] in read)

    # ------------------------------------------------------------ assignments

    def assigned(self, statement: Assign, now: dict[str, str], future: tuple[Stmt, ...]) -> tuple[list[Stmt], State]:
        """What is left of an assignment that gives names arrays, and the state after it.

        New arrays are made first, in memory that the rest of the assignment does not read.
        """
        value, after = self.memory.with_lengths(renamed(statement.value, now)), dict(now)
        pairs = _pairs(statement.target, value)
        made = {name for name, _, part, _ in pairs if name in self.moving and not self.is_name(part)}
        needed = dict(self.live(frozenset((name, name) for name in self.moving), future))
        for name, _, part, _ in pairs:
            if name in self.moving and self.is_name(part):
                assert isinstance(part, Var)
                after[name] = part.name
        read = names_in(value) if len(pairs) > 1 else set()
        busy = {after.get(name, name) for name in needed if name not in made} | read
        first: list[Stmt] = []
        left: list[tuple[Expr, Expr]] = []
        turn = dict(now)
        for name, target, part, item in pairs:
            if name in made:
                assert isinstance(target, Var)
                after[name] = self.memory.chosen(name, part, item, busy, statement.span)
                busy.add(after[name])
                target = replace(target, name=after[name])
                if item is None:
                    first.append(Assign(target, part, statement.span))
            elif name not in self.moving:
                target = renamed(target, turn)
            if name in self.moving:
                turn[name] = after[name]
            if name not in self.moving or (name in made and item is not None):
                left.append((target, part))
        return [*first, *_joined(left, statement)], frozenset(pair for pair in after.items() if pair[0] != pair[1])

    def is_name(self, value: Expr) -> bool:
        return isinstance(value, Var) and self.memory.kind(value).rank > 0

    # ------------------------------------------------------------ loops

    def loop(self, loop: For | While, state: State, rest: tuple[Stmt, ...], around: Around) -> tuple[Stmt, ...]:
        """A loop in which names stand for other arrays, and what comes after it."""
        future = (*rest, *around.future)
        ways = self.ways(loop, state, future)
        (first, *others) = ways.steps

        def body_in(state: State, after: After, leave: After) -> tuple[Stmt, ...]:
            return self.block(loop.body, state, Around((loop, *future), after, leave, after))

        def and_rest(state: State) -> tuple[Stmt, ...]:
            return self.block(rest, self.live(state, future), around)

        if not others and len(ways.exits) <= 1:
            new = self.headed(loop, state, body_in(first, nothing, nothing))
            return (new, *(one for end in ways.exits for one in and_rest(end)))
        if is_counted(loop, future) and all(len(ends) == 1 for ends in ways.steps.values()):
            assert isinstance(loop, For)
            return self.in_rounds(loop, state, ways, body_in, and_rest)
        return self.by_number(loop, state, ways, future, body_in, and_rest)

    def ways(self, loop: For | While, state: State, future: tuple[Stmt, ...]) -> Ways:
        """The states that a loop goes through, which begins in one."""
        again = (loop, *future)
        steps: dict[State, set[State]] = {self.live(state, again): set()}
        exits: set[State] = set()
        waiting = [*steps]
        while waiting:
            begin = waiting.pop()
            ends = self.round_ends(loop, begin, future, exits)
            steps[begin] = ends
            new = [end for end in sorted(ends, key=sorted) if end not in steps]
            steps.update((end, set()) for end in new)
            waiting += new
            if len(steps) > MOST_STATES:
                raise self.too_many(loop.span)
        if not _is_endless(loop):
            exits |= {self.live(begin, future) for begin in steps}
        return Ways(steps, frozenset(exits))

    def round_ends(self, loop: For | While, begin: State, future: tuple[Stmt, ...], exits: set[State]) -> set[State]:
        """The states in which the round after one that begins in a state may begin; those of a `break` are `exits`."""
        again, ends = (loop, *future), set[State]()

        def ended(end: State) -> tuple[Stmt, ...]:
            return _noted(ends, self.live(end, again))

        inside = Around(again, ended, lambda end: _noted(exits, self.live(end, future)), ended)
        self.tried(lambda: self.block(loop.body, begin, inside))
        return ends

    def headed(self, loop: For | While, state: State, body: tuple[Stmt, ...]) -> For | While:
        """A loop with the test or the range that it has in a state, and another body."""
        found = self.named(replace(loop, body=()), state)
        return replace(found, body=body or (Pass(loop.span),))

    def in_rounds(self, loop: For, state: State, ways: Ways, body: BodyIn, and_rest: After) -> tuple[Stmt, ...]:
        """A loop whose states follow one another in one way, its rounds written out for each."""
        chain = [next(iter(ways.steps))]
        while (following := next(iter(ways.steps[chain[-1]]))) not in chain:
            chain.append(following)
        is_one = len(ways.exits) == 1
        head = self.headed(loop, state, ())
        assert isinstance(head, For)
        assert isinstance(head.space, Range)
        start, stop = (as_integer(one, self.memory.kind(one)) for one in (head.space.start, head.space.stop))
        rounds = Rounds(
            replace(head, space=replace(head.space, start=start, stop=stop)),
            len(chain),
            chain.index(following),
            lambda k: body(chain[k], nothing, nothing),
            lambda k: () if is_one else and_rest(chain[k]),
            self.memory.fresh_scalar,
        )
        return (*rounds.written(), *(new for end in ways.exits if is_one for new in and_rest(end)))

    def by_number(
        self, loop: For | While, state: State, ways: Ways, future: tuple[Stmt, ...], body: BodyIn, and_rest: After
    ) -> tuple[Stmt, ...]:
        """A loop with a number that says in which state it is."""
        span = loop.span
        turn = Var(self.memory.fresh_scalar("turn"), span)
        states = [*ways.steps]
        differing = {name for one in states for name, _ in one ^ states[0]}
        self.turns.append(Turn(turn.name, tuple(sorted(differing))))
        begins, ends = len(states), [self.live(one, future) for one in states]
        ends += [one for one in sorted(ways.exits, key=sorted) if one not in ends]

        def turned(number: int, to: int) -> tuple[Stmt, ...]:
            return () if number == to else (Assign(turn, Const(to, span), span),)

        def round_in(number: int) -> tuple[Stmt, ...]:
            again = (loop, *future)
            return body(
                states[number],
                lambda end: turned(number, states.index(self.live(end, again))),
                lambda end: turned(
                    number, ends.index(found) if ends[number] != (found := self.live(end, future)) else number
                ),
            )

        has_test = isinstance(loop, While) and not self.moving.isdisjoint(_mentioned(loop.test))
        rounds = []
        for number in range(begins):
            first: tuple[Stmt, ...] = ()
            if has_test:
                assert isinstance(loop, While)
                stop = Unary("not", self.named(loop.test, states[number]), span)
                first = (If(stop, (Break(span),), (), span),)
            rounds.append((*first, *round_in(number)))
        plain = replace(loop, test=Const(True, span)) if has_test and isinstance(loop, While) else loop
        new = self.headed(plain, state, _by_turn(turn, [({k}, one) for k, one in enumerate(rounds)]))
        rests = [
            ({k for k, one in enumerate(ends) if one == end}, and_rest(end))
            for end in dict.fromkeys(ends)
            if end in ways.exits
        ]
        return (Assign(turn, Const(0, span), span), new, *_by_turn(turn, rests))

    def too_many(self, span: Span) -> TooManyStatesError:
        names = " and ".join(f"`{name}`" for name in sorted(self.moving)[:2])
        what = f"{names} stand for too many arrays in turn" if len(self.moving) > 1 else f"{names} is too many arrays"
        hint = "copy elements instead, `u[:] = new`, or use one more name"
        if len(self.moving) == 1:  # each round makes one of another length
            hint = "keep its elements in an array made before the loop, and how many they are in a scalar"
        why = "the loops are written out for each"
        refusal = unsupported(what, span, self.function.source, why=why, hint=hint, is_for_numba=True)
        return TooManyStatesError(refusal)


BodyIn = Callable[[State, After, After], tuple[Stmt, ...]]


def _noted(found: set[State], state: State) -> tuple[Stmt, ...]:
    found.add(state)
    return ()


def _is_endless(loop: For | While) -> bool:
    return isinstance(loop, While) and isinstance(loop.test, Const) and bool(loop.test.value)


def _mentioned(node: Node) -> set[str]:
    """The names in some code, of arrays whose lengths it asks for too."""
    return names_in(node) | {part.array for part in every((Dim, Count, Elements), node)}


def _given(node: Assign) -> set[str]:
    targets = node.target.items if isinstance(node.target, Tuple) else (node.target,)
    return {target.name for target in targets if isinstance(target, Var)}


def _pairs(target: Expr, value: Expr) -> list[tuple[str, Expr, Expr, int | None]]:
    """The targets of an assignment: the name of each, "" for an element; the target; the value; and which item of that
    it is given, None where all of it."""
    if not isinstance(target, Tuple):
        return [(target.name if isinstance(target, Var) else "", target, value, None)]
    names = [one.name if isinstance(one, Var) else "" for one in target.items]
    if isinstance(value, Tuple) and len(value.items) == len(names):
        return [(name, one, part, None) for name, one, part in zip(names, target.items, value.items, strict=True)]
    return [(name, one, value, number) for number, (name, one) in enumerate(zip(names, target.items, strict=True))]


def _joined(left: list[tuple[Expr, Expr]], statement: Assign) -> list[Stmt]:
    """An assignment of what is left of one."""
    if not left:
        return []
    if len(left) == 1:
        return [Assign(left[0][0], left[0][1], statement.span)]  # type: ignore[arg-type]
    targets = Tuple(tuple(target for target, _ in left), statement.span)
    values = [value for _, value in left]
    is_one = all(value is values[0] for value in values)
    return [Assign(targets, values[0] if is_one else Tuple(tuple(values), statement.span), statement.span)]


def _by_turn(turn: Var, blocks: list[tuple[set[int], tuple[Stmt, ...]]]) -> tuple[Stmt, ...]:
    """The statements of the block whose numbers the name may have; the last block has all that are left."""
    *first, (_, found) = blocks or [(set(), ())]
    for numbers, block in reversed(first):
        tests = tuple(Compare(("==",), (turn, Const(number, turn.span)), turn.span) for number in sorted(numbers))
        test = tests[0] if len(tests) == 1 else Logic("or", tests, turn.span)
        found = (If(test, block or (Pass(turn.span),), found, turn.span),)
    return found
