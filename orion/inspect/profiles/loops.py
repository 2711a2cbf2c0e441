"""Loops of a profile in words: what they are called, why one worker runs one, whether free workers could help."""

from __future__ import annotations

from collections.abc import Iterator

from orion.inspect.text.conflicts import conflicts_of, sizing_reasons
from orion.inspect.text.parts import lines_of
from orion.inspect.text.telling import blockers
from orion.inspect.text.words import in_written_names, lines_in_words, place
from orion.inspect.tree.text import shortened
from orion.ir.function import Function, in_users_words
from orion.plan.dynamic import may_be_dynamic
from orion.plan.iterations import in_source_names
from orion.plan.plan import Fused, LoopPlan, ReorderedSingle, Single, Written
from orion.reasons import Reason
from orion.runtime.profile.records import LoopLabel

LONG = 60
"""The columns that the code of a loop has in a table or a sentence."""


def title_of(label: LoopLabel) -> str:
    """What a loop is called in tables: "f: for i in range(n) (train.py:3), wavefront"."""
    return f"{label.function}: {shortened(label.code, LONG)} ({_place(label)}), {label.strategy}"


def name_of(label: LoopLabel) -> str:
    """What a loop is called in a trace: "f: for i in range(n) (train.py:3)"."""
    return f"{label.function}: {label.code} ({_place(label)})"


def loop_in_words(label: LoopLabel) -> str:
    """What a loop is called in a sentence: "`for i in range(n)` of `f` (train.py:3)"."""
    return f"`{shortened(label.code, LONG)}` of `{label.function}` ({_place(label)})"


def _place(label: LoopLabel) -> str:
    """Where a loop stands, with which other lines of the source it runs as one, and which part of its code it is."""
    others = {*_lines(label.plan)} - {label.span.line} if label.plan is not None else set()
    shown = f"with {lines_in_words(others)}" if others else ""
    return ", ".join(filter(None, [place(label.span), shown, label.part]))


def _lines(plan: LoopPlan) -> Iterator[int]:
    match plan.form:
        case Fused(members):
            yield from (one.nest.span.line for one in members)
        case Single():
            spans = [one.span for one in plan.nest.body if one.span.file == plan.nest.span.file]
            yield from (line for span in spans for line in range(span.line, span.end_line + 1))
        case ReorderedSingle():
            yield from lines_of(plan.nest)
        case _:
            return


def why_on_one_worker(label: LoopLabel) -> str:
    """Why one worker runs a loop, as its plan has it, to be appended to a sentence; empty where that is not known."""
    if label.plan is None:
        return ""
    function = label.plan.nest.function
    told = next((_told(one, function) for plan in _inside(label.plan) for one in _against(plan)), "")
    if told:
        return f", because {told}"
    if isinstance(label.plan.form, Single | ReorderedSingle):
        return ", as its statements are in no loop that is shared out"
    if label.plan.is_parallel and label.plan.runs_on == 1:
        return ", as many as the session has"
    return ""


def _inside(plan: LoopPlan) -> Iterator[LoopPlan]:
    """The loops whose plans say why one worker runs a planned loop, those that have no parallel schedule first."""
    if isinstance(plan.form, Single | ReorderedSingle):
        yield from sorted(plan.form.inside, key=lambda one: one.is_parallel)
    else:
        yield plan


def _against(plan: LoopPlan) -> Iterator[Reason]:
    """The reasons why one worker runs a loop, that which its plan begins with first."""
    sizes = sizing_reasons(plan)
    yield from (one for one in sizes if plan.is_parallel or one.code == "ORN120")
    if plan.is_parallel:
        return
    for blocker in blockers(plan, conflicts_of(plan)):
        yield Reason.of(blocker.code, blocker.said[0], *blocker.spans)


def _told(reason: Reason, function: Function) -> str:
    said = in_source_names(reason, function)
    return in_users_words(f"{in_written_names(said.message, said.code, function)} [{said.code}]", function)


def is_better_dynamic(label: LoopLabel) -> bool:
    """Whether workers that wait could take tiles of others, and the call has not asked for that yet."""
    plan = label.plan
    if plan is None or label.has_waits or label.takes_tiles or not isinstance(plan.form, Written | Fused):
        return False
    return may_be_dynamic(plan.analysis, plan.nest)
