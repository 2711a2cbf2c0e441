"""`Plan`, as users hold it: the plan of a function for given arguments, with its schedule, its proof and its
printed forms.

Nothing here runs a loop or starts a worker. Of sparse arrays only the histograms of their keys are looked at, and
only where a schedule is asked for.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from math import inf
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from orion.arrays.files.whole import write_text
from orion.arrays.shuffled import Shuffled
from orion.cost.extents import coordinate_ranges
from orion.cost.placement import Placement
from orion.cost.sizes import Sizes
from orion.dataclass import dataclass, replace
from orion.dependence.access import Dependence
from orion.dependence.bounds import BoundsChecks, Place, prove_bounds
from orion.errors import PlanError, UnprovedWarning
from orion.measured import Measurements
from orion.plan.conditions import conditions_in_words
from orion.plan.deal import Deal
from orion.plan.deferred_bodies import plan_with_bodies, with_deferred_bodies
from orion.plan.parallelism import Parallelism, parallelism
from orion.plan.plan import Considered, FunctionPlan, LoopPlan, Verdict, source_nest, with_deal
from orion.plan.shares import costliest_loop, costliest_part, shares
from orion.plan.source_plans import loops_of_source, main_part
from orion.plan.verdicts import verdicts_of_source
from orion.printable import printable
from orion.reasons import Reason
from orion.schedule.blocks import block_bounds
from orion.schedule.build import build_schedule, most_workers
from orion.schedule.schedule import Ints, Schedule
from orion.tracebacks import ends_in_users_line
from orion.verify.proved import proved_schedule

if TYPE_CHECKING:
    import networkx as nx

    from orion.estimate import Estimate, Scaling, Untimed
    from orion.inspect.tree.view import Effect, Seconds, Tree
    from orion.runtime.ray.announced import Reads, ReadsOf
    from orion.simulate import Network


def nothing_read(function: FunctionPlan, schedules: Sequence[Schedule], nodes: Sequence[str]) -> Reads:
    """Return no reads, for a plan without arguments."""
    return {}


@dataclass(frozen=True, eq=False)
class Plan:
    """Plan of a function's loops for arguments of these types and sizes, with the proof that it is right. `f.plan(…)`
    makes one.

    `print(plan)` shows it as text, a notebook draws it. docs/guides/reading-a-plan.md explains its parts and the
    strategies, docs/tutorials/reading-a-plan.md reads one step by step, and docs/reference/glossary.md has the words.
    """

    # `arrays`: the sparse ones of the call; none, and so no schedule, where it was made without arguments. `again`: the
    # plan of the call for other sizes. `reads`: what tiles read, for several nodes. `looked`: index arrays, inspected.

    function: FunctionPlan
    sizes: Sizes
    arrays: Mapping[str, Any]
    checks: tuple[BoundsChecks, ...]
    again: Callable[[Sizes], Plan]
    measurements: Measurements
    reads: ReadsOf = nothing_read
    looked: bool = False

    # ------------------------------------------------------------ what was found

    @property
    def loops(self) -> tuple[LoopPlan, ...]:
        """One `LoopPlan` per planned loop of the source, in textual order. The `parts` of a reordered loop are the
        loops that replace it; its strategy is the weakest of theirs."""
        return loops_of_source(self.function)

    @property
    @ends_in_users_line
    def only(self) -> LoopPlan:
        """Plan of the only loop. PlanError where the function has several, or none."""
        if not self.loops:
            raise PlanError("the function has no loop: all that a plan says of it is in its text, `print(plan)`")
        if len(self.loops) != 1:
            raise PlanError(f"the function has {len(self.loops)} loops: ask `plan.loops[k]` for one of them")
        return self.loops[0]

    @property
    def is_parallel(self) -> bool:
        """Whether all loops can be shared out, and one worker need not do most of the work.

        A loop that is only too short to share counts, although `runs_on` is 1. False for a function without loops.
        """
        return self.parallelism.is_parallel

    @cached_property
    def parallelism(self) -> Parallelism:
        """Share of the work that is parallel, and its extent: parallel, too small to share, serial at these sizes,
        partly parallel or serial."""
        return parallelism(self.function)

    @property
    def strategy(self) -> str:
        """Strategy of the only loop: "independent", "1d", "2d", "nd", "wavefront", "inspected", "relaxed" or "serial".

        PlanError where the function has several loops, or none: ask `plan.loops[k].strategy` then.
        """
        return str(self.only.strategy)

    @property
    def runs_on(self) -> int:
        """Number of workers that the function will use: the most of any of its loops."""
        return self.parallelism.runs_on

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        """Dependences between iterations of the loops as written: array, kind, both accesses, distance. A reordered
        loop without own dependences has those of its parts."""
        found = (part for loop in self.loops for part in (loop, *(() if loop.dependences else loop.parts)))
        return tuple(dependence for part in found for dependence in part.dependences)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per `for` of the source, in textual order."""
        return verdicts_of_source(self.function)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Reasons why no loop has a stronger strategy: each has a `code`, a `message` and perhaps a `hint`."""
        return tuple(reason for loop in self.loops for reason in loop.reasons)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions of this plan on sizes and integers, as Python expressions: "lo >= 0". Each call checks them, and
        makes another plan where one does not hold."""
        return conditions_in_words(self.function.program.function, dict(self.function.types))

    @property
    def considered(self) -> tuple[Considered, ...]:
        """Alternatives that were not chosen: `name`, predicted `nanoseconds` (None where unknown), and the `reason`
        against each."""
        return self.function.considered

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Placement of each array during a loop, and the bytes that a run is predicted to move, loop by loop."""
        return tuple(placement for loop in self.loops for placement in loop.placements)

    @cached_property
    def graph(self) -> nx.MultiDiGraph:
        """Dependence graph: a node "line:column" per statement that accesses arrays, an edge per dependence."""
        from orion.dependence.graph import dependence_graph

        return dependence_graph(self.dependences, self.function.program.function.body)

    # ------------------------------------------------------------ schedules

    @ends_in_users_line
    def schedule(self, workers: int | None = None, loop: int | None = None) -> Schedule:
        """Return the `Schedule` of a loop: its tiles, by step and worker.

        - `workers`: by default the plan's number. A loop uses at most as many as it has blocks for.
        - `loop`: the position in `plan.loops`; by default the only loop. Of a reordered loop, it is the part with most
          dimensions, in the coordinates of the new order.

        PlanError where the plan was made without arguments.
        """
        return self.schedule_of(self._loop(loop), workers)

    @ends_in_users_line
    def schedule_of(self, plan: LoopPlan, workers: int | None = None) -> Schedule:
        """Return the schedule of one of the function's loops; of one with `parts`, that of the part with most
        dimensions."""
        plan = main_part(plan)
        return build_schedule(plan, *self._blocks(plan, self.sizes.workers if workers is None else workers))

    def proved_schedule(self, plan: LoopPlan) -> Schedule:
        """Return the schedule that one of the function's loops runs by, proved to keep every dependence."""
        plan = main_part(plan)
        return proved_schedule(plan, *self._blocks(plan, plan.runs_on), self._values())

    def _blocks(self, plan: LoopPlan, workers: int) -> tuple[tuple[Ints, ...], int]:
        """The block boundaries of a loop, and how many of so many workers it can use."""
        used = most_workers(plan, _at_least_one(workers))
        ranges = self._ranges(plan)
        if plan.nest.elements is not None and plan.nest.elements.array not in self.arrays:
            raise PlanError(f"the blocks of `{plan.nest.elements.array}` depend on its elements: plan with arguments")
        if self.sizes.symbolic:
            raise PlanError("a schedule needs sizes: make the plan with arguments, `f.plan(*arguments)`")
        return block_bounds(plan, ranges, self._elements(plan), self.sizes), used

    @ends_in_users_line
    def serial_order(self, workers: int | None = None, loop: int | None = None) -> Ints:
        """Return a serial order of the iterations that a run on `workers` workers equals, as int64. PlanError as for
        `schedule`.

        For a loop over a sparse array: positions of its elements as they were given, of shape (elements,). For a nest
        of ranges: the coordinates of each iteration, of shape (iterations, dims).
        """
        from orion.schedule.order import element_order, range_order

        plan = self._loop(loop)
        schedule = self.schedule(workers, loop)
        if plan.nest.elements is not None:
            return element_order(self.arrays[plan.nest.elements.array], schedule, plan.ordered)
        return range_order(plan, schedule, self._values())

    @ends_in_users_line
    def estimate(
        self,
        workers: int | None = None,
        nodes: int = 1,
        memory: int | None = None,
        *,
        placement: Mapping[str, str] | None = None,
        bandwidth: float | None = None,
        latency: float | None = None,
    ) -> Estimate:
        """Predict the time, traffic and memory of a call on `nodes` nodes, as an `Estimate`. Nothing runs.

        - `workers`: by default the plan's number, shared out evenly among the nodes.
        - `memory`: the bytes that each node has for dense arrays.
        - `placement`: memory tiers of arrays, `{"W": "file"}`. All others are on the first tier that `f.measure(...,
          kinds=...)` was given. `.best(capacity={"dram": "2GB"})` of the estimate proposes one.
        - `bandwidth`, `latency`: bytes per second of each node, 1e9 by default, and seconds, 1e-4 by default.

        Times need `f.measure(...)` first; a simulation of the schedules predicts them.

        PlanError where `memory` is too small (it says what would do), where the plan was made without arguments, and
        for a placement that was not measured.

        >>> import numpy as np, orion
        >>> @orion.parallel_for
        ... def smooth(a, b):
        ...     for i in range(1, a.shape[0] - 1):
        ...         b[i] = a[i - 1] + a[i + 1]
        ...     for i in range(1, a.shape[0] - 1):
        ...         a[i] = b[i - 1] * b[i + 1]
        >>> with orion.session(workers=4, force_parallel=True):
        ...     plan = smooth.plan(np.ones(1000), np.ones(1000))
        >>> plan.estimate(nodes=2).bytes  # 16: two elements of b; 7,976: what the second node wrote of both arrays
        7992
        >>> plan.estimate(nodes=2).unmeasured
        'nothing was measured: call `f.measure(...)` with such arguments first'
        """
        from orion.estimate import BANDWIDTH, LATENCY, SENDING, refuse_memory
        from orion.simulate import Network

        network = Network(
            _positive(bandwidth, BANDWIDTH, "bandwidth", "bytes per second"),
            _positive(latency, LATENCY, "latency", "seconds"),
            SENDING,
        )
        plan = self if workers is None else self._for(_at_least_one(workers))
        count = _at_least_one(nodes, "an estimate is for at least one node")
        found = plan._estimate(count, network, placement or {})
        if memory is not None and max(found.memory, default=0) > _at_least_one(memory, "`memory` is a number of bytes"):
            more = [1 << k for k in range(count.bit_length(), found.workers.bit_length())]
            refuse_memory(found, memory, [plan._estimate(each, network, placement or {}) for each in more])
        return found

    @ends_in_users_line
    def scaling(self, workers: int = 1024) -> Scaling:
        """Predict the seconds of a call on 1, 2, 4, … workers of one node, up to `workers`, as a `Scaling`.

        A plan is made for each number. PlanError where times are not known: `f.measure(...)` first.
        """
        from orion.estimate import Scaling, scaled

        most = _at_least_one(workers)
        counts = [1 << k for k in range(most.bit_length())]
        return Scaling(tuple((count, scaled(*self._for(count)._scheduled(), self.measurements)) for count in counts))

    def _for(self, workers: int) -> Plan:
        """The plan of the same call for another number of workers."""
        if workers == self.sizes.workers or self.sizes.symbolic:
            return self
        return replace(self.again(replace(self.sizes, workers=workers)), reads=self.reads)

    def _scheduled(self) -> tuple[FunctionPlan, Sizes, dict[int, Schedule]]:
        function = self.with_bodies()
        return function, self.sizes, {k: self.schedule_of(one, one.runs_on) for k, one in enumerate(function.loops)}

    def _estimate(self, nodes: int, network: Network, placement: Mapping[str, str]) -> Estimate:
        from orion.estimate import estimated, untimed

        if nodes not in self._untimed:
            self._untimed[nodes] = untimed(*self._scheduled(), self.reads, nodes)
        return estimated(self._untimed[nodes], self.measurements, network, placement)

    @cached_property
    def _untimed(self) -> dict[int, Untimed]:
        """Estimates without times, by the number of nodes."""
        return {}

    def dealt_as(self, deals: Iterable[Deal]) -> Plan:
        """Return the plan with another assignment of each loop's blocks."""
        loops = tuple(map(with_deal, self.function.loops, deals))
        return replace(self, function=replace(self.function, loops=loops))

    def for_shuffled(self, arguments: Mapping[str, Any]) -> Plan:
        """Return the plan for these arguments; it then names those that were shuffled."""
        arrays = ((name, array.last_shuffle) for name, array in arguments.items() if isinstance(array, Shuffled))
        found = tuple((name, last) for name, last in arrays if last is not None)
        return replace(self, function=replace(self.function, shuffled=found)) if found else self

    def with_bodies(self) -> FunctionPlan:
        """Return the function's plan with the text of all its loops, which is otherwise made when it is needed."""
        made = with_deferred_bodies(self.function.program, self.function.deferred, dict(self.function.types))
        return plan_with_bodies(self.function, made)

    @ends_in_users_line
    def check(self, workers: int | None = None) -> None:
        """Prove by isl that what runs keeps every dependence; return where it is proved.

        `workers` is the number of workers of the schedules, by default 1 to 4 and the plan's own. The proof covers:

        - the schedule of every loop.
        - every reordered loop: for all sizes, each iteration runs once, after those that it depends on.
        - private arrays of tiles, copies that iterations add to, and copies that are read.
        - fused loops.
        - subscripts that kernels do not check: they stay inside of their arrays.

        PlanError where isl refutes a dependence; it names the pair of iterations. OutOfBoundsError where a subscript is
        certain to leave its array. An `UnprovedWarning` names what isl can neither prove nor refute.
        """
        from orion.verify.check import check

        counts = sorted({1, 2, 3, 4, self.sizes.workers}) if workers is None else [_at_least_one(workers)]
        for sentence in check(self.with_bodies(), self._values(), self.schedule_of, counts, self.inside):
            warnings.warn(sentence, UnprovedWarning, stacklevel=3)

    @cached_property
    def inside(self) -> tuple[frozenset[Place], ...]:
        """Subscripts of each planned loop that are certain to lie in `[0, extent)`, so that its kernel does not check
        them. OutOfBoundsError where one is certain to lie outside."""
        nests = map(source_nest, self.function.loops)
        return tuple(map(prove_bounds, self.checks, repeat(self._values()), nests))

    def check_bounds(self) -> None:
        """Raise OutOfBoundsError where a subscript is certain to leave its array."""
        _ = self.inside

    def _loop(self, number: int | None) -> LoopPlan:
        return self.only if number is None else self.loops[number]

    def _values(self) -> dict[str, int]:
        return self.sizes.known

    def _ranges(self, plan: LoopPlan) -> tuple[tuple[int, int] | None, ...]:
        return coordinate_ranges(plan.analysis.domain, len(plan.nest.dims), self._values())

    def _elements(self, plan: LoopPlan) -> Any:
        """Return the sparse array that a loop iterates over; None without one."""
        elements = plan.nest.elements
        return None if elements is None else self.arrays[elements.array]

    # ------------------------------------------------------------ forms

    def __repr__(self) -> str:
        loops = [f"{loop.strategy} over ({', '.join(loop.nest.dims)})" for loop in self.loops]
        more = [f"{len(loops) - 3} more"] if len(loops) > 3 else []
        return f"<orion.Plan of {self.function.program.function.name}: {', '.join(loops[:3] + more) or 'no loops'}>"

    def __str__(self) -> str:
        from orion.inspect.text.text import plan_text, terminal_width

        return printable(plan_text(self.function, terminal_width(), self._shown, letters=printable))

    def text(self) -> str:
        """Return the plan as text, with all loops; `print(plan)` shows the ten with most of the work."""
        from orion.inspect.text.text import plan_text, terminal_width

        return printable(plan_text(self.function, terminal_width(), self._shown, None, printable))

    def _repr_html_(self) -> str:
        from orion.inspect.html.html import plan_html

        return plan_html(self.function, self._pictures(), self._shown)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain dicts, lists, strings and numbers, for tools.

        `["tree"]` has the loops of the source and how each runs. `["loops"]` has all facts about each, and
        `["reasons"]` of these why it has no stronger strategy. `help(orion.inspect.data.plan_to_dict)` explains every
        key.
        """
        from orion.inspect.data import plan_to_dict

        return plan_to_dict(self.function, self._shown)

    def tree(self, measured: Seconds | None = None) -> Tree:
        """Return the tree of the source's loops.

        It has predicted seconds where `f.measure(...)` has measured the function, or the reason why they are unknown.
        `measured` adds the seconds of a run.
        """
        from orion.estimate import predicted_seconds
        from orion.inspect.tree.view import tree_of

        predicted, unpredicted = predicted_seconds(self)
        return replace(tree_of(self.function, predicted, measured), unpredicted=unpredicted)

    @property
    def _shown(self) -> Tree:
        """Tree with the effects of options, for views of the plan."""
        return replace(self.tree(), options=self._options)

    @cached_property
    def _options(self) -> tuple[Effect, ...]:
        """Effects of options on the plan. The plan with `force_parallel` is made here, once a view is drawn."""
        from orion.inspect.tree.options import effects, may_be_forced

        forced = None
        if may_be_forced(self.function):
            forced = self.again(replace(self.sizes, force_parallel=True)).function
        return effects(self.function, forced, looked=self.looked)

    def to_json(self) -> str:
        """Return `to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def to_mermaid(self) -> str:
        """Return the dependence graph as Mermaid text: statements with line and text, arrows with array, kind and
        distance.

        >>> import numpy as np, orion
        >>> @orion.parallel_for
        ... def sums(a):
        ...     for i in range(1, a.shape[0]):
        ...         a[i] = a[i] * a[i - 1]
        >>> print(sums.plan(np.ones(10)).to_mermaid())
        flowchart TD
            s0["4: a[i] = a[i] * a[i - 1]"]
            s0 -->|"a: flow (1)"| s0
        """
        from orion.inspect.mermaid import mermaid_text

        return mermaid_text(self.graph, self.function.program.function)

    @ends_in_users_line
    def save_svg(self, path: str | os.PathLike[str]) -> None:
        """Write the picture of the costliest loop's iteration space to `path`, as SVG. PlanError without a loop."""
        costliest = costliest_loop(self.function)
        if costliest is None:
            raise PlanError("the function has no loop to draw")
        write_text(path, self.svg_of(costliest))

    def svg_of(self, loop: LoopPlan) -> str:
        """The picture of one of the loops: of its costliest part, where several stand for it."""
        from orion.inspect.pictures.svg import plan_svg

        part = costliest_part(loop, shares(self.function))
        return plan_svg(loop, self._picture(part), part, self._values())

    def _pictures(self) -> list[Schedule | None]:
        """The schedule of each loop of the source where there is one to draw."""
        found = shares(self.function)
        return [self._picture(costliest_part(plan, found)) for plan in self.loops]

    def _picture(self, part: LoopPlan) -> Schedule | None:
        try:
            return self.schedule_of(part, part.runs_on)
        except PlanError:
            return None


def _at_least_one(number: int, what: str = "a schedule needs at least one worker") -> int:
    """A number of workers, or of something else, that a user gave. PlanError where it is none."""
    if not isinstance(number, Integral) or number < 1:
        raise PlanError(f"{what}, not {number!r}")
    return int(number)


def _positive(given: float | None, otherwise: float, name: str, unit: str) -> float:
    """A number that a user gave, or what is taken otherwise. PlanError where it is not above zero."""
    if given is None:
        return otherwise
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 < given < inf:
        raise PlanError(f"`{name}` is a number of {unit} above 0, not {given!r}")
    return float(given)
