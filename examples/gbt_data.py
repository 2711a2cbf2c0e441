"""Rows with labels for trees: generated, or read from text files; and the area under the ROC curve."""

from __future__ import annotations

import gzip
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST = 100
"""Rows that are needed where a tenth of them is tested on: fewer than ten say little, and may all have one label."""

FORM = "a line needs a label and at least one feature, between tabs"


@dataclass(frozen=True)
class Rows:
    """`features` (rows, features) and a label of each row."""

    features: Floats
    labels: Floats

    def parted(self, seed: int) -> tuple[Rows, Rows]:
        """Nine tenths of the rows, by chance, and the others."""
        order = np.random.default_rng(seed + 1).permutation(len(self.labels))
        cut = len(order) // 10
        mine, others = np.sort(order[cut:]), np.sort(order[:cut])
        return Rows(self.features[mine], self.labels[mine]), Rows(self.features[others], self.labels[others])


def generated(count: int, width: int, seed: int) -> Rows:
    """Features from a normal distribution, a quarter of them rounded; labels a smooth function of a few of them, with
    steps, products and noise."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((count, width))
    features[:, ::4] = np.round(features[:, ::4], 1)
    a, b, c, d = (features[:, k % width] for k in range(4))
    labels = np.sin(2.0 * a) + b * c + (d > 0.5) * a + 0.3 * features @ rng.standard_normal(width) / np.sqrt(width)
    return Rows(features, labels + 0.5 * rng.standard_normal(count))


def labels_for(objective: str, rows: Rows) -> Rows:
    """The rows with labels of 0 and 1, where the objective needs such: those above the median are 1."""
    if objective != "binary":
        return rows
    return Rows(rows.features, (rows.labels > np.median(rows.labels)).astype(np.float64))


def read_rows(path: Path) -> Rows:
    """Rows of a text file: per line a label, then features, between tabs. ValueError with the line for what is no
    number, for lines of other lengths, and for labels that are no finite numbers. A feature may be `nan`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of an empty file: said below
        try:
            table = np.loadtxt(path, delimiter="\t", ndmin=2)
        except (gzip.BadGzipFile, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None
        except ValueError as error:
            raise ValueError(f"{path}{_what_is_wrong(path) or f': {error}'}") from None
    if not table.size or table.shape[1] < 2:
        raise ValueError(f"{path}: {FORM}")
    wrong = np.flatnonzero(~np.isfinite(table[:, 0]))
    if wrong.size:
        raise ValueError(f"{path}, row {wrong[0] + 1}: the label is {table[wrong[0], 0]}, no finite number")
    return Rows(np.ascontiguousarray(table[:, 1:]), table[:, 0].copy())


def _what_is_wrong(path: Path) -> str:
    """The first line of a text file that is no row, and why; nothing where that is not found."""
    opened: Any = gzip.open(path, "rt") if path.suffix == ".gz" else open(path, encoding="utf-8")  # noqa: SIM115
    first = 0
    with opened as file:
        for number, line in enumerate(file, 1):
            text = line.partition("#")[0].strip("\r\n ")
            parts = text.split("\t") if text else []
            for part in parts:
                try:
                    float(part)
                except ValueError:
                    return f", line {number}: {part[:60]!r} is no number; {FORM}"
            first = first or len(parts)
            if parts and len(parts) != first:
                return f", line {number}: {len(parts)} numbers between tabs, where the first line has {first}"
    return ""


def auc(scores: Floats, labels: Floats) -> float:
    """The area under the ROC curve: how often a row with label 1 has a higher score than one with label 0, ties by
    half (Mann, Whitney 1947). NaN where one of the labels does not occur."""
    order = np.argsort(scores, kind="stable")
    _, start, count = np.unique(scores[order], return_index=True, return_counts=True)
    ranks = np.repeat(start + (count + 1) / 2, count)
    positive = labels[order] > 0
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return float("nan")
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))
