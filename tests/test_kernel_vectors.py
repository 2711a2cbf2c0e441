"""Rows in vector registers: every operation against NumPy, and the instructions that come out."""

import platform
import re

import numba
import numpy as np
import pytest

from orion.kernel.build.compile import compile_kernel
from orion.kernel.support.vectors import LANES, native_lanes
from tests.kernel_loops import Ratings, assembly, compiled, kernel_cache, make_loop, mf, run_loop

__all__ = ["kernel_cache"]

generator = np.random.default_rng(3)
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 100, 256)


def every_operation(A, B, out, x):
    for i in range(A.shape[0]):
        t = A[i] * B[i] - B[i] / x
        t = -t + np.maximum(A[i], x) * np.minimum(B[i], 1.5) - np.abs(A[i]) ** 2
        t *= np.sqrt(np.abs(B[i])) + np.floor(A[i]) - np.ceil(B[i])
        t /= 3
        out[i] = t + 1


def every_fold(A, B, o):
    for i in range(A.shape[0]):
        o[i, 0] = A[i] @ B[i]
        o[i, 1] = A[i].sum()
        o[i, 2] = np.max(A[i])
        o[i, 3] = B[i].min()
        o[i, 4] = np.mean(A[i] * 2)
        o[i, 5] = np.linalg.norm(B[i])


def transcendental(A, B):
    for i in range(A.shape[0]):
        B[i] = np.exp(A[i]) + np.log(np.abs(A[i]) + 1)


def widening(A, B):
    for i in range(A.shape[0]):
        B[i] += A[i] * 0.1
        A[i] += B[i] * 0.1


def uses_numpy(loop):
    """Whether anything but the square root of a scalar is left to NumPy's operations."""
    lines = [line for line in loop.source.text.splitlines() if not line.strip().startswith("#")]
    return any(re.search(r"\bnp\.(?!sqrt)", line) for line in lines)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operations_give_the_bits_of_numpy(length, dtype):
    A, B = (generator.normal(size=(4, length)).astype(dtype) for _ in range(2))
    out, expected = np.zeros_like(A), np.zeros_like(A)
    loop = make_loop(every_operation, A, B, out, 0.7, fastmath=False)
    assert not uses_numpy(loop)
    run_loop(loop, compiled(loop))
    every_operation(A, B, expected, 0.7)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("fastmath", [True, False])
def test_folds(length, fastmath):
    A, B = (generator.integers(-8, 9, size=(4, length)).astype(np.float32) for _ in range(2))
    found, expected = np.zeros((4, 6), np.float32), np.zeros((4, 6), np.float32)
    loop = make_loop(every_fold, A, B, found, fastmath=fastmath)
    assert not uses_numpy(loop)
    run_loop(loop, compiled(loop))
    every_fold(A, B, expected)
    np.testing.assert_allclose(found, expected, rtol=2e-7)  # sums of small integers are exact in any order


def test_sums_in_order():
    A = np.array([[1e8, 1, -1e8, 1, 1, 1]], np.float32)
    found = np.zeros((1, 6), np.float32)
    loop = make_loop(every_fold, A, np.ones_like(A), found, fastmath=False)
    run_loop(loop, compiled(loop))
    assert found[0, 0] == found[0, 1] == 3  # 1e8 + 1 is 1e8 in float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transcendental_functions(dtype):
    A = generator.normal(size=(3, 21)).astype(dtype)
    B = np.zeros_like(A)
    loop = make_loop(transcendental, A, B)
    run_loop(loop, compiled(loop))
    np.testing.assert_allclose(B, np.exp(A) + np.log(np.abs(A) + 1), rtol=1e-6 if dtype == np.float32 else 1e-14)


def test_nan_is_passed_on_by_minimum_and_maximum():
    A = np.array([[np.nan, 1.0, 2.0]])
    out = np.zeros_like(A)
    loop = make_loop(every_operation, A, A.copy(), out, 0.7)
    run_loop(loop, compiled(loop))
    assert np.isnan(out[0, 0])
    assert not np.isnan(out[0, 1:]).any()


def test_rows_of_two_precisions():
    A, B = generator.normal(size=(3, 21)).astype(np.float32), generator.normal(size=(3, 21))
    expected = A.copy(), B.copy()
    loop = make_loop(widening, A, B, fastmath=False)
    run_loop(loop, compiled(loop))
    widening(*expected)
    np.testing.assert_array_equal(A, expected[0])
    np.testing.assert_array_equal(B, expected[1])


# ------------------------------------------------------------ instructions

WIDEST = {16: "zmm", 8: "ymm", 4: "xmm"}[LANES]


def adagrad(ratings, W, GW, H, step):
    for (i, j), r in ratings:
        g = (r - W[i] @ H[j]) * H[j]
        GW[i] += g * g
        W[i] += step * g / np.sqrt(GW[i])


def copy_rows(A, B):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = A[i, j] * 0.5 + B[i, j]


def dot_by_hand(A, B, o):
    for i in range(A.shape[0]):
        s = 0.0
        for k in range(A.shape[1]):
            s += A[i, k] * B[i, k]
        o[i] = s


def machine_code(function, *arguments, **options):
    return assembly(compile_kernel(make_loop(function, *arguments, **options).source))


def instructions(code, name, registers=WIDEST):
    """How many instructions of that name work on vectors in such registers, and how many on single numbers."""
    found = re.findall(rf"^\s+v?{name}(ps|pd|ss|sd)\s+(.*)$", code, re.MULTILINE)
    wide = sum(kind in ("ps", "pd") and registers in operands for kind, operands in found)
    return wide, sum(kind in ("ss", "sd") for kind, _ in found)


@pytest.fixture
def ratings():
    keys = (np.zeros(4, np.int32), np.zeros(4, np.int32))
    return Ratings(keys, (np.zeros(4, np.float32),))


@pytest.mark.parametrize("length", [32, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrix_factorization_works_on_the_widest_registers(ratings, length, dtype):
    W = np.zeros((3, length), dtype)
    code = machine_code(mf, ratings, W, W.copy(), 0.1, 0.2)
    fused, scalar = instructions(code, r"fn?m(?:add|sub)\d*")
    assert fused >= 2 * (length // LANES)
    assert scalar <= 4  # coefficients
    assert "prefetch" in code
    assert not re.search(r"call\w*\s+.*(gemm|dot)", code)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="CPUs of x86")
@pytest.mark.parametrize(
    ("name", "features", "lanes"),
    [("nehalem", "", 4), ("haswell", "", 8), ("skylake-avx512", "", 16), ("znver4", "-avx512f", 8), (None, "-avx", 4)],
)
def test_registers_are_those_of_the_cpu_that_is_compiled_for(name, features, lanes, monkeypatch):
    monkeypatch.setattr(numba.config, "CPU_NAME", name)
    monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
    assert native_lanes() == lanes


def test_square_roots_and_divisions_are_vector_instructions(ratings):
    W = np.zeros((3, 32), np.float32)
    code = machine_code(adagrad, ratings, W, W.copy(), W.copy(), 0.1)
    assert instructions(code, "sqrt")[0] >= 32 // LANES
    assert instructions(code, "div")[0] >= 32 // LANES
    assert instructions(code, "sqrt")[1] == 0


def test_loops_over_elements_of_rows_are_vectorized():
    """By LLVM, which may choose narrower registers than there are: Skylake-X slows down with its widest."""
    A = np.zeros((3, 500), np.float32)
    assert instructions(machine_code(copy_rows, A, A.copy()), "mul", "mm")[0] > 0
    o = np.zeros(3, np.float32)
    assert instructions(machine_code(dot_by_hand, A, A.copy(), o), "(?:fmadd.*|add)", "mm")[0] > 0
    assert instructions(machine_code(dot_by_hand, A, A.copy(), o, fastmath=False), "(?:fmadd.*|add)", "mm")[0] == 0


def test_arguments_of_a_tile_do_not_alias():
    A = np.zeros((3, 500), np.float32)
    kernel = compile_kernel(make_loop(copy_rows, A, A.copy()).source)
    text = "\n".join(kernel.module.tile.inspect_llvm().values())
    definition = next(line for line in text.splitlines() if line.startswith("define") and "4tile" in line)
    assert "noalias" in definition.partition("excinfo")[2]
