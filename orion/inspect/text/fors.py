"""What is said of each `for` of the source: whether it is parallel by itself, and how its rounds follow each other."""

from __future__ import annotations

from orion.dataclass import dataclass
from orion.inspect.text.telling import scans_of
from orion.inspect.text.words import listed
from orion.ir.function import Function, written_names
from orion.ir.nodes import For, every
from orion.plan.iterations import in_source_names
from orion.plan.plan import FunctionPlan, LoopPlan, Verdict
from orion.plan.source_plans import enclosing_loops
from orion.source import Span


@dataclass(frozen=True, slots=True)
class ForLine:
    """A `for` of the source and what is to be said of it. `is_around`: it is run serially, around the planned loop."""

    span: Span
    words: str
    is_around: bool


def loops_around(loop: LoopPlan, plan: FunctionPlan) -> tuple[For, ...]:
    """The serial loops of the source that stand around a loop, outermost first."""
    return tuple(outer for outer in enclosing_loops(plan, loop.nest.number) if outer.index >= 0)


IN_TURN = "one round after another"


def rounds_in_words(outer: Span, plan: FunctionPlan) -> str:
    """How the rounds of a serial loop of the source follow each other. They overlap where one loop is planned in it,
    and no round decides whether there is another."""
    around = [(loop, one) for loop in plan.loops for one in loops_around(loop, plan) if outer.place == one.span.place]
    inside = [loop for loop, _ in around]
    left = {one.index for one in plan.verdicts if any(reason.code == "ORN110" for reason in one.reasons)}
    is_left = any(one.index in left for _, one in around)
    overlap = len(inside) == 1 and inside[0].rounds_overlap and inside[0].runs_on > 1 and not is_left
    return "rounds overlap" if overlap else IN_TURN


def verdicts_of(loop: LoopPlan, plan: FunctionPlan) -> tuple[Verdict, ...]:
    """The verdicts on the `for`s of a loop, in textual order."""
    own = {node.index for node in every(For, loop.nest.loops[0])}
    return tuple(verdict for verdict in plan.verdicts if verdict.index in own)


def each_for(loop: LoopPlan, plan: FunctionPlan) -> list[ForLine]:
    """Every `for` around a loop and in it, with its verdict; so has an array statement inside that writes elements."""
    verdicts = {one.index: verdict_on_for(one, plan.program.function) for one in plan.verdicts}
    carrying = {one.index for one in plan.verdicts if one.carried and not one.copies}
    found = []
    for outer in loops_around(loop, plan):
        rounds = rounds_in_words(outer.span, plan)
        around = ["serial, around the loop", rounds, *([verdicts[outer.index]] if outer.index in verdicts else [])]
        found.append(ForLine(outer.span.in_source, "; ".join(around), is_around=True))
    inside = [node for node in every(For, loop.nest.loops[0]) if node.index in verdicts and _is_told(node, loop)]
    for one in scans_of(loop):
        place = next(node.span for node in inside if node.index == one.loop)
        words = f"hands {listed(list(one.names))} on, by blocks of iterations"
        found.append(ForLine(place.in_source, words, is_around=False))
        inside = [node for node in inside if node.span != place]
    for own in sorted(inside, key=lambda one: one.index):
        is_alone = own.index in carrying and loop.is_parallel
        words = f"{'not parallel by itself: ' if is_alone else ''}{verdicts[own.index]}"
        found.append(ForLine(own.span.in_source, words, is_around=False))
    return list(dict.fromkeys(found))


def _is_told(node: For, loop: LoopPlan) -> bool:
    """Whether a loop has a row: a `for`, the array statement that is planned, or one inside that writes elements. One
    that makes an array anew has none."""
    written = loop.nest.function.source.line(node.span.line)[node.span.column :]
    return node is loop.nest.loops[0] or written.startswith("for ") or "[" in written.partition("=")[0]


def verdict_on_for(verdict: Verdict, function: Function) -> str:
    """Whether a `for` is parallel by itself, and why not, in names of the source."""
    if verdict.copies:
        return f"parallel given copies of {listed(list(verdict.copies))}, combined at the end"
    written = written_names(function)
    arrays = listed([name for name in dict.fromkeys(one.array for one in verdict.carried) if name in written])
    said = [f"carries dependences{f' over {arrays}' if arrays else ''}"] if verdict.carried else []
    said += [in_source_names(reason, function).told for reason in verdict.reasons]
    if not said and verdict.private:
        return f"parallel given {listed(list(verdict.private))} of its own for each iteration"
    return "; ".join(dict.fromkeys(said)) or "parallel by itself"
