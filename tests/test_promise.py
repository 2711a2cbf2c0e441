"""The promise: a run equals the kernel on one worker in `plan.serial_order()`, bit for bit, on any number of them."""

from itertools import product

import numpy as np
import pytest

import orion
from orion.kernel.build.compile import compile_kernel
from orion.kernel.calling import CONTROL_SIZE, FLAG_STRIDE
from tests.trials import one_in, worker_counts


@orion.parallel_for
def sgd(ratings, W, H, step, reg):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * (err * H[j] - reg * W[i])
        H[j] += step * (err * wi - reg * H[j])


@orion.parallel_for
def epochs(ratings, W, H, step, reg, count):
    for _epoch in range(count):
        for (i, j), r in ratings:
            err = r - W[i] @ H[j]
            wi = W[i].copy()
            W[i] += step * (err * H[j] - reg * W[i])
            H[j] += step * (err * wi - reg * H[j])


@orion.parallel_for
def tensor(x, A, B, C, step):
    for (i, j, k), v in x:
        err = v - np.sum(A[i] * B[j] * C[k])
        a = A[i].copy()
        b = B[j].copy()
        A[i] += step * err * b * C[k]
        B[j] += step * err * a * C[k]
        C[k] += step * err * a * b


@orion.parallel_for
def rmse(ratings, W, H):
    total = 0.0
    for (i, j), r in ratings:
        total += (r - W[i] @ H[j]) ** 2
    return np.sqrt(total / len(ratings))


@orion.parallel_for(ordered=True)
def ordered_sgd(ratings, W, H, step):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        W[i] += step * err * H[j]
        H[j] += step * err * W[i]


@orion.parallel_for
def sweep(A, sweeps):
    for _t in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


@orion.parallel_for
def shifting(a, rounds):
    """The subscript depends on the round, so that rounds must not overlap."""
    for t in range(rounds):
        for i in range(2000):
            a[i + t] = a[i + t] * 0.5 + t


@orion.parallel_for
def turned(z, w):
    """Complex numbers: each by itself, and their sum."""
    total = 0j
    for i in range(len(z)):
        w[i] = (z[i] ** 3 - 1j) / (1 + z[i])
        total += w[i] * np.exp(1j * abs(z[i]))
    return total


def keys(*extents, count, seed=0):
    """Skewed keys, some of them several times."""
    rng = np.random.default_rng(seed)
    return tuple((extent * rng.random(count) ** 2).astype(np.int64) for extent in extents)


def factors(*rows, rank=9, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(scale=0.3, size=(n, rank)).astype(np.float32) for n in rows]


def ratings(count=4000):
    return orion.sparse(keys(120, 70, count=count), np.random.default_rng(2).normal(size=count).astype(np.float32))


def case(name):
    if name == "sgd":
        return sgd, lambda: (ratings(), *factors(120, 70), 0.02, 0.01)
    if name == "epochs":
        return epochs, lambda: (ratings(), *factors(120, 70), 0.02, 0.01, 5)
    if name == "ordered":
        return ordered_sgd, lambda: (ratings(), *factors(120, 70), 0.02)
    if name == "tensor":
        values = np.random.default_rng(3).normal(size=3000).astype(np.float32)
        return tensor, lambda: (orion.sparse(keys(40, 30, 20, count=3000), values), *factors(40, 30, 20), 0.02)
    if name == "rmse":
        return rmse, lambda: (ratings(), *factors(120, 70))
    if name == "shifting":
        return shifting, lambda: (np.arange(2100.0), 40)
    if name == "complex":
        z = np.random.default_rng(5).normal(size=(4000, 2)).view(complex).ravel()
        return turned, lambda: (z.copy(), np.zeros(4000, complex))
    return sweep, lambda: (np.random.default_rng(4).normal(size=(90, 60)), 4)


NAMES = ["sgd", "epochs", "ordered", "tensor", "rmse", "sweep", "shifting", "complex"]


def run(name, backend, workers):
    """The function's result and its arrays after a run, as bytes."""
    function, make = case(name)
    arguments = make()
    with orion.session(backend=backend, workers=workers, force_parallel=True):
        result = function(*arguments)
    return [result, *(a.tobytes() for a in arguments if isinstance(a, np.ndarray))]


@pytest.mark.parametrize(("name", "workers"), list(product(NAMES, [1, 2, 3, 4])))
def test_threads_equal_one_worker_bit_for_bit(name, workers):
    assert run(name, "threads", workers) == run(name, "serial", None)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_ray_equals_one_worker_bit_for_bit():
    names = one_in(4, [*NAMES])
    expected = {name: run(name, "serial", None) for name in names}
    with orion.session(backend="ray", workers=4, force_parallel=True):
        for workers in worker_counts(4, 3, 2, 1):
            orion.scale(workers)
            for name in names:
                function, make = case(name)
                arguments = make()
                result = function(*arguments)
                found = [result, *(a.tobytes() for a in arguments if isinstance(a, np.ndarray))]
                assert found == expected[name], f"{name} on {workers} actors"


def run_in_order(function, arguments, order):
    """Run the function's kernel directly, on one tile that holds all elements in the given order."""
    prepared = function._preparations.plain.prepare(arguments, 1, False)
    (loop,) = prepared.program.loops
    array = arguments[loop.sparse]
    values = array.values if isinstance(array.values, tuple) else (array.values,)
    given = []
    for argument in loop.kernel.arguments:
        match argument.kind:
            case "key":
                given.append(array.coords[argument.position][order].astype(argument.dtype))
            case "value":
                given.append(values[argument.position][order].copy())
            case "array":
                given.append(arguments[argument.name])
            case "scalar":
                given.append(np.dtype(argument.dtype).type(arguments[argument.name]))
    none, zero = np.zeros(0, np.int64), np.zeros(1, np.int64)
    flags, control = np.zeros(FLAG_STRIDE, np.int64), np.zeros(CONTROL_SIZE, np.int64)
    extents = np.array([0, len(order)])
    walk = getattr(compile_kernel(loop.kernel), "walk", compile_kernel(loop.kernel))
    walk(walk.block(extents, control, given), zero, 0, np.zeros(2, np.int64), none, none, flags, control)
    assert control[0] == 0


@pytest.mark.parametrize(("name", "workers"), list(product(["sgd", "tensor", "ordered"], [1, 2, 3, 4])))
def test_a_run_equals_its_serial_order(name, workers):
    function, make = case(name)
    parallel, serial = make(), make()
    names = list(function._bind(parallel, {})[1])
    with orion.session(workers=workers, force_parallel=True):
        order = function.plan(*parallel).serial_order(workers)
        function(*parallel)
    assert sorted(order) == list(range(len(parallel[0])))
    run_in_order(function, dict(zip(names, serial, strict=True)), order)
    for mine, theirs in zip(parallel[1:], serial[1:], strict=True):
        if isinstance(mine, np.ndarray):
            assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("name", ["sgd", "epochs", "ordered", "tensor", "rmse", "sweep", "shifting"])
def test_the_schedule_of_every_case_is_proved(name):
    function, make = case(name)
    function.plan(*make()).check()


@pytest.mark.parametrize("name", ["ordered", "rmse", "sweep", "shifting"])
def test_results_agree_with_the_undecorated_function(name):
    function, make = case(name)
    mine, theirs = make(), make()
    with orion.session(workers=2, force_parallel=True):
        result = function(*mine)
    expected = function.serial(*theirs)
    if expected is not None:
        np.testing.assert_allclose(result, expected, rtol=1e-5)
    for a, b in zip(mine, theirs, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def test_names_that_generated_code_uses_too():
    """Whatever the user calls a scalar or an array, the kernel's own names keep clear of it."""

    @orion.parallel_for
    def clash(tiles, number, walk, boxes):
        for t in range(tiles.shape[0]):
            tiles[t] = number * walk[t] + boxes

    tiles, walk = np.zeros(300), np.arange(300.0)
    with orion.session(workers=2, force_parallel=True):
        clash(tiles, 2.0, walk, 1.0)
    np.testing.assert_array_equal(tiles, 2.0 * walk + 1.0)
