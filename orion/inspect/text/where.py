"""Where the work of a function is, in words: the first line of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from orion.dataclass import dataclass, replace
from orion.inspect.text.conflicts import conflicts_of, sizing_reasons
from orion.inspect.text.fors import verdict_on_for
from orion.inspect.text.parts import lines_of
from orion.inspect.text.telling import blockers, such_as
from orion.inspect.text.words import counted, in_written_names, lines_in_words, place, time_in_words
from orion.ir.function import Function, in_users_words, written_names
from orion.ir.nodes import Assign, Call, Evaluate, For, Node, Return, every, walk
from orion.ir.program import Branch, LoopNest, Repeat, RunLoop, Step
from orion.plan.explain import is_certain
from orion.plan.parallelism import LITTLE, Extent, parallelism
from orion.plan.plan import (
    Fill,
    FunctionPlan,
    LoopPlan,
    Reordered,
    ReorderedSingle,
    Single,
    is_of_source,
    source_nest,
)
from orion.plan.shares import NOMINAL, Share
from orion.plan.source_plans import loops_of_source
from orion.reasons import Reason
from orion.source import Span


def where_the_work_is(plan: FunctionPlan, shared: float | None = None) -> str:
    """The first line of a plan: how many loops, how much of the work is shared out, and why the rest is not. `shared`
    is the part of the time that is shared out, None where no seconds are known."""
    verdict, details = verdict_and_details(plan, shared)
    return verdict + details


def verdict_and_details(plan: FunctionPlan, shared: float | None = None) -> tuple[str, str]:
    """The verdict on a plan in words (`orion.plan.parallelism`), and what follows it: where the work is, and why."""
    found, loops = parallelism(plan), counted(len(loops_of_source(plan)), "loop")
    match found.extent:
        case Extent.NO_LOOP:
            return str(found.extent), ""
        case Extent.PARALLEL:
            part = f"{_percent(found.share)} of the work" if shared is None else f"{_percent(shared)} of the time"
            return f"{loops}, {found.extent}", f"; {part} is shared out{_among(plan)}"
        case Extent.TOO_SMALL:
            return f"{loops}, {too_small(found.nanoseconds)}", f": {_why_alone(found.alone, plan)}"
        case Extent.SERIAL_HERE:
            return f"{loops}, {found.extent}", f": {_why_alone(found.alone, plan)}"
        case Extent.PARTLY:
            share = _percent(min(found.share if shared is None else shared, 1.0 - LITTLE))
            details = f"; one worker runs the rest{_if_sizes(plan)}: {_why_alone(found.alone, plan)}"
            return f"{loops}, {found.extent}, {share}", details
        case Extent.SERIAL:
            return f"{loops}, {found.extent}", f" because {_because(found.alone, plan)}"
        case _:
            assert_never(found.extent)


def too_small(nanoseconds: float | None) -> str:
    """Return what is said of work that one worker does as fast, with its predicted time, as reasons have it: in
    microseconds at least."""
    time = "" if nanoseconds is None else f" ({time_in_words(max(nanoseconds, 1000.0))})"
    return f"parallel, but too small to share{time}"


def why_not_shared_out(plan: FunctionPlan, span: Span) -> str:
    """What is said at the call of a loop of the source that one worker runs, or of the function that has that span."""
    function = plan.program.function
    text = f"`{function.name}` has {where_the_work_is(plan)}"
    for loop in loops_of_source(plan):
        if loop.nest.span == span:
            first = [one.code for one in _costs(loop)] or [one.code for one in blockers(loop, conflicts_of(loop))][
                :1
            ]  # as the plan has it
            told = [one for one in loop.reasons if one.code in first] or loop.reasons
            text = _serial_loop(loop, told[:1], function)
            break
    return f"{place(span)}: {in_users_words(text, function)}"


def _serial_loop(loop: LoopPlan, reasons: Sequence[Reason], function: Function) -> str:
    """Return the sentence on a serial loop. One whose variables nobody wrote is called by its line: by the header of a
    `for`, or by the statement that it stands for."""
    because = "".join(f" because {reason.message} [{reason.code}]" for reason in reasons)
    if not written_names(function).issuperset(loop.nest.dims):
        line = function.source.line(loop.nest.span.line).strip()
        if any(one.span == loop.nest.span for one in function.fors):
            return f"`{line.removesuffix(':')}` is serial{because}"
        codes = "".join(f" [{reason.code}]" for reason in reasons)
        return f"`{line}` is serial: one worker computes its elements{codes}"
    return f"the loop over ({', '.join(loop.nest.dims)}) is serial{because}"


def _percent(part: float) -> str:
    """A part of the work; none of it is left out without a word.

    >>> _percent(1.0), _percent(0.9999), _percent(0.996), _percent(0.98), _percent(0.014)
    ('all', 'all', 'over 99 %', '98 %', '1 %')
    """
    if part > 1 - LITTLE / 5:
        return "all"
    return "over 99 %" if part > 0.99 else f"{max(1, round(100 * part))} %"


def _if_sizes(plan: FunctionPlan) -> str:
    sizes = plan.sizes
    if not sizes.symbolic:
        return ""
    is_given = sizes.shapes or sizes.integers or sizes.counts
    return f" ({'sizes that are not given' if is_given else 'every size'} taken to be {NOMINAL:,})"


def _among(plan: FunctionPlan) -> str:
    workers = max((loop.runs_on for loop in plan.loops), default=1)
    if plan.sizes.symbolic:
        return ""
    return f" among {workers} workers" if workers > 1 else ", here on the 1 worker that there is"


# ---------------------------------------------------------------- why something is not shared out


def _why_alone(alone: Sequence[Share], plan: FunctionPlan) -> str:
    """The costliest of what one worker runs, and why; the lines of the rest."""
    first, *others = alone
    return _why(first.loop, plan).sentence + _also(others)


def _because(alone: Sequence[Share], plan: FunctionPlan) -> str:
    """Why a function is serial: by the costliest of what has no parallel schedule; the lines of the rest."""
    first = next((one for one in alone if not one.loop.is_parallel), alone[0])
    return _why(first.loop, plan).clause + _also([one for one in alone if one is not first])


def _also(others: Sequence[Share]) -> str:
    rest = [share.loop for share in others if share.part >= LITTLE and not _is_between_passes(share.loop)]
    between = dict.fromkeys(share.loop.nest.span.line for share in others if _is_between_passes(share.loop))
    found = [lines_in_words(line for loop in rest for line in lines_run(loop))] if rest else []
    found += [f"what is handed on between the passes of the scan in line {line}" for line in between]
    return f"; also on one worker: {' and '.join(found)}" if found else ""


def _is_between_passes(loop: LoopPlan) -> bool:
    """Whether a planned loop is the serial pass of a scan, which goes through the blocks."""
    is_fill = isinstance(loop.form, Fill) and not loop.is_parallel
    return is_fill and any(one.is_twice for one in loop.nest.function.in_blocks)


def _costs(loop: LoopPlan) -> tuple[Reason, ...]:
    """Why a loop is serial that costs alone keep so."""
    return tuple(one for one in sizing_reasons(loop) if one.code == "ORN120")[:1]


@dataclass(frozen=True, slots=True)
class _Why:
    """Why one worker runs some lines: as a sentence, and as what follows "serial because"."""

    sentence: str
    clause: str


def lines_run(loop: LoopPlan) -> tuple[int, ...]:
    """Return the lines of the source that a planned loop runs, with those of its own `for`s."""
    if isinstance(loop.form, Reordered | ReorderedSingle):
        return lines_of(loop.nest)
    spans = [node.span for top in _source(loop.nest) for node in walk(top) if node.span.file == loop.nest.span.file]
    return tuple(range(min(s.line for s in spans), max(s.end_line for s in spans) + 1))


def _source(nest: LoopNest) -> Sequence[Node]:
    """What a nest is in the source: its outermost loop, or statements between loops."""
    return [nest.loops[0]] if nest.loops[0].index >= 0 else nest.body


def _why(loop: LoopPlan, plan: FunctionPlan) -> _Why:
    """Why one worker runs a planned loop: "lines 4–7 are serial because …"."""
    lines = lines_run(loop)
    where, verb = lines_in_words(lines), "is" if len(lines) == 1 else "are"

    def sentence(words: str) -> _Why:
        return _Why(words, words)

    inside = loop.form.inside if isinstance(loop.form, Single | ReorderedSingle) else ()
    told = max(inside, key=lambda one: not one.is_parallel) if inside else loop
    if is_of_source(told) and not isinstance(told.form, Reordered):
        for reason in sizing_reasons(told)[:1] if told.is_parallel or told.parallel_inside else ():
            return sentence(f"{where}: {_told(reason, told)}")
        because = next((_told(one, told) for one in _costs(told)), "") or _why_serial(told)
        if not because:
            return sentence(f"{where} {verb} serial")
        return _Why(f"{where} {verb} serial because {because}", f"in {where} {because}")
    for reason in sizing_reasons(loop)[:1] if loop.is_parallel and isinstance(loop.form, Reordered) else ():
        return sentence(f"{where}: {_told(reason, loop)}")
    for line, words in _verdicts(loop, plan):
        because = f"the `for` in line {line} {words}"
        return _Why(f"{where} {verb} serial because {because}", because)
    if isinstance(loop.form, Reordered | ReorderedSingle):
        return sentence(f"{where} {verb} run once per round of the loop in line {source_nest(loop).span.line}")
    number = next((number for number, one in enumerate(plan.loops) if one is loop), -1)
    outer = _around(number, plan.program.steps, None)
    if outer is not None:
        return sentence(f"{where} {verb} run once per round of the loop in line {outer}")
    if len(lines) > 1:
        return sentence(f"{where} are {RUN_ONCE}")
    text = loop.nest.function.source.line(lines[0]).strip()
    return sentence(f"{where}, `{text}`, is {'one call, which one worker runs' if _is_call(loop) else RUN_ONCE}")


def _told(reason: Reason, loop: LoopPlan) -> str:
    return f"{in_written_names(reason.message, reason.code, loop.nest.function)} [{reason.code}]"


RUN_ONCE = "run once, on one worker"


def _is_call(loop: LoopPlan) -> bool:
    """Whether the statements that a planned loop stands for are one call."""
    match loop.nest.body:
        case (Assign(value=Call()) | Evaluate(Call()) | Return(Call()),):
            return True
        case _:
            return False


def _around(number: int, steps: Sequence[Step], line: int | None) -> int | None:
    """The line of the innermost loop around a planned loop; `line` is that of the loop around the steps."""
    for step in steps:
        match step:
            case RunLoop(other) if other == number:
                return line
            case Repeat(loop, inner):
                found = _around(number, inner, loop.span.line)
            case Branch(_, sides):
                found = next((one for side in sides if (one := _around(number, side, line)) is not None), None)
            case _:
                found = None
        if found is not None:
            return found
    return None


def _why_serial(loop: LoopPlan) -> str:
    conflicts = conflicts_of(loop)
    for blocker in blockers(loop, conflicts):
        conflict = next((one for one in conflicts if one.spans == blocker.spans), None)
        message = blocker.said[0]
        if conflict is not None and not conflict.is_scalar:
            meet = "meet" if any(map(is_certain, conflict.dependences)) else "may meet"
            written = written_names(loop.nest.function)
            where = f" in `{conflict.array}`" if conflict.array in written else ""
            message = f"{conflict.iterations} {meet}{where}{such_as(conflict)}"
        return f"{message} [{blocker.code}]"
    return ""


def _verdicts(loop: LoopPlan, plan: FunctionPlan) -> Iterator[tuple[int, str]]:
    """The `for`s in statements that run once which are not parallel by themselves, and what is said of them."""
    inside = {node.index for node in every(For, *loop.nest.body)}
    if isinstance(loop.form, Reordered | ReorderedSingle):
        spans = {node.span for part in loop.nest.body for node in walk(part)}
        around: dict[bool, set[int]] = {True: set(), False: set()}
        for statement in loop.form.origin.statements:
            around[statement.body[0].span in spans] |= {outer.index for outer in statement.loops}
        inside |= around[True] - around[False]
    for verdict in plan.verdicts:
        if verdict.index in inside and not verdict.is_parallel:
            yield verdict.line, verdict_on_for(replace(verdict, copies=()), plan.program.function)
