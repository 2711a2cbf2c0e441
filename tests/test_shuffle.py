"""`shuffle` of dense rows and sparse elements: what loops, batches, plans, files and other arrays see of it."""

import gc
import json
import pickle
import re
import signal
import threading
import time
import tracemalloc
import zipfile
from fractions import Fraction
from itertools import pairwise
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from orion.arrays import dense, shuffled
from orion.arrays.exchange import Exchange
from orion.errors import ArgumentError, DataFormatError
from tests.trials import TIMES


@pytest.fixture(autouse=True)
def two_workers():
    with orion.session(workers=2, force_parallel=True):
        yield


def rows(count, *shape, dtype="float32"):
    return orion.array(np.arange(count * int(np.prod(shape, dtype=int))).reshape(count, *shape).astype(dtype))


def triples(count=60, keys=7):
    """Elements with few keys, so that many have the same, each with a value of its own."""
    rng = np.random.default_rng(count)
    return orion.sparse((rng.integers(keys, size=count), rng.integers(keys, size=count)), np.arange(count) * 1.0)


@orion.parallel_for
def step(X, y, w, first, end, rate):
    for s in range(first, min(end, X.shape[0])):
        error = X[s] @ w - y[s]
        w -= rate * error * X[s]


@orion.parallel_for
def follow(R, last):
    for (i, _), r in R:
        last[i] = 3.0 * last[i] + r


@orion.parallel_for
def own_rows(X, out, marks):
    for s in range(X.shape[0]):
        out[s] = X[s] @ marks


# ---------------------------------------------------------------- dense rows


@pytest.mark.parametrize("shape", [(), (3,), (300,), (4, 5)])
@pytest.mark.parametrize("part", [0, 0.3, 1])
def test_rows_move_in_memory(shape, part):
    X = rows(101, *shape)
    before, memory, view = X.to_numpy(), X.storage, X.view
    assert X.shuffle(exchange=part, seed=4, ranks=3) is X
    order = X.last_shuffle.order()
    np.testing.assert_array_equal(X.to_numpy(), before[order])
    assert X.storage is memory
    np.testing.assert_array_equal(view, before[order])
    if shape:
        assert not X.storage[..., shape[-1] :].any()


@settings(max_examples=60 * TIMES, deadline=None)
@given(st.integers(1, 60), st.integers(1, 8), st.integers(0, 40), st.integers(0, 10**6))
def test_rows_move_through_little_room(count, width, room, seed):
    array = np.random.default_rng(seed).random((count, 8 * width))
    order = np.random.default_rng(seed).permutation(count)
    want = array[order]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffled, "LEAST_ROOM", 1)
        shuffled.move_rows(array, order, room * array.nbytes // count)
    np.testing.assert_array_equal(array, want)


@pytest.mark.parametrize("part", [0, 0.1, 0.5, 1])
def test_memory_for_rows_on_their_way_is_that_of_what_is_exchanged(part):
    X = orion.uniform((20_000, 256), dtype=np.float32, seed=1)
    tracemalloc.start()
    X.shuffle(exchange=part, seed=3, ranks=4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= max(part * X.nbytes, 1 << 20) + (24 + 8) * len(X)


def test_samples_and_labels_of_equal_calls_stay_together():
    X, y = rows(50, 4), rows(50, dtype="int64")
    for _ in range(3):
        X.shuffle(exchange=0.2, seed=9)
        y.shuffle(exchange=0.2, seed=9)
    np.testing.assert_array_equal(X.view[:, 0], y.view * 4)
    assert y.view.tolist() != sorted(y.view)


def test_epochs_are_counted():
    X, Y = rows(40), rows(40)
    orders = []
    for epoch in range(3):
        X.shuffle(exchange=0.5, seed=1)
        assert X.last_shuffle.epoch == epoch
        Y.shuffle(exchange=0.5, seed=1, epoch=epoch)
        np.testing.assert_array_equal(X.view, Y.view)
        orders.append(tuple(X.view))
    assert len({*orders}) == 3
    X.shuffle(exchange=0.5, seed=1, epoch=7)
    X.shuffle(exchange=0.5, seed=1)
    assert X.last_shuffle.epoch == 8


def test_ranks_are_the_workers_of_the_session():
    for workers in (1, 2, 5):
        with orion.session(workers=workers):
            assert rows(20).shuffle(exchange=0.5, seed=1).last_shuffle.ranks == workers
            np.testing.assert_array_equal(
                rows(20).shuffle(exchange=0.5, seed=1), rows(20).shuffle(exchange=0.5, seed=1, ranks=workers)
            )


@pytest.mark.parametrize("make", [lambda: rows(61, 3), lambda: triples(61)], ids=["dense", "sparse"])
def test_all_in_one_order_is_the_same_on_any_number_of_workers(make):
    def contents(array):
        return array.view.copy() if isinstance(array, dense.DenseArray) else np.array([*array.coords, array.values])

    found = []
    for workers in (1, 2, 3, 8):
        array = make()
        with orion.session(workers=workers):
            for _ in range(2):
                array.shuffle(exchange=1, seed=5)
        found.append(contents(array))
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
    assert (found[0] != contents(make())).any()


def test_nothing_leaves_its_share_where_nothing_is_exchanged():
    X = rows(41)
    X.shuffle(exchange=0, seed=2, ranks=4)
    bounds = X.last_shuffle.bounds
    for low, high in pairwise(bounds):
        assert sorted(X.view[low:high]) == list(range(low, high))
    assert X.last_shuffle.bytes == 0


def test_bytes_are_those_of_rows_that_come_to_another_share():
    X = rows(1000, 5)
    planned = X.plan_shuffle(exchange=0.25, seed=6, ranks=4)
    assert planned == X.plan_shuffle(0.25, 6, ranks=4)
    np.testing.assert_array_equal(X.view[:, 0], np.arange(1000) * 5)
    X.shuffle(exchange=0.25, seed=6, ranks=4)
    share = X.view[:, 0].astype(int) // 5 // 250
    came = np.count_nonzero(share.reshape(4, 250) != np.arange(4)[:, None], axis=1)
    assert planned == X.last_shuffle
    assert planned.sent.tolist() == came.tolist()
    assert planned.bytes == came.sum() * 5 * 4
    assert triples().plan_shuffle(1, 0).bytes == triples().plan_shuffle(1, 0).sent.sum() * (4 + 4 + 8)


def test_a_loop_over_rows_finds_other_rows_in_the_share_of_each_worker():
    X = rows(64, 2)
    out, marks = np.zeros(64), np.array([1.0, 0.0])
    own_rows(X, out, marks)
    np.testing.assert_array_equal(out, np.arange(64) * 2)
    X.shuffle(exchange=0.5, seed=3)
    own_rows(X, out, marks)
    np.testing.assert_array_equal(out, X.last_shuffle.order() * 2)
    assert not set(out[:32]) <= set(np.arange(32) * 2.0)
    schedule = own_rows.plan(X, out, marks).schedule(2)
    (bounds,) = schedule.bounds
    owners = np.repeat(schedule.owner, np.diff(bounds))
    np.testing.assert_array_equal(owners, np.repeat([0, 1], np.diff(X.last_shuffle.bounds)))


# ---------------------------------------------------------------- sparse elements


def test_elements_have_the_new_order_as_that_in_which_they_were_given():
    R = triples()
    keys, values = R.coords, R.values
    given = [k.copy() for k in keys], values.copy()
    assert R.shuffle(exchange=0.4, seed=2, ranks=3) is R
    order = R.last_shuffle.order()
    np.testing.assert_array_equal(R.coords, np.array(given[0])[:, order])
    np.testing.assert_array_equal(R.values, given[1][order])
    np.testing.assert_array_equal(keys, given[0])
    np.testing.assert_array_equal(values, given[1])
    by_key = sorted(range(60), key=lambda k: (R.coords[0][k], R.coords[1][k]))
    assert [value for _, value in R] == R.values[by_key].tolist()


def test_a_loop_in_any_order_goes_through_the_elements_of_each_tile_in_another_order():
    R, orders, found = triples(), [], []
    for _ in range(3):
        last = np.zeros(7)
        follow(R, last)
        order = follow.plan(R, last).serial_order()
        alone = np.zeros(7)
        for k in order:
            i = R.coords[0][k]
            alone[i] = 3.0 * alone[i] + R.values[k]
        np.testing.assert_array_equal(last, alone)
        orders.append(tuple(R.values[order]))
        found.append(tuple(last))
        R.shuffle(exchange=0.5, seed=2)
    assert len({*orders}) == len({*found}) == 3


def test_all_that_was_kept_of_the_old_order_is_made_anew():
    R = triples()
    list(R)
    before, held = R.lines(0), R.layout(([0, 7], [0, 7]), "shuffled")
    version = R.version
    R.shuffle(exchange=1, seed=8)
    assert R.version > version
    fresh = orion.sparse(R.coords, R.values)
    for dim in (0, 1):
        for mine, its in zip(R.lines(dim).values, fresh.lines(dim).values, strict=True):
            np.testing.assert_array_equal(mine, its)
    layout, its = (one.layout(([0, 7], [0, 7]), "shuffled") for one in (R, fresh))
    np.testing.assert_array_equal(layout.values[0], its.values[0])
    assert (held.values[0] != layout.values[0]).any()
    np.testing.assert_array_equal(R.iteration_order, fresh.iteration_order)
    assert before is not R.lines(0)


def test_nothing_of_the_old_order_stays_in_memory():
    R = orion.sparse((np.arange(20),), np.arange(20.0))
    R.layout(([0, 10, 20],), "shuffled")
    assert R[3] == 3.0
    old = ref(R._elements)
    R.shuffle(exchange=0.5, seed=1)
    gc.collect()
    assert old() is None
    with pytest.raises(ArgumentError, match="there is no layout to replace"):
        R.replace_storage(R.coords, (R.values,))


def test_values_that_were_stored_stay_with_their_elements():
    R = orion.sparse((np.arange(20),), np.arange(20.0))
    R.layout(([0, 10, 20],), "shuffled")
    R[3] = 33.0
    R.shuffle(exchange=0.5, seed=1, ranks=4)
    assert R[3] == 33.0
    R[5] = 55.0
    shown = R.values
    R[5] = 56.0
    assert (float(R[5]), 55.0 in shown) == (56.0, True)
    np.testing.assert_array_equal(
        np.sort(R.values), np.sort([33.0 if k == 3 else 56.0 if k == 5 else k for k in range(20)])
    )


def test_arrays_made_of_it_are_those_of_before_or_are_refused():
    R = triples()
    doubled, groups, computed = R.map(lambda v: 2 * v), R.group_by(0), R.map(lambda v: 3 * v).materialize()
    R.shuffle(exchange=0.5, seed=1)
    for late in (doubled.materialize, lambda: groups.sizes):
        with pytest.raises(ArgumentError, match="or their order, have been changed since"):
            late()
    np.testing.assert_array_equal(computed.values, np.arange(60) * 3.0)
    np.testing.assert_array_equal(R.map(lambda v: 2 * v).values, R.values * 2)
    assert R.map(lambda v: v).last_shuffle is None


def test_arrays_that_are_not_computed_yet_are():
    R = triples().map(lambda v: v + 1)
    assert R.last_shuffle is None
    R.shuffle(exchange=1, seed=3)
    np.testing.assert_array_equal(R.values, (np.arange(60.0) + 1)[R.last_shuffle.order()])


def test_elements_in_files_have_the_same_order(tmp_path):
    R = triples(3000, 50)
    R.shuffle(exchange=0.5, seed=3)
    with orion.session(workers=2, spill=tmp_path, spill_above=1000):
        S = triples(3000, 50)
        S.shuffle(exchange=0.5, seed=3)
        np.testing.assert_array_equal(R.values, S.values)
        np.testing.assert_array_equal(R.coords, S.coords)
        assert "a file in" in S._facts()["memory"]
        X = orion.zeros((1000, 20))
        X[:, 0] = np.arange(1000)
        X.shuffle(exchange=0.5, seed=3)
        np.testing.assert_array_equal(X.view[:, 0], X.last_shuffle.order())


# ---------------------------------------------------------------- going on


def trained(X, y, w, epochs, start=(0, 0), stop=None, folder=None):
    """Epochs of batches, from one epoch and batch on; up to a batch, where a checkpoint is written."""
    for epoch in range(start[0], epochs):
        if (epoch, 0) >= start:
            X.shuffle(exchange=0.3, seed=17, ranks=4)
            y.shuffle(exchange=0.3, seed=17, ranks=4)
        for batch in range(start[1] if epoch == start[0] else 0, 5):
            if (epoch, batch) == stop:
                orion.checkpoint(folder, X=X, y=y, w=w, epoch=epoch, batch=batch)
                return
            step(X, y, w, 20 * batch, 20 * (batch + 1), 0.01)


def samples():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((100, 6))
    return orion.array(X), orion.array(X @ np.arange(6.0)), orion.zeros(6)


def test_a_program_goes_on_in_the_middle_of_an_epoch(tmp_path):
    whole = samples()
    trained(*whole, epochs=4)
    trained(*samples(), epochs=4, stop=(2, 3), folder=tmp_path)
    X, y, w = orion.zeros((100, 6)), orion.zeros(100), orion.zeros(6)
    found = orion.restore(tmp_path, X=X, y=y, w=w)
    assert X.last_shuffle.epoch == y.last_shuffle.epoch == 2
    trained(X, y, w, epochs=4, start=(found["epoch"], found["batch"]))
    for mine, its in zip((X, y, w), whole, strict=True):
        np.testing.assert_array_equal(mine.view, its.view)
    assert X.last_shuffle == whole[0].last_shuffle


@pytest.mark.parametrize("part", [0.3, 1])
def test_sparse_elements_go_on_from_a_file(tmp_path, part):
    R = triples()
    for _ in range(2):
        R.shuffle(exchange=part, seed=1)
    R.save(tmp_path / "R.npz")
    copies = orion.load(tmp_path / "R.npz"), pickle.loads(pickle.dumps(R))
    R.shuffle(exchange=part, seed=1)
    for copy in copies:
        assert copy.last_shuffle.epoch == 1
        copy.shuffle(exchange=part, seed=1)
        assert copy.last_shuffle == R.last_shuffle
        np.testing.assert_array_equal(copy.values, R.values)
        np.testing.assert_array_equal(copy.coords, R.coords)


def test_files_of_arrays_that_were_never_shuffled_are_as_before(tmp_path):
    rows(5).save(tmp_path / "X.npz")
    with zipfile.ZipFile(tmp_path / "X.npz") as archive:
        assert "shuffle" not in archive.read("orion.json").decode()
    assert orion.load(tmp_path / "X.npz").last_shuffle is None


def test_what_is_restored_from_an_array_without_a_shuffle_counts_from_the_beginning(tmp_path):
    orion.checkpoint(tmp_path, X=rows(30))
    X = rows(30)
    X.shuffle(exchange=0.5, seed=1)
    orion.restore(tmp_path, X=X)
    assert X.last_shuffle is None
    np.testing.assert_array_equal(X.view, np.arange(30))


@pytest.mark.parametrize(
    "wrong",
    [{"ranks": 0}, {"ranks": 31}, {"slots": 16}, {"slots": -1}, {"seed": -1}, {"seed": "1"}, {"epoch": 2**64},
     {"epoch": True}, {"fraction": 1.5}, {"is_whole": 1}, {"ranks": None}],
)  # fmt: skip
def test_a_damaged_shuffle_in_a_file_is_told(tmp_path, wrong):
    X = rows(30)
    X.shuffle(exchange=0.5, seed=1, ranks=2).save(tmp_path / "X.npz")
    with zipfile.ZipFile(tmp_path / "X.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    told = json.loads(members["orion.json"])
    told["values"]["array"]["shuffle"].update(wrong)
    with zipfile.ZipFile(tmp_path / "X.npz", "w") as archive:
        for name, contents in members.items():
            archive.writestr(name, json.dumps(told) if name == "orion.json" else contents)
    with pytest.raises(DataFormatError, match="is damaged"):
        orion.load(tmp_path / "X.npz")


# ---------------------------------------------------------------- plans


def test_the_plan_of_a_loop_has_the_bytes_of_the_shuffle_before():
    X, out, marks = rows(1000, 2), np.zeros(1000), np.ones(2)
    assert "shuffled" not in str(own_rows.plan(X, out, marks))
    assert own_rows.plan(X, out, marks).to_dict()["shuffled"] == []
    last = X.shuffle(exchange=0.1, seed=4, ranks=8).last_shuffle
    plan = own_rows.plan(X, out, marks)
    sent = int(last.sent.sum())
    words = f"X epoch 0, 0.1 of 8 shares with seed 4: {sent} of 1,000 rows sent, {sent * 8:,} bytes"
    assert f"shuffled {words}" in " ".join(str(plan).split())
    assert words in re.sub(r"<[^>]+>", " ", plan._repr_html_())
    assert plan.to_dict()["shuffled"] == [
        {"array": "X", "epoch": 0, "exchange": 0.1, "seed": 4, "ranks": 8, "elements": 1000, "sent": sent,
         "bytes": sent * 8}
    ]  # fmt: skip
    R = triples().shuffle(exchange=1, seed=4)
    assert f"{int(R.last_shuffle.sent.sum())} of 60 elements sent" in str(follow.plan(R, np.zeros(7)))


# ---------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"exchange": -0.1}, "exchange=-0.1 is no number from 0 to 1"),
        ({"exchange": 1.0001}, "exchange=1.0001 is no number from 0 to 1"),
        ({"exchange": np.nan}, "exchange=nan is no number from 0 to 1"),
        ({"exchange": np.inf}, "exchange=inf is no number from 0 to 1"),
        ({"exchange": "all"}, "exchange='all' is no number from 0 to 1"),
        ({"exchange": None}, "exchange=None is no number from 0 to 1"),
        ({"exchange": True}, "exchange=True is no number from 0 to 1"),
        ({"exchange": 1j}, "is no number from 0 to 1"),
        ({"seed": 1.5}, "a seed is an integer from 0 on, not 1.5"),
        ({"seed": -1}, "a seed is an integer from 0 on, not -1"),
        ({"seed": None}, "a seed is an integer from 0 on, not None"),
        ({"seed": "s"}, "a seed is an integer from 0 on, not 's'"),
        ({"ranks": 0}, "ranks=0 is no number of shares"),
        ({"ranks": -2}, "ranks=-2 is no number of shares"),
        ({"ranks": 2.0}, "ranks=2.0 is no number of shares"),
        ({"ranks": True}, "ranks=True is no number of shares"),
        ({"ranks": 41}, "40 rows or elements cannot be cut into 41 shares"),
        ({"epoch": -1}, "epoch=-1 is no integer from 0"),
        ({"epoch": 2**64}, "is no integer from 0 to 2"),
        ({"epoch": 0.5}, "epoch=0.5 is no integer from 0"),
    ],
)
@pytest.mark.parametrize("make", [lambda: rows(40, 2), lambda: triples(40)], ids=["dense", "sparse"])
def test_what_cannot_be_is_refused_and_nothing_moves(make, wrong, said):
    array = make()
    before = np.array(array.to_numpy() if isinstance(array, dense.DenseArray) else array.values)
    for call in (array.shuffle, array.plan_shuffle):
        with pytest.raises(ArgumentError, match=re.escape(said)):
            call(**{"exchange": 0.5, "seed": 1, **wrong})
    np.testing.assert_array_equal(array.to_numpy() if isinstance(array, dense.DenseArray) else array.values, before)
    assert array.last_shuffle is None


@pytest.mark.parametrize(
    "empty",
    [orion.zeros((0, 3)), orion.zeros(()), orion.sparse(([], []), [], shape=(3, 3))],
    ids=["rows", "0-d", "sparse"],
)
def test_there_must_be_something_to_shuffle(empty):
    with pytest.raises(ArgumentError, match="has nothing to shuffle"):
        empty.shuffle(exchange=0.5, seed=1)


def test_fewer_elements_than_workers_say_which_ranks_there_could_be():
    with orion.session(workers=8), pytest.raises(ArgumentError, match=r"the session has 8 workers[\s\S]*ranks=3"):
        rows(3).shuffle(exchange=0.5, seed=1)
    assert rows(3).shuffle(exchange=0.5, seed=1, ranks=3).last_shuffle.slots == 0


def test_memory_that_nobody_may_write_to_is_refused():
    X = rows(10)
    X.storage.flags.writeable = False
    with pytest.raises(ArgumentError, match=r"read-only[\s\S]*orion\.array\(a\.to_numpy\(\)\)"):
        X.shuffle(exchange=0.5, seed=1)
    assert X.last_shuffle is None
    copy = orion.array(X.to_numpy())
    copy.shuffle(exchange=0.5, seed=1)


def test_errors_end_in_the_users_line():
    with pytest.raises(ArgumentError) as caught:
        rows(10).shuffle(exchange=2, seed=1)
    assert caught.traceback[-1].path.name == "test_shuffle.py"


# ---------------------------------------------------------------- stopping


def test_ctrl_c_finds_rows_shuffled_as_a_whole(monkeypatch):
    X = rows(40)
    want = X.view[X.plan_shuffle(exchange=0.5, seed=1).order()].copy()
    begun, move = threading.Event(), dense.move_rows

    def slow(*given):
        begun.set()
        time.sleep(0.6)
        move(*given)

    monkeypatch.setattr(dense, "move_rows", slow)
    stop = threading.Thread(target=lambda: (begun.wait(), time.sleep(0.1), signal.raise_signal(signal.SIGINT)))
    stop.start()
    with pytest.raises(KeyboardInterrupt):
        X.shuffle(exchange=0.5, seed=1)
    stop.join()
    np.testing.assert_array_equal(X.view, want)
    assert X.last_shuffle.epoch == 0


@pytest.mark.parametrize("make", [lambda: rows(40), lambda: triples(40)], ids=["dense", "sparse"])
def test_an_error_leaves_an_array_as_it_was(make, monkeypatch):
    array = make()
    before = np.array(array.to_numpy() if isinstance(array, dense.DenseArray) else array.values)

    def fails(self):
        raise MemoryError

    monkeypatch.setattr(Exchange, "order", fails)
    with pytest.raises(MemoryError):
        array.shuffle(exchange=0.5, seed=1)
    np.testing.assert_array_equal(array.to_numpy() if isinstance(array, dense.DenseArray) else array.values, before)
    assert array.last_shuffle is None


def test_other_threads_shuffle_too():
    X, Y = rows(40), rows(40)
    thread = threading.Thread(target=lambda: X.shuffle(exchange=Fraction(1, 3), seed=1))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(X.view, Y.shuffle(exchange=Fraction(1, 3), seed=1).view)


# ---------------------------------------------------------------- on Ray


@pytest.mark.ray
def test_workers_on_ray_see_the_new_order():
    def outcome():
        X, R, out, last = rows(64, 2), triples(), np.zeros(64), np.zeros(7)
        found = []
        for _ in range(3):
            own_rows(X, out, np.array([1.0, 0.0]))
            follow(R, last)
            found += [out.copy(), last.copy()]
            X.shuffle(exchange=0.5, seed=3, ranks=2)
            R.shuffle(exchange=0.5, seed=3, ranks=2)
        return found

    here = outcome()
    with orion.session("ray", 2, force_parallel=True):
        there = outcome()
    for mine, its in zip(here, there, strict=True):
        np.testing.assert_array_equal(mine, its)
