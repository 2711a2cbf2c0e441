"""Where a file of LIBSVM's format is wrong. Only used once it is known that a line is."""

from __future__ import annotations

import io
import re
from typing import NamedTuple

import numpy as np

from orion.arrays.files.errors import INTEGER, float_problem, integer_of, shortened
from orion.arrays.files.lines import opened
from orion.errors import DataFormatError, describe

_WORD = re.compile(r"[^ \t#]+")
_SIGN = re.compile(r"\+(?![-+])")
_SHOWN = 100
"""So many characters of a line are shown."""


class Rules(NamedTuple):
    """What lines must keep: the dtype of values, the number of columns and the first index, where they are known, and
    whether numbers may be NaN. `far`: the columns are not what was asked for, but what there would be, in words."""

    dtype: np.dtype
    features: int | None
    allow_nan: bool
    lowest: int | None = None
    far: str | None = None


def first_error(path: str, rules: Rules, found: str) -> DataFormatError:
    """The error for the first line that does not keep the rules; `found` is what is known in case all do."""
    with opened(path) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace") as text:
        for number, line in enumerate(text, start=1):
            problem = _problem(line.rstrip("\n"), rules)
            if problem is not None:
                column, message, hint = problem
                place = f"{path}, line {number}, column {column + 1}: {message}"
                start = max(0, column - _SHOWN // 2) if column > _SHOWN // 2 else 0
                shown = line.rstrip("\n")[start : start + _SHOWN]
                return DataFormatError(describe(f"{place}\n    | {'…' * bool(start)}{shown}", hint=hint))
    return DataFormatError(f"{path} cannot be read: {found}")


def _problem(line: str, rules: Rules) -> tuple[int, str, str] | None:
    """The first character that is wrong in a line, what is, and what to do."""
    words = list(_WORD.finditer(line.partition("#")[0]))
    if not words:
        return None
    label = _without_sign(words[0][0])
    wrong = float_problem(label, np.dtype(np.float64), rules.allow_nan)
    if wrong:
        hint = "each line begins with its label; of several labels, separated by commas, none is read"
        return words[0].start(), f"of the label, {wrong}" if label else "there is no label", hint
    last = -1
    for word in words[1:]:
        problem = _pair_problem(word[0], rules, last)
        if problem is not None:
            at, message, hint = problem
            return word.start() + at, message, hint
        last = integer_of(_without_sign(word[0].partition(":")[0])) or 0
    return None


def _without_sign(text: str) -> str:
    return text[1:] if _SIGN.match(text) else text


def _pair_problem(word: str, rules: Rules, last: int) -> tuple[int, str, str] | None:
    """The same for a pair, of which `last` is the index before."""
    index, colon, value = word.partition(":")
    if not colon:
        return 0, f"{shortened(word)!r} is no pair `index:value`", ""
    digits = _without_sign(index)
    if not INTEGER.fullmatch(digits):
        hint = "remove the numbers of queries, or read the lines by `orion.text_file`" if index == "qid" else ""
        return 0, f"the index {shortened(index)!r} is not an integer", hint
    number = integer_of(digits)
    if number is None or number >= 2**63 - 1:
        return 0, f"the index {shortened(index)} is too large", ""
    lowest = rules.lowest or 0
    if number < lowest:
        hint = "say zero_based=True if indices count from 0" if number == 0 else ""
        return 0, f"the index {index} is below {lowest}, the first one", hint
    if rules.lowest is not None and rules.features is not None and number - lowest >= rules.features:
        if rules.far:
            return 0, f"the index is {index}: there would be {rules.far}", "mend the line, or say features="
        return 0, f"the index {index} is too large for {rules.features} features that count from {lowest}", ""
    wrong = float_problem(_without_sign(value), rules.dtype, rules.allow_nan)
    if wrong:
        return len(index) + 1, wrong if value else "a value is missing", ""
    if number <= last:
        return 0, f"the index {index} comes after {last}: they ascend in a line", "sort the pairs of the line"
    return None
