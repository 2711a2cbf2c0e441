"""Sweeps over arrays in tiles of rounds and space: when they may be, that they compute the same bits, when they pay."""

import textwrap
from math import isqrt

import islpy as isl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.analysis.one_loop import TimeTiles
from orion.cost.caches import caches_here
from orion.cost.sizes import Sizes
from orion.dependence.model import model_loop
from orion.dependence.study import study_loop
from orion.frontend.parse import parse_function
from orion.ir.types import ArrayType, ScalarType
from orion.passes.split import split_program
from orion.pipeline import through_passes
from orion.rewrites.reorder import take
from orion.rewrites.time_tiles import cost as sweeping
from orion.rewrites.time_tiles.cost import boxes, pays
from orion.rewrites.time_tiles.find import find_time_tiles, is_permutable
from orion.sets.maps import Maps
from tests.loop_text import defined
from tests.trials import times

MATRIX, VECTOR = ArrayType("float64", 2), ArrayType("float64", 1)
INT = ScalarType("int64", weak=True)

# ---------------------------------------------------------------- which loops


def line(A, B, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            B[i] = 0.3 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, A.shape[0] - 1):
            A[i] = 0.3 * (B[i - 1] + B[i] + B[i + 1])


def plane(A, B, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = B[i, j]


def wide(A, B, T):
    for _t in range(T):
        for i in range(3, A.shape[0] - 3):
            B[i] = A[i - 3] - A[i + 2]
        for i in range(A.shape[0]):
            A[i] = B[i] * 0.5


def leapfrog(A, B, T):
    for t in range(T):
        for j in range(A.shape[1]):
            A[0, j] = t * 0.1
        for i in range(1, A.shape[0]):
            for j in range(A.shape[1]):
                A[i, j] = A[i, j] - 0.5 * (B[i, j] - B[i - 1, j])
        for i in range(A.shape[0] - 1):
            for j in range(A.shape[1]):
                B[i, j] = B[i, j] - 0.7 * (A[i + 1, j] - A[i, j])


def shared_loop(A, B, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            A[i, 0] = 1.0
            for j in range(1, A.shape[1] - 1):
                B[i, j] = A[i - 1, j] + A[i + 1, j - 1]
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.5 * B[i, j]


def space(A, B, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                for k in range(A.shape[2]):
                    B[i, j, k] = 0.2 * (A[i, j, k] + A[i - 1, j, k] + A[i + 1, j, k] + A[i, j - 1, k] + A[i, j + 1, k])
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                for k in range(1, A.shape[2]):
                    A[i, j, k] = B[i, j, k] - 0.1 * B[i, j, k - 1]


def apart(A, B, T):
    for _t in range(T):
        for i in range(A.shape[0]):
            B[i] = A[i] * 0.5
        for i in range(A.shape[0]):
            A[i] = B[i] + 1.0


def mirrored(A, B, T):
    for _t in range(T):
        for i in range(A.shape[0]):
            B[i] = A[A.shape[0] - 1 - i] * 0.5
        for i in range(A.shape[0]):
            A[i] = B[i] + 1.0


def both_ends(A, B, T):
    for _t in range(T):
        for j in range(A.shape[1]):
            A[A.shape[0] - 1, j] = 0.0
        for i in range(1, A.shape[0] - 1):
            for j in range(A.shape[1]):
                B[i, j] = A[i - 1, j] + A[i + 1, j]
        for i in range(1, A.shape[0] - 1):
            for j in range(A.shape[1]):
                A[i, j] = B[i, j] * 0.5


def two_edges_in_a_loop(A, B, T):
    for _t in range(T):
        for j in range(A.shape[1]):
            A[0, j] = 1.0
            A[A.shape[0] - 1, j] = 0.0
        for i in range(1, A.shape[0] - 1):
            for j in range(A.shape[1]):
                B[i, j] = A[i - 1, j] + A[i + 1, j]
        for i in range(1, A.shape[0] - 1):
            for j in range(A.shape[1]):
                A[i, j] = B[i, j] * 0.5


def from_the_end(A, B, T):
    for _t in range(T):
        for j in range(A.shape[1]):
            A[-1, j] = 0.0
        for i in range(1, A.shape[0] - 1):
            for j in range(A.shape[1]):
                B[i, j] = A[i - 1, j] + A[i + 1, j]
        for i in range(1, A.shape[0] - 1):
            for j in range(A.shape[1]):
                A[i, j] = B[i, j] * 0.5


def every_other(A, B, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1, 2):
            B[i] = A[i - 1] + A[i + 1]
        for i in range(1, A.shape[0] - 1, 2):
            A[i] = B[i] * 0.5


def studied(function, kind):
    types = {"A": kind, "B": kind, "T": INT}
    program = split_program(through_passes(parse_function(function), types), types, None)
    study = study_loop(program, 0, types, model_loop(program, 0, types), Maps())
    assert study is not None
    return study, types


@pytest.mark.parametrize(
    ("function", "kind", "slopes", "shifts"),
    [
        (line, VECTOR, (2,), {(0, 0): 0, (0, 1): 1}),
        (plane, MATRIX, (2,), {(0, 0): 0, (0, 1): 1}),  # A[i - 1] is read before it is written: 1 behind
        (wide, VECTOR, (5,), {(0, 0): 0, (0, 1): 3}),  # A[i - 3]: 3 behind; the next round reads A[i + 2]
        (leapfrog, MATRIX, (1,), {(0, 0): 0, (0, 1): 0, (0, 2): 1}),
        (shared_loop, MATRIX, (2,), {(0, 0): 0, (0, 1): 1}),
        (apart, VECTOR, None, None),  # rounds do not depend on each other across space
        (mirrored, VECTOR, None, None),  # no slope is enough
        (both_ends, MATRIX, (2,), {(0, 0): 0, (0, 1): 1, (0, 2): 2}),  # the last row first, then what reads it
        (two_edges_in_a_loop, MATRIX, None, None),  # they are in different tiles
        (from_the_end, MATRIX, None, None),  # A[-1] is a row that no expression here stands for
        (every_other, VECTOR, None, None),  # coordinates are numbers of trips
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_slopes_and_shifts(function, kind, slopes, shifts):
    study, types = studied(function, kind)
    found = find_time_tiles(study.region, study.relations, types)
    if slopes is None:
        assert found is None
        return
    assert found is not None
    assert found[0].slopes == slopes
    assert {place: shift for (_, place), shift in found[0].shifts} == shifts


def test_two_coordinates_of_space():
    study, types = studied(space, ArrayType("float64", 3))
    found = find_time_tiles(study.region, study.relations, types)
    assert found is not None
    assert found[0].slopes == (2, 2)
    assert set(found[0].rows) == {("A", 8, (2,)), ("B", 8, (2,))}


@pytest.mark.parametrize(("slope", "legal"), [(2, True), (3, True), (1, False), (0, False)])
def test_a_slope_that_is_too_small_is_not_permutable(slope, legal):
    study, _ = studied(line, VECTOR)
    places = f"{{ S0[_t, i] -> [_t, {slope}*_t + i]; S1[_t, i] -> [_t, {slope}*_t + i + 1] }}"
    found = isl.UnionMap(places, study.relations.domain.get_ctx())
    assert is_permutable(study.relations.dependences, found, 1) is legal


# ---------------------------------------------------------------- results


@pytest.fixture
def always(monkeypatch):
    """Small arrays are run in tiles, too, and tiles that wait also where the loops as written are run in vectors."""
    monkeypatch.setattr(sweeping, "FILLED", 0)
    monkeypatch.setattr(take, "_loses_vectors", lambda better, study: False)


def run_both(function, arguments, workers):
    expected = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    function(*expected)
    with orion.session(workers=workers, force_parallel=True):
        compiled = orion.parallel_for(function)
        plan = compiled.plan(*arguments)
        plan.check()
        compiled(*arguments)
    for found, wanted in zip(arguments, expected, strict=True):
        assert np.array_equal(found, wanted)
    return plan


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(
    ("function", "shape", "rounds"),
    [
        (line, (200,), 9),
        (line, (37,), 40),
        (plane, (40, 7), 12),
        (wide, (90,), 11),
        (leapfrog, (45, 6), 13),
        (shared_loop, (33, 9), 6),
        (both_ends, (36, 5), 10),
        (space, (30, 24, 5), 7),
        (space, (25, 41, 3), 11),
    ],
)
def test_same_bits(always, function, shape, rounds, workers):
    A, B = np.random.default_rng(3).random((2, *shape))
    plan = run_both(function, [A, B, rounds], workers)
    assert plan.only.strategy == "wavefront"


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 17, 18])
def test_few_rounds_and_elements(always, size, rounds):
    A, B = np.random.default_rng(3).random((2, size))
    run_both(line, [A, B, rounds], 2)


OFFSETS = st.lists(st.integers(-3, 3), min_size=1, max_size=3)
TEXT = """
def f(A, B, C, T):
    for t in range(T):
        for i in range(3, A.shape[0] - 3):
            {0}[i] = {1}
        for i in range(3, A.shape[0] - 3):
            {2}[i] = {3}
        for i in range(4, A.shape[0] - 4):
            {4}[i] = {5}
"""


@settings(max_examples=times(25, 10), deadline=None)
@given(data=st.data(), rounds=st.integers(4, 9), size=st.integers(40, 70))
def test_random_sweeps(data, rounds, size):
    parts = []
    for _ in range(3):
        target = data.draw(st.sampled_from("ABC"))
        reads = [f"{data.draw(st.sampled_from('ABC'))}[i + {offset}]" for offset in data.draw(OFFSETS)]
        parts += [target, " + ".join(f"0.3 * {one}" for one in reads if one[0] != target or "+ 0" in one) or "0.1 * t"]
    function = defined(textwrap.dedent(TEXT.format(*parts)))
    arrays = list(np.random.default_rng(1).random((3, size)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeping, "FILLED", 0)
        run_both(function, [*arrays, rounds], 2)


# ---------------------------------------------------------------- whether they pay


def test_large_arrays_are_swept_in_tiles_and_small_ones_are_not():
    f = orion.parallel_for(plane)
    with orion.session(workers=2):
        plan = f.plan(*np.zeros((2, 1000, 1000)), 20)
        assert plan.only.strategy == "wavefront"
        assert "stays in the cache of that worker from round to round" in " ".join(str(plan).split())
        side = min(200, isqrt(caches_here().second // 32))  # both arrays fill half of the cache at most
        small = f.plan(*np.zeros((2, side, side)), 20)  # it runs as written, on one worker
        assert [(loop.strategy, loop.reasons[-1].code) for loop in small.loops] == [("serial", "ORN120")]
        assert [loop.strategy for loop in f.plan(*np.zeros((2, 1000, 1000)), 3).loops] == ["independent"] * 2


SWEEPS = TimeTiles((2,), (), (("A", 8, (1,)), ("B", 8, (1,))))


@pytest.mark.parametrize(
    ("shape", "rounds", "pay"),
    [
        ((1000, 1000), 20, True),
        ((1000, 1000), 3, False),  # too few rounds
        ((200, 200), 20, False),  # in the cache as it is
        ((1000, 10_000), 20, False),  # no tile is
        ((12, 4_000), 20, False),  # nothing to share out
        ((2000, 1000), 1_000_000, False),  # too many boxes
    ],
)
def test_pays(shape, rounds, pay):
    extents = [rounds, shape[0] + 2 * (rounds - 1)]
    assert pays(SWEEPS, Sizes({"A": shape, "B": shape}), extents) is pay


@pytest.mark.parametrize("workers", [1, 8, 16])
def test_boxes_keep_all_workers_busy(workers):
    n, rounds = 4000, 1000
    high, wide_ = boxes(SWEEPS, [rounds, n + 2 * (rounds - 1)], workers)
    per_round = (n + 2 * rounds / high) / ((n + 2 * (rounds - 1)) / wide_)
    assert per_round >= max(8, workers)
    assert 2 * rounds / high <= n / 4 + 2
