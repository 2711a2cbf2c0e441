"""Places in the user's program: spans, and the lines behind them."""

from __future__ import annotations

import os
import re
import sys
from enum import Enum
from types import FrameType

from orion.dataclass import dataclass, field, replace


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A region of a source file. Lines count from 1, columns from 0, as in Python's `ast`.

    >>> Span("train.py", 3, 4, 3, 9)
    Span(file='train.py', line=3, column=4, end_line=3, end_column=9)
    >>> str(Span("train.py", 3, 4, 3, 9)), str(Span("/tmp/ipykernel_71/1.py", 3, 4, 3, 9))
    ('train.py:3', 'this cell, line 3')
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    inlined: tuple[Span, ...] = field(default=(), repr=False)
    """The calls of helper functions in whose place the code stands: what two calls stand for has different spans."""

    @property
    def in_source(self) -> Span:
        """The region alone, whichever call the code stands for."""
        return replace(self, inlined=()) if self.inlined else self

    @property
    def place(self) -> tuple[int, ...]:
        """Line of the code, after the lines of the calls that it was inlined for, outermost first."""
        return (*(call.line for call in self.inlined), self.line)

    def __str__(self) -> str:
        """Return "file:line", or the cell of a notebook and the line."""
        cell = cell_of(self.file)
        return f"{cell}, line {self.line}" if cell else f"{self.file}:{self.line}"


def cell_of(file: str) -> str:
    """Return the name that readers have for a cell of a notebook, or a text at IPython's prompt; empty for other files.

    A cell that IPython does not know, as in another process, is "this cell".
    """
    if ".ipynb, cell " in file:  # one that was read from a file
        return file
    if f"{os.sep}ipykernel_" not in file and not file.startswith("<ipython-input"):
        return ""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    named = shell and shell.compile.format_code_name(file)
    return f"cell {named[1]}" if named and not _is_running(file) else "this cell"


def _is_running(file: str) -> bool:
    """Whether code of that file is what called, at any distance."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame is not None


class Way(Enum):
    """How a replacement is written."""

    HERE = "in the place of the region"
    NAMED = "where the name is used that is given the region's value"
    ITEMS = "names of items: in the place of a name, and of its subscripts"
    OTHER = "a name: in the place of another one, from its assignment on"
    OUTSIDE = "a function: before the one that the region is in"
    COPY = "in the place of the region, if nothing writes to what it is a part of"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Text that an error proposes for a region of the source, with the same meaning. Empty text removes the statement.

    `way`: how it is written, unless in the place of the region.
    """

    span: Span
    text: str
    way: Way = Way.HERE

    def told(self, hint: str) -> str:
        """Return a hint that contains the text: the message and the mended file then say the same."""
        text = f"{self.text} = …" if self.way in (Way.ITEMS, Way.OTHER) else self.text
        lines = (line.strip() for line in text.splitlines())
        words = ", then ".join(f"`{line}`" for line in lines if line and not line.startswith("#"))
        return hint if not words or words in hint or self.way is Way.NAMED else f"{hint}: here {words}"


@dataclass(frozen=True, slots=True)
class SourceText:
    """The lines of one function as its author wrote them.

    `lines[0]` is line `first_line` of `file`; nothing is dedented, so spans index it directly. `others` are those of
    functions in the same file that were put in place of their calls.

    >>> text = SourceText("train.py", 10, ("def f(a):", "    a[0] = 1"))
    >>> text.line(11)
    '    a[0] = 1'
    """

    file: str
    first_line: int
    lines: tuple[str, ...]
    others: tuple[SourceText, ...] = ()

    def line(self, number: int) -> str:
        """The source line with that number, or an empty string where it is not part of this text."""
        position = number - self.first_line
        if 0 <= position < len(self.lines):
            return self.lines[position]
        return next(filter(None, (other.line(number) for other in self.others)), "")

    def fresh(self, name: str) -> str:
        """A name like this one that the text does not have.

        >>> SourceText("train.py", 1, ("def f(a):", "    row = a[0]")).fresh("row")
        'row_2'
        """
        taken, found, number = set(re.findall(r"\w+", "\n".join(self.lines))), name, 2
        while found in taken:
            found, number = f"{name}_{number}", number + 1
        return found

    def block(self, span: Span) -> str | None:
        """The lines of a region, with the columns that they have below it; None where one begins before it.

        >>> SourceText("train.py", 1, ("def f(a):", "    if a:", "        a += 1")).block(Span("train.py", 2, 4, 3, 14))
        'if a:\\n    a += 1'
        """
        lines = [self.line(number) for number in range(span.line, span.end_line + 1)]
        lines[-1] = lines[-1][: span.end_column]
        before = lines[0][: span.column]
        if before.strip() or not all(line.startswith(before) or not line.strip() for line in lines):
            return None
        return "\n".join(line[len(before) :].rstrip() for line in lines)

    def whole_lines(self, span: Span) -> Span:
        """The region with what stands behind it."""
        return replace(span, end_column=len(self.line(span.end_line)))

    def quote(self, span: Span) -> str:
        """The first line of `span` with carets below what the span covers.

        >>> text = SourceText("train.py", 10, ("def f(a):", "    a[0] = 1"))
        >>> print(text.quote(Span("train.py", 11, 4, 11, 8)))
          11 |     a[0] = 1
             |     ^^^^
        """
        line = self.line(span.line)
        end = span.end_column if span.end_line == span.line else len(line)
        carets = blanks_under(line[: span.column]) + "^" * max(1, end - span.column)
        return f"{span.line:4d} | {line}\n     | {carets}"


def blanks_under(text: str) -> str:
    """Blanks as wide as a text in the line above; tabs stay tabs.

    >>> blanks_under("\\ta = ")
    '\\t    '
    """
    return re.sub(r"[^\t]", " ", text)


_CODE = re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^#'"])*""")
"""Text up to a comment, or to a quote that is not closed."""


def without_comment(line: str) -> str:
    """A line of source without the comment at its end.

    >>> without_comment("for i in range(n):  # rows"), without_comment("a['#'] = 1")
    ('for i in range(n):', "a['#'] = 1")
    """
    found = _CODE.match(line)
    code = found[0] if found else ""
    return code.rstrip() if line[len(code) :].startswith("#") else line.rstrip()
