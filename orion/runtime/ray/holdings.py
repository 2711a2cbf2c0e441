"""Which nodes have which cells of arrays, from loop to loop: what the next loop needs and does not have is sent.

All workers of a run go through the same loops in the same order, so that each of them knows what the others have
without asking. What there is to send before a loop depends on the loops before it through a state alone: for each cell
the worker that wrote it last, and the nodes that have it. Equal states are one, and each step from one to the next is
worked out once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.runtime.ray.exchange import ProgramExchange
from orion.runtime.ray.last_writers import Send, Usage
from orion.runtime.ray.regions import Mask, Section

Moves = tuple[tuple[Send, ...], ...]
"""What each worker sends; empty where nobody sends anything."""

NO_MOVES: Moves = ()


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Of an array: the worker that wrote a cell last (-1: it is as it was before the run), int16 (*cells), and which
    nodes have it as it is now, bool (nodes, *cells)."""

    writer: NDArray[np.int16]
    by: Mask


@dataclass(eq=False)
class State:
    """What nodes have, and the steps from there that are known: what each worker sends, and the next state."""

    held: Mapping[str, Held]
    steps: dict[tuple[str, int], tuple[Moves, State]] = field(default_factory=dict)


class Holdings:
    """The states of the runs of a program. A program with loops that use other cells in each round goes from state to
    state without end: these are not kept."""

    def __init__(self, exchange: ProgramExchange) -> None:
        self._exchange = exchange
        self._known: dict[bytes, State] = {}
        self._repeats = all(loop.accesses is None for loop in exchange.loops)
        cells = exchange.cells.items()
        self.begin = self._state(
            {array: Held(np.full(own.shape, -1, np.int16), exchange.needed(array)) for array, own in cells}
        )
        """The state at the beginning of a run."""

    def before(self, state: State, loop: int, usage: Mapping[str, Usage]) -> tuple[Moves, State]:
        """What is sent before a loop that uses so much, and the state then."""
        return self._step(state, ("before", loop), lambda: self._brought(state, usage))

    def after(self, state: State, loop: int, usage: Mapping[str, Usage]) -> State:
        """The state after a loop."""
        return self._step(state, ("after", loop), lambda: (NO_MOVES, self._changed(state, usage)))[1]

    def at_end(self, state: State) -> tuple[Moves, State]:
        """What is sent to the home node at the end of a run, which is all that was written, and the state then."""
        return self._step(state, ("end", 0), lambda: self._home(state))

    def _step(
        self, state: State, step: tuple[str, int], worked_out: Callable[[], tuple[Moves, State]]
    ) -> tuple[Moves, State]:
        if not self._repeats:
            return worked_out()
        if step not in state.steps:
            state.steps[step] = worked_out()
        return state.steps[step]

    def _changed(self, state: State, usage: Mapping[str, Usage]) -> State:
        changed = dict(state.held)
        for array, used in usage.items():
            held, written = changed[array], used.written
            if written.any():
                writer = np.where(written, used.writer, held.writer)
                changed[array] = Held(writer, np.where(written, used.after, held.by))
        return self._state(changed)

    def _home(self, state: State) -> tuple[Moves, State]:
        wanted = {}
        for array, held in state.held.items():
            wanted[array] = np.zeros_like(held.by)
            wanted[array][0] = held.writer >= 0
        return self._with(state, wanted)

    def _brought(self, state: State, usage: Mapping[str, Usage]) -> tuple[Moves, State]:
        return self._with(state, {array: used.first for array, used in usage.items()})

    def _with(self, state: State, wanted: Mapping[str, Mask]) -> tuple[Moves, State]:
        """What is sent so that each node has what is wanted there, and the state then."""
        sent: dict[tuple[int, int], list[Section]] = {}
        changed = dict(state.held)
        for array, wanted_here in wanted.items():
            held = changed[array]
            missing = wanted_here & ~held.by
            if not missing.any():
                continue
            changed[array] = Held(held.writer, held.by | missing)
            for node, cells in enumerate(missing):
                for writer in np.unique(held.writer[cells]).tolist():
                    regions = self._exchange.cells[array].regions(cells & (held.writer == writer))
                    sent.setdefault((writer, node), []).extend(regions)
        if not sent:
            return NO_MOVES, state
        moves: list[tuple[Send, ...]] = [()] * len(self._exchange.place)
        for (worker, node), found in sorted(sent.items()):
            assert worker >= 0, "what no loop has written is where it is needed from the beginning"
            moves[worker] = (*moves[worker], Send(self._exchange.nodes[node], tuple(found)))
        return tuple(moves), self._state(changed)

    def _state(self, held: Mapping[str, Held]) -> State:
        if not self._repeats:
            return State(held)
        parts = [part for array in sorted(held) for part in (held[array].writer, held[array].by)]
        return self._known.setdefault(b"".join(part.tobytes() for part in parts), State(held))
