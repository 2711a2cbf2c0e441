"""LIBMF 0.9.2 (Chin et al., TIST 2015), built with AVX from its source distribution, as a peer.

How it is timed. LIBMF trains inside one call that also copies, shuffles and scales the data. What counts is
its solver alone: from the start of its first thread to the moment when it waits for its threads to end
(`libmf_driver.cpp` takes these two times). It runs quiet and without a test set then, so nothing happens
between its epochs. Its first epoch works on eight factors only and counts in full, in its favour. How many
epochs it needs to reach a test RMSE is found in a separate run that tests after each epoch and isn't timed.
Rank, threads, regularisation, learning rate and the grid of blocks are arguments; 0 blocks means LIBMF's own
default.
"""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import sys
import tarfile
from functools import cache
from math import inf
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from ratings import Ratings

BUILD = Path(__file__).parent / "build"
DRIVER = Path(__file__).parent / "libmf_driver.cpp"
VERSION = "0.9.2"
FLAGS = ("-O3", "-march=native", "-DUSEAVX", "-std=c++11", "-pthread", "-fPIC", "-shared")
WRAPPED = (  # std::thread's start and join, which libmf_driver.cpp notes the times of
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    "_ZNSt6thread4joinEv",
)

INTS = np.ctypeslib.ndpointer(np.int32, flags="C_CONTIGUOUS")
FLOATS = np.ctypeslib.ndpointer(np.float32, flags="C_CONTIGUOUS")


class Settings(NamedTuple):
    """LIBMF's options; `bins=0` leaves the grid of blocks to LIBMF."""

    rank: int
    threads: int
    eta: float = 0.1
    reg: float = 0.05
    bins: int = 0

    def __str__(self) -> str:
        return f"step {self.eta}, reg {self.reg}, grid {self.bins or 'its own'}"


class TimeToRmse(NamedTuple):
    """Seconds and epochs to a test RMSE with the settings that took least; inf seconds if none got there."""

    seconds: float
    epochs: int
    settings: Settings


def library_path() -> Path:
    """The file of the built library, named after all that it is built from."""
    inputs = DRIVER.read_bytes() + " ".join(FLAGS).encode() + VERSION.encode()
    return BUILD / f"libmf-{hashlib.sha256(inputs).hexdigest()[:12]}.so"


@cache
def library() -> ctypes.CDLL:
    """LIBMF and the driver as one shared library, fetched and built the first time."""
    path = library_path()
    if not path.exists():
        compile_library(fetch_source(), path)
    loaded = ctypes.CDLL(str(path))
    ratings = [INTS, INTS, FLOATS, ctypes.c_longlong]
    counts = [ctypes.c_int] * 4
    loaded.libmf_train.argtypes = [
        ctypes.c_int, ctypes.c_int, *ratings, *ratings, *counts,
        ctypes.c_float, ctypes.c_float, ctypes.c_void_p,
    ]  # fmt: skip
    loaded.libmf_train.restype = ctypes.c_double
    return loaded


def fetch_source() -> Path:
    """The folder of LIBMF's C++ source, downloaded from the package index unless it is there."""
    source = BUILD / f"libmf-{VERSION}" / "src_cpp"
    archive = BUILD / f"libmf-{VERSION}.tar.gz"
    if not archive.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        if subprocess.run([*pip, "--dest", str(BUILD), f"libmf=={VERSION}"], check=False).returncode:
            raise SystemExit(f"bench: the source of LIBMF {VERSION} cannot be downloaded: put it at {archive}")
    if not source.exists():
        with tarfile.open(archive) as packed:
            packed.extractall(BUILD, filter="data")
    return source


def compile_library(source: Path, path: Path) -> None:
    unfinished = path.with_suffix(".part")
    wraps = [f"-Wl,--wrap={name}" for name in WRAPPED]
    command = ["g++", *FLAGS, *wraps, f"-I{source}", str(DRIVER), str(source / "mf.cpp"), "-o", str(unfinished)]
    subprocess.run(command, check=True)
    unfinished.rename(path)


def solver_seconds(train_set: Ratings, settings: Settings, epochs: int) -> float:
    """Seconds of `epochs` epochs, measured once."""
    return _call(train_set, train_set.part(slice(0, 0)), settings, epochs, None)


def rmse_history(train_set: Ratings, test_set: Ratings, settings: Settings, epochs: int) -> list[float]:
    """Test RMSE after each epoch, as LIBMF prints it (four decimals)."""
    history = np.full(epochs, np.nan)
    _call(train_set, test_set, settings, epochs, history)
    return history.tolist()


def updates_per_second(train_set: Ratings, settings: Settings, epochs: int = 10) -> float:
    """Speed over `epochs` epochs, measured once."""
    return len(train_set) * epochs / solver_seconds(train_set, settings, epochs)


def with_best_grid(train_set: Ratings, settings: Settings) -> Settings:
    """The settings with the fastest of a few grids of blocks; LIBMF's own grid is one of them."""
    candidates = [settings._replace(bins=bins) for bins in (0, 8, 12, 16)]
    return max(candidates, key=lambda candidate: updates_per_second(train_set, candidate))


def best_time_to_rmse(train_set: Ratings, test_set: Ratings, target: float, rank: int, threads: int) -> TimeToRmse:
    """LIBMF's least time to `target` over learning rates and regularisations, then with its best grid too."""
    candidates = [Settings(rank, threads, eta, reg) for reg in (0.02, 0.05) for eta in (0.05, 0.1, 0.15, 0.2, 0.3)]
    times = [time_to_rmse(train_set, test_set, target, settings) for settings in candidates]
    best = min(times, key=lambda time: time.seconds)
    tuned = with_best_grid(train_set, best.settings)
    return min(best, time_to_rmse(train_set, test_set, target, tuned), key=lambda time: time.seconds)


def time_to_rmse(
    train_set: Ratings, test_set: Ratings, target: float, settings: Settings, most_epochs: int = 20
) -> TimeToRmse:
    """Seconds and epochs to `target` with these settings."""
    history = rmse_history(train_set, test_set, settings, most_epochs)
    for epochs, error in enumerate(history, start=1):
        if error <= target:
            seconds = median(solver_seconds(train_set, settings, epochs) for _ in range(3))
            return TimeToRmse(seconds, epochs, settings)
    return TimeToRmse(inf, 0, settings)


def _call(
    train_set: Ratings,
    test_set: Ratings,
    settings: Settings,
    epochs: int,
    history: NDArray[np.float64] | None,
) -> float:
    def arrays(ratings: Ratings) -> tuple[object, ...]:
        return ratings.users, ratings.items, ratings.stars, len(ratings)

    seconds: float = library().libmf_train(
        *train_set.shape, *arrays(train_set), *arrays(test_set),
        settings.rank, settings.threads, settings.bins, epochs, settings.eta, settings.reg,
        None if history is None else history.ctypes.data,
    )  # fmt: skip
    if seconds < 0:
        raise RuntimeError(f"LIBMF refused {settings} with {epochs} epochs")
    return seconds
