"""Loops for the tests of the runtime: each shows in its result any iteration that ran in another order, twice
or not at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import orion
from orion.arrays.dense import DenseArray, array
from orion.arrays.sparse import SparseArray, sparse

NAMES = (
    "rotated", "dist arrays", "two loops", "two layouts", "wavefront", "row by row", "stencil", "sweeps", "sums",
    "tensor",
)  # fmt: skip


@orion.parallel_for
def mix(R, W, H, rounds, c):
    for _ in range(rounds):
        for (i, j), r in R:
            W[i] = W[i] * 31 + H[j] + c * r
            H[j] = H[j] * 17 + W[i]


@orion.parallel_for
def mix_and_sum(R, W, H, rounds):
    low = 10**6
    total = 0
    for t in range(rounds):
        for (i, j), r in R:
            W[i] = W[i] * 3 + H[j] + r
            H[j] = H[j] * 5 + W[i] + t
        for (i, j), r in R:
            total += r * (W[i] % 97) - H[j] % 89
            low = min(low, W[i] % 1013)
    return total, low


@orion.parallel_for
def sweep(A, sweeps):
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = (A[i, j] + 3 * A[i - 1, j] - A[i + 1, j] + A[i, j - 1] - 2 * A[i, j + 1]) % 1009


@orion.parallel_for(ordered=True)
def in_two_layouts(R, W, H, rounds):
    """The first loop is cut along one dimension, the second along both."""
    for _ in range(rounds):
        for (i, j), r in R:
            W[i] = W[i] * 3 + r + j
        for (i, j), r in R:
            W[i] = (W[i] + H[j] * 5 + r) % 1013
            H[j] = (H[j] * 7 + W[i]) % 1009


@orion.parallel_for
def row_by_row(A):
    for t in range(1, A.shape[0]):
        for i in range(1, A.shape[1] - 1):
            A[t, i] = (3 * A[t - 1, i - 1] + A[t - 1, i + 1] + A[t, i]) % 1009


@orion.parallel_for
def values_only(R):
    total = 0
    for (_i, _j), r in R:
        total += r * r
    return total


@orion.parallel_for
def smooth(a, b, rounds):
    for _ in range(rounds):
        for i in range(1, a.shape[0] - 1):
            b[i] = a[i - 1] + 2 * a[i] - a[i + 1]
        for i in range(1, a.shape[0] - 1):
            a[i] = b[i] - b[i - 1]


@orion.parallel_for
def sums(a, rounds):
    total, high = 0, -1000
    for t in range(rounds):
        for i in range(a.shape[0]):
            total += a[i]
            high = max(high, a[i] - total_before(t))
        for i in range(a.shape[0]):
            a[i] = a[i] + t + high % 7
    return total, high


def total_before(t):
    return t * (t - 1) // 2


@orion.parallel_for
def tensor(T, U, V, W, rounds):
    for _ in range(rounds):
        for (i, j, k), x in T:
            U[i] = U[i] * 3 + V[j] + W[k] + x
            V[j] = V[j] * 5 + U[i]
            W[k] = W[k] * 7 + V[j]


@orion.parallel_for
def gather(a, index, out):
    for i in range(out.shape[0]):
        out[i] = a[index[i]]


@orion.parallel_for
def divides(a, rounds):
    for t in range(rounds):
        share = 1 / (rounds - 3 - t)
        for i in range(a.shape[0]):
            a[i] += share
    return share


def sparse_integers(shape: tuple[int, ...], elements: int, seed: int = 7) -> SparseArray:
    generator = np.random.default_rng(seed)
    keys = tuple(generator.integers(0, extent, elements) for extent in shape)
    return sparse(keys, generator.integers(1, 9, elements), shape=shape)


def integers(*shape: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(-50, 50, shape)


def cases() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Function and arguments by name. Made anew at each call: the runs change the arrays."""
    R = sparse_integers((60, 40), 3000)
    return {
        "rotated": (mix, {"R": R, "W": integers(60), "H": integers(40), "rounds": 3, "c": 5}),
        "dist arrays": (
            mix, {"R": R, "W": array(integers(60)), "H": array(integers(40)), "rounds": 2, "c": 1}
        ),
        "two loops": (mix_and_sum, {"R": R, "W": integers(60), "H": integers(40), "rounds": 3}),
        "two layouts": (in_two_layouts, {"R": R, "W": integers(60), "H": integers(40), "rounds": 2}),
        "row by row": (row_by_row, {"A": integers(30, 400)}),
        "wavefront": (sweep, {"A": integers(40, 50), "sweeps": 3}),
        "stencil": (smooth, {"a": integers(500), "b": integers(500, seed=5), "rounds": 4}),
        "sweeps": (smooth, {"a": integers(300_000), "b": integers(300_000, seed=5), "rounds": 9}),  # in tiles of rounds
        "sums": (sums, {"a": integers(700), "rounds": 5}),
        "tensor": (
            tensor,
            {
                "T": sparse_integers((20, 16, 12), 2000), "U": integers(20), "V": integers(16), "W": integers(12),
                "rounds": 2,
            },
        ),
    }  # fmt: skip


def long_mix(rounds: int) -> dict[str, Any]:
    """Arguments of `mix` whose rounds take a millisecond or two, so that a long call does not consist of workers that
    wait for each other: next to other work on the machine each such wait may take a hundred times as long."""
    R = sparse_integers((1000, 800), 500_000)
    return {"R": R, "W": integers(1000), "H": array(integers(800)), "rounds": rounds, "c": 5}


def outcome(name: str) -> tuple[Any, dict[str, np.ndarray]]:
    """Run a case in the current session: what it returned, and its dense arrays afterwards."""
    function, arguments = cases()[name]
    result = function(**arguments)
    dense = {key: value for key, value in arguments.items() if isinstance(value, np.ndarray | DenseArray)}
    return result, {key: np.array(value) for key, value in dense.items()}


def assert_same(first: tuple[Any, dict[str, np.ndarray]], second: tuple[Any, dict[str, np.ndarray]]) -> None:
    assert first[0] == second[0]
    assert first[1].keys() == second[1].keys()
    for name, found in first[1].items():
        np.testing.assert_array_equal(found, second[1][name], err_msg=name)
