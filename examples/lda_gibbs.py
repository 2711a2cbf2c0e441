"""Topic models by sparse collapsed Gibbs sampling: documents and words exactly, the totals of topics a little late.

    python examples/lda_gibbs.py                                            # a corpus drawn from a model of 50 topics
    python examples/lda_gibbs.py --corpus docword.kos.txt.gz --sweeps 100   # bags of words as UCI has them
    python examples/lda_gibbs.py --topics 20 --backend ray --workers 2 --picture curve.svg

A token of word w in document d takes topic k with a chance in proportion to

    (of d in k + alpha) · (of w in k + beta) · share of k,   share = 1 / (tokens in k + words · beta)

by counts without that token. Two tokens conflict where they have the document or the word in common, and, as every
token changes two totals, always. Blocks of documents and of words go from worker to worker, so that their counts are
exact. The totals have an `orion.buffer`: each worker collects its changes, and applies them so many tokens later at
most. That is also where shares are computed anew: they are a helper of the buffer.

The chance is cut into three parts, so that a token costs as much as its word has topics, whatever the number of all:

    of w in k · (of d in k + alpha) · share of k      the topics of the word
    of d in k · beta · share of k                     the topics of the document
    alpha · beta · share of k                         all topics, which is seldom drawn

The sum of the second part is kept for each document, and computed anew every `RENEWED` tokens of it, as shares change
meanwhile. (Yao, Mimno, McCallum: *Efficient methods for topic model inference on streaming document collections*, KDD
2009.)

`lda.py` has another sampler for the same model, which needs no lists of topics, and more sweeps.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from lda import log_likelihood, unigram
from lda_data import Corpus, generated, hold_out, read_docword
from live import steps, waiting
from numpy.typing import NDArray
from options import add_running_options, parsed, picture_file, positive, whole
from pictures import save_curves

import orion

RENEWED = 16
"""After so many tokens of a document its sum and its random key are made anew."""

# ------------------------------------------------------------------------------------------------ the loops


def scrambled(x: int) -> int:
    """A number below 2³² that looks random, of another one. No product in it has more than 63 bits."""
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & 0xFFFFFFFF
    return ((x ^ (x >> 15)) * 0x735A2D97) & 0xFFFFFFFF


def sum_of_shares(d, of_docs, docs_have, docs_used, share):
    """The sum of what topics have of a document, times their shares."""
    total = 0.0
    for j in range(docs_used[d]):
        total += of_docs[d, docs_have[d, j]] * share[docs_have[d, j]]
    return total


def elsewhere(u, rest, d, of_docs, docs_have, docs_used, share):
    """The topic for u in the second or third part of the chances, which begin at 0; `rest` is the length of the third
    one, over beta."""
    new = 0
    for j in range(docs_used[d]):
        new = docs_have[d, j]
        u -= of_docs[d, new] * share[new]
        if u < 0.0:
            break
    if u >= 0.0:
        u = min(u / rest, 1.0) * share.sum()
        for k in range(len(share)):
            new = k
            u -= share[k]
            if u < 0.0:
                break
    return new


def relist(r, z, new, counts, have, used):
    """Row r has lost a token of topic z, and is about to get one of `new`, another one: its list of topics."""
    n = used[r]
    if counts[r, z] == 0:
        n -= 1
        place = n
        for i in range(n):
            if have[r, i] == z:
                place = i
        have[r, place] = have[r, n]
    if counts[r, new] == 0:
        have[r, n] = new
        n += 1
    used[r] = n


@orion.parallel_for
def sweep(
    tokens, of_docs, docs_have, docs_used, of_words, words_have, words_used, sums, seen, keys, below, share, totals,
    alpha, beta, smooth, seed,
):  # fmt: skip
    """Draw the topic of each token. Document d has topics `docs_have[d, : docs_used[d]]`, topic k of `of_docs[d, k]`
    tokens; word w likewise. `sums`, `seen` and `keys` are kept for documents, `below` for words. `totals` is a buffer,
    `share` its helper; `smooth` is the third part of the chances as it was before the sweep."""
    for (w, d, m), z in tokens:
        of_words[w, z] -= 1
        of_docs[d, z] -= 1
        if seen[d] % RENEWED == 0:
            sums[d] = beta * sum_of_shares(d, of_docs, docs_have, docs_used, share)
            keys[d] = orion.random.integers(0, 2**32, seed, d, seen[d])
        else:
            sums[d] -= beta * share[z]
        seen[d] += 1
        n = words_used[w]
        own = 0.0
        for i in range(n):
            k = words_have[w, i]
            own += of_words[w, k] * (of_docs[d, k] + alpha) * share[k]
            below[w, i] = own
        drawn = scrambled((keys[d] + seen[d] * 0x9E3779B9) & 0xFFFFFFFF)
        u = 2.0**-32 * drawn * (own + sums[d] + smooth)
        if u < own:
            # To the end: where a loop is left by chance, processors guess wrong.
            at = 0
            for i in range(n):
                at += below[w, i] <= u
            new = words_have[w, min(at, n - 1)]
        else:
            new = elsewhere((u - own) / beta, smooth / beta, d, of_docs, docs_have, docs_used, share)
        if new != z:
            relist(w, z, new, of_words, words_have, words_used)
            relist(d, z, new, of_docs, docs_have, docs_used)
        of_words[w, new] += 1
        of_docs[d, new] += 1
        totals[z] -= 1
        totals[new] += 1
        sums[d] += beta * share[new]
        tokens[w, d, m] = new


@orion.parallel_for
def log_gammas(counts, prior):
    """The sum of log Γ(n + prior) / Γ(prior) over the counts n."""
    total = 0.0
    for r in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            if counts[r, k] > 0:
                total += math.lgamma(counts[r, k] + prior) - math.lgamma(prior)
    return total


# ------------------------------------------------------------------------------------------------ the model


def listed(counts: NDArray[Any], kind: type) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The topics of each row of counts, before others; and how many each row has. There is room for one more than the
    tokens of the longest row can have."""
    room = min(counts.shape[1], int(counts.sum(axis=1).max()) + 1)
    have = np.argsort(counts == 0, axis=1, kind="stable")[:, :room].astype(kind)
    return have, np.count_nonzero(counts, axis=1).astype(np.int32)


class Gibbs:
    """The topics of a corpus, all drawn at random at first, and their counts. Those of words and documents are float32,
    which has all whole numbers up to 2²⁴: what is drawn by is float."""

    def __init__(self, corpus: Corpus, topics: int, alpha: float, beta: float, max_delay: int, seed: int) -> None:
        self.corpus, self.alpha, self.beta, self.seed = corpus, alpha, beta, seed
        self.kind = np.uint8 if topics <= 256 else np.uint16
        drawn = np.random.default_rng(seed).integers(0, topics, len(corpus)).astype(self.kind)
        self.tokens = orion.sparse(keys_of(corpus), drawn)
        words, docs = (np.asarray(keys) for keys in self.tokens.coords[:2])
        self.count(words, docs, np.asarray(self.tokens.values), topics)
        documents, spread = corpus.documents, corpus.vocabulary * beta
        self.sums, self.seen, self.keys = np.zeros(documents), *np.zeros((2, documents), np.int64)
        self.below = np.zeros(self.words_have.shape, np.float32)
        self.share = 1.0 / (self.totals + spread)

        def apply(total, change, share):
            return total + change, 1.0 / (total + change + spread)

        self.late = orion.buffer(self.totals, apply, max_delay, [self.share])
        self.sweeps = 0

    def count(self, words: NDArray[Any], docs: NDArray[Any], drawn: NDArray[Any], topics: int) -> None:
        """Make all counts and lists from the topics of the tokens."""
        of_docs = np.zeros((self.corpus.documents, topics), np.int32)
        of_words = np.zeros((self.corpus.vocabulary, topics), np.int32)
        np.add.at(of_docs, (docs, drawn), 1)
        np.add.at(of_words, (words, drawn), 1)
        self.docs_have, self.docs_used = listed(of_docs, self.kind)
        self.words_have, self.words_used = listed(of_words, self.kind)
        self.of_docs, self.of_words = of_docs.astype(np.float32), of_words.astype(np.float32)
        self.totals = of_words.sum(axis=0).astype(np.float64)
        self.lengths = of_docs.sum(axis=1).astype(np.int64)

    def arguments(self) -> tuple[Any, ...]:
        """Of the next sweep."""
        lists = self.of_docs, self.docs_have, self.docs_used, self.of_words, self.words_have, self.words_used
        kept = self.sums, self.seen, self.keys, self.below, self.share, self.late
        smooth = self.alpha * self.beta * float(self.share.sum())
        return self.tokens, *lists, *kept, self.alpha, self.beta, smooth, self.seed * 2**32 + self.sweeps

    def sweep(self) -> float:
        """Draw the topic of each token once; returns the seconds it took."""
        start = perf_counter()
        self.seen[:] = 0
        sweep(*self.arguments())
        self.sweeps += 1
        return perf_counter() - start

    def likelihood(self) -> float:
        """The logarithm of the chance of all words and topics, over the tokens (Griffiths, Steyvers: *Finding
        scientific topics*, PNAS 2004)."""
        width, vocabulary = len(self.totals), self.corpus.vocabulary
        found = log_gammas(self.of_docs, self.alpha) + log_gammas(self.of_words, self.beta)
        for lengths, prior in ((self.lengths, width * self.alpha), (self.totals, vocabulary * self.beta)):
            found -= sum(math.lgamma(n + prior) - math.lgamma(prior) for n in lengths.tolist())
        return float(found) / len(self.corpus)

    def perplexity(self, held: Corpus) -> float:
        """exp(-mean log ∑ θ φ) of other tokens of the documents."""
        counts = self.of_docs, self.of_words
        sums = log_likelihood(held.docs, held.words, self.lengths, *counts, self.share, self.alpha, self.beta)
        return float(np.exp(-sums / len(held)))


def keys_of(corpus: Corpus) -> tuple[NDArray[np.int64], ...]:
    """A key for each token, by words: the word, the document, and which one of the same two it is."""
    pairs = np.sort(corpus.words * corpus.documents + corpus.docs)
    places = np.arange(len(pairs))
    begins = np.flatnonzero(np.diff(pairs, prepend=-1))
    which = places - np.repeat(begins, np.diff(begins, append=len(pairs)))
    return pairs // corpus.documents, pairs % corpus.documents, which


# ------------------------------------------------------------------------------------------------ the program


@dataclass(frozen=True)
class Outcome:
    """Log-likelihoods of a token by (sweep, value); the perplexity of what was held out; the median seconds of a sweep;
    the most tokens by which a change of another worker was late; and the model."""

    curve: list[tuple[int, float]]
    perplexity: float
    seconds: float
    latest: int
    model: Gibbs


def train(name: str, model: Gibbs, held: Corpus, options: argparse.Namespace) -> Outcome:
    every = options.every or -(-options.sweeps // 10)
    curve, seconds, latest = [(0, model.likelihood())], [], 0
    for number in steps(f"{name}: sweeps", options.sweeps):
        seconds.append(model.sweep())
        latest = max([latest, *(one.latest for one in sweep.last_run.late)])
        if number % every == 0 or number == options.sweeps:
            curve.append((number, model.likelihood()))
    return Outcome(curve, model.perplexity(held), median(seconds), latest, model)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Topic models by sparse collapsed Gibbs sampling.")
    parser.add_argument("--corpus", type=Path, metavar="FILE", help="bags of words (default: a corpus is generated)")
    parser.add_argument(
        "--documents", type=whole(1), default=4000, help="of the generated corpus (default: %(default)s)"
    )
    parser.add_argument("--vocabulary", type=whole(1), default=6000, help="of a generated one (default: %(default)s)")
    parser.add_argument("--length", type=whole(1), default=120, help="of a generated document (default: %(default)s)")
    parser.add_argument("--topics", type=whole(1, 2**16), default=100, help="(default: %(default)s)")
    parser.add_argument("--sweeps", type=whole(1), default=60, help="(default: %(default)s)")
    parser.add_argument("--alpha", type=positive, default=0.1, help="the prior of documents (default: %(default)s)")
    parser.add_argument("--beta", type=positive, default=0.01, help="the prior of topics (default: %(default)s)")
    parser.add_argument("--every", type=whole(1), help="sweeps between log-likelihoods (default: a tenth of them all)")
    parser.add_argument(
        "--max-delay",
        type=whole(1),
        default=10_000,
        metavar="TOKENS",
        help="that changes of totals by other workers may be late (default: %(default)s)",
    )
    parser.add_argument("--picture", type=picture_file(".svg"), metavar="FILE", help=".svg: the log-likelihoods")
    add_running_options(parser, last_seed=2**31 - 1)
    return parsed(parser, arguments)


def show(found: dict[str, Outcome], tokens: int) -> None:
    """The log-likelihoods of both runs side by side, and what sweeps took."""
    print("\nlog-likelihood of a token\nsweep       " + "".join(f"{name:>14}" for name in found))
    for rows in zip(*(one.curve for one in found.values()), strict=True):
        print(f"{rows[0][0]:5d}       " + "".join(f"{value:14.4f}" for _, value in rows))
    print("perplexity  " + "".join(f"{one.perplexity:14.2f}" for one in found.values()))
    print("ms          " + "".join(f"{1e3 * one.seconds:14.2f}" for one in found.values()))
    print("million/s   " + "".join(f"{1e-6 * tokens / one.seconds:14.1f}" for one in found.values()))
    print("late        " + "".join(f"{one.latest:14,}" for one in found.values()))
    print("perplexity: of what was held out; ms: the median of sweeps; million/s: tokens; late: the most tokens by")
    print("which a change of totals by another worker was late")


def run(options: argparse.Namespace) -> dict[str, Outcome]:
    if options.corpus is not None:
        whole_corpus = read_docword(options.corpus)
    else:
        whole_corpus = generated(options.documents, options.vocabulary, options.length, 50, options.seed)
    corpus, held = hold_out(whole_corpus, options.seed)
    if not len(held):
        raise ValueError("no document has ten tokens: none can be held out")
    print(f"{corpus.about}: {corpus.documents:,} documents, {corpus.vocabulary:,} words, {len(corpus):,} tokens")
    level = unigram(corpus, held, options.beta)
    print(f"{len(held):,} more tokens are held out; the perplexity of one topic is {level:.2f}")
    found = {}
    for name, where, delay in (
        ("serial", ("serial", 1), 0),
        ("late", (options.backend, options.workers), options.max_delay),
    ):
        with orion.session(*where), warnings.catch_warnings():
            if name == "serial":  # it is to be so
                warnings.simplefilter("ignore", orion.SerialLoopWarning)
            given = corpus, options.topics, options.alpha, options.beta, delay, options.seed
            with waiting(f"{name}: planning and compiling"):
                Gibbs(*given).sweep()  # its topics are thrown away
            model = Gibbs(*given)
            if name == "late":
                print(f"\n{sweep.plan(*model.arguments())}", flush=True)
            found[name] = train(name, model, held, options)
    show(found, len(corpus))
    if options.picture is not None:
        save_curves(
            options.picture, {name: one.curve for name, one in found.items()}, ("sweeps", "log-likelihood of a token")
        )
        print(f"\n{options.picture}: the log-likelihoods by sweeps")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"lda_gibbs.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
