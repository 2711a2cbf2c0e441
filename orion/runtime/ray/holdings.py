"""Which nodes have which cells of arrays, from loop to loop: what the next loop needs and does not have is sent.

All workers of a run go through the same loops in the same order, so that each of them knows what the others have
without asking. What there is to send before a loop depends on the loops before it through a state alone: for each cell
the worker that wrote it last, and the nodes that have it. States have numbers, and each step from one to the next is
worked out once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orion.runtime.ray.exchange import ProgramExchange, Send
from orion.runtime.ray.regions import Mask, Region

Moves = tuple[tuple[Send, ...], ...]
"""What each worker sends."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Of an array: the worker that wrote a cell last (-1: it is as it was before the run), int16 (*cells), and which
    nodes have it as it is now, bool (nodes, *cells)."""

    writer: NDArray[np.int16]
    by: Mask


State = Mapping[str, Held]


class Holdings:
    """The states of the runs of a program. State 0 is that at the beginning of a run."""

    def __init__(self, exchange: ProgramExchange) -> None:
        self._exchange = exchange
        self._states: list[State] = []
        self._numbers: dict[bytes, int] = {}
        self._before: dict[tuple[int, int], tuple[Moves, int]] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._at_end: dict[int, Moves] = {}
        cells = exchange.cells.items()
        self._number({array: Held(np.full(own.shape, -1, np.int16), exchange.needed(array)) for array, own in cells})

    def before(self, state: int, loop: int) -> tuple[Moves, int]:
        """What is sent before a loop, and the state then."""
        known = self._before.get((state, loop))
        if known is None:
            first = {array: usage.first for array, usage in self._exchange.loops[loop].usage.items()}
            known = self._before[state, loop] = self._brought(self._states[state], first)
        return known

    def after(self, state: int, loop: int) -> int:
        """The state after a loop."""
        known = self._after.get((state, loop))
        if known is None:
            changed = dict(self._states[state])
            for array, usage in self._exchange.loops[loop].usage.items():
                written, held = usage.written, changed[array]
                writer = np.where(written, usage.writer, held.writer)
                changed[array] = Held(writer, np.where(written, usage.after, held.by))
            known = self._after[state, loop] = self._number(changed)
        return known

    def at_end(self, state: int) -> Moves:
        """What is sent to the home node at the end of a run: all that was written."""
        known = self._at_end.get(state)
        if known is None:
            wanted = {}
            for array, held in self._states[state].items():
                wanted[array] = np.zeros_like(held.by)
                wanted[array][0] = held.writer >= 0
            known = self._at_end[state] = self._brought(self._states[state], wanted)[0]
        return known

    def _brought(self, state: State, wanted: Mapping[str, Mask]) -> tuple[Moves, int]:
        """What is sent so that each node has what is wanted there, and the state then."""
        sent: dict[tuple[int, int], list[Region]] = {}
        changed = dict(state)
        for array, wanted_here in wanted.items():
            held = state[array]
            missing = wanted_here & ~held.by
            if not missing.any():
                continue
            changed[array] = Held(held.writer, held.by | missing)
            for node, cells in enumerate(missing):
                for writer in np.unique(held.writer[cells]).tolist():
                    regions = self._exchange.cells[array].regions(cells & (held.writer == writer))
                    sent.setdefault((writer, node), []).extend(regions)
        moves: list[tuple[Send, ...]] = [()] * len(self._exchange.place)
        for (worker, node), found in sorted(sent.items()):
            assert worker >= 0, "what no loop has written is where it is needed from the beginning"
            moves[worker] = (*moves[worker], Send(self._exchange.nodes[node], tuple(found)))
        return tuple(moves), self._number(changed)

    def _number(self, state: State) -> int:
        parts = [part for array in sorted(state) for part in (state[array].writer, state[array].by)]
        key = b"".join(part.tobytes() for part in parts)
        number = self._numbers.setdefault(key, len(self._states))
        if number == len(self._states):
            self._states.append(state)
        return number
