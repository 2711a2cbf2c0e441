"""Lines of generated source, each with the place in the user's source that it was made from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from orion.source import Span

INDENT = "    "


class Writer:
    """Collects indented lines.

    While `in_place` is not 0 an expression is being written that no statement may precede.
    """

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[tuple[str, Span | None]] = []
        self.depth = depth
        self.span: Span | None = None
        self.in_place = 0

    def add(self, text: str) -> None:
        """Add a line at the present depth, made from the present span.

        >>> writer = Writer(1)
        >>> writer.add("x = 1")
        >>> writer.lines
        [('    x = 1', None)]
        """
        self.lines.append((INDENT * self.depth + text if text else "", self.span))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A compound statement: `head` and, indented below it, what is added inside; `pass` where that is nothing."""
        self.add(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if all(line.strip().startswith("#") for line, _ in self.lines[before:]):
            self.add("pass")
        self.depth -= 1

    def leave_unless(self, call: str, leave: str = "return False") -> None:
        """Leave the function where a call gives False."""
        with self.block(f"if not {call}:"):
            self.add(leave)

    def extend(self, other: Writer) -> None:
        self.lines += other.lines

    def text(self) -> str:
        return "\n".join(line for line, _ in self.lines) + "\n"


class InPlace:
    """A context in which the writer takes no statements."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def __enter__(self) -> None:
        self.writer.in_place += 1

    def __exit__(self, *_: object) -> None:
        self.writer.in_place -= 1
