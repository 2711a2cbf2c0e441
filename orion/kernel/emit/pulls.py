"""The function by which a worker's copies of arrays and the arrays are pulled together (`orion.replicate`), and what
tiles do before and after they call it.

def pull_copies(arrays…, clocks, locks, notes, control):      in a loop whose workers meet
    if not meet(clocks, notes, control):
        return False
    if not pull_all(x_copies, w, alpha_of(clocks, 0.9), 0, clocks, notes, control):
        return False
    return meeting_is_over(clocks, notes, control)
"""

from __future__ import annotations

from collections.abc import Mapping

from orion.arrays.policies import MOVING, Elastic, LocalSgd, Mode
from orion.ir.replicas import Replica
from orion.kernel.calling import COUNT, FIRST_HERE, LAST, LEFT, Argument
from orion.kernel.emit.facts import LoopFacts
from orion.kernel.emit.names import ROUND, Names
from orion.kernel.emit.writer import Writer

Called = Mapping[Argument, str]


class Pulls:
    """What is generated for the replicas of one loop; `names` are those of its module."""

    def __init__(self, facts: LoopFacts, names: Names, called: Called) -> None:
        self._replicas, self._names = facts.nest.replicas, names
        self._policy = self._replicas[0].policy
        self._is_overlapped = self._policy.overlaps
        self._pull, self._left = names.fresh("pull_copies"), names.fresh("until_pull")
        self._shared = {argument.kind: text for argument, text in called.items() if not argument.name}
        self._is_last = names.fresh("is_last_tile")
        self._is_begun = names.fresh("is_begun")
        self._with_momentum = [one for one in self._replicas if one.momentum]

    def limits(self, tile: str) -> dict[str, str]:
        """What tiles are given beside the arguments of the kernel, and what that is for tile `tile`."""
        return {self._is_last: f"{tile} == {self._of('notes')}[{LAST}]"}

    def after_tile(self, tile: str) -> Writer:
        """What follows a tile that is not left: nothing, as the last tile has it."""
        return Writer()

    # ------------------------------------------------------------ in tiles

    def begin(self) -> Writer:
        """Before the iterations of a tile."""
        writer = Writer(depth=1)
        writer.add(f"{self._left} = left_of({self._of('notes')}, {ROUND}, {self._policy.sync_every})")
        for one in self._with_momentum:
            writer.add(f"keep_copy({self._names.user(one.before)}, {self._names.user(one.name)})")
        if self._with_momentum:
            writer.add(f"{self._is_begun} = False")
        return writer

    def step(self, writer: Writer) -> None:
        """Before an iteration."""
        self._add_momentum(writer)
        if self._with_momentum:
            writer.add(f"{self._is_begun} = True")
        with writer.block(f"if {self._left} == 0:"):
            self._pull_now(writer, "False")
            writer.add(f"{self._left} = {self._policy.sync_every}")
        writer.add(f"{self._left} -= 1")

    def end(self) -> Writer:
        """After the iterations of a tile."""
        writer = Writer(depth=1)
        self._add_momentum(writer)
        notes = self._of("notes")
        writer.add(f"{notes}[{LEFT}] = {self._left}")
        with writer.block(f"if {self._is_last}:"):
            with writer.block(f"if {self._left} < {self._policy.sync_every}:"):
                self._pull_now(writer, "True")
            writer.add(f"has_done_all({self._of('clocks')}, {notes}, {ROUND})")
        return writer

    def _add_momentum(self, writer: Writer) -> None:
        """Momentum for what the iteration before this place has changed, if there was one."""
        if not self._with_momentum:
            return
        with writer.block(f"if {self._is_begun}:"):
            for one in self._with_momentum:
                assert isinstance(one.policy, Elastic)
                arrays = ", ".join(self._names.user(name) for name in (one.name, one.before, one.velocity))
                writer.add(f"with_momentum({arrays}, {one.policy.momentum!r})")

    def _pull_now(self, writer: Writer, is_last: str) -> None:
        """Pull, for the last time or not in this round."""
        passed = [*self._passed(), *([is_last] if self._is_overlapped else []), "control"]
        for one in self._replicas:
            writer.add(f"seen_elsewhere({self._names.user(one.name)})")
        writer.leave_unless(f"{self._pull}({', '.join(passed)})", "return")
        for one in self._replicas:
            writer.add(f"seen_elsewhere({self._names.user(one.name)})")
        for one in self._with_momentum:
            writer.add(f"keep_copy({self._names.user(one.before)}, {self._names.user(one.name)})")

    def _of(self, kind: str) -> str:
        return self._shared[kind]

    def _passed(self) -> list[str]:
        arrays = [self._names.user(name) for one in self._replicas for name in (one.name, *one.changed)]
        return [*arrays, self._of("clocks"), self._of("locks"), self._of("notes")]

    # ------------------------------------------------------------ the function

    def function(self) -> Writer:
        """The function that pulls copies of arrays and the arrays together."""
        writer = Writer()
        writer.add("@part_function")
        is_last = ["is_last"] if self._is_overlapped else []
        with writer.block(f"def {self._pull}({', '.join([*self._passed(), *is_last, 'control'])}):"):
            (self._emit_overlapped if self._is_overlapped else self._emit)(writer)
        writer.add("")
        writer.add("")
        return writer

    def _emit(self, writer: Writer) -> None:
        clocks = f"{self._of('clocks')}, {self._of('notes')}"
        if self._policy.waits_for_all:
            writer.leave_unless(f"meet({clocks}, control)")
        else:
            with writer.block(f"if {self._of('notes')}[{FIRST_HERE}] > 0:"):  # it is on another node than the home node
                writer.add(f"return pulled_at_home({clocks}, control)")
        if self._is_in_turn:
            writer.leave_unless(f"await_turn({clocks}, control)")
        for number, one in enumerate(self._replicas):
            writer.leave_unless(self._call(number, one, clocks))
        if self._policy.waits_for_all:
            writer.add(f"return meeting_is_over({clocks}, control)")
        else:
            writer.add(f"give_turn({clocks})")
            writer.add("return True")

    def _emit_overlapped(self, writer: Writer) -> None:
        clocks = f"{self._of('clocks')}, {self._of('notes')}"
        with writer.block(f"if {self._of('notes')}[{FIRST_HERE}] > 0:"):  # it is on another node than the home node
            self._emit_overlapped_apart(writer, clocks)
        writer.leave_unless(f"await_posts({clocks}, {self._of('notes')}[{COUNT}], control)")
        self._of_each(writer, "pull_posted", clocks)
        writer.add(f"has_posted({clocks}, is_last)")
        with writer.block("if is_last:"):
            writer.leave_unless(f"await_posts({clocks}, {self._of('notes')}[{COUNT}], control)")
            self._of_each(writer, "settle_own", clocks)
            writer.add(f"settles, goes_on = await_settled({clocks}, control)")
            writer.leave_unless("goes_on")
            with writer.block("if settles:"):
                self._of_each(writer, "settle_array", clocks)
        writer.add("return True")

    def _emit_overlapped_apart(self, writer: Writer, clocks: str) -> None:
        writer.leave_unless(f"await_given({clocks}, control)")
        for posts in (True, False):
            for one in self._replicas:
                arrays = ", ".join(self._names.user(name) for name in (one.name, *one.posted))
                writer.add(f"move_own({arrays}, {self._of('notes')}, {posts})")
            if posts:
                writer.add(f"has_posted({clocks}, is_last)")
                with writer.block("if not is_last:"):
                    writer.add("return True")
                writer.leave_unless(f"await_given({clocks}, control)")
        writer.add("return True")

    def _of_each(self, writer: Writer, function: str, clocks: str) -> None:
        for number, one in enumerate(self._replicas):
            own, centre, posted = (self._names.user(name) for name in (one.name, one.array, *one.posted))
            alpha = self._alpha_of(one)
            writer.leave_unless(f"{function}({own}, {centre}, {posted}, {alpha}, {number}, {clocks}, control)")

    def _alpha_of(self, one: Replica) -> str:
        assert isinstance(one.policy, Elastic)
        default = "alpha_overlapped" if one.policy.overlaps else "alpha_of"
        return repr(one.policy.alpha) if one.policy.alpha else f"{default}({self._of('clocks')}, {MOVING!r})"

    @property
    def _is_in_turn(self) -> bool:
        return isinstance(self._policy, Elastic) and self._policy.mode is Mode.ROUND_ROBIN

    def _call(self, number: int, one: Replica, clocks: str) -> str:
        """The call that pulls the copies of one array, or the copy of a worker."""
        own, centre, copies = (self._names.user(name) for name in (one.name, one.array, one.copies))
        policy = one.policy
        if isinstance(policy, LocalSgd):
            if not policy.step:
                return f"average({copies}, {centre}, {number}, {clocks}, control)"
            outer = f"{self._names.user(one.outer[0])}, {policy.step!r}, {policy.momentum!r}"
            return f"average_with_momentum({copies}, {centre}, {outer}, {number}, {clocks}, control)"
        alpha = self._alpha_of(one)
        match policy.mode:
            case Mode.SYNC:
                return f"pull_all({copies}, {centre}, {alpha}, {number}, {clocks}, control)"
            case Mode.ASYNC:
                return f"pull({own}, {centre}, {alpha}, {number}, {self._of('locks')}, control)"
            case Mode.HOGWILD | Mode.ROUND_ROBIN:
                return f"pull_freely({own}, {centre}, {alpha}, {number}, control)"
