"""The programs: loops of the benchmarks, examples and tests, with arguments for which a run takes 10 ms or more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orion
from benchmarks import cliffs, wavefront
from benchmarks.polybench.kernels import KERNELS
from tests import made_functions as made
from tests import renamed_loops as renamed
from tests import reorder_loops as orders
from tests import test_dependence_element_sums as element_sums
from tests import test_plan_neighbours as neighbours
from tests import test_renaming as renaming
from tests import test_rewrites_stored_sums as sums
from tests import test_rewrites_time_tiles as sweeps
from tests import test_stages as stages
from tests import trap_loops as traps
from tests import whole_functions as whole

EXAMPLES = Path(__file__).parents[2] / "examples"
Floats = NDArray[np.float64]
Make = Callable[[], tuple[Any, ...]]
Rows = Iterator[tuple[Callable[..., Any], Make]]
MANY_LENGTHS = cliffs.warped, wavefront.common_subsequence
"""Loops that are there in several lengths, of which one is enough."""
CLOSE, LOOSE = 1e-8, 0.2
"""How far apart results may be, relative to the largest element: those of steps in any order far apart."""


@dataclass(frozen=True, slots=True)
class Program:
    """A function and what makes its arguments."""

    name: str
    function: Callable[..., Any]
    make: Make
    ordered: bool | None = None
    tolerance: float = CLOSE


def programs() -> list[Program]:
    """All of them; a name begins with that of its group."""
    found = [*_polybench(), *_examples(), *_wavefront(), *_cliffs()]
    groups = {
        "trap": _traps(), "whole": _whole(), "made": _made(), "stages": _stages(), "large": _large(),
        "heavy": _heavy(), "orders": _orders(), "sums": _sums(), "renamed": _renamed(), "sweeps": _sweeps(),
    }  # fmt: skip
    found += [Program(f"{group} {f.__name__}", f, make) for group, rows in groups.items() for f, make in rows]
    return [*found, *_sparse()]


def u(*shape: int) -> Floats:
    """Floats in [0, 1), the same ones for the same shape."""
    return np.random.default_rng(len(shape)).random(shape)


def whole_numbers(high: int, *shape: int) -> NDArray[np.int64]:
    return np.random.default_rng(high).integers(0, high, shape)


def elements(count: int, rows: int, columns: int) -> orion.SparseArray:
    """A sparse array with about that many elements, in key order."""
    keys = np.unique(np.random.default_rng(1).integers(0, rows * columns, count))
    return orion.sparse((keys // columns, keys % columns), u(len(keys)), shape=(rows, columns))


# ---------------------------------------------------------------- benchmarks and examples


def _polybench() -> Iterator[Program]:
    for kernel in KERNELS:
        yield Program(f"polybench {kernel.name}", kernel.function, lambda k=kernel: tuple(k.inputs("bench").values()))


def _examples() -> Iterator[Program]:
    sys.path.insert(0, str(EXAMPLES))
    import sgd_mf

    def factors() -> tuple[Any, ...]:
        return elements(400_000, 6_000, 4_000), u(6_000, 16), u(4_000, 16)

    def steps() -> tuple[Any, ...]:
        return *factors(), np.ones(6_000), np.ones(4_000), 0.1, 0.1, 2

    yield Program("example sgd", sgd_mf.sgd.__wrapped__, lambda: (*factors(), 0.01, 0.1, 2), None, LOOSE)
    yield Program("example adagrad", sgd_mf.adagrad.__wrapped__, steps, None, LOOSE)
    yield Program("example rmse", sgd_mf.rmse.__wrapped__, factors)


def _wavefront() -> Iterator[Program]:
    for title, (function, make) in wavefront.cases(2048).items():
        yield Program(f"wavefront {title}", function, make)


def _cliffs() -> Iterator[Program]:
    few = [case for case in cliffs.cases() if "8192" in case.title or case.function not in MANY_LENGTHS]
    for case in few:
        yield Program(f"cliffs {case.title}", case.function, case.make, tolerance=1e-3)


# ---------------------------------------------------------------- loops of the tests


def _traps() -> Rows:
    n = 4_000_000
    yield traps.few_sums, lambda: (u(n), np.zeros(4))
    yield traps.stencil, lambda: (u(n),)
    yield traps.two_writes, lambda: (u(n), u(n), u(n), u(n))
    yield traps.even_odd, lambda: (u(2 * n), u(n))
    yield traps.chain, lambda: (u(n),)
    yield traps.started_at_two, lambda: (u(10 * n) > 0.5,)
    yield traps.one_after_the_other, lambda: (u(n), u(n), u(n))
    yield traps.negative_subscripts, lambda: (u(9_000), 2_000, 6_000)
    yield traps.running_sum, lambda: (u(n), u(n))
    yield traps.last_value, lambda: (u(5 * n),)
    yield traps.write_under_condition, lambda: (u(n) > 0.5, u(n), u(n), u(n))
    yield traps.through_a_view, lambda: (u(n // 4, 4), 2.0)
    yield traps.mirrored, lambda: (u(20), 5)
    yield traps.any_then_one, lambda: (u(5_000), u(3_000))
    yield traps.repeated_index, lambda: (u(9), whole_numbers(9, n), u(n))
    yield traps.changed_bound, lambda: (u(n), n // 2)
    yield traps.own_counter, lambda: (u(n // 4, 4),)
    yield traps.history, lambda: (np.zeros(20), u(500_000))
    yield traps.left_early, lambda: (u(n), n)
    yield traps.view_of_two_arrays, lambda: (u(n // 4, 4), u(n // 4, 4), u(n // 4))
    yield traps.view_of_a_row_of_its_own, lambda: (u(n // 4, 4),)
    yield traps.shifted_by_half, lambda: (u(n, 3),)
    yield traps.broken_off, lambda: (u(n), np.zeros(n))


def _whole() -> Rows:
    n = 1_000_000
    yield whole.kmeans, lambda: (u(100_000, 8), u(16, 8), np.zeros(100_000, int), np.zeros((16, 8)),
                                 np.zeros(16, int), 5, 0.0)  # fmt: skip
    yield whole.power_iteration, lambda: (u(1_500, 1_500) + u(1_500, 1_500).T, u(1_500), np.zeros(1_500), 1e-9)
    yield whole.jacobi, lambda: (u(1_000, 1_000), np.zeros((1_000, 1_000)), 3e-2)
    yield whole.conjugate_gradients, lambda: (
        u(1_200, 1_200) @ u(1_200, 1_200).T + 1_200 * np.eye(1_200), np.zeros(1_200), u(1_200), u(1_200),
        np.zeros(1_200), 1e-6, 20)  # fmt: skip
    yield whole.life, lambda: (whole_numbers(2, 600, 600), np.zeros((600, 600), int), 5)
    yield whole.sieve, lambda: (np.zeros(5 * n, bool),)
    yield whole.components, lambda: (np.arange(n), whole_numbers(n, n), whole_numbers(n - 1, n))
    yield whole.bubble_sort, lambda: (u(5_000),)
    yield whole.binary_search, lambda: (np.sort(u(n)), u(200_000), np.zeros(200_000, int))
    yield whole.find, lambda: (whole_numbers(30, 10 * n), 77)
    yield whole.find_pair, lambda: (whole_numbers(30, 3_000, 3_000), 77)
    yield whole.find_or_else, lambda: (whole_numbers(30, 10 * n), 77)
    yield whole.first_descent, lambda: (np.arange(10.0 * n),)
    yield whole.scaled, lambda: (u(5 * n), u(5 * n), 1)
    yield whole.within, lambda: (u(6 * n), 5 * n)
    yield whole.shrinking, lambda: (u(n), n)
    yield whole.own_bound, lambda: (u(n), 20)
    yield whole.bounds_from_array, lambda: (u(n), np.array([0, 20]))
    yield whole.line_search, lambda: (u(n), u(n), 5)
    yield whole.nested, lambda: (u(n // 2), 6)
    yield whole.kept_by_break, lambda: (u(3 * n), 5)
    yield whole.kept_by_continue, lambda: (u(3 * n), 5)


def _made() -> Rows:
    n = 1_000_000
    yield made.jacobi, lambda: (u(1_000, 1_000), 20)
    yield made.jacobi_with_copies, lambda: (u(1_000, 1_000), 20)
    yield made.padded, lambda: (u(8 * n), 3)
    yield made.histogram, lambda: (u(4 * n), 100)
    yield made.several, lambda: (u(3_000, 1_000), 1_000)
    yield made.expressions, lambda: (u(2 * n), u(2 * n), 0.5)
    yield made.products, lambda: (u(700, 700), u(700))
    yield made.again, lambda: (u(2 * n),)
    yield made.either, lambda: (u(4 * n), 0)
    yield made.early, lambda: (u(4 * n), 2.0)
    yield made.rows_of_their_own, lambda: (u(40_000, 200), 30)
    yield made.until_it_changes_little, lambda: (u(800, 800), 3e-2)
    yield made.gradient_descent, lambda: (u(50_000, 20), u(50_000), 1e-6, 10)
    yield made.gradient_descent_by_loops, lambda: (u(50_000, 20), u(50_000), 1e-6, 10)


def _stages() -> Rows:
    """A loop that each rewrite is taken for, at size."""
    n = 3_000_000
    yield stages.peeled, lambda: (u(200_000), u(200_000) + 1, 50)
    yield stages.product, lambda: (u(500, 480), u(480, 520), np.zeros((500, 520)))
    yield stages.gauss_seidel, lambda: (u(1_500, 1_500), 10)
    yield stages.paths, lambda: (u(3_000, 3_000),)
    yield stages.stencil, lambda: (u(1_300, 1_300), u(1_300, 1_300), 12)
    yield stages.over_slices, lambda: (u(1_000, 1_000), 10)
    yield stages.smoothed, lambda: (u(8_000_000), u(8_000_000))
    yield stages.two_values, lambda: (u(1_000_000), u(1_000_000), u(1_000_000), u(1_000_000))
    yield stages.search, lambda: (u(20_000_000), 2.0, np.zeros(1))
    yield stages.neighbours, lambda: (u(n), u(n), u(n))
    yield stages.private, lambda: (u(3_000, 2_000), u(2_000), u(3_000))
    yield stages.histogram, lambda: (np.zeros(50), whole_numbers(50, 7 * n))
    yield stages.shifted, lambda: (u(n), u(n))
    yield stages.local_rows, lambda: (u(1_500, 1_000), 6)


def _large() -> Rows:
    """Products whose matrices do not fit into a second-level cache, and arrays with their axes in another order."""
    n, m = 1_500, 4_000

    def matrices(*shapes: tuple[int, int], dtype: str = "float64") -> tuple[Any, ...]:
        return tuple(u(*shape).astype(dtype) for shape in shapes)

    yield stages.product, lambda: matrices((n, n), (n, n), (n, n))
    yield orders.gemm_acc, lambda: matrices((n, n), (n, n), (n, n), dtype="float32")
    yield flat_product, lambda: matrices((40, m), (m, m), (40, m))
    yield symmetric, lambda: matrices((n, n), (n, n))
    yield permuted, lambda: (u(300, 310, 320), np.zeros((320, 300, 310)))
    yield batches, lambda: (u(40, 300, 310), u(40, 310, 320), np.zeros((40, 300, 320)))


def flat_product(A, B, C):
    """Few rows times a large matrix."""
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def symmetric(A, C):
    for i in range(A.shape[0]):
        for j in range(i + 1):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * A[j, k]


def permuted(A, B):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            for k in range(A.shape[2]):
                B[k, i, j] = A[i, j, k]


def batches(A, B, C):
    for b in range(A.shape[0]):
        for i in range(A.shape[1]):
            for j in range(B.shape[2]):
                for k in range(A.shape[2]):
                    C[b, i, j] += A[b, i, k] * B[b, k, j]


def _heavy() -> Rows:
    """Loops with much to compute per element, of which a second core is worth most."""
    n = 2_000_000
    yield spectrum, lambda: (u(n), np.zeros(64))
    yield forces, lambda: (u(3_000), np.zeros(3_000))
    yield smoothed, lambda: (u(4_000, 500), u(500), np.zeros(4_000))
    yield relaxed, lambda: (u(n // 4), u(n // 4), 4)


def spectrum(x, h):
    for i in range(x.shape[0]):
        h[int(x[i] * h.shape[0])] += np.exp(-x[i]) * np.sin(x[i])


def forces(x, f):
    """Each pair once: both elements are added to."""
    for i in range(x.shape[0]):
        for j in range(i):
            d = x[i] - x[j]
            w = d / np.sqrt(d * d + 0.01) ** 3
            f[i] -= w
            f[j] += w


def smoothed(A, w, out):
    for i in range(A.shape[0]):
        w[0] = A[i, 0]
        for k in range(1, w.shape[0]):
            w[k] = 0.9 * w[k - 1] + np.exp(-A[i, k])
        for k in range(w.shape[0]):
            out[i] += w[k] * w[w.shape[0] - 1 - k]


def relaxed(a, b, rounds):
    for _ in range(rounds):
        for i in range(1, a.shape[0] - 1):
            b[i] = np.exp(-a[i - 1]) * np.sin(a[i + 1])
        b[0] = b[1]
        for i in range(1, a.shape[0] - 1):
            a[i] = np.exp(-b[i]) * np.cos(b[i + 1])
        a[0] += b[0] * b[3]


def _orders() -> Rows:
    large, rows = (3_000, 3_000), (1_500, 1_500)
    yield orders.gemm_acc, lambda: (u(500, 520), u(500, 480), u(480, 520))
    yield orders.seidel9, lambda: (u(*rows), 10)
    yield orders.jacobi2d, lambda: (u(*rows), u(*rows), 10)
    yield orders.warped, lambda: (u(4_000), u(4_000), np.zeros((4_001, 4_001)))
    yield orders.two_temporaries, lambda: (u(*large), u(*large), u(*large))
    yield orders.backwards, lambda: (u(*large), u(3_000))
    yield orders.bounded, lambda: (u(*large), u(3_000), 1_000)
    yield orders.last_value, lambda: (u(*large), u(3_000))


def _sums() -> Rows:
    """Sums in scalars and in array elements."""
    n, bins = 3_000_000, 100
    for function in (sums.product, sums.scaled, sums.two_sums, sums.imperfect, sums.not_always_stored):
        yield function, lambda f=function: tuple(sums.arguments(f, 500))
    yield element_sums.histogram, lambda: (whole_numbers(bins, 5 * n), u(5 * n), np.zeros(bins))
    yield element_sums.least_and_rest, lambda: (
        whole_numbers(bins, n), u(n), np.ones(bins), np.zeros((bins, 3), np.int32), np.zeros(bins))  # fmt: skip
    yield element_sums.rounds, lambda: (
        whole_numbers(bins, n), whole_numbers(50, n), np.zeros(bins, int), np.zeros((5, bins), int))  # fmt: skip
    yield element_sums.read_between, lambda: (whole_numbers(bins, n), whole_numbers(50, n), np.zeros(bins, int))
    yield element_sums.total_too, lambda: (whole_numbers(bins, n), whole_numbers(50, n), np.zeros(bins, int))
    yield element_sums.with_a_row, lambda: (whole_numbers(11, n), u(n, 4), np.zeros((11, 4)), np.zeros(4))


def _renamed() -> Rows:
    n = 3_000_000
    for function in (renamed.next_one, renamed.backwards, renamed.by_twos, renamed.made_here, renaming.heavy):
        yield function, lambda: (u(n),)
    yield renamed.first_of_all, lambda: (u(n),)
    yield renamed.rows, lambda: (u(n // 5, 20),)
    yield renamed.under_a_test, lambda: (u(n), 0.5)
    yield renamed.in_an_inner_loop, lambda: (u(n), u(4) / 10)
    yield renamed.two_arrays, lambda: (3 * u(n), u(n))
    yield renamed.many_rounds, lambda: (3 * u(n), 3)
    yield renamed.next_ones_in_rows, lambda: (u(n // 10, 50),)
    yield renaming.heavy_rounds, lambda: (u(n // 10), u(10, 3), 10)
    yield renaming.scaled_rounds, lambda: (u(n // 3), 5)


def _sweeps() -> Rows:
    n, plane, space = 4_000_000, (1_400, 1_400), (130, 130, 130)
    yield sweeps.line, lambda: (u(n), u(n), 10)
    yield sweeps.plane, lambda: (u(*plane), u(*plane), 10)
    yield sweeps.wide, lambda: (u(n), u(n), 10)
    yield sweeps.leapfrog, lambda: (u(*plane), u(*plane), 10)
    yield sweeps.space, lambda: (u(*space), u(*space), 10)
    yield sweeps.apart, lambda: (u(n), u(n), 10)
    yield sweeps.both_ends, lambda: (u(*plane), u(*plane), 10)
    yield sweeps.every_other, lambda: (u(n), u(n), 10)
    yield neighbours.rows_then_columns, lambda: (u(*plane), u(*plane), 5)


def _sparse() -> Iterator[Program]:
    """Whole functions over a sparse array in key order, as in their tests."""
    links = elements(500_000, 20_000, 10_000)
    square = elements(500_000, 20_000, 20_000)
    degree = np.full(20_000, 25.0)
    rows: list[tuple[Callable[..., Any], Make]] = [
        (whole.early_stopping, lambda: (links, u(20_000, 8), u(10_000, 8), 0.01, -1e9, 2)),
        (whole.loss_history, lambda: (links, u(20_000), np.zeros(10), 10, -1e9)),
        (whole.every_second_epoch, lambda: (links, u(20_000), 8, True)),
        (whole.pagerank, lambda: (square, np.full(20_000, 5e-5), np.zeros(20_000), degree, 0.85, 0.0, 10)),
        (made.row_sums, lambda: (links, 8)),
        (element_sums.by_group, lambda: (links, whole_numbers(5, 10_000), np.zeros(5))),
    ]
    for function, make in rows:
        yield Program(f"sparse {function.__name__}", function, make, True)
