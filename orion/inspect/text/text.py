"""A plan as text: what `print(plan)` shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from shutil import get_terminal_size
from textwrap import wrap

from orion.dataclass import dataclass, replace
from orion.inspect.text.alike import Section, folded
from orion.inspect.text.conflicts import Conflict, told_conflicts
from orion.inspect.text.fors import each_for, loops_around
from orion.inspect.text.names import as_shown
from orion.inspect.text.order import order_in_words
from orion.inspect.text.parts import Told, new_order, tiles_in_words
from orion.inspect.text.relaxed import relaxed_in_words
from orion.inspect.text.telling import (
    NO_BREAK,
    NO_CONFLICTS,
    SENT,
    SHARED,
    Blocker,
    accesses_in_words,
    blockers,
    but_for,
    conditions,
    considered,
    copied_in,
    data,
    exits,
    flattened,
    fused_with,
    has_sent,
    inductions,
    makes,
    notes,
    private_arrays,
    reductions,
    runs_on,
    scans,
    shuffled,
    why_not,
)
from orion.inspect.text.words import counted, iterations_in_words, place
from orion.inspect.tree.options import option_rows
from orion.inspect.tree.text import totals, tree_lines
from orion.inspect.tree.view import MOST, Tree, tree_of
from orion.ir.function import in_users_words
from orion.plan.called import code_of
from orion.plan.plan import FunctionPlan, Inspected, LoopPlan
from orion.plan.shares import by_cost
from orion.plan.source_plans import loops_of_source
from orion.source import SourceText, Span, blanks_under

WIDTH = 100
NARROW = 24
"""The last column of a table is under the others where it would be narrower."""

NARROWEST = 40
WHERE_ALL_ARE = "`print(plan.text())` shows all, as does `orion explain --all`"
LEAST_INDENT = 2
LABEL = 12
"""Width of the column that says what a line is about."""


def plan_text(
    plan: FunctionPlan,
    width: int = WIDTH,
    tree: Tree | None = None,
    most: int | None = MOST,
    letters: Callable[[str], str] = str,
) -> str:
    """The plan of a function as text, at most `width` columns wide (source lines that are longer stay whole): first the
    `tree` of its loops, made from the plan alone where none is given. Nothing is run. Of many loops the `most` with
    most of the work are shown; None for all. `letters` writes texts in the characters that there are.
    """
    tree = (tree or tree_of(plan)).in_letters(letters)
    lines = [*_tree(tree, width, most), *_labelled("options", table(option_rows(tree)), gap=True)]
    told = [Line(condition) for condition in conditions(plan)]
    arrays = [
        *_labelled("makes", table(makes(plan)), gap=True),
        *_labelled("shuffled", table(shuffled(plan)), gap=True),
    ]
    parts = [[*lines, *_labelled("if", told, gap=True), *arrays]]
    loops, kept = loops_of_source(plan), sorted(by_cost(plan)[:most])
    parts += [list(_section(section, plan)) for section in sections(plan, kept)]
    if len(kept) < len(loops):
        parts.append([Line(f"… and {counted(len(loops) - len(kept), 'loop')} more: {WHERE_ALL_ARE}")])
    if considered(plan):
        parts.append([Line("considered, and not taken"), *_considered(plan)])
    said = [[_in_users_words(line, plan).in_letters(letters) for line in part] for part in parts]
    return "\n\n".join("\n".join(_laid_out(part, width)) for part in said)


def tree_text(tree: Tree, width: int = WIDTH) -> str:
    """The verdict on a function and the tree of its loops."""
    return "\n".join(_laid_out(_tree(tree, width), width))


def _tree(tree: Tree, width: int, most: int | None = MOST) -> list[Line]:
    first = Line(f"{tree.function}: {tree.verdict}{totals(tree)}", 0, 4)
    return [first, *(Line(text, verbatim=True) for text in tree_lines(tree, width, most))]


def _in_users_words(line: Line, plan: FunctionPlan) -> Line:
    return line if line.verbatim else replace(line, words=in_users_words(line.words, plan.program.function))


def terminal_width() -> int:
    """The columns of the terminal; WIDTH where there is none, or it is wider: longer lines are harder to read."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    columns = get_terminal_size((WIDTH, 24)).columns if is_terminal or "COLUMNS" in os.environ else WIDTH
    return max(NARROWEST, min(WIDTH, columns))


def _considered(plan: FunctionPlan) -> Iterator[Line]:
    """Other ways to run the function, each with its predicted time and the reason against it."""
    for name, time, why in considered(plan):
        predicted = "" if time == "unknown" else f"; predicted: {time}"
        yield from _labelled("", [Line(f"{name}{predicted}")])
        yield from _labelled("", [Line(f"  {why}", 2)])


def sections(plan: FunctionPlan, kept: Iterable[int]) -> tuple[Section, ...]:
    """Return the sections of some of the loops of the source, by their positions, as every view has them."""
    loops = loops_of_source(plan)

    def told(loop: LoopPlan) -> str:
        return "\n".join(line.words for line in (*_source_of(loop, plan), *_facts(loop, plan)))

    return folded({at: as_shown(loops[at]) for at in kept}, told)


def _section(section: Section, plan: FunctionPlan) -> Iterator[Line]:
    yield from _source_of(section.loop, plan)
    yield Line("")
    yield from _labelled("alike", map(Line, section.words()))
    yield from _facts(section.loop, plan)


def _source_of(loop: LoopPlan, plan: FunctionPlan) -> Iterator[Line]:
    """Where a loop stands, and its headers."""
    nest = loop.nest
    yield Line(place(nest.span), verbatim=True)
    for line in dict.fromkeys(outer.span.line for outer in (*loops_around(loop, plan), *nest.loops)):
        yield Line(f"  {line:4d} | {nest.function.source.line(line)}", verbatim=True)


def _facts(loop: LoopPlan, plan: FunctionPlan) -> Iterator[Line]:
    """What is told of a loop."""
    source = loop.nest.function.source
    yield from _labelled("strategy", [Line(f"{loop.strategy}: {tiles_in_words(loop)}")])
    yield from _labelled("order", [Line(order_in_words(loop, plan))])
    yield from _labelled("new order", map(_indented, new_order(loop, plan)))
    yield from _labelled("iterations", [Line(iterations_in_words(loop))])
    yield from _labelled("runs on", map(Line, runs_on(loop)))
    yield from _labelled("fused", map(Line, fused_with(loop)))
    yield from _labelled("reductions", map(Line, reductions(loop)))
    yield from _labelled("ends early", map(Line, exits(loop)))
    yield from _labelled("scans", map(Line, scans(loop, plan)))
    yield from _labelled("inductions", map(Line, inductions(loop)))
    yield from _labelled("rows", map(Line, flattened(loop)))
    yield from _labelled("private", map(Line, private_arrays(loop)))
    yield from _labelled("relaxed", map(Line, relaxed_in_words(loop)))
    yield from _labelled("copied in", map(Line, copied_in(loop, plan)))
    yield from _labelled("notes", map(Line, notes(loop)))
    lines = each_for(loop, plan)
    if len(lines) > 1 or loop.parts:
        rows = [(code_of(source, one.span.line), one.words) for one in lines]
        yield from _labelled("each for", table(rows))
    yield from _findings(loop, plan)


def _findings(loop: LoopPlan, plan: FunctionPlan) -> Iterator[Line]:
    conflicts = told_conflicts(loop)
    if loop.is_parallel:
        is_listed = isinstance(loop.tiles, Inspected)  # then it is known which elements are touched
        yield from _labelled("conflicts", _conflicts(conflicts, is_listed), gap=True)
        against = why_not(loop, conflicts)
        rows = [
            (names, "no, " + why + ("" if reason.is_about_a_pair else f" [{reason.code}]") + reason.help)
            for names, why, reason in against
        ]
        yield from _labelled("simpler", table(rows), gap=True)
        yield from _labelled("data", _data(loop, plan), gap=True)
    else:
        entries = [_entry(blocker, loop.nest.function.source) for blocker in blockers(loop, conflicts)]
        rest = but_for(loop)
        yield from _labelled("blocked by", _separated([*([iter([Line(rest)])] if rest else []), *entries]), gap=True)


def _indented(told: Told) -> Line:
    """A line about the new order; what follows its number is under it."""
    indent = "  " * told.depth
    return Line(indent + told.words, len(indent) + (3 if told.words[:1].isdigit() else 0))


def _conflicts(conflicts: Sequence[Conflict], is_listed: bool) -> Iterator[Line]:
    if not conflicts:
        yield Line(NO_CONFLICTS)
    rows = [(c.array, c.iterations, accesses_in_words(c)) for c in conflicts]
    for conflict, row in zip(conflicts, table(rows), strict=True):
        yield row
        if conflict.reason.message and not is_listed:
            yield Line(conflict.reason.told)


def _data(loop: LoopPlan, plan: FunctionPlan) -> Iterator[Line]:
    rows = data(loop, plan)
    if rows and has_sent(loop, plan):
        sent = [(array, moved, where) for array, where, moved in rows]
        yield from table([("array", SENT, "where it lives"), *sent])
        return
    if rows and loop.runs_on > 1:
        yield Line(SHARED)
    yield from table([(array, where) for array, where, _ in rows])


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
        marks = [*blanks_under(text)]
        for span in (span for span in spans if span.line == line):
            end = span.end_column if span.end_line == line else len(text)
            marks[span.column : end] = "^" * (end - span.column)  # spans begin behind the tabs of an indentation
        yield f"{line:4d} | {text[indent:]}"
        yield f"     | {''.join(marks)[indent:].rstrip()}"


# ---------------------------------------------------------------- layout


def _laid_out(lines: Iterable[Line], width: int) -> Iterator[str]:
    """Lines of text, at most `width` columns wide where they can be broken. Verbatim lines after one another, such as a
    quote and its carets, go left together as far as that makes them fit."""
    for verbatim, group in groupby(lines, lambda line: line.verbatim):
        texts = [text for line in group for text in line.laid_out(width)]
        indent = min((len(text) - len(text.lstrip(" ")) for text in texts), default=0)
        excess = max(map(len, texts), default=0) - width
        cut = max(0, min(indent - LEAST_INDENT, excess)) if verbatim else 0
        yield from (text[cut:] for text in texts)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the text. Its first `hang` characters are not broken; what goes over its end is indented by as many and
    `more`. A `verbatim` line is never broken."""

    words: str
    hang: int = 0
    more: int = 0
    verbatim: bool = False

    def in_letters(self, letters: Callable[[str], str]) -> Line:
        """The line in the characters that `letters` writes, which may be more."""
        head = letters(self.words[: self.hang])
        return replace(self, words=head + letters(self.words[self.hang :]), hang=len(head))

    def laid_out(self, width: int) -> list[str]:
        """The lines of at most `width` columns that it takes."""
        return [line.rstrip().replace(NO_BREAK, " ") for line in self._wrapped(width)]

    def _wrapped(self, width: int) -> list[str]:
        if self.verbatim or len(self.words) <= width:
            return [self.words]
        head, rest, indent = self.words[: self.hang], self.words[self.hang :], " " * (self.hang + self.more)
        if width - len(indent) < NARROW:  # columns do not fit beside each other
            first = _broken(head.rstrip(), width, " " * (LABEL + 2))
            return [*first, *_broken(" " * (LABEL + 4) + rest, width, " " * (LABEL + 4))]
        return _broken(head + rest, width, indent)


def _broken(words: str, width: int, indent: str) -> list[str]:
    """Words in lines of at most `width` columns, as far as they can be broken; lines after the first are indented."""
    return wrap(words, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _labelled(label: str, lines: Iterable[Line], gap: bool = False) -> Iterator[Line]:
    """Lines with a label before the first."""
    head = f"  {label:<{LABEL}}"
    for position, line in enumerate(lines):
        if position == 0 and gap:
            yield Line("")
        yield Line(head + line.words, len(head) + line.hang, line.more, line.verbatim)
        head = " " * len(head)


def table(rows: Iterable[tuple[str, ...]]) -> list[Line]:
    """Rows as lines with aligned columns, two blanks apart; the last column is the one that wraps."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    hang = sum(widths) + 2 * len(widths)
    heads = ["".join(f"{cell:<{width}}  " for cell, width in zip(row[:-1], widths, strict=True)) for row in rows]
    return [Line(head + row[-1], hang) for head, row in zip(heads, rows, strict=True)]
