"""A program that writes a checkpoint after each epoch, and is killed while it does: a new one goes on from the newest.

    python tests/killed_driver.py threads FOLDER 12     # train up to epoch 12, from where a folder has got

`driver_kills` does that again and again, and compares what is restored with a run that nobody kills.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orion
from tests.test_promise import epochs as sgd

ROWS = 100_000
WAIT_SECONDS = 60.0
"""How long a driver may take to its next checkpoint."""

FOR_EVER = 1_000_000


def factors() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, ROWS, 50_000), rng.integers(0, ROWS, 50_000)
    ratings = orion.sparse(keys, rng.random(50_000, np.float32), shape=(ROWS, ROWS))
    W, H = (orion.uniform((ROWS, 16), dtype="float32", seed=seed) for seed in (1, 2))
    return ratings, W, H


def step(ratings: Any, W: Any, H: Any) -> None:
    sgd(ratings, W, H, np.float32(0.01), np.float32(0.02), 1)


def train(backend: str, folder: str, epochs: int) -> None:
    """Train up to an epoch, from the newest checkpoint on where there is one."""
    ratings, W, H = factors()
    first = 0
    with suppress(orion.ArgumentError):  # there is none yet
        first = orion.restore(folder, W=W, H=H)["epoch"]
    with orion.session(backend, 2, force_parallel=True):
        for epoch in range(first + 1, epochs + 1):
            step(ratings, W, H)
            orion.checkpoint(folder, W=W, H=H, epoch=epoch)


def digest(*arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.asarray(one).tobytes() for one in arrays)).hexdigest()


def expected(epochs: int) -> list[str]:
    """What the factors are after each epoch of a run that nobody kills."""
    ratings, W, H = factors()
    found = [digest(W, H)]
    with orion.session("threads", 2, force_parallel=True):
        for _ in range(epochs):
            step(ratings, W, H)
            found.append(digest(W, H))
    return found


Life = tuple[float, bool, float, str]
"""Of one driver: seconds until it was killed, whether it was writing, seconds until the next one had written its first
checkpoint, and what was wrong with the newest one."""


def driver_kills(backend: str, count: int, chance: random.Random) -> tuple[float, list[Life]]:
    """So many drivers, one after the other, each of which is killed; the last one is not. Also the seconds that the
    first one takes until it has written a checkpoint, where there is none."""
    with TemporaryDirectory(prefix="orion-kill-") as name:
        folder = Path(name)
        killed = [_life(backend, folder, chance) for _ in range(count)]
        last = killed[-1][3] + 2
        start = time.perf_counter()
        done = subprocess.run(_command(backend, folder, last), capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        states = expected(last)
        final = _state(folder)
        lives = []
        for place, (at, is_inside, _, epoch, state) in enumerate(killed):
            later = killed[place + 1][2] if place + 1 < count else seconds
            wrong = "" if state == states[epoch] else f"another state after epoch {epoch}"
            if place + 1 == count and (done.returncode or final != (last, states[last])):
                wrong = wrong or f"the last driver: {done.stderr or 'another state'}"
            lives.append((at, is_inside, later, wrong))
        return killed[0][2], lives


def _life(backend: str, folder: Path, chance: random.Random) -> tuple[float, bool, float, int, str]:
    """One driver: seconds until it was killed, whether it was writing, seconds until its first checkpoint, and the
    epoch and state that are restored afterwards."""
    writes, later, before = chance.randrange(1, 4), chance.uniform(0, 0.01), _newest(folder)
    start = time.perf_counter()
    driver = subprocess.Popen(_command(backend, folder, FOR_EVER), stderr=subprocess.PIPE, text=True)
    try:
        _wait(driver, lambda: _newest(folder) > before)
        first = time.perf_counter() - start
        _wait(driver, lambda: _newest(folder) >= before + writes and any(folder.glob(".checkpoint-*.tmp")))
        time.sleep(later)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    at = time.perf_counter() - start
    is_inside = any(folder.glob(".checkpoint-*.tmp"))
    return at, is_inside, first, *_state(folder)


def _wait(driver: subprocess.Popen[str], is_there: Any) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not is_there():
        if driver.poll() is not None or time.monotonic() > end:
            driver.kill()
            raise RuntimeError(f"a driver did not go on: {driver.communicate()[1]}")
        time.sleep(0.001)


def _state(folder: Path) -> tuple[int, str]:
    found = orion.restore(folder)
    return found["epoch"], digest(found["W"], found["H"])


def _newest(folder: Path) -> int:
    return max((int(one.stem.rpartition("-")[2]) for one in folder.glob("checkpoint-*.npz")), default=0)


def _command(backend: str, folder: Path, epochs: int) -> list[str]:
    return [sys.executable, os.path.abspath(__file__), backend, str(folder), str(epochs)]


if __name__ == "__main__":
    train(sys.argv[1], sys.argv[2], int(sys.argv[3]))
