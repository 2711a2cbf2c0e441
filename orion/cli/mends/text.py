"""The text of a Python file, and changes of it: tabs, line ends, byte order mark and encoding stay as they are."""

from __future__ import annotations

import ast
import bisect
import contextlib
import io
import os
import re
import tempfile
import tokenize
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from orion.dataclass import dataclass


class ChangedError(Exception):
    """The file is not what was read any more."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters `start` to `end` of a text, and what is put in their place."""

    start: int
    end: int
    text: str


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with the edits, which do not overlap. Of those at one place the first come first.

    >>> applied("a = b", [Edit(4, 5, "c"), Edit(0, 0, "x")])
    'xa = c'
    """
    parts, at = [], 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if edit.start < at:
            raise ValueError("edits overlap")
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


@dataclass(frozen=True)
class Source:
    """The text of a file, as Python reads it but for its line ends."""

    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their ends, as Python counts them."""
        return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", self.text)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line))
        return starts

    def offset(self, line: int, octets: int) -> int:
        """Return the place of a line and a column, which `ast` counts in bytes of UTF-8."""
        text = self.lines[line - 1]
        return self._starts[line - 1] + len(text.encode()[:octets].decode())

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def of(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of a node."""
        return self.text[self.start(node) : self.end(node)]

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def place(self, at: int) -> tuple[int, int]:
        """Return the line and the column, in characters, of a place."""
        line = bisect.bisect_right(self._starts, at)
        return line, at - self._starts[line - 1]

    def line_end(self, line: int) -> int:
        """Return the place behind a line with its end."""
        return self._starts[line]

    def indentation(self, node: ast.stmt) -> str:
        """Return what stands before a statement that begins its line."""
        return self.text[self.line_start(node.lineno) : self.start(node)]

    def stands_alone(self, node: ast.stmt) -> bool:
        """Whether a statement has its lines for itself, but for comments."""
        after = self.text[self.end(node) : self.line_end(node.end_lineno or node.lineno)]
        return not self.indentation(node).strip() and not after.partition("#")[0].strip()

    @property
    def newline(self) -> str:
        """How lines end: as the first one does."""
        found = re.search(r"\r\n|\r|\n", self.text)
        return found[0] if found else "\n"

    def rows(self, first: int, last: int) -> list[str]:
        """Return lines `first` to `last`, without their ends."""
        return [line.rstrip("\r\n") for line in self.lines[first - 1 : last]]

    def fresh(self, name: str, function: ast.FunctionDef) -> str:
        """Return a name like this one that a function does not have."""
        taken, found, number = set(re.findall(r"\w+", self.of(function))), name, 2
        while found in taken:
            found, number = f"{name}_{number}", number + 1
        return found


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file as it was read: its bytes, and how they are a text."""

    path: Path
    data: bytes
    encoding: str

    @property
    def text(self) -> str:
        return self.data.decode(self.encoding)

    def encoded(self, text: str) -> bytes:
        """Return the bytes of the file with another text."""
        return text.encode(self.encoding)

    def write(self, text: str) -> None:
        """Put another text in its place at once. ChangedError where the file is not what was read any more; OSError
        where it cannot or must not be written: then it is as it was."""
        path = Path(os.path.realpath(self.path))
        path.open("r+b").close()  # who may write the folder alone could replace it
        before = path.stat()
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.encoded(text))
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(OSError):  # only root may give files away
                os.chown(temporary, before.st_uid, before.st_gid)
            os.chmod(temporary, before.st_mode & 0o7777)
            if path.read_bytes() != self.data:
                raise ChangedError(f"{self.path} has changed since it was read: nothing is written")
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def read_file(path: Path) -> ReadFile:
    """Read a Python file. OSError, SyntaxError or UnicodeError where it cannot be."""
    data = path.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    found = ReadFile(path, data, encoding)
    _ = found.text
    return found
