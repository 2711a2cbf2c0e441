"""Rows of shuffled arrays on nodes that have some of them: what a node makes of its own rows, and what it is sent."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orion.arrays.exchange import Exchange
from orion.runtime.ray.cells import Cells
from orion.runtime.ray.orders import Filling
from orion.runtime.ray.reordered import Reordered, Rows, lacking_rows
from orion.runtime.ray.segments import Block
from orion.runtime.ray.up_to_date import UpToDate
from tests.trials import TIMES


@settings(max_examples=100 * TIMES, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple),
    st.fractions(0, 1, max_denominator=12),
    st.lists(st.booleans(), min_size=1, max_size=48),
    st.sampled_from([(), (3,), (2, 5)]),
)
def test_a_node_with_some_rows_has_the_same_places_after_a_shuffle(counts, part, some, shape):
    exchange = Exchange.of(counts, part, seed=4)
    order, count = exchange.order(), exchange.elements
    had = np.resize(some, count)
    whole = np.random.default_rng(0).random((count, *shape))
    own = np.where(had.reshape(-1, *(1 for _ in shape)), whole, -1.0)
    new = whole[order]
    if had.any():
        Reordered.of(exchange, had).put(own, own[:0])
    places = lacking_rows(order, had)
    columns = shape[-1] if shape else 0
    rows = Rows(places, columns)
    rows.put(own, rows.of(new))
    np.testing.assert_array_equal(own[had], new[had])
    assert (own[~had] == -1.0).all()
    assert set(order[places]) == set(order[had]) - set(np.flatnonzero(had))


def test_padding_is_not_sent():
    whole = np.arange(24.0).reshape(4, 6)
    rows, own = Rows(np.array([3, 1]), 2), np.zeros((4, 6))
    assert rows.of(whole).tolist() == [[18, 19], [6, 7]]
    rows.put(own, rows.of(whole))
    assert own[:, :2].tolist() == [[0, 0], [6, 7], [0, 0], [18, 19]]
    assert not own[:, 2:].any()
    filling = Filling(Block(1, 0, (4, 6), "<f8"), rows, rows.of(whole))
    assert list(filling.parts(8)) == [filling]


@pytest.fixture
def one_by_one(monkeypatch):
    """Rows of eight bytes are compared one by one."""
    monkeypatch.setattr("orion.runtime.ray.up_to_date.PIECE_BYTES", 8)


def known_after(order, *, cells, has, count=6):
    """What is known of the node "b" that has some cells, after a shuffle."""
    known, block, array = UpToDate(), Block(1, 0, (count,), "<f8"), np.arange(float(count))
    known.look(block, array)
    known.keep(block, cells, {"b": np.array(has), "c": cells.none()})
    array[...] = array[order]
    had = known.shuffled(block, order, ["b", "c", "d"])
    return known, block, array, had


def test_a_node_is_known_to_have_the_rows_that_it_had(one_by_one):
    cells, order = Cells("A", (np.array([0, 2, 5, 6]),), ()), np.array([5, 0, 1, 2, 4, 3])
    known, block, array, had = known_after(order, cells=cells, has=[True, False, True])
    assert {node: rows.tolist() for node, rows in had.items()} == {"b": [True, True, False, False, False, True]}
    known.look(block, array)
    every = np.ones(3, bool)
    assert known.lacking("b", block, cells, every).tolist() == [False, True, False]
    assert known.lacking("c", block, cells, every).all()
    array[0] = -1.0
    known.look(block, array)
    assert known.lacking("b", block, cells, every).tolist() == [True, True, False]


def test_rows_that_were_written_before_or_after_a_shuffle_are_out_of_date(one_by_one):
    cells, order = Cells("A", (np.array([0, 2, 4, 6]),), ()), np.array([1, 0, 3, 2, 5, 4])
    known, block, array, _ = known_after(order, cells=cells, has=[True, True, True])
    array[2] = 9.0
    known.look(block, array)
    assert known.lacking("b", block, cells, np.ones(3, bool)).tolist() == [False, True, False]


def test_cells_that_are_no_rows_are_not_known_any_more():
    order = np.array([1, 0, 2])
    known, block = UpToDate(), Block(1, 0, (3, 4), "<f8")
    rows = Cells("A", (np.array([0, 1, 3]), np.array([0, 2, 4])), ())
    leaning = Cells("A", (np.array([0, 3]), np.array([0, 4]), np.array([-2, 0, 4])), ((-1, 1),))
    array = np.arange(12.0).reshape(3, 4)
    known.look(block, array)
    known.keep(block, leaning, {"b": ~leaning.none()})
    known.keep(block, rows, {"b": np.array([[True, True], [True, False]])})
    array[...] = array[order]
    assert known.shuffled(block, order, ["b"])["b"].tolist() == [True, False, False]
    known.look(block, array)
    assert known.lacking("b", block, rows, np.ones((2, 2), bool)).tolist() == [[False, False], [True, True]]
    assert known.lacking("b", block, leaning, ~leaning.none()).all()


def test_of_an_array_without_an_image_nothing_is_known():
    known, block, cells = UpToDate(), Block(1, 0, (4,), "<f8"), Cells("A", (np.array([0, 4]),), ())
    known.keep(block, cells, {"b": np.ones(1, bool)})
    assert known.shuffled(block, np.array([1, 0, 3, 2]), ["b"]) == {}
    assert known.lacking("b", block, cells, np.ones(1, bool)).all()


@pytest.mark.parametrize("had", [[True] * 6, [False, True, True, False, True, False]])
def test_a_node_is_told_ranges(had):
    exchange = Exchange.of((3, 3), Fraction(1), 0)
    ranges = Reordered.of(exchange, np.array(had)).ranges
    found = np.zeros(6, bool)
    for low, high in ranges:
        found[low:high] = True
    assert found.tolist() == had
    assert len(ranges) == (1 if all(had) else 2)
