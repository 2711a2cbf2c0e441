"""Samples for `slr.py`: rows of a sparse matrix with labels, read from a file of LIBSVM or generated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orion


@dataclass(frozen=True)
class Samples:
    """Row s has the features `indices[indptr[s] : indptr[s + 1]]` with these `values`; its label is 0 or 1."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[np.float32]
    labels: NDArray[np.float64]
    features: int
    about: str

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What the loops go through."""
        return self.indptr, self.indices, self.values, self.labels

    def part(self, first: int, end: int) -> Samples:
        """The rows from `first` on, up to `end`."""
        begin, stop = self.indptr[first], self.indptr[end]
        indptr = orion.freeze(self.indptr[first : end + 1] - begin)
        indices, values = orion.freeze(self.indices[begin:stop].copy()), self.values[begin:stop].copy()
        return Samples(indptr, indices, values, self.labels[first:end].copy(), self.features, self.about)


def generated(samples: int, features: int, each: int, seed: int) -> Samples:
    """Rows of `each` features at most, as what is drawn twice counts once; few are frequent and most are not. Labels
    are drawn from a logistic model."""
    rng = np.random.default_rng(seed)
    often = 1.0 / (20.0 + np.arange(features))
    ids = rng.permutation(features)  # frequent ones come from everywhere in the range
    drawn = ids[rng.choice(features, samples * each, p=often / often.sum())]
    keys = np.unique(drawn + features * np.repeat(np.arange(samples), each))
    rows, indices = keys // features, (keys % features).astype(np.int32)
    values = (rng.uniform(0.5, 1.5, len(keys)) / np.sqrt(each)).astype(np.float32)
    truth = 3.0 * rng.standard_normal(features)
    z = np.bincount(rows, truth[indices] * values, samples)
    labels = (rng.random(samples) < 1.0 / (1.0 + np.exp(-z))).astype(np.float64)
    return Samples(np.searchsorted(rows, np.arange(samples + 1)), indices, values, labels, features, "generated")


def read(path: Path, seed: int) -> Samples:
    """The samples in a file of LIBSVM, in random order. ValueError where there are not two kinds of labels;
    `DataFormatError` where a line is no sample."""
    matrix, given = orion.read_libsvm(path)
    kinds = np.unique(given)
    if len(kinds) != 2:
        raise ValueError(f"{path}: two kinds of labels are needed, there are {len(kinds):,}")
    rows, order = matrix.lines(0), np.random.default_rng(seed).permutation(len(given))
    lengths = np.diff(rows.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    place = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - rows.indptr[:-1][order], lengths)
    indices, values = rows.indices[place], rows.values[0][place]
    labels = (given == kinds[1]).astype(np.float64)[order]
    return Samples(indptr, indices, values, labels, matrix.shape[1], path.name)


def hold_out(samples: Samples) -> tuple[Samples, Samples]:
    """All but a tenth, and that tenth: the order of rows is random. ValueError where one has no row."""
    count = len(samples) // 10
    if not count:
        raise ValueError(f"{samples.about}: of {len(samples):,} samples none can be held out: ten are needed")
    return samples.part(0, len(samples) - count), samples.part(len(samples) - count, len(samples))
