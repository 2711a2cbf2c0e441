"""Compiled loops over the elements of sparse arrays against the same functions run by Python, on one worker."""

import numpy as np
import pytest

from tests.kernel_loops import Ratings, adagrad, compiled, make_loop, mf, run_loop
from tests.serial_results import copies

generator = np.random.default_rng(1)


def f32(*shape):
    return generator.normal(size=shape).astype(np.float32)


def biased(ratings, W, H, bw, bh, mean, step):
    for (i, j), (r, weight) in ratings:
        err = weight * (r - mean - bw[i] - bh[j] - np.dot(W[i], H[j]))
        bw[i] += step * err
        bh[j] += step * err
        if err > 0.5:
            W[i] += step * err * H[j]


def elements(values, keys=np.int32, count=60, shape=(9, 7)):
    return Ratings(
        tuple(generator.integers(0, extent, count).astype(keys) for extent in shape),
        tuple(generator.normal(size=count).astype(dtype) for dtype in values),
    )


def element_cases():
    for length in (1, 3, 16, 20, 32, 100, 300):
        for dtype in (np.float32, np.float64):
            W, H = (0.3 * generator.normal(size=(n, length)).astype(dtype) for n in (9, 7))
            yield mf, elements([dtype]), W, H, 0.01, 0.02
    W, H = f32(9, 20), f32(7, 20)
    yield adagrad, elements(["f4"], np.int64), W, H, np.abs(W) + 1, np.abs(H) + 1, 0.1, 0.02
    yield biased, elements(["f4", "f4"]), W, H, f32(9), f32(7), np.float32(0.5), 0.1
    yield mf, elements(["f8"]), f32(9, 20), f32(7, 20), 0.01, 0.02


@pytest.mark.parametrize(
    "case", list(element_cases()), ids=lambda case: f"{case[0].__name__}-{case[2].shape[1]}-{case[2].dtype}"
)
@pytest.mark.parametrize("fastmath", [True, False])
def test_elements_as_in_python(case, fastmath):
    function, *arguments = case
    found, expected = copies(arguments), copies(arguments)
    loop = make_loop(function, *found, fastmath=fastmath)
    run_loop(loop, compiled(loop))
    function(*expected)
    for ours, theirs in zip(found, expected, strict=True):
        if isinstance(ours, np.ndarray):
            tolerance = 2e-5 if ours.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
