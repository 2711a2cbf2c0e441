"""The command line of the matrix factorization example."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path

from ratings_data import SHAPES

DESCRIPTION = "Factorize a ratings matrix by stochastic gradient descent, with the loop of a textbook."
BACKENDS = ("threads", "ray", "serial")
OPTIMIZERS = ("sgd", "adagrad")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; exits with code 2 and a message where they make no sense."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    _add_data_options(parser.add_argument_group("ratings"))
    _add_training_options(parser.add_argument_group("training"))
    _add_running_options(parser.add_argument_group("running"))
    options = parser.parse_args(arguments)
    if options.ratings is None and (options.columns or options.sep):
        parser.error("--columns and --sep are about a file: give it with --ratings")
    if options.ratings is not None and options.size:
        parser.error("--size is about generated ratings: leave out --ratings")
    if options.backend == "serial" and options.workers not in (None, 1):
        parser.error(f"the serial backend has one worker, not {options.workers}")
    return options


def _add_data_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--ratings",
        type=Path,
        metavar="FILE",
        help="a file with a line per rating: .dat (MovieLens), .csv or .tsv, also packed (.gz); without it, "
        "ratings are generated",
    )
    group.add_argument(
        "--columns",
        nargs=3,
        metavar=("USER", "ITEM", "RATING"),
        help="the columns of the file, by name or counted from 0 (default: guessed from the header, else the "
        "first three)",
    )
    group.add_argument(
        "--sep",
        type=_separator,
        help=r"what stands between columns, \t for a tab (default: told by the file's name)",
    )
    group.add_argument(
        "--size", choices=tuple(SHAPES), help="shape of the generated ratings: that of MovieLens (default: 1m)"
    )
    group.add_argument("--test", type=_share, default=0.1, metavar="SHARE", help="share of ratings kept for the test")


def _add_training_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd", help="(default: %(default)s)")
    group.add_argument("--rank", type=_count, default=32, help="length of a row of W and H (default: 32)")
    group.add_argument("--epochs", type=_count, default=10, help="times through the ratings (default: 10)")
    group.add_argument("--step", type=_positive, help="step size (default: set by the optimizer and the ratings' mean)")
    group.add_argument(
        "--reg", type=_non_negative, default=0.05, help="weight of the penalty on W and H (default: 0.05)"
    )
    group.add_argument("--seed", type=_seed, default=0, help="of everything random (default: 0)")


def _add_running_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--backend", choices=BACKENDS, help="where the training that is shown runs (default: threads)")
    group.add_argument("--workers", type=_count, help="number of workers (default: one per core)")
    group.add_argument(
        "--no-compare",
        dest="compare",
        action="store_false",
        help="time only the chosen backend at the end, not all of them",
    )


def _number(text: str, kind: Callable[[str], float], wanted: str) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value


def _checked(text: str, kind: Callable[[str], float], wanted: str, holds: Callable[[float], bool]) -> float:
    value = _number(text, kind, wanted)
    if not holds(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value


def _count(text: str) -> int:
    return int(_checked(text, int, "a whole number from 1 on", lambda n: n >= 1))


def _seed(text: str) -> int:
    return int(_checked(text, int, "a whole number from 0 on", lambda n: n >= 0))


def _positive(text: str) -> float:
    return _checked(text, float, "a number above 0", lambda x: x > 0)


def _non_negative(text: str) -> float:
    return _checked(text, float, "a number from 0 on", lambda x: x >= 0)


def _share(text: str) -> float:
    return _checked(text, float, "a share between 0 and 1", lambda x: 0 < x < 1)


def _separator(text: str) -> str:
    return text.replace("\\t", "\t")
