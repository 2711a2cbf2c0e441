"""Vectors of words from a text, by skip-grams with negative sampling: vectors that are a little late.

    python examples/word2vec.py                                  # a generated text
    python examples/word2vec.py --width 64 --epochs 10 --picture loss.svg
    python examples/word2vec.py --backend ray --workers 2

Each word of a sentence has a vector that is to tell the words near it from others, which are drawn by how often they
occur, to the power of ¾, with `orion.random`. (Mikolov, Sutskever, Chen, Corrado, Dean: *Distributed representations
of words and phrases and their compositionality*, NIPS 2013.) Any two sentences may have a word in common, or draw it:
in order, none could be gone through beside another. Both sets of vectors have an `orion.buffer`: each worker collects
its steps, and applies them so many words later at most.

The text has a structure that is known: a sentence is about a subject, and has words of this subject between words that
all subjects share. How many of the nearest words of a word are of its own subject says how good the vectors are; this
and the loss stand next to those of the serial run.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from live import steps, waiting
from numpy.typing import NDArray
from options import add_running_options, parsed, picture_file, positive, whole
from pictures import save_curves

import orion

NEAREST = 10
"""So many neighbours of a word are looked at."""

PLACES = 2**16
"""A word has as many of these places as it is likely to be drawn."""

# ------------------------------------------------------------------------------------------------ the loops


@orion.parallel_for
def skip_grams(text, places, vectors, contexts, vectors_late, contexts_late, window, negatives, step, seed):
    """A step for each pair of words at most `window` apart in one of the sentences `text[s]`: a target that is the
    other word, and others that are drawn from `places`."""
    for s in range(text.shape[0]):
        for t in range(text.shape[1]):
            word = text[s, t]
            for near in range(max(t - window, 0), min(t + window + 1, text.shape[1])):
                if near != t:
                    for n in range(negatives + 1):
                        target = text[s, near]
                        label = 1.0
                        if n > 0:
                            pair = t * text.shape[1] + near
                            target = places[orion.random.integers(0, PLACES, seed, s, pair, n)]
                            label = 0.0
                        x = 0.0
                        for k in range(vectors.shape[1]):
                            x += vectors[word, k] * contexts[target, k]
                        g = step * (label - 1.0 / (1.0 + np.exp(-x)))
                        for k in range(vectors.shape[1]):
                            v = vectors[word, k]
                            vectors_late[word, k] += g * contexts[target, k]
                            contexts_late[target, k] += g * v


@orion.parallel_for
def loss(text, places, vectors, contexts, window, negatives, seed):
    """The mean over pairs of -log σ(x) for the word that is near, and of -log σ(-x) for those that are drawn."""
    total = 0.0
    pairs = 0
    for s in range(text.shape[0]):
        for t in range(text.shape[1]):
            for near in range(max(t - window, 0), min(t + window + 1, text.shape[1])):
                if near != t:
                    pairs += 1
                    for n in range(negatives + 1):
                        target = text[s, near]
                        if n > 0:
                            pair = t * text.shape[1] + near
                            target = places[orion.random.integers(0, PLACES, seed, s, pair, n)]
                        x = 0.0
                        for k in range(vectors.shape[1]):
                            x += vectors[text[s, t], k] * contexts[target, k]
                        if n == 0:
                            x = -x
                        total += max(x, 0.0) + np.log1p(np.exp(-abs(x)))
    return total / max(pairs, 1)


# ------------------------------------------------------------------------------------------------ the text


@dataclass(frozen=True)
class Text:
    """Sentences, a row each, of words by their numbers. Subject c has the words from `c * members` on, `members` of
    them; those after the words of all subjects are shared."""

    words: NDArray[np.int32]
    subjects: int
    members: int
    shared: int

    @property
    def vocabulary(self) -> int:
        return self.subjects * self.members + self.shared

    def places(self) -> NDArray[np.int32]:
        """What is drawn from: each word in proportion to the ¾th power of how often it occurs."""
        often = np.bincount(self.words.ravel(), minlength=self.vocabulary) ** 0.75
        ends = np.cumsum(often) / often.sum()
        return np.searchsorted(ends, (np.arange(PLACES) + 0.5) / PLACES).astype(np.int32)

    def purity(self, vectors: NDArray[Any]) -> float:
        """The share, of the `NEAREST` words to each word of a subject by the angle between their vectors, that are of
        the same subject."""
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        count = self.subjects * self.members
        angles = unit[:count] @ unit.T
        np.fill_diagonal(angles, -np.inf)
        found = np.argpartition(-angles, NEAREST, axis=1)[:, :NEAREST]
        return float((found // self.members == np.arange(count)[:, None] // self.members).mean())


def generated(sentences: int, length: int, subjects: int, members: int, seed: int) -> Text:
    """A text in which a quarter of all words are of the subject of their sentence. A few words are frequent, most are
    not."""
    rng = np.random.default_rng(seed)
    shared = subjects * members // 4
    about = rng.integers(0, subjects, sentences)[:, None]

    def drawn(count: int) -> NDArray[np.int64]:
        often = 1.0 / (3.0 + np.arange(count))
        return rng.choice(count, (sentences, length), p=often / often.sum())

    own, common = about * members + drawn(members), subjects * members + drawn(shared)
    words = np.where(rng.random((sentences, length)) < 0.25, own, common).astype(np.int32)
    return Text(orion.freeze(words), subjects, members, shared)


# ------------------------------------------------------------------------------------------------ the training


class Training:
    """The vectors of words, random at first, and those of contexts, zero at first."""

    def __init__(self, text: Text, options: argparse.Namespace, max_delay: int) -> None:
        self.text, self.options, self.epochs = text, options, 0
        self.places = orion.freeze(text.places())
        shape = text.vocabulary, options.width
        rng = np.random.default_rng((options.seed, 1))
        self.vectors = (rng.uniform(-0.5, 0.5, shape) / options.width).astype(np.float32)
        self.contexts = np.zeros(shape, np.float32)
        self.late = tuple(orion.buffer(one, max_delay=max_delay) for one in (self.vectors, self.contexts))

    def arguments(self) -> tuple[Any, ...]:
        """Of the next epoch; steps get smaller, and are a tenth of the first ones at the end."""
        given = self.options
        step = given.step * (1.0 - 0.9 * self.epochs / max(given.epochs - 1, 1))
        arrays = self.text.words, self.places, self.vectors, self.contexts, *self.late
        return *arrays, given.window, given.negatives, step, given.seed * 2**32 + self.epochs

    def train(self) -> float:
        """Go through all sentences; returns the seconds it took."""
        start = perf_counter()
        skip_grams(*self.arguments())
        self.epochs += 1
        return perf_counter() - start

    def loss(self) -> float:
        """With other words drawn than in training, the same ones each time."""
        given, arrays = self.options, (self.text.words, self.places, self.vectors, self.contexts)
        return float(loss(*arrays, given.window, given.negatives, given.seed * 2**32 - 1))


@dataclass(frozen=True)
class Outcome:
    """The losses before the first epoch and after each, and how many of the nearest words were of the same subject
    then; the median seconds of an epoch; the most words by which a step of another worker was late; and the vectors."""

    losses: list[float]
    purities: list[float]
    seconds: float
    latest: int
    training: Training


def trained(name: str, text: Text, options: argparse.Namespace, max_delay: int) -> Outcome:
    with waiting(f"{name}: planning and compiling"):
        Training(text, options, max_delay).train()  # its vectors are thrown away
    training = Training(text, options, max_delay)
    losses, purities, seconds, latest = [training.loss()], [text.purity(training.vectors)], [], 0
    for _ in steps(f"{name}: epochs", options.epochs):
        seconds.append(training.train())
        latest = max([latest, *(one.latest for one in skip_grams.last_run.late)])
        losses.append(training.loss())
        purities.append(text.purity(training.vectors))
    return Outcome(losses, purities, median(seconds), latest, training)


# ------------------------------------------------------------------------------------------------ the program


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Skip-grams with negative sampling, with vectors that are late.")
    parser.add_argument("--sentences", type=whole(1), default=10_000, help="(default: %(default)s)")
    parser.add_argument("--length", type=whole(2), default=12, help="words of a sentence (default: %(default)s)")
    parser.add_argument("--subjects", type=whole(1), default=20, help="of the text (default: %(default)s)")
    parser.add_argument(
        "--members", type=whole(NEAREST + 1), default=40, help="words of a subject (default: %(default)s)"
    )
    parser.add_argument("--width", type=whole(1), default=32, help="length of a vector (default: %(default)s)")
    parser.add_argument("--window", type=whole(1), default=4, help="words to each side (default: %(default)s)")
    parser.add_argument("--negatives", type=whole(1), default=5, help="words drawn for a pair (default: %(default)s)")
    parser.add_argument("--epochs", type=whole(1), default=5, help="times through the text (default: %(default)s)")
    parser.add_argument("--step", type=positive, default=0.05, help="the first one (default: %(default)s)")
    parser.add_argument(
        "--max-delay",
        type=whole(1),
        default=4000,
        metavar="WORDS",
        help="that steps of other workers may be late (default: %(default)s)",
    )
    parser.add_argument("--picture", type=picture_file(".svg"), metavar="FILE", help=".svg: the losses by epochs")
    add_running_options(parser, last_seed=2**31 - 1)
    return parsed(parser, arguments)


def show(found: dict[str, Outcome]) -> None:
    """The losses of both runs side by side, how good their vectors are, and what an epoch took."""
    print(f"\n      {'mean loss of a pair':>22}{'nearest':>24}")
    print("epoch " + 2 * ("  " + "".join(f"{name:>10}" for name in found)))
    for number in range(len(next(iter(found.values())).losses)):
        losses, near = ([getattr(one, what)[number] for one in found.values()] for what in ("losses", "purities"))
        shown = ("".join(f"{value:10.4f}" for value in values) for values in (losses, near))
        print(f"{number:5d}   " + "  ".join(shown))
    print("ms      " + "".join(f"{1e3 * one.seconds:10.2f}" for one in found.values()))
    print("late    " + "".join(f"{one.latest:10,}" for one in found.values()))
    print(
        f"nearest: how many of the {NEAREST} nearest words are of the same subject; ms: the median of epochs; late: the"
    )
    print("most words of the text by which a step of another worker was late")


def run(options: argparse.Namespace) -> dict[str, Outcome]:
    text = generated(options.sentences, options.length, options.subjects, options.members, options.seed)
    print(f"{options.sentences:,} sentences of {options.length} words, {text.vocabulary:,} different ones")
    chance = (text.members - 1) / (text.vocabulary - 1)
    print(f"{text.subjects:,} subjects of {text.members:,} words: by chance {chance:.4f} are of the same one")
    found = {}
    with orion.session("serial", 1), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)  # it is to be so
        found["serial"] = trained("serial", text, options, 0)
    with orion.session(options.backend, options.workers):
        print(f"\n{skip_grams.plan(*Training(text, options, options.max_delay).arguments())}", flush=True)
        found["late"] = trained("late", text, options, options.max_delay)
    show(found)
    if options.picture is not None:
        curves = {name: [*enumerate(one.losses)] for name, one in found.items()}
        save_curves(options.picture, curves, ("epochs", "mean loss of a pair"))
        print(f"\n{options.picture}: the losses by epochs")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"word2vec.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
