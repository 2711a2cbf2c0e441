"""What is interrupted in `benchmarks.interrupts`: a process that gets SIGINT while it does one thing again and again.

    python -m benchmarks.interrupted decay threads 2

For each line on its standard input it says `begins`, does it, and says either `left`, with the time by the system's
clock at which KeyboardInterrupt came and whether the next call was right; or `late`, where it ended before; or `lost`,
where it never came. With the line `whole` there is no signal, and it says `finished` with the time.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import orion

NEVER = 10**5
PATIENCE = 30.0
"""Seconds for a signal that comes after the end; without one it is lost."""


def decay(a, rounds):
    for _ in range(rounds):
        for i in range(a.shape[0]):
            a[i] = a[i] * 0.999 + 0.001


def remainders(a, n):
    for i in range(n):
        a[0] += i % 7


def gauss_seidel(A, sweeps):
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def training(R, W, H, epochs):
    for _ in range(epochs):
        for t in range(R.shape[0]):
            u, i, r = int(R[t, 0]), int(R[t, 1]), R[t, 2]
            e = r
            for k in range(W.shape[1]):
                e -= W[u, k] * H[i, k]
            for k in range(W.shape[1]):
                w = W[u, k]
                W[u, k] += 0.01 * (e * H[i, k] - 0.05 * w)
                H[i, k] += 0.01 * (e * w - 0.05 * H[i, k])


def ratings() -> np.ndarray[Any, Any]:
    random = np.random.default_rng(0)
    keys = random.integers(0, 200, (20_000, 2))
    return np.column_stack([keys, random.random(20_000)])


LONG: dict[str, tuple[Callable[..., None], Callable[[], tuple[Any, ...]], int, int]] = {
    "decay": (decay, lambda: (np.ones(1000),), 10**8, 10),
    "remainders": (remainders, lambda: (np.zeros(1, np.int64),), 10**12, 1000),
    "gauss_seidel": (gauss_seidel, lambda: (np.random.default_rng(0).random((500, 500)),), 10**5, 4),
    "training": (training, lambda: (ratings(), np.ones((200, 32)) / 8, np.ones((200, 32)) / 8), 10**5, 1),
}
"""Loops that end on no day: what makes the arrays, the last argument, and one with which it is short."""

LARGE = """
def large_nest(A, B, n):
    for t in range(n):
        for i in range(2, A.shape[0] - 2):
            for j in range(2, A.shape[1] - 2):
                A[i, j] = {k}.0 * (A[i - 1, j] + A[i, j - 1] + B[i, j + 1] - A[i + 2, j - 2])
        for i in range(2, A.shape[0] - 2):
            for j in range(2, A.shape[1] - 2):
                B[i, j] = A[i, j] + B[i - 1, j - 1] * A[i + 1, j] - B[i + 1, j - 2] * A[j, i]
        for i in range(2, A.shape[0] - 2):
            for j in range(i, A.shape[1] - 2):
                A[j, i] += B[i, j] - A[i - 1, j + 1] * B[j, i - 2]
"""
"""A function that is another one for each k, so that nothing is known of it."""


@dataclass(frozen=True)
class Case:
    """`run` is interrupted; `again` says whether the next call is right."""

    run: Callable[[], object]
    again: Callable[[], bool]
    close: Callable[[], object] = lambda: None


def case(name: str, folder: Path) -> Case:
    """What is interrupted, by its name."""
    if name in LONG:
        return long_loop(name)
    numbers = count(time.time_ns())
    if name == "compile":
        A = np.ones((40, 40))
        return Case(lambda: large(folder, next(numbers))(A.copy(), A.copy(), 1), works)
    if name == "plan":
        A = np.ones((40, 40))
        return Case(lambda: large(folder, next(numbers)).plan(A, A.copy(), 1), works)
    if name == "read_csv":
        path, lines = written(folder), 30_000_000
        return Case(lambda: orion.read_csv(path), lambda: len(orion.read_csv(small(folder))) == 3 and lines > 0)
    assert name == "ray"
    double = orion.parallel_for(doubled)

    def start() -> None:
        orion.init("ray", 2, force_parallel=True)  # starts nothing: the first call does
        double(np.ones(4))

    return Case(start, lambda: is_doubled(double), orion.shutdown)


def doubled(a):
    for i in range(a.shape[0]):
        a[i] *= 2


def is_doubled(double: Callable[..., object]) -> bool:
    a = np.ones(4)
    double(a)
    return bool((a == 2).all())


def works() -> bool:
    return is_doubled(orion.parallel_for(doubled))


def long_loop(name: str) -> Case:
    function, make, endless, short = LONG[name]
    loop, expected, first = orion.parallel_for(function), make(), make()
    loop(*first, short)
    function(*expected, short) if name != "gauss_seidel" else loop(*expected, short)

    def again() -> bool:
        found = make()
        loop(*found, short)
        return all(np.allclose(a, b) and np.array_equal(a, c) for a, b, c in zip(found, expected, first, strict=True))

    return Case(lambda: loop(*make(), endless), again)


def large(folder: Path, number: int) -> Any:
    """The large nest with another constant."""
    path = folder / f"nest_{number}.py"
    path.write_text(LARGE.format(k=number))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return orion.parallel_for(module.large_nest)


def written(folder: Path) -> Path:
    """A file of 30 million lines."""
    path = folder / "large.csv"
    block = "".join(f"{k % 997},{k % 1009},{k % 5}.5\n" for k in range(100_000)).encode()
    with path.open("wb") as file:
        for _ in range(300):
            file.write(block)
    return path


def small(folder: Path) -> Path:
    path = folder / "small.csv"
    path.write_text("0,1,2.5\n3,4,5.5\n6,7,8.5\n")
    return path


def whole(one: Case) -> str:
    """Do it without a signal."""
    print("begins", flush=True)
    one.run()
    at = time.monotonic()
    one.close()
    return f"finished {at}"


def interrupted(one: Case) -> str:
    """Do it, until it is done or a signal comes; what came of it, as a line."""
    done = False
    try:
        print("begins", flush=True)
        one.run()
        done = True
        time.sleep(PATIENCE)
    except KeyboardInterrupt:
        left = time.monotonic()
    else:
        return "lost"
    right = one.again()
    one.close()
    return f"{'late' if done else 'left'} {left} {right}"


def main() -> None:
    name, backend, workers = sys.argv[1:4]
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder, sessions(backend, int(workers)):
        one = case(name, Path(folder))
        print("ready", flush=True)
        for line in sys.stdin:
            print(whole(one) if line.strip() else interrupted(one), flush=True)


def sessions(backend: str, workers: int) -> Any:
    return orion.session(backend, workers, force_parallel=workers > 1)


if __name__ == "__main__":
    main()
