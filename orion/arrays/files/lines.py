"""Text files as bytes for Arrow and as lines for the search for errors; unpacked, whatever the separator.

A line is what `\\n`, `\\r` or `\\r\\n` ends, quotation marks or not, and is one element or blank. Where a quotation
mark is still open at the end of a line, Arrow goes on in the next one, up to the end of a block, and says nothing of
having fewer elements then. So the lines are counted here. It parses by itself a line that goes on from one block to the
next, and what stands between two such, so that only those and the last ones before them can be open without the count
showing it.
"""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orion.errors import ArgumentError, DataFormatError, StorageError, describe
from orion.extras import require

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".dat": "::"}
PACKED = (".gz", ".bz2", ".zst", ".lz4")

STAND_IN = "\x1f"
"""What a separator of several characters is replaced by, as Arrow takes one: ASCII's own unit separator."""

BLOCK = 1 << 20
"""Bytes that are read at a time, and the most that a line may have."""

_PIECE = 1 << 16
"""Bytes in which line ends are looked for at a time: arrays as long as a block would take new pages of memory."""

_NEAR = 1 << 12
"""Bytes at the end of a block that its last lines are looked for in first."""

FOREIGN = {
    rb"\xff\xfe|\xfe\xff": ("text in UTF-16", "save it as UTF-8"),
    rb"\x1f\x8b": ("packed by gzip, which its name does not say", "name it ….gz"),
    rb"BZh[1-9]1AY&SY": ("packed by bzip2, which its name does not say", "name it ….bz2"),
    rb"\x28\xb5\x2f\xfd": ("packed by zstd, which its name does not say", "name it ….zst"),
    rb"\x04\x22\x4d\x18": ("packed by lz4, which its name does not say", "name it ….lz4"),
    rb"\xfd7zXZ": ("packed by xz, which is not unpacked here", "unpack it first"),
    rb"PK\x03\x04": ("an archive or a workbook, not text", "unpack it, or save the sheet as CSV, first"),
    rb"PAR1[\x00-\x1f]": ("a Parquet file, not text", "read it with `orion.read_parquet`"),
}
"""What the first bytes say of files that are no lines of UTF-8 (patterns), and what to do with them."""

_LINE_END = re.compile(rb"[\r\n]")
_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"


class Separator(NamedTuple):
    """What separates the columns, and whether an entry in quotation marks may hold it."""

    text: str
    quoted: bool

    @property
    def delimiter(self) -> str:
        """The one character that separates columns in what Arrow reads."""
        return self.text if len(self.text.encode()) == 1 else STAND_IN


class Line(NamedTuple):
    """A line that is not blank: its number (from 1), the bytes of the file before it and after it, and itself."""

    number: int
    start: int
    end: int
    data: bytes


class Row(NamedTuple):
    """A line cut into entries. `open` is the position of the entry whose quotation mark is not closed, if any."""

    line: Line
    fields: list[str]
    open: int | None
    text: str


def checked_separator(path: str, sep: str | None, quoted: bool) -> Separator:
    """`sep`, or what the ending of the file's name says. `ArgumentError` if neither is of use."""
    if sep is None:
        stem, ending = os.path.splitext(path.lower())
        if ending in PACKED:
            ending = os.path.splitext(stem)[1]
        if ending not in SEPARATORS:
            raise ArgumentError(
                describe(f"the name of {path} does not say what separates its columns", hint="say sep=','")
            )
        sep = SEPARATORS[ending]
    if not sep or any(c in sep for c in '\r\n"'):
        raise ArgumentError(describe(f"{sep!r} cannot separate columns"))
    return Separator(sep, quoted and len(sep) == 1)


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """The unpacked bytes of a file. `DataFormatError` if it is missing or damaged, or no file."""
    require("pyarrow", "reading files")
    import pyarrow

    if os.path.isdir(path):
        raise DataFormatError(f"{path} is a folder, not a file")
    if os.path.exists(path) and not os.path.isfile(path):
        hint = "write what comes out of it to a file first"
        raise DataFormatError(describe(f"{path} is a pipe or a device, which cannot be read twice", hint=hint))
    try:
        with pyarrow.input_stream(path) as stream:
            yield stream
    except FileNotFoundError as error:
        raise DataFormatError(f"there is no file {path}") from error
    except StorageError:  # of where elements are put, not of the file
        raise
    except OSError as error:
        raise DataFormatError(f"{path} cannot be read: {error}") from error


def read_lines(path: str, skip_lines: int = 0) -> Iterator[Line]:
    """The lines of a file that are not blank, after the first `skip_lines` of all. `DataFormatError` also for a line
    of more than `BLOCK` bytes.
    """
    with opened(path) as stream, io.TextIOWrapper(stream, encoding="latin-1", newline="") as text:
        start = 0
        for number, line in enumerate(iter(lambda: text.readline(BLOCK + 1), ""), start=1):
            end = start + len(line)
            if len(line) > BLOCK:
                raise DataFormatError(f"{path}, line {number} has more than {BLOCK:,} bytes\n    | {line[:100]}")
            data = line.encode("latin-1")
            if not start:
                refuse_foreign(path, data)
            if not start and data.startswith(codecs.BOM_UTF8):
                start, data = len(codecs.BOM_UTF8), data.removeprefix(codecs.BOM_UTF8)
            if number > skip_lines and data.rstrip(b"\r\n"):
                yield Line(number, start, end, data)
            start = end


def refuse_foreign(path: str, data: bytes) -> None:
    """DataFormatError where the first bytes of a file are not those of lines of UTF-8."""
    for first, (what, hint) in FOREIGN.items():
        if re.match(first, data):
            raise DataFormatError(describe(f"{path} is {what}", hint=hint))


def cut(line: Line, separator: Separator) -> Row:
    """A line cut into entries, as Arrow and Python's csv module do it."""
    text = line.data.decode("utf-8", errors="replace").rstrip("\r\n")
    return Row(line, *_entries(text, separator), text)


def _entries(text: str, separator: Separator) -> tuple[list[str], int | None]:
    """The entries of a line, and the position of the one that is open at its end, if any."""
    if not separator.quoted or '"' not in text:
        return text.split(separator.text), None
    entry = re.compile(rf'(?:"((?:[^"]|"")*)("|\Z))?([^{re.escape(separator.text)}]*)')
    fields: list[str] = []
    unclosed, at = None, 0
    while at <= len(text):
        found = entry.match(text, at)
        assert found is not None  # an entry may be empty
        if found[2] == "":
            unclosed = len(fields)
        fields.append((found[1] or "").replace('""', '"') + found[3])
        at = found.end() + 1
    return fields, unclosed


class DataLines:
    """The bytes of a file's data as a file for Arrow. `lines` are those read that are not blank, and `is_open` says
    whether one at the edge of a block ends inside quotation marks.
    """

    def __init__(self, read: Callable[[int], Any], separator: Separator) -> None:
        self._read = read
        self._separator = Separator(separator.delimiter, separator.quoted)
        self._after_line_end = True
        self._begun = b""
        self.lines = 0
        self.is_open = False
        self.closed = False

    def read(self, size: int = -1) -> Any:
        """At most `size` bytes, none only at the end."""
        block = self._read(BLOCK if size < 0 else size)
        whole = np.frombuffer(block, np.uint8)
        for start in range(0, len(whole), _PIECE):
            self._count(whole[start : start + _PIECE])
        if self._separator.quoted:
            self._look_at_edges(memoryview(block))
        return block

    def _count(self, piece: NDArray[np.uint8]) -> None:
        """Add the lines that begin in a piece: with bytes that end no line, at its start or after one that does."""
        ends = piece == _LINE_FEED
        ends |= piece == _CARRIAGE_RETURN
        self.lines += int(np.count_nonzero(ends[:-1] > ends[1:])) + int(self._after_line_end and not ends[0])
        self._after_line_end = bool(ends[-1])

    def _look_at_edges(self, block: memoryview) -> None:
        """Look at the line that goes on in this block, and at the last one that ends in it."""
        first = _LINE_END.search(block)
        if not first:  # none ends here, or it is the end of the file
            self._begun += block
            self._look_at(b"" if block else self._begun)
            return
        self._look_at(self._begun + block[: first.start()])
        last, self._begun = _last_lines(block)
        self._look_at(last)

    def _look_at(self, line: bytes) -> None:
        if b'"' in line:
            self.is_open |= _entries(line.decode("latin-1"), self._separator)[1] is not None

    def close(self) -> None:
        """The stream underneath is closed by who opened it."""
        self.closed = True


def _last_lines(block: memoryview) -> tuple[bytes, bytes]:
    """The last line that begins and ends in a block, empty if there is none, and what is there of the next one."""
    for size in (_NEAR, len(block)):
        tail = bytes(block[-size:])
        after = _after_last_end(tail)
        done = tail[:after].rstrip(b"\r\n")
        start = _after_last_end(done)
        if start:
            return done[start:], tail[after:]
    return b"", tail[after:]


def _after_last_end(data: bytes) -> int:
    """The position after the last end of a line, 0 if there is none."""
    return max(data.rfind(b"\n"), data.rfind(b"\r")) + 1


def reader(stream: Any, separator: Separator) -> Callable[[int], Any]:
    """What reads blocks of a stream, with `separator.delimiter` between the columns."""
    if separator.delimiter == separator.text:
        return getattr(stream, "read_buffer", stream.read)  # type: ignore[no-any-return]
    return _Replacing(stream, separator.text.encode(), separator.delimiter.encode()).read


class _Replacing:
    """A stream of bytes in which every occurrence of `old` is replaced by `new`."""

    def __init__(self, stream: Any, old: bytes, new: bytes) -> None:
        self._stream, self._old, self._new = stream, old, new
        self._kept = b""

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, none only at the end."""
        while True:
            block = self._stream.read(BLOCK if size < 0 else min(size, BLOCK))
            pieces = (self._kept + block).split(self._old)
            # An occurrence may begin at the end of this block and go on in the next.
            kept = self._begun(pieces[-1]) if block else 0
            self._kept = pieces[-1][len(pieces[-1]) - kept :]
            pieces[-1] = pieces[-1][: len(pieces[-1]) - kept]
            ready = self._new.join(pieces)
            if ready or not block:
                return ready

    def _begun(self, data: bytes) -> int:
        return next((n for n in range(len(self._old) - 1, 0, -1) if data.endswith(self._old[:n])), 0)
