"""Mends of a file's refused functions and serial loops: one by one, each held against the plan of the text with it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from orion.cli.mends.kinds import KINDS, Edits, Site
from orion.cli.mends.refusals import edits_of, shown
from orion.cli.mends.text import Source, applied
from orion.dataclass import dataclass
from orion.planned import Plan
from orion.reasons import ReasonKind
from orion.source import Replacement

MOST = 8
"""How many mends a function may need."""

PlanOf = Callable[[str, str], Plan | Replacement | None]
"""The plan of a function by its name, in a file with this text; where it has none, what its error says to write in this
file, or None where it says nothing that does the same."""


@dataclass(frozen=True, slots=True)
class Mended:
    """The text of a file with its mends, the serial functions that are parallel by these, the refused ones that have a
    plan, and what is said of them."""

    text: str
    functions: tuple[str, ...]
    planned: tuple[Plan, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """A text with one mend more, the plan of the function in it, and what is said of the mend."""

    text: str
    plan: Plan
    notes: tuple[str, ...]


def mended(text: str, functions: Iterable[str], plan_of: PlanOf) -> Mended:
    """Mend the functions of a file that are refused, as far as they are planned then, and those that are serial, as far
    as they are parallel then; others stay as they are."""
    done: list[str] = []
    planned: list[Plan] = []
    notes: list[str] = []
    for name in functions:
        step = _planned_function(text, name, plan_of)
        if step is None:
            notes.append(f"no mend is known that makes a plan of `{name}`")
            continue
        was_refused = bool(step.notes)
        found = None if step.plan.is_parallel else _mended_function(step, name, plan_of)
        if found is not None and not was_refused:
            done.append(name)
        step = found or step
        text = step.text
        notes += step.notes
        if not step.plan.is_parallel:
            notes.append(f"no mend is known that makes `{name}` parallel")
        if was_refused:
            planned.append(step.plan)
    return Mended(text, tuple(done), tuple(planned), tuple(notes))


def _planned_function(text: str, name: str, plan_of: PlanOf) -> _Step | None:
    """Write what the errors of a function say until it has a plan; None where that cannot be done."""
    notes: list[str] = []
    for _ in range(MOST):
        found = plan_of(text, name)
        if isinstance(found, Plan):
            return _Step(text, found, tuple(notes))
        edits = None if found is None else edits_of(text, found)
        if found is None or edits is None:
            return None
        notes.append(f"line {found.span.line}, `{name}`: {shown(text, found)}")
        text = applied(text, edits)
    return None


def _mended_function(step: _Step, name: str, plan_of: PlanOf) -> _Step | None:
    """Mend a function until it is parallel; None where that cannot be done."""
    for _ in range(MOST):
        found = next(_steps(step, name, plan_of), None)
        if found is None:
            return None
        step = found
        if step.plan.is_parallel:
            return step
    return None


def _steps(step: _Step, name: str, plan_of: PlanOf) -> Iterator[_Step]:
    """Yield the texts with one mend more that have fewer serial loops. Of several mends of a loop the first is taken,
    since the others would change the same lines."""
    for site in _sites(step):
        candidates = [(words, edits) for words, kind in KINDS.items() if (edits := kind(site)) is not None]
        for number, (words, edits) in enumerate(candidates):
            text = _applied(step.text, edits)
            plan = None if text is None else plan_of(text, name)
            if text is None or not isinstance(plan, Plan) or not _is_better(plan, step.plan):
                continue
            line = site.loop.lineno
            notes = [*step.notes, f"line {line}, `{name}`: {words}"]
            others = [other for other, _ in candidates[number + 1 :]]
            notes += [f"line {line}, `{name}`: not applied, as it changes the same lines: {other}" for other in others]
            yield _Step(text, plan, tuple(notes))
            break


def _applied(text: str, edits: Edits) -> str | None:
    """Return the text with the edits; None where they overlap, or it is no Python then."""
    try:
        found = applied(text, edits)
        ast.parse(found)
    except (SyntaxError, ValueError):
        return None
    return found


def _is_better(plan: Plan, before: Plan) -> bool:
    return plan.is_parallel or len(plan.parallelism.serial) < len(before.parallelism.serial)


def _sites(step: _Step) -> Iterator[Site]:
    """Yield the serial loops of a function that begin their lines."""
    source, name = Source(step.text), step.plan.function.program.function.name
    functions = [one for one in source.tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
    for function in functions[-1:]:
        loops = {(one.lineno, one.col_offset): one for one in ast.walk(function) if isinstance(one, ast.For)}
        for plan in step.plan.loops:
            loop = loops.get((plan.nest.span.line, plan.nest.span.column))
            reasons = tuple(reason for reason in plan.reasons if reason.kind is ReasonKind.BLOCKS and reason.hint)
            if loop is not None and reasons and source.stands_alone(loop):
                costs_more = any(reason.code == "ORN124" for reason in plan.reasons)
                yield Site(source, function, loop, reasons, costs_more)
