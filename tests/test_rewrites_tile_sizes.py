"""Tile sizes from the sizes of caches and of what a tile uses."""

import numpy as np
import pytest

import orion
from orion.cost.caches import USUAL, Caches, caches_in
from orion.prepare import Preparation
from orion.prepared_call import Options
from orion.rewrites.tile.sizes import fitted_sizes, footprint

IJ, IK, KJ = (np.eye(3)[list(rows)] for rows in ((0, 2), (0, 1), (1, 2)))  # loops from the outermost: i, k, j
SKEWED = np.array([[1.0, 0, 1.0], [0, 1.0, 0]])  # A[i + j, k]
MB = 2**20


@pytest.mark.parametrize(
    ("matrices", "sizes", "expected"),
    [
        ([(IJ, 8)], (2, 3, 5), 2 * 5 * 8),
        ([(IJ, 4)], (2, 3, 5), 2 * 5 * 4),
        ([(IJ, 8), (IK, 8), (KJ, 4)], (2, 3, 5), 2 * 5 * 8 + 2 * 3 * 8 + 3 * 5 * 4),
        ([(SKEWED, 8)], (2, 3, 5), (1 + 1 + 4) * 3 * 8),
        ([(IJ[:0], 8)], (2, 3, 5), 8),
        ([(-2 * IJ, 8)], (2, 3, 5), 3 * 9 * 8),
    ],
)
def test_the_footprint_of_a_tile(matrices, sizes, expected):
    assert footprint(matrices, sizes) == expected


@pytest.mark.parametrize(
    ("accesses", "second", "expected"),
    [
        ([(IJ, 8), (IK, 8), (KJ, 8)], MB, (64, 64, 512)),
        ([(IJ, 4), (IK, 4), (KJ, 4)], MB, (64, 64, 1024)),
        ([(IJ, 8), (IK, 4), (KJ, 4)], MB, (64, 64, 512)),  # a product in double precision of single ones
        ([(IJ, 8), (IK, 8), (KJ, 8)], 2 * MB, (128, 128, 512)),
        ([(IJ, 8), (IK, 8), (KJ, 8)], MB // 4, (16, 16, 512)),
        ([(IJ, 8), (IK, 8), (KJ, 8)], MB // 32, (8, 8, 128)),
        ([(IJ, 8)] * 6 + [(KJ, 8)] * 6, MB, (16, 16, 512)),
        ([(IK, 8)], MB, (128, 128, 512)),  # nothing moves along the innermost loop
        ([(SKEWED, 8)], MB, (128, 128, 512)),
    ],
)
def test_tiles_fit_the_cache(accesses, second, expected):
    sizes = fitted_sizes(accesses, 3, Caches(second))
    assert sizes == expected
    assert footprint(accesses, sizes) <= second


def test_four_loops_have_four_sizes():
    assert fitted_sizes([(np.eye(4)[[0, 3]], 8), (np.eye(4)[[2, 3]], 8)], 4, Caches(MB)) == (64, 64, 64, 512)


def product(A, B, C):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def matrices(dtype, n=70):
    rng = np.random.default_rng(1)
    return {name: (rng.random((n, n)) - 0.5).astype(dtype) for name in "ABC"}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_do_not_depend_on_the_caches(dtype):
    found, sources = [], set()
    for caches in (Caches(2**12), Caches(2**15), USUAL):
        compiled = orion.parallel_for(product)
        compiled._preparations.plain = Preparation(product, Options(), caches)
        arguments = matrices(dtype)
        with orion.session(workers=2, force_parallel=True):
            compiled(**arguments)
            sources.add(compiled.kernel_source(**arguments))
        found.append(arguments["C"])
    assert len(sources) == 3
    assert all(np.array_equal(found[0], other) for other in found[1:])


# ---------------------------------------------------------------- what the machine says


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([("1", "48K"), ("1", "32K"), ("2", "2048K"), ("3", "32M")], 2 * MB),
        ([("1", "48K"), ("2", "1M")], MB),
        ([("1", "48K")], USUAL.second),
        ([("2", "0K")], USUAL.second),
        ([("2", "many")], USUAL.second),
        ([], USUAL.second),
    ],
)
def test_caches_are_read_where_linux_lists_them(tmp_path, listed, expected):
    for number, (level, size) in enumerate(listed):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        (folder / "level").write_text(level + "\n")
        (folder / "size").write_text(size + "\n")
    assert caches_in(tmp_path) == Caches(expected)


def test_a_file_that_is_missing_gives_the_usual_size(tmp_path):
    (tmp_path / "index0").mkdir()
    assert caches_in(tmp_path) == USUAL
