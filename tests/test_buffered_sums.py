"""Buffers whose updates are added to single elements, of which neighbours are looked at and locked together."""

import numpy as np
import pytest

import orion
from orion.errors import UpdateError


@orion.parallel_for
def add_to_elements(row, column, given, late):
    for i in range(row.shape[0]):
        late[row[i], column[i]] += given[i]


@orion.parallel_for
def add_to_cells(place, given, late):
    for i in range(place.shape[0]):
        late[place[i]] += given[i]


@pytest.fixture(params=[1, 2, 3])
def workers(request):
    with orion.session("threads", request.param, force_parallel=True):
        yield request.param


@pytest.mark.parametrize("made", [np.zeros, orion.zeros], ids=["NumPy's", "Orion's"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("shape", [(3, 150), (150, 3), (2, 64)])
def test_elements_of_all_rows_get_their_updates(shape, dtype, made, workers):
    rng = np.random.default_rng(0)
    row, column = rng.integers(0, shape[0], 3000), rng.integers(0, shape[1], 3000)
    given = rng.integers(-9, 9, 3000).astype(dtype)
    w, expected = made(shape, dtype=dtype), np.zeros(shape, dtype)
    late = orion.buffer(w, max_delay=200)
    assert add_to_elements.plan(row, column, given, late).loops[0].relaxed.arrays[0].how == "dense"
    add_to_elements(row, column, given, late)
    np.add.at(expected, (row, column), given)
    np.testing.assert_array_equal(np.asarray(w), expected)


def test_how_many_elements_had_updates_is_told():
    with orion.session("threads", 2, force_parallel=True):
        add_to_cells(np.arange(130), np.ones(130), orion.buffer(np.zeros(130), max_delay=1000))
        assert sum(one.elements for one in add_to_cells.last_run.late) == 130
        add_to_cells(np.arange(130), np.zeros(130), orion.buffer(np.zeros(130), max_delay=1000))
        assert sum(one.elements for one in add_to_cells.last_run.late) == 0


def test_elements_without_an_update_keep_their_bits(workers):
    w = np.full(200, -0.0)
    add_to_cells(np.full(500, 70), np.ones(500), orion.buffer(w, max_delay=100))
    assert w[70] == 500
    assert np.signbit(np.delete(w, 70)).all()


@pytest.mark.parametrize("wrong", [0, 63, 64, 129])
def test_the_place_of_what_is_not_a_number_is_told(wrong, workers):
    place, given, w = np.arange(1300) % 130, np.ones(1300), np.arange(130.0)
    given[130 * 7 + wrong] = np.nan
    with pytest.raises(UpdateError, match=f"in place {wrong} in the order of C, is not a number"):
        add_to_cells(place, given, orion.buffer(w, max_delay=400))
    np.testing.assert_array_equal(w, np.arange(130.0))
