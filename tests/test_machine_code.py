"""What becomes of loops, without a clock: how much a first call compiles, and the machine code of twenty kernels.

Each loop of these kernels that does the work is one block of instructions on vectors. Nothing is raised in a kernel:
all its subscripts are proved, so there is no check.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.kernel.build import compile as compiling
from orion.kernel.support.vectors import LANES
from tests.kernel_loops import assembly, kernel_cache

__all__ = ["kernel_cache"]

ROOT = Path(__file__).resolve().parents[1]

# ---------------------------------------------------------------- first calls

FIRST_CALL = """
import sys
import numpy as np
from numba.core import event
import orion

@orion.parallel_for
def first(a):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i]

@orion.parallel_for
def second(a, b):
    for i in range(a.shape[0]):
        b[i] = a[i] + 1.0

@orion.parallel_for
def rows(a):
    for i, x in enumerate(np.linspace(0.0, 1.0, a.shape[0])):
        a[i] = x

called, arguments = {"first": (first, 1), "second": (second, 2), "rows": (rows, 1)}[sys.argv[1]]
with orion.session("threads", 2, force_parallel=True), event.install_recorder("numba:compile") as seen:
    called(*(np.ones(9) for _ in range(arguments)))
begun = [one.data["dispatcher"].py_func for _, one in seen.buffer if one.is_start]
print(*(f"{one.__module__.partition('.')[0].partition('_')[0]}.{one.__name__}" for one in begun))
print(*(one for one in ("scipy.linalg",) if one in sys.modules))
"""


IN_A_TILE = {"orion.tile": 1, "orion.is_to_leave": 1}


def compiled_by_first_call(tmp_path, name):
    script = tmp_path / "first_call.py"
    script.write_text(FIRST_CALL)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), name], env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    return Counter(done.stdout.split())


def test_a_first_call_compiles_its_tile_alone(tmp_path):
    """The walker is on disk from any call before, in any process; so is a tile from the call before."""
    assert compiled_by_first_call(tmp_path, "first")["orion.walk"] == 1
    compiled = compiled_by_first_call(tmp_path, "second")
    assert "scipy.linalg" not in compiled  # of which Numba asks whether there is one
    assert compiled == IN_A_TILE
    assert compiled_by_first_call(tmp_path, "second").total() == 0


def test_an_array_that_is_assigned_compiles_no_strings(tmp_path):
    """Numba's own error of arrays that differ in shape does: thirty functions."""
    compiled = compiled_by_first_call(tmp_path, "rows")
    assert compiled["orion.tile"] >= 1
    assert not {name for name in compiled if "str" in name or "concat" in name or "repr" in name}


# ---------------------------------------------------------------- machine code


def scale(x, y, a):
    for i in range(x.shape[0]):
        y[i] = a * x[i]


def axpy(x, y, a):
    for i in range(x.shape[0]):
        y[i] += a * x[i]


def triad(x, y, z, a):
    for i in range(x.shape[0]):
        z[i] = x[i] + a * y[i]


def horner(x, y):
    for i in range(x.shape[0]):
        y[i] = ((2.0 * x[i] - 1.0) * x[i] + 3.0) * x[i] - 4.0


def roots(x, y):
    for i in range(x.shape[0]):
        y[i] = np.sqrt(x[i] * x[i] + 1.0)


def clipped(x, y):
    for i in range(x.shape[0]):
        y[i] = min(max(x[i], -0.5), 0.5)


def chosen(x, y):
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            y[i] = x[i] * 2.0
        else:
            y[i] = -x[i]


def neighbours(x, y):
    for i in range(1, x.shape[0] - 1):
        y[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1]


def dot(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


def squares(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += (x[i] - 1.0) ** 2
    return total


def by_elements(A, B):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            B[i, j] = A[i, j] * 0.5 + B[i, j]


def outer(x, y, A):
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            A[i, j] = x[i] * y[j]


def jacobi(A, B):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            B[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def row_sums(A, x):
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(A.shape[1]):
            total += A[i, j]
        x[i] = total


def matrix_vector(A, x, y):
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(x.shape[0]):
            total += A[i, j] * x[j]
        y[i] = total


def product(A, B, C):
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def distances(A, B):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            B[i, j] = abs(A[i, j] - A[0, j])


def gathered(x, at, y):
    for i in range(at.shape[0]):
        y[i] = 2.0 * x[at[i]]


VECTOR, MATRIX = np.linspace(-1.0, 1.0, 5000), np.linspace(-1.0, 1.0, 300 * 400).reshape(300, 400)
NARROW, WHOLE = VECTOR.astype(np.float32), np.arange(5000)
GIVEN = [
    (scale, VECTOR, VECTOR, 2.0), (axpy, VECTOR, VECTOR, 2.0), (axpy, NARROW, NARROW, np.float32(2)),
    (axpy, WHOLE, WHOLE, 3), (triad, VECTOR, VECTOR, VECTOR, 2.0), (horner, VECTOR, VECTOR), (horner, NARROW, NARROW),
    (roots, VECTOR, VECTOR), (clipped, VECTOR, VECTOR), (chosen, VECTOR, VECTOR), (neighbours, VECTOR, VECTOR),
    (neighbours, NARROW, NARROW), (dot, VECTOR, VECTOR), (squares, NARROW), (by_elements, MATRIX, MATRIX),
    (outer, VECTOR[:300], VECTOR[:400], MATRIX), (jacobi, MATRIX, MATRIX), (row_sums, MATRIX, VECTOR[:300]),
    (matrix_vector, MATRIX, VECTOR[:400], VECTOR[:300]), (product, MATRIX, MATRIX.T.copy(), np.zeros((300, 300))),
    (distances, MATRIX, MATRIX),
]  # fmt: skip

REGISTERS = {16: "[yz]mm", 8: "ymm", 4: "xmm"}[LANES]
"""The widest registers. Of 512 bits LLVM may take half, as Skylake-X slows down with its widest."""


def machine_code(monkeypatch, function, *arguments):
    """The assembly of the kernels of a call."""
    found = []
    compile_kernel = compiling.compile_kernel

    def noted(source):
        found.append(compile_kernel(source))
        return found[-1]

    with monkeypatch.context() as patch, orion.session("threads", 2, force_parallel=True):
        patch.setattr(compiling, "compile_kernel", noted)
        copies = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
        orion.parallel_for(function)(*copies)
    assert found
    return "\n".join(map(assembly, found))


def innermost_loops(code):
    """The blocks of instructions that end with a jump to where they begin."""
    for label, block in re.findall(r"(?ms)^(\.L\w+):\n(.*?)(?=^\.L\w+:|\Z)", code):
        body, jump, _ = block.partition(f"\t{label}\n")
        if jump:
            yield body


OPERATIONS = r"vp?(?:add|mul|sub|sqrt|fn?m(?:add|sub)|min|max|and)\w*"
ARITHMETIC = re.compile(rf"^\s+{OPERATIONS}\s+.*%{REGISTERS}", re.MULTILINE)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="CPUs of x86")
def test_loops_work_on_vectors_and_check_nothing(monkeypatch):
    without_vectors, with_checks = [], []
    for function, *arguments in GIVEN:
        name = f"{function.__name__}, {arguments[0].dtype}"
        code = machine_code(monkeypatch, function, *arguments)
        without_vectors += [name] * (not any(map(ARITHMETIC.search, innermost_loops(code))))
        with_checks += [name] * (".const.pickle" in code)  # what is raised
    assert (without_vectors, with_checks) == ([], [])


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="CPUs of x86")
def test_a_subscript_that_is_read_is_checked_in_a_loop_without_vectors(monkeypatch):
    code = machine_code(monkeypatch, gathered, VECTOR, np.arange(5000), VECTOR)
    assert not any(map(ARITHMETIC.search, innermost_loops(code)))
    assert ".const.pickle" in code
