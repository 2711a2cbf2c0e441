"""Sparse tensors of three dimensions for the examples: generated, or read from a file in the format of FROSTT."""

from __future__ import annotations

import gzip
import math
import zlib
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orion

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shape = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Rows:
    """A tensor by the indices of one mode: the elements of index i are those from `ptr[i]` up to `ptr[i + 1]`, each
    with its indices in the two other modes, in the order of the modes, and its value. As arrays of Orion's, which Ray's
    actors share: arrays of NumPy would be sent to them in each call."""

    ptr: orion.DenseArray
    first: orion.DenseArray
    second: orion.DenseArray
    values: orion.DenseArray


@dataclass(frozen=True, eq=False)
class Tensor:
    """The elements that are not zero, each once, ascending by their indices; `about` says where they are from."""

    shape: Shape
    indices: tuple[Ints, Ints, Ints]
    values: Floats
    about: str

    @property
    def norm(self) -> float:
        return float(np.sqrt(self.values @ self.values))

    def rows(self, mode: int) -> Rows:
        """The elements by their index of one mode."""
        order = np.argsort(self.indices[mode], kind="stable")
        counts = np.bincount(self.indices[mode], minlength=self.shape[mode])
        first, second = (self.indices[other][order] for other in range(3) if other != mode)
        ptr = np.concatenate(([0], np.cumsum(counts)))
        return Rows(*map(orion.array, (ptr, first, second, self.values[order])))


def tensor_of(shape: Shape, indices: tuple[Ints, Ints, Ints], values: Floats, about: str) -> Tensor:
    """A tensor of elements in any order; those of the same indices are added up."""
    keys, places = np.unique(np.ravel_multi_index(indices, shape), return_inverse=True)
    i, j, k = (part.astype(np.int64) for part in np.unravel_index(keys, shape))
    sums = np.bincount(places, weights=values, minlength=len(keys)).astype(np.float64)
    return Tensor(shape, (i, j, k), sums, about)


def generated(shape: Shape, nonzeros: int, rank: int, noise: float, seed: int) -> Tensor:
    """A sum of `rank` components, about `nonzeros` elements of which are not zero, and noise on these.

    A component is the outer product of one bump in each mode, at a place of its own, which is zero elsewhere. The noise
    is normal; its standard deviation is `noise` times the root mean square of the elements.
    """
    rng = np.random.default_rng(seed)
    share = (nonzeros / (rank * math.prod(shape))) ** (1 / 3)  # of each mode that a component covers
    indices, values = [], []
    for _ in range(rank):
        places, heights = zip(*(_bump(rng, size, share) for size in shape), strict=True)
        grid = np.meshgrid(*places, indexing="ij")
        indices.append([part.ravel() for part in grid])
        values.append(np.einsum("i,j,k->ijk", *heights).ravel())
    i, j, k = (np.concatenate([part[mode] for part in indices]) for mode in range(3))
    about = f"generated: {rank} components, noise of {100 * noise:g} %"
    found = tensor_of(shape, (i, j, k), np.concatenate(values), about)
    scale = noise * found.norm / np.sqrt(len(found.values))
    return Tensor(shape, found.indices, found.values + scale * rng.standard_normal(len(found.values)), about)


def _bump(rng: np.random.Generator, size: int, share: float) -> tuple[Ints, Floats]:
    """Neighbouring indices of a mode, and the heights of a bump over them: half a period of a sine."""
    width = min(size, max(1, round(size * share)))
    places = rng.integers(0, size - width + 1) + np.arange(width)
    return places, np.sin(np.pi * (np.arange(width) + 0.5) / width)


def read_tensor(path: Path) -> Tensor:
    """The tensor in a file with a line `i j k value` for each element, indices from 1; what follows # is no part of it.
    Files that end in .gz are unpacked. ValueError with the file and the line where one is something else.

    FROSTT: the formidable repository of open sparse tensors and tools (Smith et al. 2017), http://frostt.io.
    """
    ids, values = (array("q"), array("q"), array("q")), array("d")
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                words = line.partition("#")[0].split()
                if words:
                    *keys, value = _element(words, f"{path}: line {number}")
                    for known, key in zip(ids, keys, strict=True):
                        known.append(key)
                    values.append(value)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text: {error}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked: {error}") from None
    if not values:
        raise ValueError(f"{path}: there is no element in it")
    if not any(values):
        raise ValueError(f"{path}: all elements are zero")
    i, j, k = (np.frombuffer(known, np.int64) - 1 for known in ids)
    shape = (int(i.max()) + 1, int(j.max()) + 1, int(k.max()) + 1)
    if math.prod(shape) >= 2**63:
        raise ValueError(f"{path}: too large a shape, {shape}: places in it are numbered with 64 bits")
    return tensor_of(shape, (i, j, k), np.frombuffer(values, np.float64), path.name)


def _element(words: list[str], where: str) -> tuple[int, int, int, float]:
    """The indices and the value in a line. ValueError that says what is wrong with it."""
    if len(words) != 4:
        text = " ".join(words)[:60]
        raise ValueError(f"{where}: four numbers are needed, `i j k value`, not {len(words)}: {text!r}")
    for word in words[:3]:
        if not word.isdecimal() or int(word[:20]) < 1:
            raise ValueError(f"{where}: {word[:60]!r} is no index, an integer from 1 on")
        if len(word) > 20 or int(word) >= 2**63:
            raise ValueError(f"{where}: {word[:60]!r} is no index of 64 bits")
    try:
        value = float(words[3])
    except ValueError:
        raise ValueError(f"{where}: {words[3][:60]!r} is no number") from None
    if not math.isfinite(value):
        raise ValueError(f"{where}: {words[3][:60]!r} is no finite number")
    return int(words[0]), int(words[1]), int(words[2]), value
