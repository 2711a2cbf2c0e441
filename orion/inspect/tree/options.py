"""What options would change about the loops of a plan: `inspect=True` and `force_parallel=True`.

What `force_parallel` changes is read from a plan that was made with it. What an inspection finds is known only once it
has run: of a loop that may be inspected it is said what is looked at, and which iterations would run at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orion.inspect.text.words import counted, lines_in_words, listed
from orion.inspect.tree.view import Effect, Place, Tree, TreeLine, groups_of, placed_lines
from orion.ir.function import in_users_words, written_names
from orion.plan.inspected import may_gain
from orion.plan.plan import FunctionPlan, LoopPlan, NotInspected
from orion.reasons import ReasonKind

INSPECT, FORCE = "inspect=True", "force_parallel=True"
"""The options, as a call of `f.plan` and a session are given them."""


def may_be_forced(plan: FunctionPlan) -> bool:
    """Whether a plan made with `force_parallel` may be another one: where sizes alone keep loops from other ways to
    run."""
    if plan.sizes.symbolic or plan.sizes.force_parallel or plan.sizes.workers == 1:
        return False
    loops = [loop for group in groups_of(plan).values() for loop in group]
    reasons = (reason for loop in (*plan.loops, *loops) for reason in loop.reasons)
    return bool(plan.considered) or any(reason.kind is ReasonKind.SIZES for reason in reasons)


def effects(plan: FunctionPlan, forced: FunctionPlan | None, *, looked: bool) -> tuple[Effect, ...]:
    """Return what options would change, loop by loop. `forced` is the plan of the same call with `force_parallel`, None
    where that is the same one. `looked`: the plan was made with an inspection."""
    groups = groups_of(plan)
    found = [] if looked else [*_inspected(plan, groups)]
    if forced is not None:
        found += _forced(plan, groups, forced)
    return tuple(found)


def option_rows(tree: Tree) -> list[tuple[str, str, str]]:
    """Return what options would change as rows of a table: the option, the lines, and how their loops would run."""
    lines: dict[tuple[str, str], list[int]] = {}
    for one in tree.options:
        lines.setdefault((one.option, one.how), []).append(one.line)
    return [(option, lines_in_words(of), how) for (option, how), of in lines.items()]


def _inspected(plan: FunctionPlan, groups: Mapping[Place, Sequence[LoopPlan]]) -> Iterator[Effect]:
    for place, group in sorted(groups.items()):
        for how in _looks(group, plan):
            yield Effect(INSPECT, place[-1], f"{how}, where that is predicted to be faster")


def _looks(group: Sequence[LoopPlan], plan: FunctionPlan) -> Iterator[str]:
    """What an inspection of the loops that stand for one line looks at, and what may come of it."""
    function = plan.program.function
    for loop in group:
        if not isinstance(loop.tiles, NotInspected) or not may_gain(loop, plan.sizes):
            continue
        one, written = loop.tiles.inspectable, written_names(function)
        reads = [f"`{name}`" for name in one.reads if name in written]
        arrays = [f"`{name}`" for name in one.arrays if name in written]
        seen = f"{listed(reads)} {'is' if len(reads) == 1 else 'are'}" if reads else "what its subscripts hold is"
        what = f" of {listed(arrays)}" if arrays else ""
        words = f"{seen} looked at: iterations that touch different elements{what} run at once"
        yield in_users_words(words, function)


def _forced(plan: FunctionPlan, groups: Mapping[Place, Sequence[LoopPlan]], forced: FunctionPlan) -> Iterator[Effect]:
    """The loops that more workers would run, and how; those that the first call would inspect."""
    before, after = _workers(groups), groups_of(forced)
    lines, then = placed_lines(plan), dict(placed_lines(forced))
    for at, (place, line) in enumerate(lines):
        group = after.get(place, [])
        looks = next(_looks(group, forced), "")
        if looks:
            yield Effect(FORCE, line.line, f"{looks}, from the first call on")
            continue
        workers = max((loop.runs_on for loop in group), default=1)
        used = max(before.get(inner, 1) for inner in _with_inner(lines, at))
        if workers > used and place in then:
            yield Effect(FORCE, line.line, f"{then[place].how}, on {counted(workers, 'worker')}")


def _workers(groups: Mapping[Place, Sequence[LoopPlan]]) -> dict[Place, int]:
    return {place: max(loop.runs_on for loop in group) for place, group in groups.items()}


def _with_inner(lines: Sequence[tuple[Place, TreeLine]], at: int) -> Iterator[Place]:
    """The place of a line, and those of the lines in it."""
    yield lines[at][0]
    for place, line in lines[at + 1 :]:
        if line.depth <= lines[at][1].depth:
            return
        yield place
