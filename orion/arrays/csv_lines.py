"""Text files as bytes for Arrow and as rows for the search for errors; unpacked, whatever the separator."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from orion.errors import ArgumentError, DataFormatError, describe

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".dat": "::"}
PACKED = (".gz", ".bz2", ".zst", ".lz4")

STAND_IN = "\x1f"
"""What a separator of several characters is replaced by, as Arrow takes one: ASCII's own unit separator."""

_BLOCK = 1 << 20


class Row(NamedTuple):
    """A line of a file that is not blank: its number (from 1), its entries, and itself."""

    number: int
    fields: list[str]
    text: str


def checked_separator(path: str, sep: str | None) -> str:
    """`sep`, or what the ending of the file's name says. `ArgumentError` if neither is of use."""
    if sep is None:
        stem, ending = os.path.splitext(path.lower())
        if ending in PACKED:
            ending = os.path.splitext(stem)[1]
        if ending not in SEPARATORS:
            raise ArgumentError(
                describe(f"the name of {path} does not say what separates its columns", hint="say sep=','")
            )
        return SEPARATORS[ending]
    if not sep or any(c in sep for c in '\r\n"'):
        raise ArgumentError(describe(f"{sep!r} cannot separate columns"))
    return sep


def open_bytes(path: str, separator: str) -> tuple[Any, str]:
    """The unpacked bytes of a file, and the one character that separates columns in them."""
    import pyarrow

    stream = pyarrow.input_stream(path)
    if len(separator.encode()) == 1:
        return stream, separator
    return pyarrow.PythonFile(_Replacing(stream, separator.encode(), STAND_IN.encode()), mode="r"), STAND_IN


def read_rows(path: str, separator: str, skip_lines: int = 0) -> Iterator[Row]:
    """The lines of a file that are not blank. `DataFormatError` if it is missing or damaged."""
    import pyarrow

    try:
        with io.TextIOWrapper(pyarrow.input_stream(path), encoding="utf-8-sig", errors="replace", newline="") as lines:
            for _ in zip(range(skip_lines), lines, strict=False):
                pass
            yield from _split(lines, separator, skip_lines + 1)
    except FileNotFoundError as error:
        raise DataFormatError(f"there is no file {path}") from error
    except (OSError, csv.Error) as error:
        raise DataFormatError(f"{path} cannot be read: {error}") from error


def _split(lines: Iterator[str], separator: str, number: int) -> Iterator[Row]:
    """Cut lines into entries. A quoted entry may hold separators and line breaks, if the separator is one
    character.
    """
    read: list[str] = []

    def noted() -> Iterator[str]:
        for line in lines:
            read.append(line)
            yield line

    if len(separator) == 1:
        rows: Iterator[list[str]] = csv.reader(noted(), delimiter=separator)
    else:
        rows = (line.rstrip("\r\n").split(separator) for line in noted())
    for fields in rows:
        text = read[0].rstrip("\r\n")
        if text:
            yield Row(number, fields, text)
        number += len(read)
        read.clear()


class _Replacing:
    """A stream of bytes in which every occurrence of `old` is replaced by `new`."""

    def __init__(self, stream: Any, old: bytes, new: bytes) -> None:
        self._stream, self._old, self._new = stream, old, new
        self._kept = b""
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, none only at the end."""
        while True:
            block = self._stream.read(_BLOCK if size < 0 else min(size, _BLOCK))
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

    def close(self) -> None:
        """Close the stream underneath."""
        self.closed = True
        self._stream.close()
