"""How a loop of the source runs, in plain words: one headline, and what is special about its tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orion.cost.candidate import Strategy
from orion.inspect.text.conflicts import conflicts_of, sizing_reasons
from orion.inspect.text.parts import has_list, lines_of, part_in_words
from orion.inspect.text.telling import blockers, scans_of
from orion.inspect.text.where import too_small
from orion.inspect.text.words import counted, in_written_names, lines_in_words, listed, names_quoted, percent
from orion.ir.function import written_names
from orion.ir.nodes import For, every, walk
from orion.plan.explain import is_certain
from orion.plan.parallelism import LITTLE
from orion.plan.plan import (
    Fill,
    FunctionPlan,
    Inside,
    Inspected,
    LoopPlan,
    Member,
    Reordered,
    ReorderedSingle,
    Single,
    is_of_source,
)
from orion.plan.shares import runs_alone
from orion.plan.source_plans import main_part
from orion.reasons import CODES, Reason

INSIDE = "inside"
"""How a `for` runs that stands in a planned loop and is not cut."""

Parts = Mapping[int, float]
"""The part of the predicted work that each planned loop has, by its number."""

LONG = 90
"""A message of more characters is told by the title of its code in a row of the tree."""


def part_of_work(loop: LoopPlan, parts: Parts) -> float:
    """Return the part of the work that a loop of the source has, 0 for one in statements that run once."""
    return 0.0 if isinstance(loop.form, Inside) else sum(parts[number] for number in _numbers(loop))


def main_loop(group: Sequence[LoopPlan], parts: Parts) -> LoopPlan:
    """Return the costliest loop of the source among those that stand for one line, or the costliest statements."""
    return max(group, key=lambda loop: (is_of_source(loop), part_of_work(loop, parts)))


def how_it_runs(group: Sequence[LoopPlan], plan: FunctionPlan, parts: Parts, nanoseconds: float | None) -> str:
    """Return how the planned loops that stand for one line of the source run. `nanoseconds` is the predicted time of
    all loops on one worker, None where sizes are unknown."""
    main = main_loop(group, parts)
    if not is_of_source(main):
        return _statements(main)
    headline = _headline(group, main, plan, parts, nanoseconds)
    if headline.startswith(("serial", "parallel, but")):
        return headline
    return ", ".join([headline, *_details(group, main)])


def how_it_is_inside(node: For, dim: int | None, loop: LoopPlan) -> str:
    """Return what happens to a `for` further in: dimension `dim` of a planned loop, or none of its dimensions."""
    for one in loop.parallel_inside:
        if one.index == node.index:
            return too_small(one.nanoseconds)
    if len(loop.parts) > 1:
        return _in_parts(node, loop)
    if dim is not None and not loop.parts and loop.cuts[dim] > 1:
        blocks = counted(loop.cuts[dim], "block")
        if dim == loop.space and loop.runs_on > 1:
            return f"{blocks}, shared out"
        if dim in loop.time:
            return f"{blocks}, in turn"
    return INSIDE


def _in_parts(node: For, loop: LoopPlan) -> str:
    """What happens to a `for` whose statements run in the parts of a loop that was taken apart."""
    own = {inner.span.line for statement in node.body for inner in walk(statement)}
    found = [part for part in loop.parts if own.intersection(lines_of(part.nest))]
    if len(found) > 1 or not found:
        return INSIDE
    if found[0].strategy is Strategy.SERIAL or isinstance(found[0].form, ReorderedSingle):
        return "one worker, in turn"
    return "parallel" if found[0].runs_on > 1 else INSIDE


def how_parts_run(group: Sequence[LoopPlan], plan: FunctionPlan, parts: Parts) -> tuple[str, ...]:
    """Return a sentence on each of several planned loops that stand for one line, in turn; none for a single one."""
    found = []
    for loop in group:
        if loop.parts and has_list(loop):
            found += [_without_new_names(part_in_words(part), loop) for part in loop.parts]
        elif len(group) > 1 and not isinstance(loop.form, Inside):
            where = counted(loop.runs_on, "worker")
            found.append(f"{_piece(loop)}, on {where}: {percent(part_of_work(loop, parts))} of the work")
    return tuple(found)


def _piece(loop: LoopPlan) -> str:
    match loop.form:
        case Single():
            return "statements that run once"
        case Fill() | Member(form=Fill()):
            return "a pass before the loop"
        case _:
            return "the loop"


def _statements(loop: LoopPlan) -> str:
    """How a statement that is no loop of the source runs."""
    if isinstance(loop.form, Single):
        return "as written, on one worker" if any(every(For, *loop.nest.body)) else "once, on one worker"
    return f"filled by {counted(loop.runs_on, 'worker')}"


def _numbers(loop: LoopPlan) -> Iterator[int]:
    yield from (part.nest.number for part in loop.parts or (loop,))


def _headline(
    group: Sequence[LoopPlan], main: LoopPlan, plan: FunctionPlan, parts: Parts, nanoseconds: float | None
) -> str:
    if isinstance(main.form, Inside):
        return _alone(main, None)
    numbers = dict.fromkeys(number for loop in group for number in _numbers(loop))
    planned = {loop.nest.number: loop for loop in plan.loops}
    total = sum(parts[number] for number in numbers)
    alone = sum(parts[number] for number in numbers if runs_alone(planned[number], plan.sizes.workers))
    shared = 1.0 - alone / total if total else float(not runs_alone(main, plan.sizes.workers))
    if shared < LITTLE:
        return _alone(main, None if nanoseconds is None else total * nanoseconds)
    return "parallel" if shared > 1 - LITTLE else f"partly parallel, {percent(shared)}"


def _alone(loop: LoopPlan, nanoseconds: float | None) -> str:
    """Why one worker runs a loop."""
    reasons = sizing_reasons(loop)
    if not loop.is_parallel:
        return f"serial because {_because(loop, reasons)}"
    if reasons and reasons[0].code != "ORN120":
        return f"parallel, but {_message(reasons[0].message, reasons[0].code, loop)}"
    return too_small(nanoseconds)


def _because(loop: LoopPlan, reasons: Sequence[Reason]) -> str:
    costs = next((reason for reason in reasons if reason.code == "ORN120"), None)
    if costs is not None and not loop.parallel_inside:
        return _message(costs.message, costs.code, loop)
    conflicts = conflicts_of(loop)
    for blocker in blockers(loop, conflicts):
        conflict = next((one for one in conflicts if one.spans == blocker.spans), None)
        if conflict is not None and not conflict.is_scalar:
            meet = "meet" if any(map(is_certain, conflict.dependences)) else "may meet"
            where = f" in `{conflict.array}`" if conflict.array in written_names(loop.nest.function) else ""
            return f"iterations {meet}{where} [{blocker.code}]"
        return _message(blocker.said[0], blocker.code, loop)
    return "nothing in it can be shared out"


def _message(message: str, code: str, loop: LoopPlan) -> str:
    """A message, or the title of its code where it is long."""
    short = in_written_names(message.partition(", except where")[0], code, loop.nest.function)
    return f"{short if len(short) <= LONG else CODES[code].title} [{code}]"


def _without_new_names(words: str, loop: LoopPlan) -> str:
    """What is said of a part, without what names something that nobody has written."""
    written = written_names(loop.nest.function)
    return "; ".join(piece for piece in words.split("; ") if names_quoted(piece) <= written)


# ---------------------------------------------------------------- what is special


def _details(group: Sequence[LoopPlan], main: LoopPlan) -> Iterator[str]:
    for scan in dict.fromkeys(one for loop in group for one in scans_of(loop)):
        passes = "in two passes " if scan.is_twice else ""
        yield f"scan {passes}over blocks of {scan.length:,}"
    if isinstance(main.tiles, Inspected):
        yield f"in tiles found by looking at {listed([f'`{name}`' for name in main.tiles.inspectable.reads])}"
    elif len(main.parts) > 1:
        yield f"taken apart into {len(main.parts)} parts"
    else:
        yield from _tiles(main_part(main), main)
    if isinstance(main.form, Member) and main.form.fused_with.lines:
        yield f"as one with {lines_in_words(main.form.fused_with.lines)}"
    if main.nest.copied_in:
        copied = [f"`{one.array}`" for one in main.nest.copied_in]
        yield f"reading {'a copy' if len(copied) == 1 else 'copies'} of {listed(copied)} made before it"
    if main.copies:
        names = [f"`{one.array}`" for one in main.copies]
        yield f"each block adds to {'a copy' if len(names) == 1 else 'copies'} of {listed(names)}"
    if main.relaxed.has_delays:
        yield f"updates up to {main.relaxed.max_delay:,} iterations late"
    if main.nest.replicas:
        yield f"each worker has a copy of {listed([f'`{one.array}`' for one in main.nest.replicas])}"


def _tiles(loop: LoopPlan, main: LoopPlan) -> Iterator[str]:
    """What the strategy of a loop makes of its iterations; nothing for independent ones."""
    if loop.space is None:
        return
    blocks = "×".join(str(loop.cuts[dim]) for dim in sorted((loop.space, *loop.time)))
    tiles = "time tiles" if isinstance(loop.form, Reordered) and loop.form.is_time_tiled else "tiles"
    match loop.strategy:
        case Strategy.ONE_D:
            name = loop.nest.dims[loop.space]
            yield f"along {name}" if loop is main and name in written_names(loop.nest.function) else f"{blocks} blocks"
        case Strategy.TWO_D | Strategy.ND:
            yield f"{1 + len(loop.time)}d rotation, {blocks} {tiles}"
        case Strategy.WAVEFRONT:
            yield f"wavefront, {blocks} {tiles}"
        case _ if loop is not main:
            yield "in another order"
