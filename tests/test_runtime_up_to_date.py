"""What other nodes have from earlier runs: rows that differ are found, cells are covered by other cells, and runs that
follow each other on nodes which are sent no more than they lack give the serial results."""

import random
from collections import Counter

import numpy as np
import pytest

import orion
from orion.runtime.ray.cells import Cells
from orion.runtime.ray.regions import Region, Scattered
from orion.runtime.ray.segments import Block
from orion.runtime.ray.up_to_date import PIECE_BYTES, Part, UpToDate, bring_up_to_date
from orion.schedule.footprints import with_skews
from tests.oracles.interpreted import Order
from tests.oracles.nest_check import kernel_code
from tests.oracles.nodes import Earlier, run_on_nodes
from tests.runtime_programs import NAMES, cases, integers
from tests.test_runtime_exchange import MORE, NODES, dense_of, prepared


def told(target, source):
    found = []
    bring_up_to_date(target, source, lambda low, high: found.append((low, high)))
    return found


# ---------------------------------------------------------------- rows that differ


@pytest.mark.parametrize("kind", [np.int8, np.float32, np.float64, np.complex128, np.bool_])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 3), (0, 4), (4, 0), (3, 2, 5)])
def test_what_differs_is_copied(kind, shape):
    source = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2 + 1).astype(kind)
    target = np.zeros(shape, kind)
    assert bool(told(target, source)) == bool(source.size)
    assert np.array_equal(target, source)
    assert told(target, source) == []


def test_pieces_that_are_the_same_are_not_copied():
    rows = PIECE_BYTES // 8
    source = np.zeros(5 * rows + 3)
    target = source.copy()
    source[rows] = source[-1] = 1
    assert told(target, source) == [(rows, 2 * rows), (5 * rows, 5 * rows + 3)]
    assert np.array_equal(target, source)


@pytest.mark.parametrize("at", range(0, 24, 5))
def test_each_byte_counts(at):
    target, source = np.zeros(3), np.zeros(3)
    source.view(np.uint8)[at] = 1
    assert told(target, source) == [(0, 3)]
    assert target.tobytes() == source.tobytes()


@pytest.mark.parametrize(("before", "after"), [(0.0, -0.0), (np.nan, -np.nan)])
def test_bits_are_compared(before, after):
    target, source = np.array([before]), np.array([after])
    assert told(target, source) == [(0, 1)]
    assert target.tobytes() == source.tobytes()
    assert told(np.array([np.nan]), np.array([np.nan])) == []


@pytest.mark.parametrize(
    "source", [integers(6, 8).T, integers(12, 4)[::2], integers(9, 9)[2:8, 1:5], integers(8)[::-1]]
)
def test_arrays_of_any_layout(source):
    target = np.zeros(source.shape, source.dtype)
    assert told(target, source) == [(0, len(source))]
    assert np.array_equal(target, source)
    assert told(target, source) == []


# ---------------------------------------------------------------- cells


SKEWS = {(): [()], (9,): [()], (9, 7): [(), ((-1, 1),), ((-1, 1), (1, 1))], (5, 6, 4): [(), ((-1, 1, 0),)]}


def random_cells(generator, shape):
    """Cells of an array, along some skews too."""
    skews = SKEWS[shape][generator.integers(len(SKEWS[shape]))]
    low = np.stack([generator.integers(0, n, 5) for n in shape], axis=-1) if shape else np.zeros((5, 0), np.int64)
    high = np.minimum(low + generator.integers(1, 5, low.shape), shape).astype(np.int64)
    low, high = with_skews(low.astype(np.int64), high, skews)
    for axis in range(len(shape), len(shape) + len(skews)):
        low[:, axis] += generator.integers(0, 2, 5)
    return Cells.around("A", shape, [(low, high)], (), skews)


def elements(cells, mask, shape):
    found = np.zeros(shape, bool)
    for region in cells.regions(mask):
        region.put(found, True)
    return found


@pytest.mark.parametrize("shape", SKEWS)
def test_cells_are_covered_where_all_their_elements_are_there(shape):
    generator, told = np.random.default_rng(len(shape)), Counter()
    for _ in range(100):
        own, others = random_cells(generator, shape), random_cells(generator, shape)
        has = np.asarray(generator.random(own.shape) < 0.8)
        there = elements(own, has, shape)
        covered = Part(own, has).covers(others)
        for place in np.ndindex(others.shape):
            one = others.none()
            one[place] = True
            told[covered[place], there[elements(others, one, shape)].all()] += 1
    assert not told[True, False]
    assert told[True, True] > 5 * told[False, True]  # cells along skews may be told to be lacking where they are not
    if len(shape) < 2:
        assert not told[False, True]
    assert (Part(own, has).covers(own) == has).all()


@pytest.mark.parametrize("shape", [shape for shape in SKEWS if shape])
def test_rows_that_differ_are_lacking(shape):
    generator, kept = np.random.default_rng(3), 0
    for _ in range(50):
        cells = random_cells(generator, shape)
        low, high = sorted(generator.choice(shape[0] + 1, 2, replace=False))
        part = Part(cells, np.ones(cells.shape, bool))
        part.drop_rows(low, high)
        kept += np.count_nonzero(part.has)
        for place in np.ndindex(cells.shape):
            one = cells.none()
            one[place] = True
            has_rows = elements(cells, one, shape)[low:high].any()
            assert not (has_rows and part.has[place])
            assert cells.skews or has_rows or part.has[place]
    assert kept > 50


def test_nothing_is_known_of_a_block_that_a_run_writes_until_it_has_ended_well():
    known, block, cells = UpToDate(), Block(1, 0, (6,), "<f8"), Cells("A", (np.array([0, 3, 6]),), ())
    all_cells, array = ~cells.none(), np.zeros(6)
    assert known.lacking("b", block, cells, all_cells).all()
    known.look(block, array)
    assert known.keep_image(block, array, ())
    known.keep(block, cells, {"b": np.array([True, False])})
    assert known.lacking("b", block, cells, all_cells).tolist() == [False, True]
    assert known.lacking("c", block, cells, all_cells).all()
    array[1] = 1
    known.look(block, array)
    assert known.lacking("b", block, cells, all_cells).all()
    known.keep(block, cells, {"b": all_cells})
    known.written(block)
    assert known.lacking("b", block, cells, all_cells).all()
    known.keep(block, cells, {"b": all_cells})
    known.forget([1])
    assert known.lacking("b", block, cells, all_cells).all()


def test_an_array_without_axes_that_is_changed_is_lacking():
    known, block, cells, array = UpToDate(), Block(1, 0, (), "<f8"), Cells("s", (), ()), np.array(1.0)
    needed = np.ones((), bool)
    known.look(block, array)
    assert known.keep_image(block, array, ())
    known.keep(block, cells, {"b": needed[()]})
    assert not known.lacking("b", block, cells, needed)
    array[()] = 2
    known.look(block, array)
    assert known.lacking("b", block, cells, needed)


def test_nothing_is_known_where_there_is_no_room_for_an_image():
    known, block, other = UpToDate(), Block(1, 0, (6,), "<f8"), Block(2, 0, (1,), "<f8")
    for most, has_room in ((47, False), (48, True)):
        known._most = most
        known.look(block, np.zeros(6))
        assert known.keep_image(block, np.zeros(6), ()) == has_room
    known.look(other, np.zeros(1))
    assert not known.keep_image(other, np.zeros(1), ())


@pytest.mark.parametrize("written", [(), (Region("A", ((0, 3),)),), (Scattered("A", (np.array([0, 4]),)),)])
@pytest.mark.parametrize("calls", [1, 2])
def test_what_changes_while_a_run_is_under_way_is_lacking_after_it(written, calls):
    known, block, array = UpToDate(), Block(1, 0, (6,), "<f8"), np.zeros(6)
    cells = Cells("A", (np.array([0, 3, 6]),), ())
    every = ~cells.none()
    for call in range(calls):
        known.look(block, array)
        if call == calls - 1:
            array[5] = 1  # another thread
        for section in written:  # the run
            section.put(array, np.full(section.elements(array.shape), 7.0))
        assert known.keep_image(block, array, written)
        known.keep(block, cells, {"b": every})
    assert not known.lacking("b", block, cells, every).any()
    known.look(block, array)
    assert known.lacking("b", block, cells, every)[1]
    known.keep(block, cells, {"b": every})
    known.look(block, array)
    assert not known.lacking("b", block, cells, every).any()


# ---------------------------------------------------------------- runs that follow each other


@orion.parallel_for
def forward(A, rounds):
    for _ in range(rounds):
        for i in range(1, A.shape[0]):
            for j in range(1, A.shape[1]):
                A[i, j] = (A[i, j] + A[i - 1, j] + A[i, j - 1]) % 97


@orion.parallel_for
def add_rows(A, b):
    for j in range(A.shape[1]):
        for i in range(A.shape[0]):
            A[i, j] = A[i, j] + b[i]


@orion.parallel_for
def columns(A, b):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            b[i] = (b[i] + A[i, j]) % 89


def run(function, arguments, nodes, order, driver, earlier):
    found = prepared(function, arguments, len(nodes))
    codes = [kernel_code(loop.kernel.text) for loop in found.program.loops]
    given = {**arguments, **found.local.take()}
    return run_on_nodes(found.program, codes, given, order, nodes, driver, earlier)[0]


def change(arrays, choice):
    """Somebody writes to some rows of some arrays."""
    for array in arrays:
        if array.ndim and choice.random() < 0.5:
            at = choice.randrange(len(array))
            array[at : at + choice.randrange(1, 4)] = choice.randrange(100)


@pytest.mark.parametrize("nodes", ["two and two", "one and two", "one each"])
@pytest.mark.parametrize("name", [*(name for name in NAMES if name != "sweeps"), *MORE])
def test_a_call_again_with_changes_in_between(name, nodes):
    function, given = MORE[name] if name in MORE else (cases()[name][0], lambda: cases()[name][1])
    for seed in range(2):
        arguments, expected = given(), given()
        earlier, choice = Earlier(), random.Random(seed)
        names = [key for key in dense_of(arguments) if key in ("A", "a", "b", "W", "H", "bins")]
        for call in range(3):
            driver = ["a", "driver"][seed]
            result = run(function, arguments, NODES[nodes], Order(10 * seed + call), driver, earlier)
            with orion.session("serial"):
                assert np.array_equal(result, function(**expected))
            for key, value in dense_of(arguments).items():
                assert np.array_equal(np.array(value), np.array(dense_of(expected)[key])), key
            for one in names:
                state = choice.getstate()
                change([expected[one] if isinstance(expected[one], np.ndarray) else expected[one].view], choice)
                choice.setstate(state)
                change([arguments[one] if isinstance(arguments[one], np.ndarray) else arguments[one].view], choice)


@pytest.mark.parametrize("nodes", ["two and two", "one and one", "one each"])
@pytest.mark.parametrize("driver", ["a", "driver"])
def test_other_functions_on_the_same_arrays(nodes, driver):
    choice = random.Random(5)
    A, b = integers(14, 11), integers(14, seed=5)
    expected, earlier = (A.copy(), b.copy()), Earlier()
    for call in range(12):
        function, arguments, same = choice.choice([
            (forward, {"A": A, "rounds": 2}, {"A": expected[0], "rounds": 2}),
            (add_rows, {"A": A, "b": b}, {"A": expected[0], "b": expected[1]}),
            (columns, {"A": A, "b": b}, {"A": expected[0], "b": expected[1]}),
        ])  # fmt: skip
        run(function, arguments, NODES[nodes], Order(call), driver, earlier)
        function.serial(**same)
        assert np.array_equal(A, expected[0])
        assert np.array_equal(b, expected[1])
        if choice.random() < 0.3:
            A[choice.randrange(14), choice.randrange(11)] = expected[0][0, 0]
            expected[0][...] = A


def test_what_nobody_changed_is_sent_once():
    A, b, earlier = integers(40, 6), integers(40, seed=5), Earlier()
    sent = []
    for call in range(3):
        run(columns, {"A": A, "b": b}, "ab", Order(call), "a", earlier)
        sent.append((earlier.filled["A"], earlier.filled["b"]))
    assert sent == [(120, 20), (0, 0), (0, 0)]
    A[30] = 1
    run(columns, {"A": A, "b": b}, "ab", Order(9), "a", earlier)
    assert earlier.filled["A"] == 120  # an array this small is one piece
