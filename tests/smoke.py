"""A program that runs on an installed Orion, in a folder without a copy of it: threads, a proof, a plan, files, Ray.

python smoke.py [files] [ray]    # with the extras of these names
"""

import platform
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

import orion

PACKAGES = ("numpy", "numba", "llvmlite", "islpy", "networkx", "rich", "threadpoolctl")


@orion.parallel_for(require_parallel=True)
def triad(a, b, c, s):
    for i in range(a.shape[0]):
        a[i] = b[i] + s * c[i]


@orion.parallel_for
def gauss_seidel(A, sweeps):
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


@orion.parallel_for
def sgd(ratings, W, H, step):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * err * H[j]
        H[j] += step * err * wi


def loops_and_plans() -> None:
    """Loops give what Python gives, and plans can be proved, printed and drawn."""
    rng = np.random.default_rng(0)
    b, c = rng.random(500), rng.random(500)
    assert triad.verify(np.zeros(500), b, c, 2.0)
    A = rng.random((40, 40))
    assert gauss_seidel.verify(A, 3)
    plan = gauss_seidel.plan(A, 3)
    plan.check()
    plan.save_svg("plan.svg")
    assert "<svg" in Path("plan.svg").read_text(encoding="utf-8")
    assert "gauss_seidel" in gauss_seidel.explain(A, 3)


def trained(backend: str) -> np.ndarray:
    """The factors after a pass over random ratings, on two workers."""
    rng = np.random.default_rng(1)
    ratings = orion.sparse((rng.integers(300, size=20_000), rng.integers(200, size=20_000)), rng.random(20_000))
    W, H = orion.uniform((300, 8), seed=1), orion.uniform((200, 8), seed=2)
    with orion.session(backend=backend, workers=2, force_parallel=True):
        sgd(ratings, W, H, 0.05)
        assert sgd.last_run is not None
        assert sgd.last_run.plan.strategy == "2d"
    return W.to_numpy()


def read_back() -> None:
    """A file of text is read by pyarrow."""
    Path("ratings.csv").write_text("".join(f"{i},{i % 7},{i / 3}\n" for i in range(100)))
    assert orion.read_csv("ratings.csv").nnz == 100


def main(extras: list[str]) -> None:
    assert "site-packages" in orion.__file__, f"not an installed package: {orion.__file__}"
    assert version("orion-loops") == orion.__version__
    loops_and_plans()
    on_threads = trained("threads")
    if "files" in extras:
        read_back()
    if "ray" in extras:
        assert np.array_equal(on_threads, trained("ray"))
    ran = " ".join(["threads", *extras])
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    print(f"Python {platform.python_version()}, {platform.machine()}: Orion {orion.__version__} ran {ran}; {packages}")


if __name__ == "__main__":
    main(sys.argv[1:])
