"""A plan as text: what `print(plan)` shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from orion.inspect.conflicts import Conflict, conflicts_of
from orion.inspect.parts import Told, new_order, whole_in_words
from orion.inspect.telling import (
    NO_BREAK,
    NO_CONFLICTS,
    Blocker,
    accesses_in_words,
    blockers,
    but_for,
    data,
    each_for,
    flattened,
    inductions,
    loops_around,
    makes,
    not_written_by_user,
    private_arrays,
    reductions,
    renamed,
    runs_on,
    signature,
    together,
    verdict_in_words,
    why_not,
)  # fmt: skip
from orion.inspect.words import iterations_in_words, order_in_words, place
from orion.loop.source import SourceText, Span
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.plan.whole import whole_loops

WIDTH = 100
LABEL = 12
"""Width of the column that says what a line is about."""


def plan_text(plan: FunctionPlan) -> str:
    """The plan of a function as text, at most 100 columns wide (source lines that are longer stay whole).

    Made from the plan alone: nothing is run.
    """
    head = f"{signature(plan)}: {verdict_in_words(plan)}"
    parts = ["\n".join([head, *_labelled("makes", table(makes(plan)), gap=True)])]
    parts += ("\n".join(_loop(loop, plan)) for loop in whole_loops(plan))
    return "\n\n".join(parts)


def _loop(loop: LoopPlan, plan: FunctionPlan) -> Iterator[str]:
    nest = loop.nest
    source = nest.function.source
    yield place(nest.span)
    if not loop.is_written_by_user:
        yield f"  {nest.span.line:4d} | {source.line(nest.span.line)}"
        yield ""
        label, words = not_written_by_user(loop)
        yield from _labelled(label, [Line(words)])
        return
    for outer in (*loops_around(loop, plan), *nest.loops):
        yield f"  {outer.span.line:4d} | {source.line(outer.span.line)}"
    yield ""
    yield from _labelled("strategy", [Line(f"{loop.strategy}: {whole_in_words(loop)}")])
    yield from _labelled("order", [Line(order_in_words(loop))])
    yield from _labelled("new order", map(_indented, new_order(loop, plan)))
    yield from _labelled("iterations", [Line(iterations_in_words(loop))])
    yield from _labelled("runs on", map(Line, runs_on(loop)))
    yield from _labelled("together", map(Line, together(loop)))
    yield from _labelled("reductions", map(Line, reductions(loop)))
    yield from _labelled("inductions", map(Line, inductions(loop)))
    yield from _labelled("rows", map(Line, flattened(loop)))
    yield from _labelled("private", map(Line, private_arrays(loop)))
    yield from _labelled("renamed", map(Line, renamed(loop, plan)))
    lines = each_for(loop, plan)
    if len(lines) > 1 or loop.parts:
        rows = [(source.line(one.span.line).strip().removesuffix(":"), one.words) for one in lines]
        yield from _labelled("each for", table(rows))
    yield from _findings(loop)


def _findings(loop: LoopPlan) -> Iterator[str]:
    conflicts = conflicts_of(loop)
    if loop.is_parallel:
        yield from _labelled("conflicts", _conflicts(conflicts), gap=True)
        rows = [(strategies, why) for strategies, why, _ in why_not(loop, conflicts)]
        yield from _labelled("why not", table(rows), gap=True)
        yield from _labelled("data", table(_data(loop)), gap=True)
    else:
        entries = [_entry(blocker, loop.nest.function.source) for blocker in blockers(loop, conflicts)]
        rest = but_for(loop)
        yield from _labelled("blocked by", _separated([*([iter([Line(rest)])] if rest else []), *entries]), gap=True)


def _indented(told: Told) -> Line:
    """A line about the new order; what follows its number is under it."""
    indent = "  " * told.depth
    return Line(indent + told.words, len(indent) + (3 if told.words[:1].isdigit() else 0))


def _conflicts(conflicts: Sequence[Conflict]) -> Iterator[Line]:
    if not conflicts:
        yield Line(NO_CONFLICTS)
    rows = [(c.array, c.iterations, accesses_in_words(c)) for c in conflicts]
    for conflict, row in zip(conflicts, table(rows), strict=True):
        yield row
        if conflict.reason.message:
            yield Line(f"{conflict.reason.message} [{conflict.reason.code}]")


def _data(loop: LoopPlan) -> Iterator[tuple[str, ...]]:
    if loop.runs_on == 1:
        yield from ((array, where) for array, _, where in data(loop))
    elif loop.placements:
        yield "array", "moved per run", "where it lives"
        yield from data(loop)


def _separated(entries: Iterable[Iterable[Line]]) -> Iterator[Line]:
    for position, entry in enumerate(entries):
        if position:
            yield Line("")
        yield from entry


def _entry(blocker: Blocker, source: SourceText) -> Iterator[Line]:
    code = f"{blocker.code}  "
    indent = " " * len(code)
    for position, words in enumerate(blocker.said):
        yield Line((code if position == 0 else indent) + words, len(code))
    for words in quoted(blocker.spans, source):
        yield Line(indent + words, verbatim=True)
    if blocker.hint:
        yield Line(f"{indent}help: {blocker.hint}", len(indent) + len("help: "))


def quoted(spans: Iterable[Span], source: SourceText) -> Iterator[str]:
    """Each source line once, with carets under everything in it that `spans` cover."""
    spans = tuple(spans)
    lines = [line for line in sorted({span.line for span in spans}) if source.line(line)]
    texts = [source.line(line) for line in lines]
    indent = min((len(text) - len(text.lstrip()) for text in texts), default=0)
    for line, text in zip(lines, texts, strict=True):
        marks = [" "] * len(text)
        for span in (span for span in spans if span.line == line):
            end = span.end_column if span.end_line == line else len(text)
            marks[span.column : end] = "^" * (end - span.column)
        yield f"{line:4d} | {text[indent:]}"
        yield f"     | {''.join(marks)[indent:].rstrip()}"


# ---------------------------------------------------------------- layout


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the text. What goes over its end is indented by `hang`; a `verbatim` one is never wrapped."""

    words: str
    hang: int = 0
    verbatim: bool = False

    def wrapped(self, width: int) -> list[str]:
        if self.verbatim or len(self.words) <= width:
            return [self.words]
        head, rest = self.words[: self.hang], self.words[self.hang :]
        first, *others = wrap(rest, width - self.hang, break_long_words=False, break_on_hyphens=False)
        return [head + first, *(" " * self.hang + part for part in others)]


def _labelled(label: str, lines: Iterable[Line], gap: bool = False) -> Iterator[str]:
    """Lines with a label before the first."""
    head = f"  {label:<{LABEL}}"
    for position, line in enumerate(lines):
        if position == 0 and gap:
            yield ""
        for part in line.wrapped(WIDTH - len(head)):
            yield (head + part).rstrip().replace(NO_BREAK, " ")
            head = " " * len(head)


def table(rows: Iterable[tuple[str, ...]]) -> list[Line]:
    """Rows as lines with aligned columns, two blanks apart; the last column is the one that wraps."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    hang = sum(widths) + 2 * len(widths)
    heads = ["".join(f"{cell:<{width}}  " for cell, width in zip(row[:-1], widths, strict=True)) for row in rows]
    return [Line(head + row[-1], hang) for head, row in zip(heads, rows, strict=True)]
