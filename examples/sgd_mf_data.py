"""Ratings for the matrix factorization example: from a file or generated, split into train and test."""

from __future__ import annotations

import csv
import io
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from ratings_data import Ratings, generate, split

import orion

Column = str | int

FIRST_THREE: tuple[Column, ...] = (0, 1, 2)
SEPARATORS = ("::", "\t", ",", ";")
COUNTED = re.compile(r"no column at position (\d+): its lines have (\d+), counted from 0")
SHAPED = re.compile(r", or say shape=.* if that is meant")
USER_WORDS = ("user", "customer", "reviewer")
ITEM_WORDS = ("item", "movie", "anime", "book", "product", "artist", "song")
RATING_WORDS = ("rating", "score", "stars", "feedback")


@dataclass(frozen=True)
class Data:
    """Ratings to train on and to test with, as sparse arrays of one shape, with the mean and the standard
    deviation of the former, and where they come from.
    """

    train: orion.SparseArray
    test: orion.SparseArray
    mean: float
    deviation: float
    source: str


def load(options: Namespace) -> Data:
    """The ratings that the options ask for. `OrionError` where a file cannot be read, or holds too little."""
    if options.ratings is None:
        size = options.size or "1m"
        ratings, source = generate(size, options.seed), f"generated, MovieLens-{size.upper()} shape"
    else:
        columns = wanted_columns(options.columns) or guess_columns(options.ratings, options.sep)
        try:
            ratings = read(options.ratings, columns, options.sep)
        except orion.OrionError as error:
            raise orion.DataFormatError(as_options(str(error))) from None
        shown = (str(column + 1) if isinstance(column, int) else column for column in columns)
        source = f"{options.ratings.name}, columns {', '.join(shown)}"
    train, test = split(ratings, options.test, options.seed)
    if not len(train) or not len(test):
        raise orion.DataFormatError(
            f"{source}: of {len(ratings)} ratings, a share of {options.test} for the test leaves "
            f"{len(train)} to train on and {len(test)} to test with"
        )
    stars = train.stars.astype(np.float64)
    return Data(as_sparse(train), as_sparse(test), float(stars.mean()), float(stars.std()), source)


def as_options(text: str) -> str:
    """An error of `orion.read_csv` in the words of the command line, which has options for some of its arguments, and
    counts columns from 1."""
    text = text.replace("say sep=','", "say --sep ','").replace("say sep=", "say --sep")
    text = SHAPED.sub("", text)
    return COUNTED.sub(lambda at: f"no column {int(at[1]) + 1}, counted from 1: its lines have {at[2]}", text)


def as_sparse(ratings: Ratings) -> orion.SparseArray:
    """Ratings as the sparse array that the loops go over."""
    return orion.sparse((ratings.users, ratings.items), ratings.stars, shape=ratings.shape)


def read(path: Path, columns: Sequence[Column], sep: str | None = None) -> Ratings:
    """The ratings in a file; users and items are numbered from 0 in the order of their ids.

    Ids may be far apart, so that rows of W for every possible id would not fit in memory.
    """
    *keys, value = columns
    elements = orion.read_csv(path, keys=keys, values=value, sep=sep)
    (users, user_count), (items, item_count) = map(_renumbered, elements.coords)
    return Ratings(users, items, np.asarray(elements.values), (user_count, item_count))


def _renumbered(ids: NDArray[np.integer]) -> tuple[NDArray[np.int32], int]:
    present, numbers = np.unique(ids, return_inverse=True)
    return numbers.astype(np.int32), len(present)


def wanted_columns(given: Sequence[str] | None) -> tuple[Column, ...] | None:
    """The columns of the command line, where digits are a number counted from 1, as positions counted from 0."""
    return None if given is None else tuple(int(c) - 1 if c.isdecimal() else c for c in given)


def guess_columns(path: Path, sep: str | None = None) -> tuple[Column, ...]:
    """The names of the columns of users, items and ratings, or the first three columns without such names."""
    names = [name.strip() for name in _first_line(path, sep)]
    user, rating = _named(names, USER_WORDS), _named(names, RATING_WORDS)
    if user is None or rating is None:
        return FIRST_THREE
    others = [name for name in names if name not in (user, rating)]
    item = _named(others, ITEM_WORDS) or next(iter(others), None)
    return FIRST_THREE if item is None else (user, item, rating)


def _named(names: list[str], words: tuple[str, ...]) -> str | None:
    """The first name that holds one of the words, an earlier word first."""
    return next((name for word in words for name in names if word in name.lower()), None)


def _first_line(path: Path, sep: str | None) -> list[str]:
    """The entries of the first line; none if it cannot be read, as reading the ratings then says why."""
    import pyarrow

    try:
        with io.TextIOWrapper(pyarrow.input_stream(str(path)), "utf-8-sig", errors="replace") as lines:
            line = lines.readline().rstrip("\r\n")
    except (OSError, pyarrow.ArrowException):
        return []
    between = sep or next((s for s in SEPARATORS if s in line), SEPARATORS[0])
    return next(csv.reader([line], delimiter=between), []) if len(between) == 1 else line.split(between)
