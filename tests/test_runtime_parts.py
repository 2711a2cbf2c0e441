"""The pieces of the runtime: pool, barrier, skeleton, alias check, reductions."""

import linecache
import threading

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from orion.errors import AliasError
from orion.frontend.parse import parse_function
from orion.ir.types import ArrayType, ScalarType, SparseType
from orion.passes.split import split_program
from orion.runtime.alias import check_aliases, overlaps_itself
from orion.runtime.barrier import make_barrier, set_flag
from orion.runtime.combine import after_loop, combine
from orion.runtime.prepared import PreparedProgram
from orion.runtime.skeleton import make_skeleton
from orion.runtime.threads.pool import Pool
from orion.typing.dtypes import Kind

# ---------------------------------------------------------------- pool


def test_every_member_runs_once_and_member_zero_is_the_caller():
    pool = Pool()
    for members in (1, 4, 2, 4):
        seen = []
        pool.run(lambda m, seen=seen: seen.append((m, threading.get_ident())), members, lambda: None)
        assert sorted(m for m, _ in seen) == list(range(members))
        assert dict(seen)[0] == threading.get_ident()
        assert len({ident for _, ident in seen}) == members
    pool.close()


def test_an_exception_in_the_caller_waits_for_the_others():
    pool = Pool()
    go, left = threading.Event(), []

    def body(member):
        if member == 0:
            raise KeyboardInterrupt
        go.wait(10)
        left.append(member)

    with pytest.raises(KeyboardInterrupt):
        pool.run(body, 3, go.set)
    assert sorted(left) == [1, 2]
    pool.run(left.append, 3, lambda: None)
    assert sorted(left) == [0, 1, 1, 2, 2]
    pool.close()


def test_closing_ends_the_threads():
    """Of this pool: threads of a pool that an earlier test left behind may end meanwhile."""
    before = set(threading.enumerate())
    pool = Pool()
    pool.run(lambda m: None, 3, lambda: None)
    mine = set(threading.enumerate()) - before
    assert len(mine) == 2
    pool.close()
    for thread in mine:
        thread.join(5)
    assert not any(thread.is_alive() for thread in mine)


# ---------------------------------------------------------------- barrier


def test_nobody_leaves_a_barrier_before_all_have_come():
    from orion.kernel.build.walker import meeting_walk

    meet, workers, rounds = meeting_walk(), 4, 200
    done, control = np.zeros(8 * 2 * workers, np.int64), np.zeros(8, np.int64)
    barrier = make_barrier(workers)
    arrived, wrong = np.zeros(workers, np.int64), []

    def body(member):
        for round in range(rounds):
            arrived[member] = round + 1
            waits = (barrier.wait_offsets, barrier.waits, barrier.lags)
            meet(barrier.order[member], 2 * round, *waits, done, control)
            if arrived.min() <= round:
                wrong.append((member, round))
            meet(barrier.order[member], 2 * round + 1, *waits, done, control)

    Pool().run(body, workers, lambda: None)
    assert wrong == []


def test_a_flag_set_from_outside_is_that_of_the_tile():
    from orion.kernel.build.walker import meeting_walk

    done, control = np.zeros(8 * 5, np.int64), np.zeros(8, np.int64)
    set_flag(meeting_walk(), done, 3, 6, control)
    assert done[8 * 3] == 7
    assert done.sum() == 7


# ---------------------------------------------------------------- skeleton


def scale(x):
    return 0.5 * x


def train(ratings, W, worker, rounds):
    step = scale(worker)
    for t in range(rounds):
        for (i,), r in ratings:
            W[i] += step * r
        step = step * 0.9 if t > 0 else step
    return step, len(ratings), W.shape[0]


SKELETON = """\
def scale(x):
    return 0.5 * x


def train(worker_, ratings, W, worker, rounds):
    step = scale(worker)
    for t in range(rounds):
        worker_.loop(0, step)
        step = step * 0.9 if t > 0 else step
    return step, len(ratings), W.shape[0]
"""


class Loop:
    inputs = ("step",)
    outputs = ()


def test_the_skeleton_is_the_function_with_calls_in_place_of_its_loops():
    types = {
        "ratings": SparseType(1, "int32", ("float64",)),
        "W": ArrayType("float64", 1),
        "worker": ScalarType("float64", weak=True),
        "rounds": ScalarType("int64", weak=True),
    }
    prepared = PreparedProgram(split_program(parse_function(train), types), (Loop(),), {})
    seen = []
    worker = type("Recorder", (), {"loop": lambda self, *values: seen.append(values)})()
    skeleton = make_skeleton(prepared)
    assert "".join(linecache.getlines("<orion skeleton of train>")) == SKELETON
    assert skeleton(worker, [1, 2, 3], np.zeros(5), 4.0, 3) == (2.0 * 0.9 * 0.9, 3, 5)
    assert seen == [(0, 2.0), (0, 2.0), (0, 1.8)]


# ---------------------------------------------------------------- reductions


@pytest.mark.parametrize(
    ("op", "start", "partials", "total"),
    [
        ("+", 1.5, [1.0, 2.0], 4.5),
        ("+", 1e16, [1.0, 1.0], 1e16),  # from left to right: each 1.0 is lost
        ("*", 2, [3, 4], 24),
        ("min", 5, [7, 6], 5),
        ("max", 5, [7, 6], 7),
        ("and", True, [True, False], False),
        ("or", False, [False, True], True),
        ("+", 3, np.zeros(0, np.int64), 3),
    ],
)
def test_partials_are_combined_from_left_to_right_after_the_start(op, start, partials, total):
    partials = np.array(partials)
    found = after_loop(start, combine(op, start, partials), Kind(partials.dtype.name, weak=True))
    assert found == total
    assert type(found) is type(total)


def test_a_total_of_a_type_that_python_lacks_keeps_it():
    total = combine("+", 0.0, np.ones(3, np.float32))
    assert isinstance(after_loop(0.0, total, Kind("float32")), np.float32)


# ---------------------------------------------------------------- aliases

BASE = np.zeros((10, 10))


@pytest.mark.parametrize(
    ("first", "second", "written", "is_refused"),
    [
        (BASE, BASE, {"a"}, True),
        (BASE, BASE, {"b"}, True),
        (BASE, BASE, set(), False),
        (BASE[:5], BASE[5:], {"a", "b"}, False),
        (BASE[:6], BASE[5:], {"a"}, True),
        (BASE[::2], BASE[1::2], {"a"}, False),
        (BASE[:, ::2], BASE[:, 1::2], {"a"}, False),
        (BASE[:, ::2], BASE[:, ::3], {"a"}, True),
        (BASE.T, BASE[3], {"b"}, True),
        (BASE[:0], BASE, {"a", "b"}, False),
        (BASE.copy(), BASE, {"a", "b"}, False),
    ],
)
def test_arrays_that_share_an_element_are_refused_where_one_is_written(first, second, written, is_refused):
    if is_refused:
        with pytest.raises(AliasError, match=r"`a` and `b` share memory, and the loop writes"):
            check_aliases({"a": first, "b": second}, written)
    else:
        check_aliases({"a": first, "b": second}, written)


@pytest.mark.parametrize(
    ("array", "overlaps"),
    [
        (BASE, False),
        (BASE.T, False),
        (BASE[::-1, 1::2], False),
        (BASE[3:, ::-3].T, False),
        (np.zeros((4, 5, 6)).transpose(1, 2, 0)[::2], False),
        (np.zeros((4, 5, 4)).diagonal(axis1=0, axis2=2), False),
        (np.zeros(5, "i4,f8")["f1"], False),
        (as_strided(BASE, (0, 4), (8, 8)), False),
        (as_strided(BASE, (1, 4), (0, 8)), False),
        (as_strided(BASE, (20, 4), (8, 8)), True),
        (as_strided(BASE, (4, 20), (8, 16)), True),
        (as_strided(BASE, (5,), (4,)), True),
        (as_strided(BASE[5:], (4, 4), (-8, 8)), True),
        (np.broadcast_to(BASE[0], (3, 10)), True),
        (sliding_window_view(BASE[0], 3), True),
        (as_strided(BASE, (3, 2), (16, 24)), True),  # none meet, but that is hard to tell
    ],
)
def test_an_array_that_has_one_element_at_two_places_is_refused_where_it_is_written(array, overlaps):
    assert overlaps_itself(array) == overlaps
    check_aliases({"a": array, "b": BASE.copy()}, {"b"})
    if overlaps:
        with pytest.raises(AliasError, match=r"`a` has elements that share memory with each other"):
            check_aliases({"a": array, "b": BASE.copy()}, {"a"})
    else:
        check_aliases({"a": array, "b": BASE.copy()}, {"a"})
