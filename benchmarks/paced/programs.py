"""Matrix factorization and a topic model whose factors and counts are kept alike on all hosts, late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import orion
from orion.arrays.sending import Sending


@orion.parallel_for
def factorize(start, items, ratings, W, H, late, step, epochs):
    """Rows of W are of users, each on the host that has them; rows of H, of items, are updated by all."""
    rank = W.shape[1]
    for _ in range(epochs):
        for u in range(W.shape[0]):
            for p in range(start[u], start[u + 1]):
                error = ratings[p]
                for k in range(rank):
                    error -= W[u, k] * H[items[p], k]
                for k in range(rank):
                    w = W[u, k]
                    W[u, k] += step * error * H[items[p], k]
                    late[items[p], k] += step * error * w


@orion.parallel_for
def sample(words, topics, of_document, of_word, totals, late_words, late_totals, alpha, beta, seed, epochs):
    """Collapsed Gibbs sampling of a topic model. Documents, rows of `words` and of `topics`, are each on one host;
    counts of words and topics are late. They may be negative for a while, and are taken for 0 then."""
    K, V = of_document.shape[1], of_word.shape[0]
    for e in range(epochs):
        for d in range(of_document.shape[0]):
            for p in range(words.shape[1]):
                v, old = words[d, p], topics[d, p]
                of_document[d, old] -= 1
                late_words[v, old] -= 1
                late_totals[old] -= 1
                whole = 0.0
                for k in range(K):
                    whole += (
                        (of_document[d, k] + alpha) * (max(of_word[v, k], 0) + beta) / (max(totals[k], 0) + V * beta)
                    )
                left = whole * orion.random(seed, e, d, p)
                new = 0
                for k in range(K):
                    left -= (
                        (of_document[d, k] + alpha) * (max(of_word[v, k], 0) + beta) / (max(totals[k], 0) + V * beta)
                    )
                    if left > 0 and new < K - 1:
                        new += 1
                topics[d, p] = new
                of_document[d, new] += 1
                late_words[v, new] += 1
                late_totals[new] += 1


class Program(Protocol):
    """A training that begins anew with each `run`. `iterations` are those of a pass, and `late` the bytes of what is
    kept alike on all hosts."""

    function: Any
    about: str
    iterations: int
    late: int

    def run(self, max_delay: int, send: Sending | None, epochs: int) -> None:
        """Train for so many epochs."""

    def loss(self) -> float:
        """How good what was learnt last is: less is better."""


@dataclass
class Factorization:
    """Ratings of users and items from factors of `rank` numbers, and noise; popular items have most."""

    users: int
    items: int
    each: int
    rank: int = 32
    step: float = 0.002
    function = factorize

    def __post_init__(self) -> None:
        rng = np.random.default_rng(7)
        popular = (rng.random((self.users, self.each)) ** 3 * self.items).astype(np.int64)  # item k as k ** (-2 / 3)
        self.start = np.arange(self.users + 1) * self.each
        self.chosen = popular.ravel().astype(np.int32)
        left, right = rng.normal(0, 1, (self.users, 8)), rng.normal(0, 1, (self.items, 8))
        owner = np.repeat(np.arange(self.users), self.each)
        true = np.einsum("nk,nk->n", left[owner], right[self.chosen]) / np.sqrt(8)
        self.ratings = (true + rng.normal(0, 0.1, len(true))).astype(np.float32)
        self.owner = owner
        self.first = [rng.normal(0, 0.3, (n, self.rank)).astype(np.float32) for n in (self.users, self.items)]
        self.W, self.H = orion.array(self.first[0]), orion.array(self.first[1])
        self.iterations, self.late = self.users, self.first[1].nbytes
        self.about = f"{len(true):,} ratings of {self.users:,} users, {self.items:,} items, rank {self.rank}"

    def run(self, max_delay: int, send: Sending | None, epochs: int) -> None:
        self.W[:], self.H[:] = self.first
        late = orion.buffer(self.H, max_delay=max_delay, send=send)
        factorize(self.start, self.chosen, self.ratings, self.W, self.H, late, np.float32(self.step), epochs)

    def loss(self) -> float:
        W, H = self.W.to_numpy(), self.H.to_numpy()
        parts = [slice(at, at + 200_000) for at in range(0, len(self.owner), 200_000)]
        left = [self.ratings[one] - np.einsum("nk,nk->n", W[self.owner[one]], H[self.chosen[one]]) for one in parts]
        return float(np.sqrt(np.mean(np.concatenate(left) ** 2)))


@dataclass
class Topics:
    """Documents of words of topics, all drawn from Dirichlet distributions."""

    documents: int
    each: int
    words: int
    topics: int = 32
    function = sample

    def __post_init__(self) -> None:
        rng = np.random.default_rng(3)
        true = 20
        of_words = rng.dirichlet(np.full(self.words, 0.05), true).cumsum(axis=1)
        of_documents = rng.dirichlet(np.full(true, 0.2), self.documents)
        self.owner = np.repeat(np.arange(self.documents), self.each)
        kinds = np.array([rng.choice(true, self.each, p=p) for p in of_documents]).ravel()
        below = rng.random(len(kinds))
        tokens = np.empty(len(kinds), np.int64)
        for k in range(true):
            tokens[kinds == k] = np.searchsorted(of_words[k], below[kinds == k] * of_words[k, -1])
        self.tokens = tokens.astype(np.int32)
        self.first = rng.integers(0, self.topics, len(tokens)).astype(np.int32)
        self.alpha, self.beta = 0.1, 0.01
        self.of_document = orion.zeros((self.documents, self.topics), np.int32)
        self.of_word, self.totals = orion.zeros((self.words, self.topics), np.int32), orion.zeros(self.topics, np.int32)
        self.iterations, self.late = len(tokens), 4 * self.topics * (self.words + 1)
        self.about = (
            f"{len(tokens):,} tokens of {self.documents:,} documents, {self.words:,} words, {self.topics} topics"
        )

    def run(self, max_delay: int, send: Sending | None, epochs: int) -> None:
        self.assigned = self.first.reshape(self.documents, self.each).copy()
        counts = self.counted(self.assigned)
        self.of_document[:], self.of_word[:], self.totals[:] = counts
        late_words = orion.buffer(self.of_word, max_delay=max_delay, send=send)
        late_totals = orion.buffer(self.totals, max_delay=max_delay, send=send)
        shape, counted = self.assigned.shape, (self.of_document, self.of_word, self.totals, late_words, late_totals)
        sample(self.tokens.reshape(shape), self.assigned, *counted, self.alpha, self.beta, 11, epochs)

    def counted(self, topics: NDArray[np.int32]) -> tuple[NDArray[np.int32], ...]:
        """The counts of topics of documents, of words, and of all."""
        of_document = np.zeros((self.documents, self.topics), np.int32)
        of_word = np.zeros((self.words, self.topics), np.int32)
        np.add.at(of_document, (self.owner, topics.ravel()), 1)
        np.add.at(of_word, (self.tokens, topics.ravel()), 1)
        return of_document, of_word, of_word.sum(axis=0, dtype=np.int32)

    def loss(self) -> float:
        """Minus the mean over tokens of log ∑ θ φ."""
        of_document, of_word, totals = self.counted(self.assigned)
        theta = (of_document + self.alpha) / (of_document.sum(1) + self.topics * self.alpha)[:, None]
        phi = (of_word + self.beta) / (totals + self.words * self.beta)
        parts = [
            np.log(np.einsum("nk,nk->n", theta[self.owner[at : at + 100_000]], phi[self.tokens[at : at + 100_000]]))
            for at in range(0, len(self.tokens), 100_000)
        ]
        return -float(np.concatenate(parts).mean())


PROGRAMS = {
    "factorization": lambda scale: Factorization(int(20_000 * scale), 1_000, 500),
    "topics": lambda scale: Topics(int(6_000 * scale), 500, 1_000),
}
