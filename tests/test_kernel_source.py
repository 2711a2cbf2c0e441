"""What generated kernels look like: golden files, and single statements."""

from pathlib import Path

import numpy as np
import pytest

from orion.arrays.dense import DenseArray
from orion.errors import UnsupportedLoopError
from tests.kernel_loops import Ratings, make_loop

GOLDEN = Path(__file__).parent / "golden"


def sgd_epoch(ratings, W, H, step, reg):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * (err * H[j] - reg * W[i])
        H[j] += step * (err * wi - reg * H[j])


def gauss_seidel(A, sweeps):
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def ratings(dtype=np.float32, keys=np.int32):
    return Ratings((np.zeros(4, keys), np.zeros(4, keys)), (np.zeros(4, dtype),))


def rows(extent, length, dtype=np.float32):
    return np.zeros((extent, length), dtype)


CASES = {
    "kernel_sgd_epoch.txt": lambda: make_loop(sgd_epoch, ratings(), rows(9, 32), rows(7, 32), 0.01, 0.02),
    "kernel_sgd_epoch_exact.txt": lambda: make_loop(
        sgd_epoch, ratings(), rows(9, 32), rows(7, 32), 0.01, 0.02, fastmath=False
    ),
    "kernel_gauss_seidel.txt": lambda: make_loop(gauss_seidel, rows(9, 9, np.float64), 3, cuts=(1, 4, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    assert CASES[name]().source.text == (GOLDEN / name).read_text()


def body(function, *arguments, **options):
    """The statements of the tile function, without comments."""
    text = make_loop(function, *arguments, **options).source.text
    tile = text.partition("@tile_function\n")[2].partition("\n\n\n")[0]
    return [line.strip() for line in tile.splitlines() if not line.strip().startswith("#")]


def test_padded_rows_have_literal_length_and_stride():
    W = DenseArray((9, 20), np.dtype("float32"))
    lines = body(sgd_epoch, ratings(), W, DenseArray((7, 20), np.dtype("float32")), 0.01, 0.02)
    assert "W_i = load_row(W, i * 32, 20)" in lines


def scale(x, y, factor):
    for i in range(x.shape[0]):
        x[i] = factor * y[i] + 1


@pytest.mark.parametrize(
    ("dtype", "factor", "line"),
    [
        ("float64", 0.5, "x[uint64(i)] = factor * y[uint64(i)] + 1"),
        ("float32", 0.5, "x[uint64(i)] = factor_float32 * y[uint64(i)] + float32(1.0)"),
        ("float32", np.float64(0.5), "x[uint64(i)] = factor * y[uint64(i)] + 1"),
        ("int32", 3, "x[uint64(i)] = int32(int32(fitting(factor, factor_int32, 0) * y[uint64(i)]) + int32(1))"),
        ("int64", 3, "x[uint64(i)] = factor * y[uint64(i)] + 1"),
    ],
)
def test_python_scalars_take_the_dtype_of_the_array(dtype, factor, line):
    assert line in body(scale, np.zeros(5, dtype), np.zeros(5, dtype), factor)


def gather(x, index, y):
    for i in range(x.shape[0]):
        x[i] = y[index[i]]


def test_only_unproved_subscripts_are_checked():
    loop = make_loop(gather, np.zeros(4), np.zeros(4, int), np.zeros(4))
    assert "x[uint64(i)] = y[checked(index[uint64(i)], y.shape[0], 0, 0, control)]" in loop.source.text
    assert [site.array for site in loop.source.sites] == ["y"]


def triangle(A, n):
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] += A[i - j, i - 1]


def test_without_proofs_what_the_limits_of_variables_show_is_trusted_and_nothing_else():
    text = make_loop(triangle, rows(9, 9, np.float64), 3, proved=None).source.text
    assert "A[uint64(i), uint64(j)]" in text
    assert "A[checked(i - j, A.shape[0], 0, 0, control), uint64(i - 1)]" in text


def sparse_sum(ratings, W):
    total = 0.0
    for (i, _), r in ratings:
        total += r * W[i].sum()
    return total


def test_unused_keys_are_no_arguments():
    arguments = make_loop(sparse_sum, ratings(), rows(3, 4)).source.arguments
    assert [(a.kind, a.name, a.position) for a in arguments] == [
        ("partial", "total", 0), ("key", "ratings", 0), ("value", "ratings", 0), ("array", "W", 0),
    ]  # fmt: skip


def clashing(tile, control, float32):
    for first in range(tile.shape[0]):
        tile[first] = control * float32


def test_names_that_the_kernel_needs_are_renamed():
    lines = body(clashing, np.zeros(4), 2.0, 3.0)
    assert "tile_2[uint64(first_2)] = control_2 * float32_2" in lines


def selecting(x, index):
    for i in range(x.shape[0]):
        x[index] = x[i]


def test_refusals_say_where_and_what_to_write():
    with pytest.raises(UnsupportedLoopError) as error:
        make_loop(selecting, np.zeros(3), np.zeros(3, int))
    for words in ("array of subscripts", "loop over the subscripts", "test_kernel_source.py:", "x[index] = x[i]"):
        assert words in str(error.value)
