"""Which elements change places in an exchange: what it promises, and the same done by ranks that know their own share
alone."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orion.arrays import permuted
from orion.arrays.exchange import DRAWN, Exchange
from orion.arrays.shuffled import checked_part
from tests.trials import ALL, TIMES

COUNTS = st.lists(st.integers(1, 40), min_size=1, max_size=9).map(tuple)
PARTS = st.fractions(0, 1, max_denominator=40)


def by_messages(shares, exchange):
    """What each rank has after an exchange, by ranks that send each other one element at a time, and how many each
    sends and receives, and has at once. Each rank uses its own share, and what all of them draw."""
    own = [[share[place] for place in exchange.own_order(rank)] for rank, share in enumerate(shares)]
    sent, received = [0] * len(shares), [0] * len(shares)
    held = [len(share) for share in shares]
    inbox = [{} for _ in shares]
    for first, drawn in exchange.drawn():
        for slot, ranks in enumerate(drawn.tolist(), first):
            for rank, target in enumerate(ranks):
                inbox[target][slot] = own[rank][exchange.own_places(rank)[slot]]
                sent[rank] += rank != target
                received[target] += rank != target
    for rank, came in enumerate(inbox):
        held[rank] += received[rank]
        for slot, element in came.items():
            own[rank][exchange.own_places(rank)[slot]] = element
    return own, sent, received, held


def in_shares(elements, counts):
    return [list(part) for part in np.split(elements, np.cumsum(counts)[:-1])]


@settings(max_examples=60 * TIMES, deadline=None)
@given(COUNTS, PARTS.filter(lambda part: part < 1), st.integers(0, 2**70), st.integers(0, 2**64 - 1))
def test_ranks_by_themselves_come_to_the_same_order(counts, part, seed, epoch):
    exchange = Exchange.of(counts, part, seed, epoch)
    elements = np.arange(sum(counts)) * 10
    own, sent, received, held = by_messages(in_shares(elements, counts), exchange)
    order = exchange.order()
    assert in_shares(elements[order], counts) == own
    assert sorted(order) == list(range(sum(counts)))
    assert exchange.slots == (part * min(counts)).__floor__()
    assert exchange.sent.tolist() == sent == received
    assert all(one <= (1 + part) * count for one, count in zip(held, counts, strict=True))


@settings(max_examples=30 * TIMES, deadline=None)
@given(COUNTS, st.integers(0, 2**64), st.integers(0, 100))
def test_all_of_it_is_one_order_for_any_number_of_ranks(counts, seed, epoch):
    exchange, count = Exchange.of(counts, Fraction(1), seed, epoch), sum(counts)
    order = exchange.order()
    np.testing.assert_array_equal(order, Exchange.of((count,), Fraction(1), seed, epoch).order())
    assert sorted(order) == list(range(count))
    rank_of = np.repeat(np.arange(len(counts)), counts)
    goes = np.zeros((len(counts), len(counts)), int)
    np.add.at(goes, (rank_of[order], rank_of), 1)
    np.fill_diagonal(goes, 0)
    assert Exchange.of(counts, Fraction(1), seed, epoch).sent.tolist() == goes.sum(0).tolist() == goes.sum(1).tolist()
    assert exchange.bytes == goes.sum()


@settings(max_examples=30 * TIMES, deadline=None)
@given(COUNTS, st.integers(0, 1000))
def test_nothing_leaves_its_share_where_nothing_is_exchanged(counts, seed):
    exchange = Exchange.of(counts, Fraction(0), seed)
    for share, moved in zip(
        in_shares(np.arange(sum(counts)), counts), in_shares(exchange.order(), counts), strict=True
    ):
        assert sorted(moved) == share
    assert not exchange.sent.any()
    assert exchange.bytes == 0


def test_slots_that_are_drawn_in_several_parts_are_as_those_of_messages():
    counts = (DRAWN // 8 + 3, DRAWN // 8, DRAWN // 8, DRAWN // 8, DRAWN // 8, DRAWN // 8, DRAWN // 8, DRAWN // 8)
    exchange = Exchange.of(counts, Fraction(999_999, 1_000_000), 3)
    assert exchange.slots * exchange.ranks < DRAWN
    exchange = Exchange.of((*counts, DRAWN // 8 + 1, DRAWN), Fraction(999_999, 1_000_000), 3)
    assert len(list(exchange.drawn())) == 2
    order, places = exchange.order(), exchange.own_places(4) + exchange.bounds[4]
    drawn = np.concatenate([some for _, some in exchange.drawn()])
    own = exchange.bounds[:-1, None] + np.array([exchange.own_places(rank) for rank in range(exchange.ranks)])
    for slot in (0, exchange.slots // 2, exchange.slots - 1):
        (rank,) = np.flatnonzero(drawn[slot] == 4)
        source = exchange.bounds[rank] + exchange.own_order(rank)[own[rank, slot] - exchange.bounds[rank]]
        assert order[places[slot]] == source
    np.testing.assert_array_equal(np.bincount(order), 1)
    kept = np.count_nonzero(drawn == np.arange(exchange.ranks), axis=0)
    np.testing.assert_array_equal(exchange.sent, exchange.slots - kept)


def test_orders_are_the_same_with_any_version_and_on_any_machine():
    """Of 5, 4 and 4 elements, written down once."""
    assert Exchange.of((5, 4, 4), Fraction(1, 2), seed=2, epoch=1).order().tolist() == WRITTEN[0]
    assert Exchange.of((5, 4, 4), Fraction(1), seed=2, epoch=1).order().tolist() == WRITTEN[1]


WRITTEN = [[3, 1, 10, 2, 0, 5, 7, 6, 8, 12, 11, 4, 9], [3, 1, 8, 11, 7, 4, 2, 10, 12, 5, 6, 9, 0]]


def test_epochs_seeds_and_ranks_have_orders_of_their_own():
    whole = [tuple(Exchange.of((300, 300), Fraction(0), *key).order()) for key in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert len({*whole}) == 4
    first, second = np.split(np.array(whole[0]), 2)
    assert (first != second - 300).any()
    drawn = [
        tuple(map(tuple, next(Exchange.of((300,) * 5, Fraction(1, 2), *key).drawn())[1])) for key in ((0, 0), (0, 1))
    ]
    assert drawn[0] != drawn[1]


EPOCHS = 6000 if ALL else 2000


def test_orders_are_evenly_random():
    """Where each of six elements goes, of so many epochs: chi-squared below its 1 - 10⁻⁶ quantile."""
    for part, limit in ((Fraction(0), 42.7), (Fraction(1), 73.8), (Fraction(2, 3), 0.0)):
        counts = np.zeros((6, 6))
        for epoch in range(EPOCHS):
            counts[np.arange(6), Exchange.of((3, 3), part, 5, epoch).order()] += 1
        if part == 0:
            assert counts[:3, 3:].sum() == counts[3:, :3].sum() == 0
        expected = {0: np.kron(np.eye(2), np.full((3, 3), EPOCHS / 3)), 1: np.full((6, 6), EPOCHS / 6)}.get(part)
        if expected is None:  # two of three slots change ranks in half of the draws
            stays = counts[:3, :3].sum() + counts[3:, 3:].sum()
            assert abs(stays / (6 * EPOCHS) - (1 / 3 + 2 / 3 / 2)) < 0.01 * (6000 / EPOCHS) ** 0.5
        else:
            cells = expected > 0
            assert ((counts - expected)[cells] ** 2 / expected[cells]).sum() < limit


def test_half_of_two_ranks_draws_themselves():
    exchange = Exchange.of((50_000, 50_000), Fraction(1, 2), 11)
    assert abs(exchange.sent[0] / exchange.slots - 0.5) < 0.02


@pytest.mark.parametrize(
    ("given", "count", "slots"),
    [(0.29, 100, 29), (0.1, 30, 3), (1e-5, 100_000, 1), (1 / 3, 3, 0), (Fraction(1, 3), 3, 1), (0.999, 10, 9),
     (np.float64(0.7), 10, 7), (np.float32(0.5), 10, 5), (0, 10, 0), (1, 10, 10), (True + 0, 10, 10)],
)  # fmt: skip
def test_parts_are_decimal_fractions_as_they_are_written(given, count, slots):
    assert Exchange.of((count,), checked_part(given), 0).slots == slots


def test_what_is_said_of_it():
    exchange = Exchange.of((1000, 1000), Fraction(1, 10), 4, 3, element_bytes=8)
    sent = int(exchange.sent.sum())
    assert repr(exchange) == (
        f"Exchange(epoch 3, 0.1 of 2 shares with seed 4: {sent} of 2,000 elements sent, {sent * 8} bytes)"
    )


@settings(max_examples=100 * TIMES, deadline=None)
@given(
    st.integers(0, 2**32), st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(0, 300), st.integers(0, 64)
)
def test_numbers_are_ordered_by_all_their_bits(seed, lines, count, shift):
    bits = np.random.default_rng(seed).integers(2**64, size=(*lines, count), dtype=np.uint64)
    bits = bits >> np.uint64(shift) if shift < 64 else bits * np.uint64(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permuted, "BLOCK", 7)
        found = permuted.ascending(bits)
    np.testing.assert_array_equal(found, np.argsort(bits, axis=-1, kind="stable"))
