"""Which elements change places where workers exchange a part of their shares, in place of a shuffle of all.

Elements are cut into shares, one for each rank. In an epoch each rank puts its share into a random order of its own.
Then, of the smallest share's n elements, ⌊q · n⌋ of each rank change places: the ranks draw a permutation of
themselves for each of so many slots, from a seed that all of them have, and what is in a slot goes to the rank that the
permutation says. So each rank sends as many elements as it receives, nobody has to ask anybody, and a rank that draws
itself keeps its element. With q = 0 nothing is sent; with q = 1 all elements are put into one random order, which is
the same however many ranks there are. (Nguyen, Trahay, Domke, Drozd, Vatai, Liao, Wahib, Gerofi: "Why globally
re-shuffle? Revisiting data shuffling in large scale deep learning", IPDPS 2022.)

All of it is a function of how many elements the ranks have, q, the seed and the number of the epoch. Random bits are
Philox's, as in `orion.arrays.permuted`: the third word of its counter is the epoch, the fourth what they are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from orion.arrays.at_once import AtOnce, threads_for
from orion.arrays.permuted import ascending, random_bits
from orion.dataclass import dataclass, replace

Ints = NDArray[np.int64]

ORDER, SLOTS = 1, 2
"""What bits are for, in the fourth word of the counter; that of keys is 0."""

DRAWN = 1 << 20
"""About so many ranks are drawn at a time."""


@dataclass(frozen=True)
class Exchange:
    """What one shuffle of elements does: how many each rank has (`counts`), how many of each rank change places
    (`slots`; `is_whole` where all are put into one order instead), and from which random numbers (`seed`, `epoch`).

    `fraction` is what was asked for, and `element_bytes` what an element takes.

    >>> exchange = Exchange.of((4, 4), Fraction(1, 2), seed=1)
    >>> exchange.slots, exchange.sent.tolist(), exchange.order().tolist()
    (2, [1, 1], [0, 3, 4, 2, 5, 7, 1, 6])
    """

    counts: tuple[int, ...]
    slots: int
    is_whole: bool
    seed: int
    epoch: int
    fraction: float
    element_bytes: int

    @staticmethod
    def of(counts: tuple[int, ...], exchange: Fraction, seed: int, epoch: int = 0, element_bytes: int = 1) -> Exchange:
        """The exchange of a part of shares of so many elements: checked numbers, from 0 to 1 and from 0 on."""
        slots = exchange.numerator * min(counts) // exchange.denominator
        return Exchange(counts, slots, exchange == 1, seed, epoch, float(exchange), element_bytes)

    def next(self) -> Exchange:
        """That of the next epoch, of the same kind."""
        return replace(self, epoch=self.epoch + 1)

    @property
    def ranks(self) -> int:
        """The number of shares."""
        return len(self.counts)

    @property
    def elements(self) -> int:
        """The number of all elements."""
        return sum(self.counts)

    @property
    def bounds(self) -> Ints:
        """Where shares begin, and the end of the last: rank r has the elements `bounds[r]:bounds[r + 1]`."""
        return np.array([0, *accumulate(self.counts)], np.int64)

    @property
    def bytes(self) -> int:
        """Bytes that all ranks together send: of elements that come to another rank."""
        return int(self.sent.sum()) * self.element_bytes

    @cached_property
    def sent(self) -> Ints:
        """How many elements each rank sends to others; it receives as many. int64 (ranks,)."""
        if self.is_whole:
            return _sent_of_all(self.order(), self.counts)
        found = np.full(self.ranks, self.slots, np.int64)
        for _, drawn in self.drawn():
            found -= np.count_nonzero(drawn == np.arange(self.ranks), axis=0)
        return found

    def own_order(self, rank: int) -> Ints:
        """The random order into which a rank puts its own elements: those that come to its places, counted within its
        share. Of all elements, for rank 0, where all are put into one order."""
        count = self.elements if self.is_whole else self.counts[rank]
        return ascending(random_bits(self.seed, (rank, self.epoch, ORDER)).random_raw(count))

    def own_places(self, rank: int) -> Ints:
        """The places in this order of which the elements change places, one for each slot. They are evenly spread, so
        that what comes from others is met all through the epoch. int64 (slots,)."""
        return np.arange(self.slots) * self.counts[rank] // max(1, self.slots)

    def drawn(self) -> Iterator[tuple[int, Ints]]:
        """The permutations of ranks, some slots at a time: the number of the first of these, and int64 (some, ranks):
        the element of rank r in a slot goes to rank `drawn[slot, r]`, into the same slot."""
        bits = random_bits(self.seed, (0, self.epoch, SLOTS))
        some = max(1, DRAWN // self.ranks)
        for first in range(0, self.slots, some):
            count = min(some, self.slots - first)
            yield first, ascending(bits.random_raw(count * self.ranks).reshape(count, -1))

    def order(self) -> Ints:
        """The new order of all elements, share after share: element `order[i]` comes to place i. int64 (elements,)."""
        if self.is_whole:
            found = self.own_order(0)
            self.__dict__["sent"] = _sent_of_all(found, self.counts)
            return found
        found, bounds = np.empty(self.elements, np.int64), self.bounds

        def put(rank: int) -> None:
            np.add(self.own_order(rank), bounds[rank], out=found[bounds[rank] : bounds[rank + 1]])

        with AtOnce(threads_for(self.ranks)) as threads:
            threads.map(put, range(self.ranks))
        places = np.array([bounds[rank] + self.own_places(rank) for rank in range(self.ranks)])
        for first, drawn in self.drawn():
            own = places[:, first : first + len(drawn)].T
            targets = np.take_along_axis(own, drawn, axis=1)
            found[targets] = found[own]
        return found

    def __repr__(self) -> str:
        return f"Exchange({self.told('elements')})"

    def told(self, what: str) -> str:
        """It in words; `what` is exchanged."""
        among = f"{self.fraction:g} of {self.ranks} shares"
        sent = f"{int(self.sent.sum()):,} of {self.elements:,} {what} sent, {self.bytes:,} bytes"
        return f"epoch {self.epoch}, {among} with seed {self.seed}: {sent}"


def _sent_of_all(order: Ints, counts: tuple[int, ...]) -> Ints:
    """How many elements come to each share from others."""
    bounds = [0, *accumulate(counts)]
    inside = [int(((order[low:high] >= low) & (order[low:high] < high)).sum()) for low, high in pairwise(bounds)]
    return np.array(counts, np.int64) - inside
