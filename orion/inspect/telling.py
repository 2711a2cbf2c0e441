"""What there is to tell about a plan, in words and in order: the text and the notebook view show the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orion.inspect.conflicts import Conflict, ruled_out, sizing_reasons
from orion.inspect.words import bytes_in_words, counted, lines_in_words, listed, placement_in_words
from orion.loop.ir import For
from orion.loop.nest import Repeat, RunLoop, Step
from orion.loop.source import Span
from orion.plan.explain import NEEDED
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.reasons import Reason

NO_BREAK = "\u00a0"
"""A blank at which a line is not broken."""

NO_CONFLICTS = "none: no two iterations touch the same element with one of them writing it"
RUNS_ONCE = "these statements stand between loops; one worker runs them, once"


def signature(plan: FunctionPlan) -> str:
    """The function with its parameters."""
    function = plan.program.function
    return f"{function.name}({', '.join(function.params)})"


def verdict_in_words(plan: FunctionPlan) -> str:
    """How many loops there are, and whether they are parallel."""
    loops = [loop for loop in plan.loops if loop.is_written_by_user]
    if not loops:
        return "no loop to share out"
    serial = sum(not loop.is_parallel for loop in loops)
    verdict = "parallel" if not serial else "serial" if serial == len(loops) else f"{serial} of them serial"
    return f"{counted(len(loops), 'loop')}, {verdict}"


def enclosing_loops(plan: FunctionPlan, number: int) -> tuple[For, ...]:
    """The serial loops that stand around planned loop `number`, outermost first."""

    def find(steps: Iterable[Step]) -> tuple[For, ...] | None:
        for step in steps:
            if isinstance(step, RunLoop) and step.number == number:
                return ()
            if isinstance(step, Repeat):
                inside = find(step.steps)
                if inside is not None:
                    return (step.loop, *inside)
        return None

    return find(plan.program.steps) or ()


def each_for(loop: LoopPlan, plan: FunctionPlan) -> list[tuple[Span, str]]:
    """Every `for` of a loop and around it, with what is to be said of it."""
    rounds = "its rounds overlap" if loop.rounds_overlap else "each round is done before the next begins"
    found = [(outer.span, f"serial, around the loop; {rounds}") for outer in enclosing_loops(plan, loop.nest.number)]
    for own, verdict in zip(loop.nest.loops, loop.verdicts, strict=True):
        arrays = listed(list(dict.fromkeys(dependence.array for dependence in verdict.carried)))
        found.append((own.span, f"carries dependences over {arrays}" if arrays else "parallel by itself"))
    return found


def runs_on(loop: LoopPlan) -> list[str]:
    """On how many workers the loop runs, and why not on more."""
    reasons = [f"{reason.message} [{reason.code}]" for reason in sizing_reasons(loop)]
    return [counted(loop.runs_on, "worker"), *reasons]


def reductions(loop: LoopPlan) -> list[str]:
    """The scalars that the iterations combine, and why they are no conflict."""
    return [
        f"{r.name}, by {r.op} in line {r.span.line}: no conflict, its parts are combined at the end"
        for r in loop.analysis.scalars.reductions
    ]


def accesses_in_words(conflict: Conflict) -> str:
    """The accesses of a conflict with their lines, writes first; what stands in the same lines is said together."""
    reads, writes = dict(conflict.reads), dict(conflict.writes)
    everywhere = {*reads.values(), *writes.values()}
    where = f", in {lines_in_words(everywhere.pop())}" if len(everywhere) == 1 else ""
    together: dict[str, list[str]] = {}
    for text in dict.fromkeys([*writes, *reads]):
        done = [("written", writes.get(text)), ("read", reads.get(text))]
        if where:
            said = " and ".join(verb for verb, lines in done if lines)
        else:
            said = ", ".join(f"{verb} in {lines_in_words(lines)}" for verb, lines in done if lines)
        together.setdefault(said, []).append(text.replace(" ", NO_BREAK))
    separator = ", " if where else "; "
    return separator.join(f"{listed(texts)} {said}" for said, texts in together.items()) + where


def such_as(conflict: Conflict) -> str:
    """An example of two iterations, to be appended; empty where there is none."""
    return f", such as {conflict.example}" if conflict.example else ""


def why_not(loop: LoopPlan, conflicts: Sequence[Conflict]) -> list[tuple[str, str, str]]:
    """The strategies that a parallel loop cannot take: their names, the reason, and its code."""
    together: dict[tuple[str, str], list[str]] = {}
    for strategy, reason in ruled_out(loop):
        together.setdefault((_against(reason, conflicts), reason.code), []).append(strategy)
    return [(", ".join(strategies), why, code) for (why, code), strategies in together.items()]


def _against(reason: Reason, conflicts: Sequence[Conflict]) -> str:
    conflict = next((c for c in conflicts if set(reason.spans) <= set(c.spans)), None)
    if conflict is None:
        return reason.message.partition(": ")[2]
    return f"{conflict.array}: {conflict.iterations} conflict{such_as(conflict)}"


def data(loop: LoopPlan) -> list[tuple[str, str, str]]:
    """Every array with the bytes that one run moves, and where it lives."""
    return [
        (p.array, bytes_in_words(0 if loop.runs_on == 1 else p.bytes_moved), placement_in_words(p, loop))
        for p in loop.placements
    ]


# ---------------------------------------------------------------- what blocks a serial loop


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that keeps a loop serial: its code, what is said of it, the places, and what would help (said once)."""

    code: str
    said: tuple[str, ...]
    spans: tuple[Span, ...]
    hint: str


def lone_reasons(loop: LoopPlan) -> list[Reason]:
    """The reasons that are not about a pair of accesses, nor about the number of workers."""
    return [reason for reason in loop.reasons if len(reason.spans) == 1 and reason not in sizing_reasons(loop)]


def blockers(loop: LoopPlan, conflicts: Sequence[Conflict]) -> list[Blocker]:
    """What keeps the loop serial, in program order; what is not about a pair of accesses comes first."""
    others = lone_reasons(loop)
    found = [Blocker(reason.code, (reason.message,), reason.spans, reason.hint) for reason in others]
    if any(reason.code == "ORN108" for reason in others):
        return found  # the dependences would allow a parallel plan
    for conflict in conflicts:
        hint = _hint(conflict)
        is_new = hint not in {blocker.hint for blocker in found}
        found.append(Blocker(conflict.reason.code, _said(conflict), conflict.spans, hint if is_new else ""))
    return found


def _said(conflict: Conflict) -> tuple[str, ...]:
    """What is said of a conflict: of a carried scalar its reason alone."""
    message = conflict.reason.message
    if conflict.is_scalar:
        return (message,)
    said = (f"{conflict.array}: {conflict.iterations}{such_as(conflict)}", accesses_in_words(conflict))
    return (*said, message) if message else said


def _hint(conflict: Conflict) -> str:
    is_needed = any(dependence.kind == "flow" and dependence.exact for dependence in conflict.dependences)
    return NEEDED if is_needed and conflict.reason.code == "ORN101" else conflict.reason.hint
