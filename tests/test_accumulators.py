"""Values that all iterations add to by a user's function: `orion.accumulator`."""

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError, PlanError, UnsupportedLoopError

WORKERS = (1, 2, 3)
P = 1_000_003


@orion.parallel_for
def total(x, acc):
    for i in range(x.shape[0]):
        acc.add(x[i])


@orion.parallel_for
def nearest(x, q, best):
    for i in range(x.shape[0]):
        best.add((abs(x[i] - q), i))


@orion.parallel_for
def some(x, acc):
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            for _ in range(2):
                acc += x[i]


@orion.parallel_for
def composed(a, b, acc):
    for i in range(a.shape[0]):
        acc.add((a[i], b[i]))


@orion.parallel_for
def product(m, acc):
    for i in range(m.shape[0]):
        acc.add((m[i, 0], m[i, 1], m[i, 2], m[i, 3]))


@orion.parallel_for
def rounds(x, acc):
    for t in range(3):
        for i in range(x.shape[0]):
            x[i] = x[i] + 1.0
            acc.add((1.0 + 0.001 * t, x[i]))


@orion.parallel_for
def swept(A, acc):
    for _ in range(3):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])
                acc.add((1.001, A[i, j]))


@orion.parallel_for(ordered=True)
def elements(data, acc):
    for (i, j), value in data:
        acc.add((value, i + 2 * j))


def matrices(a, b):
    x = (a[0] * b[0] + a[1] * b[2]) % P, (a[0] * b[1] + a[1] * b[3]) % P
    y = (a[2] * b[0] + a[3] * b[2]) % P, (a[2] * b[1] + a[3] * b[3]) % P
    return x[0], x[1], y[0], y[1]


def welford(a, b):
    n = a[0] + b[0]
    if n == 0.0:
        return a
    apart = b[1] - a[1]
    return n, a[1] + apart * b[0] / n, a[2] + b[2] + apart * apart * a[0] * b[0] / n


@orion.parallel_for
def moments(x, acc):
    for i in range(x.shape[0]):
        acc.add((1.0, x[i], 0.0))


def affine():
    return orion.accumulator((1.0, 0.0), combine=lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]))


def least():
    return orion.accumulator((np.inf, -1), combine=lambda a, b: a if a <= b else b)


def same_bits(run, make):
    """The value on each number of workers, which is the same to the bit, and that of plain Python."""
    found = []
    for workers in WORKERS:
        with orion.session("threads", workers, force_parallel=True):
            acc = make()
            run(acc)
            found.append(acc.value)
    assert found == found[:1] * len(WORKERS)
    return found[0]


def test_a_sum_is_that_of_plain_python():
    x = np.random.default_rng(0).random(5000)
    acc = orion.accumulator(0.0, combine=lambda a, b: a + b)
    total.serial(x, acc)
    found = same_bits(lambda acc: total(x, acc), lambda: orion.accumulator(0.0, combine=lambda a, b: a + b))
    assert found == pytest.approx(acc.value, rel=1e-12)


def test_the_least_and_its_place():
    x = np.round(np.random.default_rng(1).random(5000), 2)
    acc = least()
    nearest.serial(x, 0.5, acc)
    assert same_bits(lambda acc: nearest(x, 0.5, acc), least) == acc.value


def test_what_is_not_commutative_is_combined_in_order():
    m = np.random.default_rng(2).integers(0, P, (3000, 4))
    acc = orion.accumulator((1, 0, 0, 1), combine=matrices)
    product.serial(m, acc)
    found = same_bits(lambda acc: product(m, acc), lambda: orion.accumulator((1, 0, 0, 1), combine=matrices))
    assert found == acc.value


def test_moments_are_merged():
    x = np.random.default_rng(3).normal(size=5000)
    n, mean, squares = same_bits(lambda acc: moments(x, acc), lambda: orion.accumulator((0.0, 0.0, 0.0), welford))
    assert (n, mean, squares / n) == (5000.0, pytest.approx(x.mean()), pytest.approx(x.var()))


def test_under_an_if_and_in_inner_loops():
    x = np.random.default_rng(4).random(3000)
    found = same_bits(lambda acc: some(x, acc), lambda: orion.accumulator(0.0, combine=lambda a, b: a + b))
    assert found == pytest.approx(2 * x[x > 0.5].sum())


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")  # tiles of a wavefront are out of order
@pytest.mark.parametrize(("function", "shape"), [(rounds, (40,)), (swept, (12, 13))])
def test_serial_loops_around_keep_the_order(function, shape):
    x = np.random.default_rng(5).random(shape)
    acc = affine()
    function.serial(x.copy(), acc)
    assert same_bits(lambda acc: function(x.copy(), acc), affine) == pytest.approx(acc.value)


def test_elements_in_their_order():
    rng = np.random.default_rng(6)
    data = orion.sparse((rng.integers(0, 50, 400), rng.integers(0, 60, 400)), 0.9 + 0.2 * rng.random(400))

    acc = orion.accumulator((1.0, -1), combine=lambda a, b: (a[0] * b[0], b[1] if b[1] >= 0 else a[1]))
    elements.serial(data, acc)
    found = same_bits(
        lambda acc: elements(data, acc),
        lambda: orion.accumulator((1.0, -1), combine=lambda a, b: (a[0] * b[0], b[1] if b[1] >= 0 else a[1])),
    )
    assert found == (pytest.approx(acc.value[0]), acc.value[1])


def test_calls_add_to_what_there_is_until_it_is_reset():
    acc = orion.accumulator(0, combine=lambda a, b: a + b)
    x = np.arange(10)
    total(x, acc)
    total(x, acc)
    assert acc.value == 90
    acc.reset()
    assert acc.value == 0
    assert type(acc.value) is int


def test_the_plan_says_it_and_is_proved():
    x = np.zeros(5000)
    with orion.session("threads", 2, force_parallel=True):
        plan = nearest.plan(x, 0.5, least())
    plan.check()
    words = " ".join(str(plan).split())
    assert plan.strategy == "independent"
    assert "best: combined over iterations by `combine` (line" in words
    assert "in the order of the iterations" in words


def test_ray_gives_the_same_bits():
    a, b = np.random.default_rng(7).uniform(0.9, 1.1, (2, 4000))
    acc = affine()
    with orion.session("ray", 2, force_parallel=True):
        composed(a, b, acc)
    assert acc.value == same_bits(lambda acc: composed(a, b, acc), affine)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("init", "combine", "said"),
    [
        (0, max, "is a builtin_function_or_method"),
        (0, lambda a: a, "takes 1 arguments"),
        (5, lambda a, b: a + b, "not neutral"),
        (0, lambda a, b: a + 0.5 + b, "what `combine` returns"),
        ("", lambda a, b: a + b, "a str"),
        (np.zeros(2), lambda a, b: a + b, "a ndarray"),
        ((), lambda a, b: a, "0 items"),
    ],
)
def test_bad_accumulators_are_refused(init, combine, said):
    with pytest.raises(ArgumentError, match=said):
        orion.accumulator(init, combine=combine)


@orion.parallel_for
def reads(x, acc):
    for i in range(x.shape[0]):
        x[i] = acc.value


@orion.parallel_for
def adds_three(x, acc):
    for i in range(x.shape[0]):
        acc.add((x[i], x[i], x[i]))


@orion.parallel_for
def assigns(x, acc):
    for i in range(x.shape[0]):
        acc = x[i]  # noqa: F841 - what is refused


@pytest.mark.parametrize(
    ("function", "said"), [(reads, "is read"), (adds_three, "3 values"), (assigns, "given another value")]
)
def test_other_uses_are_refused_with_the_line(function, said):
    acc = least()
    with pytest.raises(UnsupportedLoopError, match=said) as error:
        function(np.zeros(10), acc)
    assert "test_accumulators.py:" in str(error.value)
    assert "help:" in str(error.value)
    assert acc.value == (np.inf, -1)


def test_other_types_are_refused():
    acc = orion.accumulator(0, combine=lambda a, b: a + b)
    with pytest.raises((UnsupportedLoopError, ArgumentError), match="float64"):
        total(np.ones(10), acc)
    assert acc.value == 0


def test_an_init_that_is_seen_not_to_be_neutral_leaves_the_value():
    acc = orion.accumulator(0, combine=lambda a, b: a * b)  # 0 * 0 is 0
    acc._value = 1
    with pytest.raises(ArgumentError, match="not neutral"):
        total(np.array([2, 3]), acc)
    assert acc.value == 1


def test_the_checker_objects_to_tiles_out_of_order():
    from dataclasses import replace

    from orion.plan.plan import Tiled
    from orion.verify.scalars import prove_scalars

    with orion.session("threads", 2, force_parallel=True):
        (loop,) = nearest.plan(np.zeros(5000), 0.5, least()).function.loops
    live = frozenset({"best_0", "best_1"})
    prove_scalars(loop, live, {"x"})
    with pytest.raises(PlanError, match="do not follow one another"):
        prove_scalars(replace(loop, tiles=Tiled(1, ())), live, {"x"})
