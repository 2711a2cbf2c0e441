"""The tree of a function's loops as text: a table where the columns fit, else two lines a loop."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

from orion.inspect.text.words import percent, time_in_words
from orion.inspect.tree.view import MOST, Tree, TreeLine
from orion.inspect.tree.words import INSIDE

HEADER, HOW = 34, 26
"""The least columns that a table has for headers of loops and for how they run, where these are that long."""

GAP = "  "
Row = tuple[str, ...]


def tree_lines(tree: Tree, width: int, most: int | None = MOST) -> list[str]:
    """Return the lines of the tree, at most `width` columns wide, for `most` loops (None for all); none of a function
    without a loop."""
    shown, left = tree.shown(most)
    if not shown:
        return []
    more = [f"{GAP}… and {left:,} more"] if left else []
    heads, numbers = _numbers(shown)
    sizes = [max(map(len, column)) for column in zip(heads, *numbers, strict=True)]
    room = width - len(GAP) * (3 + len(heads)) - _digits(shown) - sum(sizes)
    headers = [GAP * line.depth + line.text for line in shown]
    longest, longest_how = max(map(len, (*headers, "loop"))), max(len(line.how) for line in shown)
    first = max(min(longest, HEADER), min(longest, room - longest_how))
    if room - first < min(longest_how, HOW):
        return [*_stacked(shown, width), *more]
    how = min(longest_how, room - first)
    return [*_table(shown, (first, max(how, len("how"))), sizes), *more]


def totals(tree: Tree) -> str:
    """Return the seconds of the whole call, predicted and measured, to be appended to the verdict."""
    found = [
        f"{name} {time_in_words(seconds * 1e9)}"
        for name, seconds in (("predicted", tree.predicted), ("last run", tree.measured))
        if seconds is not None
    ]
    if tree.unpredicted:
        found.insert(0, f"no prediction: {tree.unpredicted}")
    return "".join(f"; {one}" for one in found)


def shortened(text: str, length: int) -> str:
    """Shorten a header between words.

    >>> shortened("for i in range(a.shape[0])", 20), shortened("for i in range(n)", 20)
    ('for i in range(a...', 'for i in range(n)')
    """
    if len(text) <= length:
        return text
    ends = [found.start() for found in re.finditer(r"(?<!\w)|(?!\w)", text) if found.start() <= length - 3]
    return text[: max(ends, default=0)].rstrip() + "..."


def _numbers(lines: Sequence[TreeLine]) -> tuple[Row, list[Row]]:
    """The heads of the columns of numbers that there are, and the cells of each line."""
    columns = [("share", ["" if line.share is None else percent(line.share) for line in lines])]
    columns.append(("predicted", [_time(line.predicted) for line in lines]))
    columns.append(("measured", [_time(line.measured) for line in lines]))
    kept = [(head, cells) for head, cells in columns if any(cells)]
    return tuple(head for head, _ in kept), [tuple(row) for row in zip(*(cells for _, cells in kept), strict=True)]


def _time(seconds: float | None) -> str:
    return "" if seconds is None else time_in_words(seconds * 1e9)


def _digits(lines: Sequence[TreeLine]) -> int:
    return max(len("line"), *(len(str(line.line)) for line in lines))


def _table(lines: Sequence[TreeLine], widths: tuple[int, int], sizes: Sequence[int]) -> Iterator[str]:
    heads, numbers = _numbers(lines)
    digits, (first, how) = _digits(lines), widths

    def row(number: str, text: str, words: str, cells: Sequence[str]) -> str:
        ends = [f"{cell:>{size}}" for cell, size in zip(cells, sizes, strict=True)]
        return GAP + GAP.join([f"{number:>{digits}}", f"{text:<{first}}", f"{words:<{how}}", *ends]).rstrip()

    yield row("line", "loop", "how", heads)
    for line, cells in zip(lines, numbers or [()] * len(lines), strict=True):
        words, *rest = wrap(line.how, how, break_long_words=False, break_on_hyphens=False) or [""]
        indent = GAP * line.depth
        yield row(str(line.line), indent + shortened(line.text, first - len(indent)), words, cells)
        for more in rest:
            yield row("", "", more, [""] * len(sizes))


def _stacked(lines: Sequence[TreeLine], width: int) -> Iterator[str]:
    """Each loop, and under it how it runs with its numbers."""
    heads, numbers = _numbers(lines)
    digits = _digits(lines)
    for line, cells in zip(lines, numbers or [()] * len(lines), strict=True):
        indent = GAP * min(line.depth, 4)
        before = f"{GAP}{line.line:>{digits}}{GAP}{indent}"
        yield before + shortened(line.text, width - len(before))
        said = [f"{cell} {head}" if head != "share" else cell for cell, head in zip(cells, heads, strict=True) if cell]
        words = "; ".join(filter(None, [line.how.removeprefix(INSIDE), ", ".join(said)]))
        under = " " * (len(before) + 2)
        yield from wrap(
            words, width, initial_indent=under, subsequent_indent=under, break_long_words=False, break_on_hyphens=False
        )
