"""The loop of `benchmarks.larger`."""

import numpy as np

import orion


@orion.parallel_for
def totals(ratings, by_user, by_item):
    for (i, j), v in ratings:
        by_user[i] += v
        by_item[j] += v


def warm_up() -> None:
    """Have Arrow, and the compiler of loops and of steps, take the memory that they need for code."""
    from pyarrow import csv  # noqa: F401

    count = 1 << 21
    keys = (np.arange(count) % 64).astype("i4")
    few = orion.sparse((keys, keys), np.ones(count, "f4"))
    few.filter(lambda key, v: v > 1).map(lambda v: v * 2).materialize()
    totals(few, np.zeros(64), np.zeros(64))
