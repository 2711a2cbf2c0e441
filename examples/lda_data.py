"""Corpora for `lda.py`: tokens of documents, read from a file or drawn from a model; some of them are held out."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Corpus:
    """The document and the word of every token, sorted by document."""

    docs: Integers
    words: Integers
    documents: int
    vocabulary: int
    about: str

    def __len__(self) -> int:
        return len(self.docs)

    def of(self, which: NDArray[np.bool_]) -> Corpus:
        """Some of the tokens."""
        return Corpus(self.docs[which], self.words[which], self.documents, self.vocabulary, self.about)


def read_docword(path: Path) -> Corpus:
    """The corpus in a file of bags of words as UCI has them: the numbers of documents, of words and of lines that
    follow, then lines `document word count`, numbered from 1. ValueError where a line is none."""
    opened: Any = gzip.open(path, "rt") if path.suffix == ".gz" else open(path, encoding="utf-8")  # noqa: SIM115
    try:
        with opened as file:
            lines = file.read().splitlines()
    except (gzip.BadGzipFile, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    head = [_numbers(path, lines, number, 1)[0] for number in (1, 2, 3)]
    documents, vocabulary, pairs = head
    while len(lines) > 3 and not lines[-1].strip():
        lines.pop()
    if len(lines) - 3 != pairs:
        raise ValueError(f"{path}: line 3 says that {pairs:,} lines follow, there are {len(lines) - 3:,}")
    found = _table(path, lines)
    most = np.array([documents, vocabulary, 2**31])
    wrong = ((found < 1) | (found > most)).any(axis=1)
    if wrong.any():
        number = 4 + int(wrong.argmax())
        what = f"documents are numbered from 1 to {documents:,}, words to {vocabulary:,}, and counts are 1 at least"
        raise ValueError(f"{path}: line {number} is {lines[number - 1].strip()!r}, but {what}")
    found = found[np.argsort(found[:, 0], kind="stable")]
    docs, words = np.repeat(found[:, 0] - 1, found[:, 2]), np.repeat(found[:, 1] - 1, found[:, 2])
    if not len(docs):
        raise ValueError(f"{path}: there is no word in it")
    return Corpus(docs, words, documents, vocabulary, path.name)


def _table(path: Path, lines: list[str]) -> Integers:
    """The three numbers of each line from the fourth on."""
    try:
        flat = np.array(" ".join(lines[3:]).split(), np.int64)
        if all(line.count(" ") == 2 for line in lines[3:]) and len(flat) == 3 * (len(lines) - 3):
            return flat.reshape(-1, 3)
    except (ValueError, OverflowError):
        pass  # the line is found below
    return np.array([_numbers(path, lines, number, 3) for number in range(4, len(lines) + 1)], np.int64).reshape(-1, 3)


def _numbers(path: Path, lines: list[str], number: int, count: int) -> list[int]:
    """The numbers of a line, which are so many."""
    text = lines[number - 1] if number <= len(lines) else ""
    parts = text.split()
    if len(parts) != count or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        wanted = "a number" if count == 1 else "`document word count`, three numbers"
        raise ValueError(f"{path}: line {number} must be {wanted}: {text.strip()!r}")
    return [int(part) for part in parts]


def generated(documents: int, vocabulary: int, length: int, topics: int, seed: int) -> Corpus:
    """A corpus drawn from the model itself: topics are distributions of words, documents of topics (Blei, Ng, Jordan:
    *Latent Dirichlet allocation*, JMLR 2003). `length` is the mean number of words of a document."""
    rng = np.random.default_rng(seed)
    often = 1.0 / (10.0 + np.arange(vocabulary))  # a few words are frequent, most are not
    of_topics = np.cumsum(rng.dirichlet(often * (50.0 / often.sum()), topics), axis=1)
    docs = np.repeat(np.arange(documents), rng.poisson(length, documents))
    chosen = np.empty(len(docs), np.int64)
    of_documents = np.cumsum(rng.dirichlet(np.full(topics, 0.1), documents), axis=1)
    ends = np.searchsorted(docs, np.arange(documents + 1))
    for d in range(documents):
        own = slice(ends[d], ends[d + 1])
        chosen[own] = np.searchsorted(of_documents[d], rng.random(ends[d + 1] - ends[d]))
    words, below = np.empty(len(docs), np.int64), rng.random(len(docs))
    for k, sums in enumerate(of_topics):
        words[chosen == k] = np.searchsorted(sums, below[chosen == k])
    words = np.minimum(words, vocabulary - 1)  # the last sum may be a little less than 1
    return Corpus(docs, words, documents, vocabulary, f"generated from {topics} topics")


def hold_out(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus]:
    """The corpus without a tenth of the tokens of each document (rounded down), chosen at random, and these."""
    order = np.lexsort((np.random.default_rng(seed).random(len(corpus)), corpus.docs))
    lengths = np.bincount(corpus.docs, minlength=corpus.documents)
    place = np.arange(len(corpus)) - (np.cumsum(lengths) - lengths)[corpus.docs]
    held = np.zeros(len(corpus), np.bool_)
    held[order] = place < lengths[corpus.docs] // 10
    return corpus.of(~held), corpus.of(held)
