"""MTTKRP of a sparse tensor side by side with Numba, serial and by hand with `prange`, in two ways to write it.

    python -m benchmarks.indirect.tensor                 # from the project's folder

The loop is that of `examples/tensor_cp.py`, for each of the three modes. "rows" is its text, statements over rows of
the factor matrices; "entries" has a loop over the entries of these rows instead, and subscripts taken out of it by
hand, as one writes for Numba. One tensor is that of the example, whose rows differ much in length; the other is larger
in every mode, and its elements are anywhere, so that rows of the factor matrices come from memory. All contenders get
the same arrays, with subscripts of 64 bits. Medians of interleaved runs, in milliseconds, or with `--best` the least,
which other work on the machine hardly touches; those of Orion on one worker are taken before the others.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from time import sleep
from typing import Any

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.indirect.sparse import RESULTS, WIDTH
from benchmarks.measure import interleaved, machine, seconds
from benchmarks.process import ROOT

sys.path.insert(0, str(ROOT / "examples"))

from tensor_cp import AlternatingLeastSquares, mttkrp
from tensor_data import Tensor, generated, tensor_of

NAMES = (
    "Numba rows",
    "Numba entries",
    "prange rows",
    "prange entries",
    "rows ×1",
    "rows ×2",
    "entries ×1",
    "entries ×2",
)
PAUSE = 0.03  # seconds before a measurement: threads of OpenMP keep a core busy for a while after `prange`


def entries(product, ptr, first, second, values, B, C):
    for i in range(product.shape[0]):
        for r in range(product.shape[1]):
            product[i, r] = 0.0
        for p in range(ptr[i], ptr[i + 1]):
            j, k, v = first[p], second[p], values[p]
            for r in range(product.shape[1]):
                product[i, r] += v * B[j, r] * C[k, r]


@numba.njit(parallel=True)
def prange_rows(product, ptr, first, second, values, B, C):
    for i in numba.prange(product.shape[0]):
        product[i] = 0.0
        for p in range(ptr[i], ptr[i + 1]):
            product[i] += values[p] * B[first[p]] * C[second[p]]


@numba.njit(parallel=True)
def prange_entries(product, ptr, first, second, values, B, C):
    for i in numba.prange(product.shape[0]):
        for r in range(product.shape[1]):
            product[i, r] = 0.0
        for p in range(ptr[i], ptr[i + 1]):
            j, k, v = first[p], second[p], values[p]
            for r in range(product.shape[1]):
                product[i, r] += v * B[j, r] * C[k, r]


def anywhere(shape: tuple[int, int, int], count: int, seed: int) -> Tensor:
    """A tensor with elements at indices that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    i, j, k = (rng.integers(0, size, count) for size in shape)
    return tensor_of(shape, (i, j, k), rng.standard_normal(count), "anywhere")


def rested(call: Callable[[], object]) -> float:
    sleep(PAUSE)
    return seconds(call)


def times(arguments: tuple[Any, ...], repeats: int) -> dict[str, tuple[float, ...]]:
    """Seconds of each run by contender. ValueError where one computes something else than the others."""
    by_rows, by_entries = numba.njit(mttkrp.serial), numba.njit(entries)
    here = orion.parallel_for(entries)
    by_rows(*arguments)
    right = arguments[0].copy()
    found = {}
    for workers in (1, 2):
        calls: dict[str, Callable[..., object]] = {f"rows ×{workers}": mttkrp, f"entries ×{workers}": here}
        if workers == 2:
            calls |= {"Numba rows": by_rows, "Numba entries": by_entries}
            calls |= {"prange rows": prange_rows, "prange entries": prange_entries}
        with orion.session(workers=workers):
            for name, call in calls.items():
                arguments[0][:] = np.nan
                call(*arguments)
                if not np.allclose(arguments[0], right, rtol=1e-10, atol=1e-10):
                    raise ValueError(f"{name} computes something else")
            runs = {name: partial(rested, partial(call, *arguments)) for name, call in calls.items()}
            found |= interleaved(runs, repeats)
    return {name: found[name] for name in NAMES}


def main() -> None:
    parser = argparse.ArgumentParser(description="MTTKRP of sparse tensors next to Numba.")
    parser.add_argument("--nonzeros", type=int, default=1_000_000)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=15, help="measurements of each contender")
    parser.add_argument("--best", action="store_true", help="the least of the measurements instead of their medians")
    options = parser.parse_args()
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    tensors = (
        generated((1000, 800, 600), options.nonzeros, 16, 0.1, 0),
        anywhere((100_000, 50_000, 20_000), options.nonzeros, 0),
    )
    table = Table("tensor", "mode", *NAMES, "rows ×2 / best prange")
    found = {}
    for tensor in tensors:
        als = AlternatingLeastSquares(tensor, options.rank, 1)
        for mode in range(3):
            seconds_of = times(tuple(map(np.array, als.arguments(mode))), options.repeats)
            taken = {name: 1e3 * (min if options.best else median)(values) for name, values in seconds_of.items()}
            sizes = " × ".join(map(str, tensor.shape))
            found[f"{sizes}, mode {mode + 1}"] = seconds_of
            gain = min(taken["prange rows"], taken["prange entries"]) / taken["rows ×2"]
            cells = (f"{value:.2f}" for value in taken.values())
            table.add_row(f"{sizes}, {len(tensor.values):,}", str(mode + 1), *cells, f"{gain:.2f}")
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.with_name("tensor.json").write_text(json.dumps({"machine": machine(), "s": found}))


if __name__ == "__main__":
    main()
