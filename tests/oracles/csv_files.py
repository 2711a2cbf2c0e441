"""Random text files, and what Python's csv module makes of them: the elements, or the first line that is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import random
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import orion.arrays as oa
from orion.arrays.check import largest_extent
from orion.arrays.files.lines import STAND_IN
from orion.errors import DataFormatError

GOOD = ["0", "7", "12", " 3 ", "007", '"4"']
ODD = [
    *("", " ", "-1", "5.0", ".5", "1e3", "+2", "NA", "nan", "inf", "1e999", "x", "é", "٣", "\x0c1"),
    *("\x85", "\u2028", "\x00"),
    *('"', '""', '"a"', '"a""b"', 'a"b', '"a"b', '"2"5', ' "4"', "\x1f", "\ufeff", "99999999", "9" * 30, "x" * 70),
]
PASSED_OVER = ["x", "", "é", '"a, b"', 'a"b', '"a""b"', '""', "12"]
OPEN = ['"', '"a', '"a""', '"a, b']
LINE_ENDS = ["\n", "\r\n", "\r", "\n\n", "\r\n\n\r"]
BLOCKS = [64, 100, 1 << 20]
PLAIN_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[0-9]+)?")


class TextFile(NamedTuple):
    """The text of a file, and how it is read: `packed` with gzip, in blocks of so many bytes."""

    text: str
    separator: str
    skipped: int
    header: bool
    quoted: bool
    block: int
    packed: bool


def random_file(seed: int, number: int) -> TextFile:
    """File number `number` of a seed."""
    return make_file(random.Random(f"{seed} file {number}").choice)


def make_file(choose: Callable[[Sequence[Any]], Any]) -> TextFile:
    """A file, by a function that chooses among options."""
    separator = choose([",", ",", ",", "\t", ";", "::", "§"])
    columns = choose([3, 4, 5, 5])
    kinds = [GOOD] * 3 + [PASSED_OVER] * (columns - 3)
    rows = [[choose(kind) for kind in kinds] for _ in range(choose([1, 3, 6, 9, 9, 14]))]
    # Few entries are odd in a file: what is wrong in one must not stand behind what is wrong in others. Most are in the
    # last column: with a quotation mark left open in another one, the number of columns is wrong too.
    for _ in range(choose([0, 1, 1, 2])):
        column = choose([*range(columns), *[columns - 1] * 5])
        choose(rows)[column] = choose([*ODD, *OPEN] if column < 3 else [*ODD, *OPEN * 6])
    skipped, header = choose([0, 1, 2]), choose([False, True])
    if header:
        rows.insert(0, ["user", "item", "stars", "name", '"a b"'][:columns])
    lines = ["# a comment", 'an "other'][:skipped] + [separator.join(row) for row in rows]
    ends = choose([["\n"], ["\r\n"], ["\r"], LINE_ENDS])
    # A line without a break at its end runs into the next, but for the last.
    text = "".join(line + choose(ends) for line in lines)
    if choose([False, True]):
        text = text.rstrip("\r\n")
    for _ in range(choose([0, 0, 1])):
        at = choose([choose(range(len(text) + 1)), max(0, len(text) - choose(range(10)))])
        text = text[:at] + choose(['"', '""', separator, "\n", "\r", "\r\n", "\n\n"]) + text[at:]
    text = choose(["", "", "\ufeff"]) + text
    return TextFile(text, separator, skipped, header, choose([False, True]), choose(BLOCKS), choose([False, True]))


def records(lines: Sequence[str], separator: str, quoted: bool) -> list[list[str]]:
    """What the csv module makes of some lines, blank ones left out; it takes separators of one character only."""
    if len(separator) > 1:
        return [line.rstrip("\r\n").split(separator) for line in lines]
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    return [row for row in csv.reader(lines, delimiter=separator, quoting=quoting) if row]


def number(text: str, kind: type) -> float | None:
    """The number that an entry stands for, None if it is none that may be read."""
    text = text.strip(" \t")
    if kind is int:
        return int(text) if re.fullmatch(r"[0-9]+", text) and int(text) < 2**63 - 1 else None
    return float(text) if PLAIN_NUMBER.fullmatch(text) and abs(float(text)) < 1e308 else None


def element(fields: list[str] | None, columns: int) -> tuple[Any, ...] | None:
    """The keys and the value of a line; None where it is none."""
    if fields is None or len(fields) != columns:
        return None
    found = number(fields[0], int), number(fields[1], int), number(fields[2], float)
    return None if None in found else found


class Reference:
    """The elements of a file, or the first line that is wrong."""

    def __init__(self, file: TextFile) -> None:
        text, separator, skipped, header, quoted, block, _ = file
        raw = io.StringIO(text.removeprefix("\ufeff"), newline="").readlines()
        numbered = [(n, line) for n, line in enumerate(raw, 1) if n > skipped and line.strip("\r\n")]
        self.is_empty, self.wrong, self.elements = not numbered, None, []
        fields = {n: self._alone(line, separator, quoted) for n, line in numbered}
        columns = len(fields[numbered[0][0]] or ()) if numbered else 0
        # Only lines that are looked at before Arrow reads: the first, and the second to see whether there is one.
        too_long = [n for n, line in enumerate(raw, 1) if len(line.encode()) + 3 * (n == 1) > block]
        data = numbered[header:]
        self.is_unclear = bool(too_long)
        if numbered and columns < 3:
            self.wrong = numbered[0][0]
        elif numbered:
            self.elements = [element(fields[n], columns) for n, _ in data]
            self.wrong = next((n for (n, _), one in zip(data, self.elements, strict=True) if one is None), None)
            if self.wrong is None:
                limit = largest_extent(len(data))
                far = (n for (n, _), one in zip(data, self.elements, strict=True) if max(one[:2]) >= limit)
                self.wrong = next(far, None)
        if numbered and self.wrong is None:
            whole = records([line for _, line in data], separator, quoted)
            assert [element(one, columns) for one in whole] == self.elements  # line by line or all together

    @staticmethod
    def _alone(line: str, separator: str, quoted: bool) -> list[str] | None:
        """The entries of a line by itself; None where it swallows the next one, or has the character that stands for a
        separator of several bytes, which is refused."""
        if len(separator.encode()) > 1 and STAND_IN in line:
            return None
        found = records([line.rstrip("\r\n") + "\n", "next"], separator, quoted)
        return found[0] if found[1:] in (["next"], [["next"]]) else None


def read(file: TextFile) -> Any:
    text, separator, skipped, header, quoted, block, packed = file
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.csv.gz" if packed else "r.csv")
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        places = ("orion.arrays.files.csv", "orion.arrays.files.lines", "orion.arrays.files.errors")
        with mock.patch(f"{places[0]}.BLOCK", block), mock.patch(f"{places[1]}.BLOCK", block), \
             mock.patch(f"{places[2]}.BLOCK", block):  # fmt: skip
            return oa.read_csv(path, sep=separator, skip_lines=skipped, header=header, quoted=quoted, dtype="float64")


def check_file(file: TextFile) -> None:
    """AssertionError where `read_csv` neither gives the elements nor names the first line that is wrong."""
    reference = Reference(file)
    try:
        array = read(file)
    except DataFormatError as error:
        message = str(error)
        if reference.is_empty:
            assert "is empty" in message
            return
        line = re.search(r"\.(?:csv|gz), line (\d+)", message)
        assert line, message
        assert reference.is_unclear or int(line[1]) == reference.wrong, message
    else:
        assert reference.wrong is None, f"line {reference.wrong} is read as {list(array)}"
        assert not reference.is_empty
        found = zip(*(part.tolist() for part in (*array.coords, array.values)), strict=True)
        assert list(found) == reference.elements
