"""The compiler in order: its passes and rewrites as lists, what a function is after each, and rewrites left out."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import orion
from orion.cli.stages import rewrites_fired
from orion.errors import ArgumentError
from orion.pipeline import PASSES, REWRITES, left_out


def peeled(a, b, rounds):
    for _ in range(rounds):
        for i in range(1, a.shape[0] - 1):
            b[i] = a[i - 1] + a[i + 1]
        for i in range(1, a.shape[0] - 1):
            a[i] = b[i] * 0.5
        b[0] = b[1]
        a[0] += b[0] * b[3]


def product(A, B, C):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def gauss_seidel(A, rounds):
    for _ in range(rounds):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def paths(D):
    for i in range(1, D.shape[0]):
        for j in range(1, D.shape[1]):
            D[i, j] = min(D[i - 1, j], D[i, j - 1]) + np.sqrt(D[i, j])


def stencil(a, b, rounds):
    for _ in range(rounds):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j])
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = 0.2 * (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i - 1, j] + b[i + 1, j])


def neighbours(a, b, c):
    for i in range(a.shape[0]):
        b[i] = a[i] * 2.0
    for i in range(a.shape[0]):
        c[i] = b[i] + a[i]


def private(A, w, out):
    for i in range(A.shape[0]):
        for k in range(w.shape[0]):
            w[k] = A[i, k] * A[i, k]
        for k in range(w.shape[0]):
            out[i] += w[k] * w[0]


def histogram(bins, x):
    for i in range(x.shape[0]):
        bins[x[i]] += 1.0


def shifted(a, b):
    for i in range(a.shape[0] - 1):
        a[i] = np.exp(a[i + 1]) + np.sin(b[i]) * np.cos(b[i])


def local_rows(A, rounds):
    for _ in range(rounds):
        B = A.copy()
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                A[i, j] = 0.5 * (B[A.shape[0] - 1 - i, j] + B[i, j])


def over_slices(A, rounds):
    for _ in range(rounds):
        A[1:-1, 1:-1] = 0.25 * (A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:])


def smoothed(a, b):
    before = 0.0
    for i in range(a.shape[0]):
        b[i] = 0.5 * (a[i] + before)
        before = a[i]


def two_values(a, b, c, d):
    for i in range(1, a.shape[0]):
        t = a[i] + b[i]
        a[i] = np.sin(t + c[i - 1])
        t = c[i] * d[i]
        c[i] = np.cos(t)


def search(a, x, found):
    at = -1
    for i in range(a.shape[0]):
        if a[i] * a[i] > x:
            at = i
            break
    found[0] = at


def box_sums(img, col, out):
    for i in range(img.shape[0]):
        row = 0.0
        for j in range(img.shape[1]):
            row += img[i, j]
            col[j] += img[i, j]
            out[i, j] = row + col[j]


def smoothed_in_time(a, b):
    s = a[0]
    for i in range(a.shape[0]):
        s = 0.1 * a[i] + 0.9 * s
        b[i] = s


def by_levels(x, first, order, ptr, idx):
    for c in range(len(first) - 1):
        for k in range(first[c], first[c + 1]):
            i = order[k]
            for p in range(ptr[i], ptr[i + 1]):
                x[i] -= 0.1 * x[idx[p]]


def levels(n=60_000):
    """Half of the elements need nothing, each of the others two of these."""
    ptr = np.concatenate([np.zeros(n // 2 + 1, np.int64), 2 * np.arange(1, n // 2 + 1)])
    first = np.array([0, n // 2, n])
    return many(n), first, np.arange(n), ptr, np.random.default_rng(1).integers(0, n // 2, n)


def many(shape, seed=1):
    return np.random.default_rng(seed).random(shape)


GIVEN = {
    "peel": (peeled, lambda: (many(200_000), many(200_000), 20)),
    "distribute": (peeled, lambda: (many(200_000), many(200_000), 20)),
    "reorder": (product, lambda: (many((90, 80)), many((80, 70)), many((90, 70)))),
    "tile": (product, lambda: (many((90, 80)), many((80, 70)), many((90, 70)))),
    "jam": (product, lambda: (many((90, 80)), many((80, 70)), many((90, 70)))),
    "lockstep": (gauss_seidel, lambda: (many((120, 120)), 20)),
    "skewed_buffers": (gauss_seidel, lambda: (many((120, 120)), 20)),
    "time_tiles": (stencil, lambda: (many((1300, 1300)), many((1300, 1300)), 12)),
    "fuse": (neighbours, lambda: (many(3_000_000), many(3_000_000), many(3_000_000))),
    "privatize": (private, lambda: (many((300, 200)), many(200), many(300))),
    "array_sums": (histogram, lambda: (np.zeros(50), np.random.default_rng(1).integers(0, 50, 4_000_000))),
    "copy_in": (shifted, lambda: (many(300_000), many(300_000))),
    "rename": (two_values, lambda: (many(200_000), many(200_000), many(200_000), many(200_000))),
    "wrap_around": (smoothed, lambda: (many(200_000), many(200_000))),
    "expand": (box_sums, lambda: (many((1200, 1100)), many(1100), many((1200, 1100)))),
    "shared_locals": (local_rows, lambda: (many((500, 400)), 6)),
    "slices": (over_slices, lambda: (many((500, 400)), 6)),
    "scans": (smoothed_in_time, lambda: (many(700_000), many(700_000))),
    "coalesce": (by_levels, levels),
    "early_exits": (search, lambda: (many(300_000), 0.99999, np.zeros(1))),
}
"""A loop that each rewrite is taken for, and arguments."""

LONG = {"time_tiles", "fuse"}
"""Those whose arrays are too large for plain Python: the result without the rewrite is taken for right."""


def plan_and_result(function, arguments):
    with orion.session("threads", 2), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        compiled = orion.parallel_for(function)
        plan = compiled.plan(*arguments)
        compiled(*arguments)
    return {name for name, _ in rewrites_fired(plan.with_bodies())}, arguments


@pytest.mark.parametrize("name", GIVEN)
def test_a_rewrite_is_taken_and_can_be_left_out(name, monkeypatch):
    function, given = GIVEN[name]
    fired, got = plan_and_result(function, given())
    assert name in fired
    monkeypatch.setenv("ORION_REWRITES", f"-{name}")
    without, expected = plan_and_result(function, given())
    assert name not in without
    for mine, its in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-10)


def test_each_rewrite_is_tried():
    assert {one.name for one in REWRITES} - GIVEN.keys() == {"stored_sums"}, "see tests of its own"


def test_names_of_rewrites_that_there_are_not():
    assert left_out("") == frozenset()
    assert left_out("-jam") == {"jam"}
    for wrong in ("jam", "-nothing", "+jam"):
        with pytest.raises(ArgumentError, match="ORION_REWRITES"):
            left_out(wrong)


def test_a_wrong_setting_is_refused_where_a_function_is_read(monkeypatch):
    monkeypatch.setenv("ORION_REWRITES", "-sped-up")
    with pytest.raises(ArgumentError, match="-sped-up"):
        orion.parallel_for(neighbours)(np.zeros(3), np.zeros(3), np.zeros(3))


def stages(path, *more):
    command = [sys.executable, "-m", "orion", "stages", str(path), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


TEXT = """
import numpy as np
import orion

def half(x):
    return x * 0.5

@orion.parallel_for
def rows(X, out):
    k = 0
    for i in range(X.shape[0]):
        row = X[i]
        out[k] = half(row[0]) + (row[1] if row[2] > 0 else 0.0)
        k += 1

@orion.parallel_for
def other(x):
    for i in range(x.shape[0]):
        x[i] += 1.0
"""


def test_stages_are_printed(tmp_path):
    path = tmp_path / "rows.py"
    path.write_text(TEXT)
    done = stages(f"{path}:rows", "--shape", "X=100x3", "--workers", "2")
    assert done.returncode == 0, done.stderr
    for one in PASSES:
        assert f"pass {one.name}: {one.does}" in done.stdout
    assert "other" not in done.stdout
    sections = done.stdout.split("\n\n")
    (views,) = [part for part in sections if part.startswith("pass views")]
    assert "X[i, 0]" in views
    (inline,) = [part for part in sections if part.startswith("pass inline")]
    assert "half(" not in inline
    (program,) = [part for part in sections if part.startswith("the program that is run")]
    assert "independent over (i): 32 tiles, 1 worker" in program or "independent over (i)" in program
    assert "1. (i) in line 11 independent" in done.stdout


def test_stages_of_a_file_that_is_not_there(tmp_path):
    done = stages(tmp_path / "nothing.py")
    assert done.returncode == 2
    assert "nothing.py" in done.stderr
