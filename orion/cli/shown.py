"""What commands print: in the characters and the columns that the standard output has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

from orion.printable import printable


def show(text: str) -> None:
    """Print a text."""
    print(printable(text))


def in_columns(page: str, width: int) -> str:
    """Break the prose of a page in Markdown so that it is at most `width` columns wide; code and tables stay whole.

    >>> print(in_columns("Some loops are serial.\\n\\n- An item\\n- of a list\\n\\n    x = code()", 14))
    Some loops are
    serial.
    <BLANKLINE>
    - An item
    - of a list
    <BLANKLINE>
        x = code()
    """
    return "\n".join(line for block in _blocks(page) for line in _broken(block, width))


def hanging(text: str, width: int, head: str) -> str:
    """Return a text behind a head, broken at blanks; its further lines are as far in as the first."""
    indent = " " * len(head)
    lines = wrap(f"{head}{text}", width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


_FENCE = "```"
_VERBATIM = re.compile(r"\s{4}|\||#")
"""How lines begin that cannot be broken: code, rows of tables, headings."""
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def _blocks(page: str) -> Iterator[list[str]]:
    """Paragraphs and items of lists, each as its lines; other lines alone."""
    block: list[str] = []
    is_code = False
    for line in page.split("\n"):
        is_fence = line.startswith(_FENCE)
        is_alone = is_code or is_fence or not line.strip() or _VERBATIM.match(line) is not None
        is_code ^= is_fence
        if block and (is_alone or _ITEM.match(line)):
            yield block
            block = []
        if is_alone:
            yield [line]
        else:
            block.append(line)
    if block:
        yield block


def _broken(block: list[str], width: int) -> list[str]:
    first = block[0]
    if len(block) == 1 and (len(first) <= width or first.startswith(_FENCE) or _VERBATIM.match(first)):
        return block
    item = _ITEM.match(first)
    indent = " " * len(item[0]) if item else ""
    text = " ".join(line.strip() for line in block)
    return wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
