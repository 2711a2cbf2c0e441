"""SGD matrix factorization by hand for the vector unit, in Latin-square tiles: the upper bound.

One update loads both rows as vectors, multiplies and sums, and stores them back; the rows of the rating
eight ahead are prefetched. Rows start on 64-byte boundaries. The tiles are those that Orion cuts: `BLOCKS` row
blocks by as many column blocks, of about equal numbers of ratings; a worker has neighbouring row blocks. At
turn t row block p is combined with column block (p + t) mod BLOCKS, and waits only for the row block that had
that column block before it. One call runs many epochs: no Python runs between tiles.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray
from ratings import Ratings
from vector_ops import FLAG_STRIDE, LINE, give_way, prefetch, publish, read, update

AHEAD = 8  # ratings between a prefetch and its use
SPINS = 10_000  # looks at another worker's flag before giving way to whatever else wants the core
BLOCKS = 8  # row blocks, and column blocks, that the matrix is cut into


class VectorSgd:
    """Ratings in tiles, factors with random start values, and the threads that train them."""

    def __init__(self, ratings: Ratings, rank: int, workers: int, seed: int = 0) -> None:
        self.rank, self.workers = rank, workers
        self.shape, self.seed = ratings.shape, seed
        self.start_again()
        self.tiled, self.starts = in_tiles(ratings)
        self._walk = walk(rank)
        self._threads = ThreadPoolExecutor(workers)

    def start_again(self) -> None:
        """Random factors, the same each time."""
        rng = np.random.default_rng(self.seed)
        self.W, self.H = (aligned_rows(rows, self.rank, rng) for rows in self.shape)

    def train(self, epochs: int, step: float = 0.005, reg: float = 0.05) -> None:
        """Run epochs on all workers; W and H change in place."""
        flags = np.zeros(BLOCKS * FLAG_STRIDE, dtype=np.int64)
        shared = (
            self.tiled.users, self.tiled.items, self.tiled.stars, self.starts,
            self.W.reshape(-1), self.H.reshape(-1),
            np.float32(step), np.float32(1 - step * reg), epochs, self.workers, flags,
        )  # fmt: skip
        jobs = [self._threads.submit(self._walk, worker, *shared) for worker in range(self.workers)]
        for job in jobs:
            job.result()


def aligned_rows(rows: int, rank: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Uniform numbers in [0, 1/sqrt(rank)), rows x rank; each row starts on a 64-byte boundary."""
    width = row_width(rank)
    memory = np.zeros(rows * width + LINE // 4, dtype=np.float32)
    first = (-memory.ctypes.data % LINE) // 4
    matrix = memory[first : first + rows * width].reshape(rows, width)
    matrix[:, :rank] = rng.random((rows, rank), dtype=np.float32) / np.float32(rank**0.5)
    return matrix


def row_width(rank: int) -> int:
    """Floats from the start of one row to that of the next: whole cache lines."""
    return -(-4 * rank // LINE) * LINE // 4


def in_tiles(ratings: Ratings) -> tuple[Ratings, NDArray[np.int64]]:
    """The ratings tile by tile, row blocks outermost, in their old order inside a tile; and where each tile starts."""
    row_block = balanced_blocks(ratings.users, ratings.shape[0], BLOCKS)[ratings.users]
    column_block = balanced_blocks(ratings.items, ratings.shape[1], BLOCKS)[ratings.items]
    tile = row_block * BLOCKS + column_block
    order = np.argsort(tile.astype(np.uint8), kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(tile, minlength=BLOCKS * BLOCKS))])
    return ratings.part(order), starts


def balanced_blocks(ids: NDArray[np.int32], size: int, blocks: int) -> NDArray[np.int64]:
    """The block of each id, blocks being contiguous and of about equal numbers of ratings."""
    before = np.cumsum(np.bincount(ids, minlength=size))
    return np.minimum((before - 1) * blocks // len(ids), blocks - 1)


@cache
def walk(rank: int) -> Any:
    """The compiled function that one worker runs for a number of epochs, for rows of `rank` numbers."""
    width = uint64(row_width(rank))

    @njit(fastmath=True, nogil=True)
    def run_tile(users, items, stars, start, stop, W, H, step, decay):
        # Reading past the tile's end for the prefetch is reading the next tile; only the very end has none.
        ahead = min(stop, uint64(max(0, len(users) - AHEAD)))
        for k in range(start, ahead):
            prefetch(W, uint64(users[k + uint64(AHEAD)]) * width, rank)
            prefetch(H, uint64(items[k + uint64(AHEAD)]) * width, rank)
            update(W, H, uint64(users[k]) * width, uint64(items[k]) * width, stars[k], step, decay, rank)
        for k in range(max(start, ahead), stop):
            update(W, H, uint64(users[k]) * width, uint64(items[k]) * width, stars[k], step, decay, rank)

    @njit(fastmath=True, nogil=True)
    def run_worker(me, users, items, stars, starts, W, H, step, decay, epochs, workers, flags):
        for turn in range(epochs * BLOCKS):
            for block in range(me * BLOCKS // workers, (me + 1) * BLOCKS // workers):
                spins = 0
                while read(flags, (block + 1) % BLOCKS) < turn:
                    spins += 1
                    if spins > SPINS:
                        give_way()
                tile = block * BLOCKS + (block + turn) % BLOCKS
                run_tile(users, items, stars, uint64(starts[tile]), uint64(starts[tile + 1]), W, H, step, decay)
                publish(flags, block, turn + 1)

    return run_worker
