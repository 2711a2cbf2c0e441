"""Topic models by WarpLDA: each token has a topic, and topics are changed by documents and by words in turn.

    python examples/lda.py                                           # a corpus drawn from a model of 50 topics
    python examples/lda.py --corpus docword.kos.txt.gz --sweeps 200  # bags of words as UCI has them
    python examples/lda.py --topics 20 --backend ray --workers 2 --picture curve.svg

A pass goes through all rows: the documents, or the words. It counts the topics of a row, offers each of its tokens
topics that the pass before proposed, and proposes topics for the pass that follows. The totals of topics stay as they
are meanwhile, so that no row needs another one: rows run in parallel, and the topics are the same, to the bit, on any
number of workers. The plans, printed before anything runs, say so.

Chen, Li, Zhu, Chen: *WarpLDA: a cache efficient O(1) algorithm for latent Dirichlet allocation*, VLDB 2016. Here the
counts of a row are changed with each topic and leave out the token that chooses, as in Gibbs sampling: that takes fewer
sweeps than counts that wait for the end of a row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from lda_data import Corpus, Integers, generated, hold_out, read_docword
from live import steps
from numpy.typing import NDArray
from options import add_running_options, parsed, picture_file, positive, whole
from pictures import save_curves, save_png

import orion

BLOCKS = 64
"""Rows are taken in so many blocks of about as many tokens each; a block has memory for the row that it is at."""

HALF, WHOLE = 2.0**-31, 2.0**-32

# ------------------------------------------------------------------------------------------------ the loops


def scrambled(x: int) -> int:
    """A number below 2³² that looks random, of another one. No product in it has more than 63 bits."""
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & 0xFFFFFFFF
    return ((x ^ (x >> 15)) * 0x735A2D97) & 0xFFFFFFFF


def draw(turned, row, b, length, width, even, key):
    """Offer each token of a row the topic of another one, or now and then any topic: with probabilities in proportion
    to the counts without the token, plus the prior. Tokens take the topics of those at one distance, and so many of
    them, in even steps, another topic, that each has the chance of it that it should have."""
    low, high = key & 0x7FFFFFFF, key >> 31
    shift = min(1 + ((scrambled(low) * max(length - 1, 0)) >> 32), length)
    for i in range(length - shift):
        turned[b, i] = row[b, i + shift]
    for i in range(shift):
        turned[b, length - shift + i] = row[b, i]
    many = int(length * even / max(length - 1 + even, even) + HALF * high)
    for j in range(many):
        x = scrambled((high + j * 0x9E3779B9) & 0xFFFFFFFF)
        turned[b, int((j + HALF * low) * length / many)] = (x * width) >> 32


@orion.parallel_for
def resample(topics, proposed, moved, before, offered, at, ptr, start, counts, row, turned, share, prior, seed):
    """A pass. Token p of the rows is token `at[p]` of the pass before, which left its topic in `before`, and proposals
    in `offered`. Block b has the rows from `start[b]`, row r the tokens from `ptr[r]`; what is indexed by b is the
    memory of block b. `moved` is by how much the totals of topics change."""
    width = len(share)
    even = width * prior
    for b in range(len(start) - 1):
        for k in range(width):
            moved[b, k] = 0
        for r in range(start[b], start[b + 1]):
            first = ptr[r]
            length = ptr[r + 1] - first
            for k in range(width):
                counts[b, k] = prior
            for p in range(ptr[r], ptr[r + 1]):
                z = before[at[p]]
                row[b, p - first] = z
                counts[b, z] += 1.0
            for m in range(len(proposed)):
                key = orion.random.integers(0, 2**32, seed, r, 2 * m)
                for p in range(ptr[r], ptr[r + 1]):
                    u = WHOLE * scrambled((key + (p - first) * 0x9E3779B9) & 0xFFFFFFFF)
                    z = row[b, p - first]
                    new = offered[m, at[p]]
                    other = z != new  # a factor below: a test of its own is mispredicted often, and took 2 ns more
                    if u * (counts[b, z] - 1.0) * share[z] < other * counts[b, new] * share[new]:
                        counts[b, z] -= 1.0
                        counts[b, new] += 1.0
                        moved[b, z] -= 1
                        moved[b, new] += 1
                        row[b, p - first] = new
            for p in range(ptr[r], ptr[r + 1]):
                topics[p] = row[b, p - first]
            for m in range(len(proposed)):
                draw(turned, row, b, length, width, even, orion.random.integers(0, 2**62, seed, r, 2 * m + 1))
                for p in range(ptr[r], ptr[r + 1]):
                    proposed[m, p] = turned[b, p - first]


@orion.parallel_for
def count(counts, topics, ptr):
    for r in range(len(ptr) - 1):
        for p in range(ptr[r], ptr[r + 1]):
            counts[r, topics[p]] += 1


@orion.parallel_for
def log_likelihood(docs, words, lengths, of_docs, of_words, share, alpha, beta):
    """The sum over tokens of log ∑ θ φ, by the counts of topics of documents and of words."""
    total = 0.0
    for t in range(len(docs)):
        s = 0.0
        for k in range(len(share)):
            s += (of_docs[docs[t], k] + alpha) * (of_words[words[t], k] + beta) * share[k]
        total += np.log(s / (lengths[docs[t]] + len(share) * alpha))
    return total


# ------------------------------------------------------------------------------------------------ the sweeps


@dataclass
class Rows:
    """The tokens in the order of their documents or of their words: their topics, and what a pass needs."""

    ptr: Integers
    at: NDArray[np.int32]
    start: Integers
    prior: float
    topics: NDArray[Any]
    proposed: NDArray[Any]
    width: int
    moved: Integers = field(init=False)
    memory: tuple[NDArray[Any], ...] = field(init=False)

    def __post_init__(self) -> None:
        kind, longest = self.topics.dtype, max(int(np.diff(self.ptr).max()), 1)
        self.moved = np.zeros((BLOCKS, self.width), np.int64)
        self.memory = (
            np.zeros((BLOCKS, self.width)),
            np.zeros((BLOCKS, longest), kind),
            np.zeros((BLOCKS, longest), kind),
        )


def rows_of(numbers: Integers, rows: int, at: Integers, prior: float, shape: tuple[int, int]) -> Rows:
    """Rows of tokens with these row numbers, in order, for (topics, proposals)."""
    width, proposals = shape
    kind = np.uint8 if width <= 256 else np.uint16
    ptr = np.searchsorted(numbers, np.arange(rows + 1))
    start = np.searchsorted(ptr, np.arange(BLOCKS + 1) * (len(numbers) / BLOCKS))
    start[0], start[-1] = 0, rows
    topics, proposed = np.zeros(len(numbers), kind), np.zeros((proposals, len(numbers)), kind)
    parts = orion.freeze(ptr), orion.freeze(at.astype(np.int32)), orion.freeze(start)
    return Rows(*parts, prior, topics, proposed, width)


class Warp:
    """The topics of a corpus."""

    def __init__(self, corpus: Corpus, topics: int, alpha: float, beta: float, proposals: int, seed: int) -> None:
        self.corpus, self.alpha, self.beta, self.seed = corpus, alpha, beta, seed
        self.by_word = np.argsort(corpus.words, kind="stable")
        place = np.empty(len(corpus), np.int64)
        place[self.by_word] = np.arange(len(corpus))
        shape = topics, proposals
        self.documents = rows_of(corpus.docs, corpus.documents, place, alpha, shape)
        self.words = rows_of(corpus.words[self.by_word], corpus.vocabulary, self.by_word, beta, shape)
        rng = np.random.default_rng(seed)  # all tokens of a document begin with one topic
        self.words.topics[:] = rng.integers(0, topics, corpus.documents)[corpus.docs[self.by_word]]
        self.words.proposed[:] = rng.integers(0, topics, (proposals, len(corpus)))
        self.totals = np.bincount(self.words.topics, minlength=topics)
        self.passes = 0

    def share(self) -> NDArray[np.float64]:
        """What the words of each topic are divided by, as a factor."""
        shares: NDArray[np.float64] = 1.0 / (self.totals + self.corpus.vocabulary * self.beta)
        return shares

    def arguments(self, rows: Rows, others: Rows) -> tuple[Any, ...]:
        """Of a pass by `rows` that follows one by `others`."""
        made = rows.topics, rows.proposed, rows.moved, others.topics, others.proposed
        key = self.seed * 2**32 + self.passes
        return *made, rows.at, rows.ptr, rows.start, *rows.memory, self.share(), rows.prior, key

    def sweep(self) -> None:
        """A pass by documents, and one by words."""
        for rows, others in ((self.documents, self.words), (self.words, self.documents)):
            resample(*self.arguments(rows, others))
            self.totals = self.totals + rows.moved.sum(axis=0)
            self.passes += 1

    def counts(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """How often documents and words have each topic."""
        topics = self.words.topics
        of_docs = np.zeros((self.corpus.documents, len(self.totals)), np.int32)
        of_words = np.zeros((self.corpus.vocabulary, len(self.totals)), np.int32)
        count(of_docs, topics[self.documents.at], self.documents.ptr)
        count(of_words, topics, self.words.ptr)
        return of_docs, of_words

    def perplexity(self, held: Corpus) -> float:
        """exp(-mean log ∑ θ φ) of other tokens of the documents."""
        lengths = np.diff(self.documents.ptr)
        sums = log_likelihood(held.docs, held.words, lengths, *self.counts(), self.share(), self.alpha, self.beta)
        return float(np.exp(-sums / len(held)))


def unigram(corpus: Corpus, held: Corpus, beta: float) -> float:
    """The perplexity where all documents are taken to be alike."""
    often = np.bincount(corpus.words, minlength=corpus.vocabulary) + beta
    return float(np.exp(-np.log(often[held.words] / often.sum()).mean()))


# ------------------------------------------------------------------------------------------------ the program


def draw_matrix(path: Path, of_words: NDArray[np.int32]) -> str:
    """Write a PNG picture of topics by words, with the frequent words next to those of their topic. What it shows."""
    often = np.sort(np.argsort(-of_words.sum(axis=1), kind="stable")[:1200])
    most = of_words[often]
    order = np.lexsort((-most.max(axis=1), most.argmax(axis=1)))
    parts = most[order] / np.maximum(most[order].sum(axis=1, keepdims=True), 1)
    words, topics = parts.shape
    high = max(1, 600 // topics)
    save_png(path, 1.0 - np.repeat(parts.T, high, axis=0))  # the darker, the greater
    return (
        f"topics 1 to {topics:,} from top to bottom, {high} pixels each,\n"
        f"and the {words:,} most frequent words from left to right, by their topics; the share of a topic in a word\n"
        f"is {parts.min():.3g} where it is white and {parts.max():.3g} where it is black"
    )


def draw_model(path: Path, warp: Warp, curve: Sequence[tuple[int, float]], level: float) -> str:
    """Write the picture that the ending asks for. What it shows."""
    if path.suffix == ".png":
        return draw_matrix(path, warp.counts()[1])
    save_curves(path, {"held-out tokens": curve}, ("sweeps", "perplexity"), {f"of one topic: {level:,.0f}": level})
    return "the perplexity by sweeps, and that of one topic, dashed"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Topic models by WarpLDA.")
    parser.add_argument("--corpus", type=Path, metavar="FILE", help="bags of words (default: a corpus is generated)")
    parser.add_argument(
        "--documents", type=whole(1), default=4000, help="of the generated corpus (default: %(default)s)"
    )
    parser.add_argument("--vocabulary", type=whole(1), default=6000, help="of a generated one (default: %(default)s)")
    parser.add_argument("--length", type=whole(1), default=120, help="of a generated document (default: %(default)s)")
    parser.add_argument("--topics", type=whole(1, 2**16), default=100, help="(default: %(default)s)")
    parser.add_argument("--sweeps", type=whole(1), default=100, help="(default: %(default)s)")
    parser.add_argument("--alpha", type=positive, default=0.1, help="the prior of documents (default: %(default)s)")
    parser.add_argument("--beta", type=positive, default=0.01, help="the prior of topics (default: %(default)s)")
    parser.add_argument(
        "--proposals", type=whole(1, 64), default=1, metavar="M", help="per pass (default: %(default)s)"
    )
    parser.add_argument("--every", type=whole(1), help="sweeps between perplexities (default: a tenth of them all)")
    parser.add_argument(
        "--picture",
        type=picture_file(".svg", ".png"),
        metavar="FILE",
        help=".svg: the perplexities, .png: topics by words",
    )
    add_running_options(parser, last_seed=2**31 - 1)
    return parsed(parser, arguments)


def corpus_of(options: argparse.Namespace) -> Corpus:
    if options.corpus is not None:
        return read_docword(options.corpus)
    return generated(options.documents, options.vocabulary, options.length, 50, options.seed)


def train(warp: Warp, held: Corpus, sweeps: int, every: int) -> list[tuple[int, float]]:
    """Sweeps, with a line of each. The perplexities: (sweep, perplexity)."""
    curve = [(0, warp.perplexity(held))]
    print("sweep   milliseconds   million tokens/s   perplexity")
    for sweep in steps("sweeps", sweeps):
        begin = perf_counter()
        warp.sweep()
        took, told = perf_counter() - begin, ""
        if sweep % every == 0 or sweep == sweeps:
            curve.append((sweep, warp.perplexity(held)))
            told = f"{curve[-1][1]:11.2f}"
        print(f"{sweep:5d}  {1e3 * took:13.2f}  {1e-6 * len(warp.corpus) / took:17.1f}  {told}".rstrip(), flush=True)
    return curve


def run(options: argparse.Namespace) -> tuple[Warp, list[tuple[int, float]]]:
    corpus, held = hold_out(corpus_of(options), options.seed)
    if not len(held):
        raise ValueError("no document has ten tokens: none can be held out")
    level = unigram(corpus, held, options.beta)
    print(f"{corpus.about}: {corpus.documents:,} documents, {corpus.vocabulary:,} words, {len(corpus):,} tokens")
    print(f"{len(held):,} more tokens are held out; the perplexity of one topic is {level:.2f}")
    warp = Warp(corpus, options.topics, options.alpha, options.beta, options.proposals, options.seed)
    with orion.session(options.backend, options.workers):
        for name, rows, others in (("documents", warp.documents, warp.words), ("words", warp.words, warp.documents)):
            print(f"\nby {name}: {resample.plan(*warp.arguments(rows, others))}")
        print()
        curve = train(warp, held, options.sweeps, options.every or -(-options.sweeps // 10))
        if options.picture is not None:
            print(f"\nwritten to {options.picture}: {draw_model(options.picture, warp, curve, level)}")
    return warp, curve


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"lda.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
