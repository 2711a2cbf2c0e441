"""Rows that nodes are sent while loops run, for the shuffle that is expected after them."""

from collections import Counter
from fractions import Fraction
from functools import partialmethod
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from ray.exceptions import ObjectStoreFullError, RayActorError

import orion
from orion.arrays.dense import array
from orion.arrays.exchange import Exchange
from orion.runtime.ray.actor_memory import ActorMemory
from orion.runtime.ray.expected_shuffles import Expected, ExpectedShuffles, Shuffles
from orion.runtime.ray.group import Group
from orion.runtime.ray.orders import AheadRows, Filling, Ready
from orion.runtime.ray.reordered import Rows, SentAhead, lacking_rows
from orion.runtime.ray.segments import Block
from tests import one_ray
from tests.trials import times

FIRST = Exchange.of((5, 5), Fraction(1, 2), seed=3)
OTHER = Exchange.of((5, 5), Fraction(1, 2), seed=4)


@pytest.mark.parametrize(
    ("before", "count", "last", "is_regular"),
    [
        (None, 1, FIRST, False),  # nothing is known of what was before
        (Shuffles(0, None), 1, FIRST, False),
        (Shuffles(1, FIRST), 2, FIRST.next(), True),
        (Shuffles(1, FIRST), 2, FIRST, False),  # the same epoch
        (Shuffles(1, FIRST), 2, OTHER.next(), False),  # another seed
        (Shuffles(1, FIRST), 3, FIRST.next().next(), False),  # one was not seen
        (Shuffles(1, FIRST), 2, None, False),
    ],
)
def test_the_next_shuffle_is_expected_after_two_of_a_kind(before, count, last, is_regular):
    assert Shuffles.after(before, count, last) == Shuffles(count, last, is_regular)


@pytest.mark.parametrize("had", [[True] * 20 + [False] * 20, [False, True] * 20])
def test_a_node_is_sent_what_it_will_lack_a_message_at_a_time(had, monkeypatch):
    monkeypatch.setattr("orion.runtime.ray.expected_shuffles.AHEAD_BYTES", 2 * 3 * 8)
    image, had = np.arange(160.0).reshape(40, 4), np.array(had)
    whole = Exchange.of((20, 20), Fraction(1), seed=5)
    one, order = Expected(7, Block(1, 0, (40, 4), "<f8"), whole, image, 0, 3, {"a": had}), whole.order()
    messages = [*iter(lambda: one.next_message("a"), None)]
    assert len(messages) > 1
    for message in messages:
        assert message.number == 7
        assert message.data.shape[1] == 3  # without padding
        np.testing.assert_array_equal(message.data, image[order][message.rows.places, :3])
        one.has_come("a", message)
    assert sorted(one.places_of("a")) == lacking_rows(order, had).tolist()
    assert one.bytes == len(lacking_rows(order, had)) * 3 * 8
    assert one.done == {"a"}
    assert one.next_message("b") is None


class Unsure:
    """A group whose first node cannot be sent anything, and on the way to whose second the second message is lost."""

    def __init__(self):
        self.sent, self.moved = Counter(), 0

    def send_ahead(self, node, rows):
        if node == "full":
            return None
        self.sent[node] += 1
        return self.sent[node]

    def done_ahead(self, under_way, seconds):
        return {node: number != 2 for node, number in under_way.items()}

    wait_for_ahead = partialmethod(done_ahead, seconds=0)


@pytest.mark.parametrize("error", [ObjectStoreFullError(), RayActorError(), MemoryError()])
def test_what_cannot_be_sent_is_no_error(error):
    actor = Mock()
    actor.keep_ahead.options.return_value.remote.side_effect = error
    assert Group.send_ahead(SimpleNamespace(actors=[actor], _leader=lambda node: 0), "a", None) is None


@pytest.mark.parametrize("nodes", [("lossy", "full"), ("lossy",), ("full",)])
def test_what_has_not_come_is_sent_after_the_shuffle(nodes, monkeypatch):
    monkeypatch.setattr("orion.runtime.ray.expected_shuffles.AHEAD_BYTES", 8)
    monkeypatch.setattr("orion.runtime.ray.expected_shuffles.is_running", lambda: True)
    had, image, block = np.arange(40) < 20, np.arange(40.0), Block(1, 0, (40,), "<f8")
    expected, whole = ExpectedShuffles(Unsure()), Exchange.of((20, 20), Fraction(1), 0)
    expected.expect(block, whole, image, 0, 40, dict.fromkeys(nodes, had))
    for _ in range(3):
        expected.go()
        if expected._thread is not None:  # there is something left
            expected._thread.join()
        expected.pause()
    one = expected.take(block)
    lacking = lacking_rows(whole.order(), had)
    for node in nodes:
        came = one.places_of(node)
        assert len(came) == len(one.taken_by(node, is_used=True).at) == (0 if node == "full" else 1)
        assert set(came) <= set(lacking)


@pytest.fixture
def memory():
    """The memory of an actor, with two segments: that of a run, and that of an array of ten numbers."""
    found = ActorMemory()
    found._memory |= {1: np.zeros(8, np.uint8), 2: np.zeros(80, np.uint8)}
    return found


NUMBERS = Block(2, 0, (10,), "<f8")


def taken(memory, number, *at):
    memory._fill(Ready(1, (Filling(NUMBERS, SentAhead(number, at), np.empty(0)),)))
    return NUMBERS.on(memory._memory[2]).tolist()


def test_rows_come_to_their_places_with_the_shuffle(memory):
    for place, value in ((3, 7.0), (5, 8.0)):
        memory.keep_ahead(AheadRows(NUMBERS, 4, place, Rows(np.array([place]), 10), np.array([value])))
    assert not any(NUMBERS.on(memory._memory[2]))
    memory.keep_ahead(AheadRows(NUMBERS, 4, 8, Rows(np.array([9]), 10), np.array([1.0])))  # is not known to have come
    assert taken(memory, 4, 3, 5) == [0, 0, 0, 7, 0, 8, 0, 0, 0, 0]
    assert memory._ahead == {}


def test_rows_of_a_shuffle_that_has_not_come_are_let_go_of(memory):
    kept = AheadRows(NUMBERS, 4, 0, Rows(np.array([3]), 10), np.array([7.0]))
    memory.keep_ahead(kept)
    assert not any(taken(memory, 4))
    memory.keep_ahead(kept)
    memory.keep_ahead(AheadRows(NUMBERS, 5, 0, Rows(np.array([1]), 10), np.array([9.0])))
    assert taken(memory, 5, 0)[:4] == [0, 9, 0, 0]
    memory.keep_ahead(kept)
    memory._drop((2,))
    memory.keep_ahead(kept)  # comes after the array has gone
    assert memory._ahead == {}


def test_rows_that_are_missing_are_an_error(memory):
    memory.keep_ahead(AheadRows(NUMBERS, 4, 0, Rows(np.array([3]), 10), np.array([7.0])))
    with pytest.raises(RuntimeError, match="1 of 2 messages with rows of a shuffle are not there"):
        taken(memory, 4, 0, 10)


# ---------------------------------------------------------------- on nodes


@pytest.fixture
def nodes():
    """Two nodes, the driver's with two workers, the other with one."""
    return one_ray.nodes()


@orion.parallel_for
def add_rows(X, out):
    for s in range(X.shape[0]):
        out[s] += X[s].sum()


@orion.parallel_for
def raise_rows(X):
    for s in range(X.shape[0]):
        for k in range(X.shape[1]):
            X[s, k] += s


def let_it_send(nodes):
    """Wait until nodes have been sent all that is expected."""
    thread = nodes._backend._team._mirrors._expected._thread
    if thread is not None:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_from_the_third_epoch_on_rows_are_there_before_it(nodes):
    X, out = array(np.arange(6400).reshape(1600, 4)), orion.zeros(1600, dtype=int)
    own, seen, moved = X.to_numpy(), [], []
    group = None
    for _ in range(5):
        X.shuffle(exchange=0.25, seed=2)
        own = own[X.last_shuffle.order()]
        out[:] = 0
        before = 0 if group is None else group.moved
        add_rows(X, out)
        np.testing.assert_array_equal(out.view, own.sum(axis=1))
        group = nodes._backend._team.group
        seen.append(add_rows.last_run.shuffled)
        moved.append(group.moved - before)
        let_it_send(nodes)
    assert [one.ahead == one.rows > 0 for one in seen] == [False, False, True, True, True]
    # whenever rows are sent, they are counted with the call after the shuffle
    assert len({count - one.rows * 32 for count, one in zip(moved[1:], seen[1:], strict=True)}) == 1


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_shuffles_of_another_kind_find_nothing_and_leave_nothing(nodes):
    X, out = array(np.arange(1200).reshape(300, 4)), orion.zeros(300, dtype=int)
    own, seen = X.to_numpy(), []
    for epoch in (0, 1, 2, 7, 8, 9, 9):
        X.shuffle(exchange=0.5, seed=2, epoch=epoch)
        own = own[X.last_shuffle.order()]
        out[:] = 0
        add_rows(X, out)
        np.testing.assert_array_equal(out.view, own.sum(axis=1))
        seen.append(add_rows.last_run.shuffled.ahead > 0)
        let_it_send(nodes)
    assert seen == [False, False, True, False, False, True, False]


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_what_is_written_meanwhile_is_there_after_the_shuffle(nodes):
    """Shuffles of a kind, calls that read or write, and writes from outside, in any order, sent ahead or not."""
    random = np.random.default_rng(6)
    X, out, total = array(np.arange(1200).reshape(300, 4)), orion.zeros(300, dtype=int), np.zeros(300, int)
    own, ahead = X.to_numpy(), 0
    for _ in range(times(40, 25)):
        for _ in range(random.integers(1, 5)):
            match random.choice(6, p=[0.45, 0.1, 0.1, 0.05, 0.15, 0.15]):
                case 0:
                    add_rows(X, out)
                    total += own.sum(axis=1)
                    ahead += add_rows.last_run.shuffled.ahead
                    np.testing.assert_array_equal(out.view, total)
                case 1:
                    row = random.integers(300)
                    X[row] = own[row] = random.integers(1000)
                case 2:
                    raise_rows(X)
                    own += np.arange(300)[:, None]
                case 3:
                    X.shuffle(exchange=0.1, seed=9, ranks=3)
                    own = own[X.last_shuffle.order()]
                case 4:
                    X.view[random.integers(300), 1] += 1
                    own = X.to_numpy()
                case _:
                    let_it_send(nodes)
        X.shuffle(exchange=0.4, seed=1, ranks=3)
        own = own[X.last_shuffle.order()]
        np.testing.assert_array_equal(X.view, own)
    assert ahead > 0


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_several_arrays_are_shuffled_alike(nodes):
    X, y = array(np.arange(1200.0).reshape(300, 4)), array(np.arange(300))

    @orion.parallel_for
    def weigh(X, y, out):
        for s in range(X.shape[0]):
            out[s] = X[s, 0] - 4 * y[s] + X[s, 3]

    for epoch in range(4):
        for one in (X, y):
            one.shuffle(exchange=0.5, seed=5)
        out = orion.zeros(300)
        weigh(X, y, out)
        np.testing.assert_array_equal(out.view, X.view[:, 3])
        found = weigh.last_run.shuffled
        assert (found.ahead == found.rows > 0) == (epoch > 1)
        let_it_send(nodes)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_a_session_ends_while_rows_are_sent(nodes, monkeypatch):
    monkeypatch.setattr("orion.runtime.ray.expected_shuffles.AHEAD_BYTES", 32)
    X, out = array(np.arange(40_000).reshape(10_000, 4)), orion.zeros(10_000, dtype=int)
    for _ in range(2):
        X.shuffle(exchange=1, seed=2)
        add_rows(X, out)
    mirrors = nodes._backend._team._mirrors
    assert mirrors._expected._thread.is_alive()
    orion.scale(workers=3)  # other actors
    assert mirrors._expected._thread is None
    X.shuffle(exchange=1, seed=2)
    out[:] = 0
    add_rows(X, out)
    np.testing.assert_array_equal(out.view, X.view.sum(axis=1))


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_seen", [True, False], ids=["seen by a call", "before the shuffle alone"])
def test_rows_that_change_after_they_were_sent_are_sent_again(is_seen, nodes):
    X, out = array(np.arange(1200).reshape(300, 4)), orion.zeros(300, dtype=int)
    for epoch in range(5):
        X.shuffle(exchange=0.5, seed=2, ranks=3)
        out[:] = 0
        add_rows(X, out)
        np.testing.assert_array_equal(out.view, X.view.sum(axis=1))
        let_it_send(nodes)
        if epoch == 2:
            assert add_rows.last_run.shuffled.ahead > 0
        if epoch >= 2:
            X.view[...] += 1000
        if is_seen:
            add_rows(X, out)
