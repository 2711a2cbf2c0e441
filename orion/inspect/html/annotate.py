"""The user's source line by line, with the arrays that each line reads and writes and the verdict on each `for`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from orion.cost.candidate import Strategy
from orion.dataclass import dataclass
from orion.inspect.text.conflicts import told_conflicts
from orion.inspect.text.fors import each_for
from orion.inspect.text.names import in_names_here, is_sure_name
from orion.inspect.text.where import lines_run
from orion.inspect.text.words import choice_in_words
from orion.inspect.tree.view import MOST
from orion.ir.function import written_names
from orion.plan.plan import FunctionPlan, LoopPlan, is_of_source
from orion.plan.shares import by_cost
from orion.plan.source_plans import loops_of_source, source_plans
from orion.source import Span

MOST_LINES = 150
"""How many lines of the source are shown: notebooks keep every page."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is said of one source line: `badge` is the strategy of the loop that begins there."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    badge: str = ""
    words: str = ""
    is_serial: bool = False


def source_table(plan: FunctionPlan) -> str:
    """The annotated source of a function as an HTML table."""
    source = plan.program.function.source
    notes, marks = _notes(plan), _marks(plan)
    rows = []
    for number in _shown_lines(plan):
        if number is None:
            rows.append('<tr><td class="o-number">…</td></tr>')
            continue
        line = source.line(number)
        note = notes.get(number, Note())
        code = _marked(line, [(span, written) for span, written in marks if span.line == number])
        rows.append(
            f'<tr><td class="o-number">{number}</td><td>{_badge(note)}</td><td>{_names(note.reads)}</td>'
            f"<td>{_names(note.writes)}</td><td><code>{code}</code>{_remark(note.words)}</td></tr>"
        )
    head = "<thead><tr><th></th><th></th><th>reads</th><th>writes</th><th></th></tr></thead>"
    return f'<table class="o-source">{head}<tbody>{"".join(rows)}</tbody></table>'


def _shown_lines(plan: FunctionPlan) -> Iterator[int | None]:
    """The numbers of the lines to show, with None for each gap: of a long function with many loops, the head and the
    loops with most of the work."""
    first, lines = plan.program.function.source.first_line, plan.program.function.source.lines
    everything = range(first, first + len(lines))
    loops, kept = loops_of_source(plan), {first}
    if len(everything) <= MOST_LINES or len(loops) <= MOST:
        yield from everything
        return
    for at in by_cost(plan)[:MOST]:
        wanted = {loops[at].nest.span.line, *lines_run(loops[at])} & {*everything}
        if len(kept) == 1 or len(kept | wanted) <= MOST_LINES:
            kept |= wanted
    before = first - 1
    for number in sorted(kept):
        if number > before + 1:
            yield None
        yield number
        before = number
    if before < everything[-1]:
        yield None


def _names(arrays: Iterable[str]) -> str:
    return f"<code>{escape(', '.join(arrays))}</code>"


def _badge(note: Note) -> str:
    if not note.badge:
        return ""
    return f'<span class="o-badge {"o-serial" if note.is_serial else "o-parallel"}">{escape(note.badge)}</span>'


def _remark(words: str) -> str:
    return f'<span class="o-remark">{escape(words)}</span>' if words else ""


def _notes(plan: FunctionPlan) -> dict[int, Note]:
    """The notes by line number."""
    notes: dict[int, Note] = {}
    for loop in map(in_names_here, source_plans(plan)):
        for number in sorted({access.span.line for access in loop.analysis.accesses}):
            found = (access for access in loop.analysis.accesses if access.span.line == number)
            own = [access for access in found if is_sure_name(access.array, loop)]
            notes[number] = Note(
                reads=tuple(dict.fromkeys(a.array for a in own if not a.is_write)),
                writes=tuple(dict.fromkeys(a.array for a in own if a.is_write)),
                words=_reduced(loop, number),
            )
        if is_of_source(loop):
            notes |= _for_notes(loop, plan)
    return notes


def _reduced(loop: LoopPlan, line: int) -> str:
    scalars = loop.analysis.scalars
    names = [r.name for r in scalars.reductions if r.span.line == line]
    told = [f"{', '.join(names)}: a reduction"] if names else []
    written = written_names(loop.nest.function)
    choices = [(c, [name for name in c.names if name in written]) for c in scalars.choices if c.span.line == line]
    told += [f"{', '.join(own)}: {choice_in_words(c)}" for c, own in choices if own]
    return "; ".join(told)


def _for_notes(loop: LoopPlan, plan: FunctionPlan) -> dict[int, Note]:
    """A badge with the strategy at the first `for` of a loop, and what each of its `for`s carries."""
    first = loop.nest.span.line
    notes = {}
    lines = each_for(loop, plan)
    for one in lines:
        badge = loop.strategy if one.span.line == first else Strategy.SERIAL if one.is_around else ""
        said = "" if len(lines) == 1 and not loop.parts else one.words.removeprefix("serial, ")
        notes[one.span.line] = Note(badge=badge, words=said, is_serial=one.is_around or not loop.is_parallel)
    return notes


def _marks(plan: FunctionPlan) -> list[tuple[Span, bool]]:
    """The places of all accesses that conflict, and whether they write."""
    written: dict[Span, bool] = {}
    for loop in source_plans(plan):
        for conflict in told_conflicts(loop):
            for dependence in conflict.dependences:
                for access in (dependence.source, dependence.sink):
                    written[access.span] = written.get(access.span, False) or access.is_write
    return sorted(written.items())


def _marked(line: str, marks: list[tuple[Span, bool]]) -> str:
    """A source line with its marks, which may not overlap: of two that do, the first wins."""
    parts, done = [], 0
    for span, is_written in marks:
        end = span.end_column if span.end_line == span.line else len(line)
        if span.column < done:
            continue
        inside = escape(line[span.column : end])
        kind = ' class="o-written"' if is_written else ""
        parts += [escape(line[done : span.column]), f"<mark{kind}>{inside}</mark>"]
        done = end
    return "".join([*parts, escape(line[done:])])
