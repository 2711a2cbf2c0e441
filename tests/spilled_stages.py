"""Prints the anonymous memory, in megabytes above that at the start, that a program takes at most which reads text,
maps, filters, groups, loops, saves and loads: `python spilled_stages.py FOLDER TEXT SAVED`, without a folder in memory.
"""

import sys
import threading
import time

import numpy as np
from pyarrow import csv  # noqa: F401 - its code is there at the start

import orion
from orion.kernel.build import elementwise  # noqa: F401 - as is the compiler's


@orion.parallel_for
def totals(ratings, by_user, by_item):
    for (i, j), v in ratings:
        by_user[i] += v
        by_item[j] += v


def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024


def watch(peak):
    while True:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.002)


def main(folder, path, saved):
    orion.init(spill=folder, spill_above="1MB" if folder else None)
    start = anonymous()
    peak = [start]
    threading.Thread(target=watch, args=(peak,), daemon=True).start()
    read = orion.read_csv(path, header=False, shape=(50_000, 50_000))
    read.map(lambda v: v * 2).filter(lambda key, v: v > 0.1).save(saved)
    loaded = orion.load(saved)
    totals(loaded, np.zeros(50_000), np.zeros(50_000))
    loaded.group_by(1).sizes.max()
    print(peak[0] - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
