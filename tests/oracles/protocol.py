"""Explicit-state model checker for a release/acquire memory with views.

A thread is a generator that yields atomic steps and is sent what they find. The checker runs all interleavings, and has
each load read all messages that it may:

- An atomic location has a history of messages, each with a value and, where it was released, the view of its writer.
- A view says of each atomic location which message is the oldest that may still be read. An acquire load joins the
  view of the message that it reads.
- Plain data has one value. A view also says of which writes and reads of it a thread knows. An access is a race unless
  its thread knows of the last write, and for a write of the last read by each thread too.

The model follows Kang et al., A Promising Semantics for Relaxed-Memory Concurrency (POPL 2017), without promises: reads
that the view does not order before a later write are races here, whoever comes first. Where a compare-and-exchange
fails it reads the newest message.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

RELAXED, ACQUIRE, RELEASE, BOTH = range(4)
"""Orderings as two bits, acquire and release."""

Step = tuple[Any, ...]
Program = Callable[..., Generator[Step, Any, Any]]
"""A thread. It returns None at its end, or the program to go on with and its arguments: what it found is forgotten."""

View = tuple[tuple[int, ...], int]
"""The oldest message that may be read of each atomic location, and bits of plain accesses that are known."""

Message = tuple[Any, View | None]
State = tuple[tuple[tuple[int, View], ...], tuple[tuple[Message, ...], ...], tuple[Any, ...]]
"""Threads (node, view), histories, values of plain data."""


# ------------------------------------------------------------ steps


def load(place: str, order: int) -> Step:
    return "load", place, order


def store(place: str, value: Any, order: int) -> Step:
    return "store", place, value, order


def exchange(place: str, change: Callable[[Any], Any], order: int = BOTH) -> Step:
    """A read-modify-write of the newest message. It finds the value from before; None from `change` changes nothing."""
    return "exchange", place, change, order


def compare_exchange(place: str, expected: Any, value: Any, order: int = BOTH) -> Step:
    """Finds the value from before, which is `expected` where the exchange was made."""
    return exchange(place, lambda found: value if found == expected else None, order)


def wait(tests: Mapping[str, Callable[[Any], bool]], order: int) -> Step:
    """A spin loop over loads. Finds the first location whose test holds."""
    return "wait", tuple(tests.items()), order


def take(place: str) -> Step:
    """Acquire a lock, whose value is 1 while it is free."""
    return "take", place


def release(place: str) -> Step:
    """Release a lock, which may be free already."""
    return exchange(place, lambda found: 1)


def read(place: str) -> Step:
    return "read", place


def write(place: str, value: Any) -> Step:
    return "write", place, value


# ------------------------------------------------------------ the search


@dataclass(frozen=True)
class Case:
    """Threads, and the initial values of atomic locations and of plain data."""

    threads: tuple[tuple[Any, ...], ...]
    atomic: Mapping[str, Any]
    plain: Mapping[str, Any] = field(default_factory=dict)


class ProtocolError(Exception):
    """A race, a value that must not be, or threads that wait for ever."""


class Search:
    """The states of a case, each visited once."""

    def __init__(self, case: Case) -> None:
        self.case, self.states, self.steps = case, 0, 0
        self._atomic = {name: number for number, name in enumerate(case.atomic)}
        self._plain = {name: number for number, name in enumerate(case.plain)}
        self._nodes: list[tuple[tuple[Any, ...], tuple[Any, ...], Step | None]] = []
        self._known: dict[tuple[int, Any], int] = {}

    def run(self) -> str:
        """Visit all states. What fails, with the steps that lead there; "" where nothing does."""
        threads, bits = range(len(self.case.threads)), (len(self.case.threads) + 1) * len(self._plain)
        view: View = ((0,) * len(self._atomic), (1 << bits) - 1)
        start: State = (
            tuple((self._node(program, ()), view) for program in self.case.threads),
            tuple(((value, view),) for value in self.case.atomic.values()),
            tuple(self.case.plain.values()),
        )
        came: dict[State, tuple[State, str] | None] = {}
        at, label = start, ""
        try:
            for thread in threads:
                label = f"thread {thread} begins"
                start = self._plainly(start, thread)
            came[start], left = None, [start]
            while left:
                at, label, is_stuck = left.pop(), "", True
                for thread in threads:
                    for label, make in self._choices(at, thread):
                        is_stuck, self.steps = False, self.steps + 1
                        after = self._merged(self._plainly(make(), thread))
                        if after not in came:
                            came[after] = at, label
                            left.append(after)
                self.states = len(came)
                if is_stuck and any(self._nodes[node][2] is not None for node, _ in at[0]):
                    label = ""
                    waiting = [f"{k} at {self._nodes[node][2]}" for k, (node, _) in enumerate(at[0])]
                    raise ProtocolError(f"they wait for ever: {waiting}")
        except (ProtocolError, AssertionError) as error:
            trace = [label]
            while came.get(at) is not None:
                at, label = came[at]  # type: ignore[misc]
                trace.append(label)
            return "\n".join([*reversed(trace), f"{type(error).__name__}: {error}"])
        return ""

    def _node(self, program: tuple[Any, ...], found: tuple[Any, ...]) -> int:
        """The place in a program that has found so much: its generator is run up to there."""
        generator = program[0](*program[1:])
        try:
            step = next(generator)
            for value in found:
                step = generator.send(value)
        except StopIteration as end:
            if end.value is not None:
                return self._node(end.value, ())
            program, found, step = (), (), None
        if step is None or not found:
            for number, (one, before, _) in enumerate(self._nodes):
                if one == program and not before:
                    return number
        self._nodes.append((program, found, step))
        return len(self._nodes) - 1

    def _next(self, node: int, found: Any) -> int:
        key = node, found
        if key not in self._known:
            program, before, _ = self._nodes[node]
            self._known[key] = self._node(program, (*before, found))
        return self._known[key]

    def _plainly(self, state: State, thread: int) -> State:
        """Do the plain accesses that come next: who races with them is found in whatever order they are done."""
        while True:
            node, (times, known) = state[0][thread]
            step = self._nodes[node][2]
            if step is None or step[0] not in ("read", "write"):
                return state
            place = self._plain[step[1]]
            base = place * (len(state[0]) + 1)
            needed = ((1 << len(state[0]) + 1) - 1 if step[0] == "write" else 1) << base
            if known & needed != needed:
                raise ProtocolError(f"thread {thread} races: {step}")
            gone = ~(1 << base if step[0] == "write" else 1 << base + 1 + thread)
            others = tuple((one, (time, bits & gone)) for one, (time, bits) in state[0])
            histories = tuple(
                tuple((value, view and (view[0], view[1] & gone)) for value, view in one) for one in state[1]
            )
            values = state[2]
            found = values[place]
            if step[0] == "write":
                values, found = (*values[:place], step[2], *values[place + 1 :]), None
            own = (self._next(node, found), (times, known))
            state = (*others[:thread], own, *others[thread + 1 :]), histories, values

    def _choices(self, state: State, thread: int) -> Iterator[tuple[str, Callable[[], State]]]:
        """The steps that a thread may do next."""
        node, view = state[0][thread]
        step = self._nodes[node][2]
        if step is None:
            return
        if step[0] == "wait":
            for name, test in step[1]:
                place = self._atomic[name]
                for number in range(view[0][place], len(state[1][place])):
                    value = state[1][place][number][0]
                    if test(value) or number > view[0][place]:
                        found, order = name if test(value) else None, step[2]
                        yield (
                            f"{thread}: reads {name} = {value}",
                            lambda place=place, number=number, order=order, found=found: self._read(
                                state, thread, place, number, order, found
                            ),
                        )
            return
        place = self._atomic[step[1]]
        history = state[1][place]
        if step[0] == "load":
            for number in range(view[0][place], len(history)):
                value = history[number][0]
                label = f"{thread}: reads {step[1]} = {value}"
                yield label, lambda number=number, value=value: self._read(state, thread, place, number, step[2], value)
        elif step[0] == "store":
            label = f"{thread}: {step[1]} := {step[2]}"
            yield label, lambda: self._written(state, thread, place, step[2], step[3], None, None)
        else:
            before, last = history[-1]
            value = (0 if before == 1 else None) if step[0] == "take" else step[2](before)
            order = ACQUIRE if step[0] == "take" else step[3]
            label = f"{thread}: {step[1]} was {before}, is {before if value is None else value}"
            if value is not None:
                yield label, lambda: self._written(state, thread, place, value, order, last, before)
            elif step[0] != "take":
                yield label, lambda: self._read(state, thread, place, len(history) - 1, order, before)

    def _read(self, state: State, thread: int, place: int, number: int, order: int, found: Any) -> State:
        """Read a message; None is found by a spin loop that goes on."""
        node, view = state[0][thread]
        view = _seen(view, place, number, state[1][place][number][1] if order & ACQUIRE else None)
        own = (node if found is None else self._next(node, found), view)
        return (*state[0][:thread], own, *state[0][thread + 1 :]), state[1], state[2]

    def _written(
        self, state: State, thread: int, place: int, value: Any, order: int, last: View | None, found: Any
    ) -> State:
        """Write a message; by a read-modify-write, one that goes on with what the `last` message had released."""
        node, view = state[0][thread]
        number = len(state[1][place])
        view = _seen(view, place, number, last if order & ACQUIRE else None)
        sent = view if order & RELEASE else None
        sent = last if sent is None else sent if last is None else _joined(sent, last)
        histories = (*state[1][:place], (*state[1][place], (value, sent)), *state[1][place + 1 :])
        own = (self._next(node, found), view)
        return (*state[0][:thread], own, *state[0][thread + 1 :]), histories, state[2]

    def _merged(self, state: State) -> State:
        """The same state without messages that no thread can read any more."""
        alive = [view for node, view in state[0] if self._nodes[node][2] is not None]
        newest = tuple(len(history) - 1 for history in state[1])
        least = tuple(min(times) for times in zip(newest, *(view[0] for view in alive), strict=True))
        if not any(least) and len(alive) == len(state[0]):
            return state
        done: View = (tuple(new - old for new, old in zip(newest, least, strict=True)), 0)

        def moved(view: View) -> View:
            return tuple(max(time - old, 0) for time, old in zip(view[0], least, strict=True)), view[1]

        threads = tuple((n, moved(view) if self._nodes[n][2] is not None else done) for n, view in state[0])
        histories = tuple(
            tuple((value, view and moved(view)) for value, view in history[old:])
            for history, old in zip(state[1], least, strict=True)
        )
        return threads, histories, state[2]


def _joined(one: View, other: View) -> View:
    return tuple(map(max, one[0], other[0])), one[1] | other[1]


def _seen(view: View, place: int, number: int, joined: View | None) -> View:
    times = (*view[0][:place], number, *view[0][place + 1 :])
    return (times, view[1]) if joined is None else _joined((times, view[1]), joined)
