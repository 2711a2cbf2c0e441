"""Accumulators in runs of all kinds: orders, schedules, nodes, errors, checkpoints."""

import math
import warnings

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError, OutOfBoundsError, UnsupportedLoopError
from tests.dying import kill_in_the_middle
from tests.ray_nodes import session_on
from tests.test_accumulators import P, affine, composed, least, matrices, nearest, same_bits, total

WORKERS = (1, 2, 3)


def added(**how):
    return orion.accumulator(0.0, combine=lambda a, b: a + b, **how)


def product_of(numbers, values):
    """The product of matrices, one after another in plain Python: no two orders have the same, nearly."""
    found = (1, 0, 0, 1)
    for number in numbers:
        found = matrices(found, tuple(int(value) for value in values[number]))
    return found


# ---------------------------------------------------------------- orders and schedules


def factorize(data, W, H, M, acc):
    for (i, j), n in data:
        e = 1.0 - W[i] @ H[j]
        W[i] += 0.01 * e * H[j]
        H[j] += 0.01 * e
        acc.add((M[n, 0], M[n, 1], M[n, 2], M[n, 3]))


def scattered(idx, w, M, acc):
    for i in range(idx.shape[0]):
        w[idx[i]] = 0.5 * w[idx[i]] + 1.0
        acc.add((M[i, 0], M[i, 1], M[i, 2], M[i, 3]))


MATRICES = np.random.default_rng(2).integers(0, P, (600, 4))


def arguments_of(function):
    rng = np.random.default_rng(3)
    if function is scattered:
        return rng.integers(0, 400, 600), np.zeros(400), MATRICES
    keys = rng.integers(0, 30, 600), rng.integers(0, 20, 600)
    return orion.sparse(keys, np.arange(600)), np.ones((30, 4)), np.ones((20, 4)), MATRICES


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("schedule", ["static", "dynamic"])
@pytest.mark.parametrize(("function", "strategy"), [(factorize, "2d"), (scattered, "inspected")])
def test_loops_in_any_order_combine_in_the_order_that_they_say(function, strategy, schedule):
    parallel = orion.parallel_for(ordered=False, schedule=schedule)(function)
    for workers in WORKERS:
        with orion.session("threads", workers, force_parallel=True):
            acc, arguments = orion.accumulator((1, 0, 0, 1), combine=matrices), arguments_of(function)
            parallel(*arguments, acc)
        order = parallel.last_run.serial_order()
        assert parallel.last_run.plan.strategy == (strategy if workers > 1 or strategy == "2d" else "serial")
        assert acc.value == product_of(order.reshape(600), MATRICES)


def test_free_workers_that_take_tiles_leave_the_order():
    a, b = np.random.default_rng(7).uniform(0.9, 1.1, (2, 4000))
    dynamic = orion.parallel_for(schedule="dynamic")(composed.__wrapped__)
    found = same_bits(lambda acc: dynamic(a, b, acc), affine)
    assert found == same_bits(lambda acc: composed(a, b, acc), affine)


@orion.parallel_for
def grid(A, acc):
    for i in range(1, A.shape[0]):
        for j in range(1, A.shape[1]):
            A[i, j] = 0.5 * (A[i - 1, j] + A[i, j - 1])
            acc.add(A[i, j])


@orion.parallel_for
def rows(A, acc):
    for i in range(1, A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 0.5 * A[i - 1, j] + A[i, j]
            acc.add(A[i, j])


@orion.parallel_for
def at_places(idx, w, acc):
    for i in range(idx.shape[0]):
        w[idx[i]] = 0.5 * w[idx[i]] + 1.0
        acc.add(w[idx[i]])


def case(function):
    rng = np.random.default_rng(5)
    if function is at_places:
        return rng.integers(0, 900, 1000), rng.random(900)
    return (rng.random((60, 70)),)


@pytest.mark.parametrize(("function", "strategy"), [(grid, "2d"), (at_places, "serial")])
def test_a_loop_that_the_order_keeps_serial_says_so(function, strategy):
    with orion.session("threads", 2, force_parallel=True):
        plan = function.plan(*case(function), added(), inspect=True)
        assert plan.strategy == "serial"
        (reason,) = [one for one in plan.reasons if one.code == "ORN134"]
        assert "`acc` are combined in the order of the iterations" in reason.message
        assert ("commutative=True" in reason.hint) is (function is grid)
        assert "a loop of its own after this one" in reason.hint
        assert "ORN134" in str(plan)
        plan.check()
        free = function.plan(*case(function), added(commutative=True), inspect=True)
        assert free.strategy == strategy
        assert "commutative, block by block in a fixed order" in " ".join(str(free).split())
        assert ("ORN134" in [one.code for one in free.reasons]) is (function is at_places)
        free.check()


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("function", [grid, rows, at_places])
def test_what_is_commutative_may_be_combined_in_another_order(function):
    arguments = case(function)
    found = same_bits(lambda acc: function(*(one.copy() for one in arguments), acc), lambda: added(commutative=True))
    serial = added()
    function.serial(*(one.copy() for one in arguments), serial)
    assert found == pytest.approx(serial.value, rel=1e-12)


@orion.parallel_for
def grid_then_sum(A, B, acc):
    for i in range(1, A.shape[0]):
        for j in range(1, A.shape[1]):
            A[i, j] = 0.5 * (A[i - 1, j] + A[i, j - 1])
            B[i, j] = A[i, j]
    for i in range(1, A.shape[0]):
        for j in range(1, A.shape[1]):
            acc.add((1.0 + 1e-4 * B[i, j], B[i, j]))


def test_what_is_added_in_a_loop_of_its_own_keeps_its_order():
    A = np.random.default_rng(5).random((60, 70))
    with orion.session("threads", 2, force_parallel=True):
        assert all(loop.is_parallel for loop in grid_then_sum.plan(A, A.copy(), affine()).loops)
    acc = affine()
    grid_then_sum.serial(A.copy(), A.copy(), acc)
    assert same_bits(lambda acc: grid_then_sum(A.copy(), A.copy(), acc), affine) == pytest.approx(acc.value)


@orion.parallel_for
def until(x, y, acc):
    for i in range(x.shape[0]):
        acc.add((1.0 + 0.001 * x[i], x[i]))
        y[i] = x[i]
        if x[i] > 0.99:
            break


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_break_ends_what_is_added():
    x = np.random.default_rng(8).random(2000)
    acc, y = affine(), np.zeros(2000)
    until.serial(x, y, acc)
    assert same_bits(lambda acc: until(x, np.zeros(2000), acc), affine) == acc.value
    assert "ORN110" in [one.code for one in until.plan(x, y, acc).reasons]


@orion.parallel_for
def several(x, y, first, second):
    first.add((2.0, 1.0))
    for _ in range(3):
        for i in range(x.shape[0]):
            first.add((1.0 + 0.001 * x[i], x[i]))
            y[i] = 2 * x[i]
        for i in range(1, x.shape[0]):
            second.add(y[i - 1])
            if y[i] > 1.0:
                first.add((1.0 + 0.001 * y[i], y[i]))
    second += 1.0
    return y[0]


def test_several_loops_add_to_several_accumulators():
    x = np.random.default_rng(9).random(800)
    expected = affine(), added()
    several.serial(x, np.zeros(800), *expected)
    found = []
    for workers in WORKERS:
        with orion.session("threads", workers, force_parallel=True):
            given = affine(), added()
            assert several(x, np.zeros(800), *given) == 2 * x[0]
            found.append(tuple(one.value for one in given))
    assert found == found[:1] * 3
    assert found[0] == (pytest.approx(expected[0].value), pytest.approx(expected[1].value))


# ---------------------------------------------------------------- Ray


@pytest.mark.all("test_accumulators.py::test_ray_gives_the_same_bits")
@pytest.mark.ray
@pytest.mark.timeout(300)
def test_two_nodes_give_the_bits_of_threads():
    a, b = np.random.default_rng(7).uniform(0.9, 1.1, (2, 3000))
    parallel = orion.parallel_for(factorize)

    def runs():
        found = []
        for made in (np.asarray, orion.array):
            one, two, three = affine(), orion.accumulator((1, 0, 0, 1), combine=matrices), added(commutative=True)
            composed(made(a), made(b), one)
            data, W, H, M = arguments_of(factorize)
            parallel(data, made(W), made(H), made(M), two)
            grid(made(a[:900].reshape(30, 30).copy()), three)
            found += [one.value, two.value, three.value]
        return found

    with orion.session("threads", 2, force_parallel=True):
        expected = runs()
    with session_on((1, 1)):
        assert runs() == expected
        acc = added()
        acc.combine = lambda a, b: a + b if a < 50 else a * b  # not neutral once there is much
        with pytest.raises(ArgumentError, match="not neutral"):
            total(np.ones(3000), acc)
        assert acc.value == 0.0


@orion.parallel_for
def long(x, acc, times):
    for _ in range(times):
        for i in range(x.shape[0]):
            acc.add((1.0 + 1e-9 * x[i], x[i]))


@pytest.mark.all("test_accumulators.py::test_ray_gives_the_same_bits")
@pytest.mark.ray
@pytest.mark.timeout(300)
def test_a_worker_that_dies_adds_nothing_twice():
    x, found = np.random.default_rng(0).random(1_000_000), []
    with orion.session("ray", 2, force_parallel=True) as actors:
        for kills in (False, True):
            acc = affine()
            long(x[:100], affine(), 2)
            victim = actors._backend._team.group.processes[1]
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                if kills:
                    kill_in_the_middle(victim)
                long(x, acc, 600)
            assert [one.category for one in seen] == [orion.WorkerReplacedWarning] * kills
            found.append(acc.value)
    assert found[0] == found[1]


# ---------------------------------------------------------------- errors


@orion.parallel_for
def leaves(x, y, acc):
    for i in range(x.shape[0]):
        acc.add(1.0)
        y[int(x[i])] = 3.0


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", WORKERS)
def test_an_error_in_the_body_leaves_the_value(workers):
    x, acc = np.ones(100), added()
    x[60] = 500.0
    acc.add(7.0)
    with orion.session("threads", workers, force_parallel=True):
        with pytest.raises(OutOfBoundsError, match="subscript 500"):
            leaves(x, np.zeros(100), acc)
        assert acc.value == 7.0
        x[60] = 1.0
        leaves(x, np.zeros(100), acc)
    assert acc.value == 107.0


def logarithms(a, b):
    if a == -math.inf:
        return b
    return a if b == -math.inf else math.log(math.exp(a) + math.exp(b))


def test_functions_have_the_values_of_compiled_code_between_tiles():
    acc, x = orion.accumulator(-math.inf, combine=logarithms), np.linspace(0.0, 1.0, 1000)
    found = same_bits(lambda acc: total(x, acc), lambda: orion.accumulator(-math.inf, combine=logarithms))
    assert found == pytest.approx(np.logaddexp.reduce(x))
    acc.add(800.0)  # `math.exp(800)` is an error in Python, and infinite in compiled code
    total(x, acc)
    assert acc.value == math.inf


def test_a_function_that_fails_for_init_is_refused():
    with pytest.raises(ArgumentError, match=r"combine\(-inf, -inf\).*math domain error"):
        orion.accumulator(-math.inf, combine=lambda a, b: math.log(math.exp(a) + math.exp(b)))


def test_what_is_not_neutral_from_the_left_is_seen():
    acc = orion.accumulator(0.0, combine=lambda a, b: a - b)
    with pytest.raises(ArgumentError, match=r"combine\(0.0, .*\)` is"):
        total(np.arange(1.0, 100.0), acc)
    assert acc.value == 0.0


def test_a_nan_is_combined_like_other_values_or_refused():
    x = np.arange(100.0)
    x[99] = math.nan
    assert math.isnan(same_bits_of_nan(lambda acc: total(x, acc), added))
    with pytest.raises(ArgumentError, match="have `combine` keep a NaN"):
        nearest(np.where(x < 50, math.nan, x), 80.0, least())
    keeps = orion.accumulator((np.inf, -1), combine=lambda a, b: a if a[0] <= b[0] or a[0] != a[0] else b)
    nearest(x, 0.0, keeps)
    assert math.isnan(keeps.value[0])
    assert keeps.value[1] == 99


def same_bits_of_nan(run, make):
    found = []
    for workers in WORKERS:
        with orion.session("threads", workers, force_parallel=True):
            acc = make()
            run(acc)
            found.append(acc.value)
    np.testing.assert_array_equal(found, found[:1] * len(WORKERS))
    return found[0]


def changes_kind(a, b):
    if a == 0:
        return b
    return a + b * 0.5


@pytest.mark.parametrize(
    ("init", "combine", "said"),
    [
        (0, changes_kind, "is float64, and `init` has int64"),
        (0.0, lambda a, b: a + b if b < 1e9 else float(str(b)), "`str` is not supported"),
        (np.float32(0), lambda a, b: a + b, "is float64, and `init` has float32"),
    ],
)
def test_functions_that_cannot_be_compiled_are_refused_before_anything_runs(init, combine, said):
    acc, y = orion.accumulator(init, combine=combine), np.zeros(50)
    with pytest.raises(UnsupportedLoopError, match=said):
        doubled(np.arange(50.0), y, acc)
    assert acc.value == init
    assert not y.any()


@orion.parallel_for
def doubled(x, y, acc):
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
        acc.add(x[i])


OUTSIDE = added()


@orion.parallel_for
def to_outside(x):
    for i in range(x.shape[0]):
        OUTSIDE.add(x[i])


def helper(acc, value):
    acc.add(value)


@orion.parallel_for
def by_helper(x, acc):
    for i in range(x.shape[0]):
        helper(acc, x[i])


def test_accumulators_are_arguments_of_the_function_itself():
    with pytest.raises(UnsupportedLoopError, match=r"(?s)accumulator from outside.*pass it as an argument"):
        to_outside(np.ones(10))
    with pytest.raises(UnsupportedLoopError, match=r"(?s)given to `helper`.*acc.add\(helper"):
        by_helper(np.ones(10), added())
    with pytest.raises(ArgumentError, match="`commutative=1`"):
        added(commutative=1)


# ---------------------------------------------------------------- checkpoints, replays


def test_a_job_that_is_resumed_has_the_same_value(tmp_path):
    a, b = np.random.default_rng(7).uniform(0.9, 1.1, (2, 900))
    whole = affine(), least(), orion.accumulator(np.float32(0), combine=lambda a, b: a + b)
    for _ in range(2):
        composed(a, b, whole[0])
        nearest(a, 1.0, whole[1])
    part = affine(), least(), whole[2]
    composed(a, b, part[0])
    nearest(a, 1.0, part[1])
    orion.checkpoint(tmp_path, pairs=part[0], best=part[1], single=part[2], epoch=1)
    resumed = affine(), least(), orion.accumulator(np.float32(0), combine=lambda a, b: a + b)
    found = orion.restore(tmp_path, pairs=resumed[0], best=resumed[1], single=resumed[2])
    assert found == {"pairs": resumed[0], "best": resumed[1], "single": resumed[2], "epoch": 1}
    assert [one.value for one in resumed] == [one.value for one in part]
    composed(a, b, resumed[0])
    nearest(a, 1.0, resumed[1])
    assert [one.value for one in resumed] == [one.value for one in whole]
    assert orion.restore(tmp_path)["best.1"] == part[1].value[1]


def test_automatic_checkpoints_have_the_value_after_the_call(tmp_path):
    x, acc = np.ones(100), added()
    with orion.session("threads", 2):
        orion.checkpoint(tmp_path, every=1e-9, x=x, acc=acc)
        total(x, acc)
    assert orion.restore(tmp_path)["acc"] == acc.value == 100.0


def test_a_checkpoint_of_something_else_leaves_all_as_it_was(tmp_path):
    W, acc = np.ones(3), added()
    orion.checkpoint(tmp_path, W=np.zeros(3), acc="text", pair=affine())
    for given, said in (
        ({"acc": acc}, "`acc` in .* is 'text'"),
        ({"other": acc}, "has no `other`"),
        ({"pair": orion.accumulator((1.0,), combine=lambda a, b: (a[0] * b[0],))}, "more numbers"),
    ):
        with pytest.raises(ArgumentError, match=said):
            orion.restore(tmp_path, W=W, **given)
    assert W.all()
    assert acc.value == 0.0


def test_a_replay_adds_the_same():
    a, b = np.random.default_rng(7).uniform(0.9, 1.1, (2, 900))
    first, again = affine(), affine()
    with orion.session("threads", 3, force_parallel=True):
        composed(a, b, first)
    composed.replay(composed.last_run, a, b, again)
    assert again.value == first.value


CHUNKS = {
    "ordered": (total.__wrapped__, True, lambda: (np.arange(4000.0),), 32),
    "tiles that wait": (grid.__wrapped__, True, lambda: (np.ones((400, 400)),), 8),
    "any order, two keys": (factorize, False, lambda: arguments_of(factorize), 8),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_chunks_are_the_same_for_as_many_workers_as_the_guide_says(name):
    function, ordered, make, most = CHUNKS[name]
    parallel, found = orion.parallel_for(ordered=ordered)(function), {}
    make_value = (lambda: orion.accumulator((1, 0, 0, 1), combine=matrices)) if function is factorize else (
        lambda: added(commutative=True)
    )  # fmt: skip
    for workers in (2, most, most + 1):
        with orion.session("threads", workers, force_parallel=True):
            found[workers] = parallel.plan(*make(), make_value()).loops[0].cuts
    assert found[2] == found[most] != found[most + 1]
