"""The command line of the matrix factorization example."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from options import BACKENDS, between, non_negative, parsed, positive, whole
from ratings_data import SHAPES

DESCRIPTION = "Factorize a ratings matrix by stochastic gradient descent, with the loop of a textbook."
OPTIMIZERS = ("sgd", "adagrad")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; exits with code 2 and a message where they make no sense."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    _add_data_options(parser.add_argument_group("ratings"))
    _add_training_options(parser.add_argument_group("training"))
    _add_running_options(parser.add_argument_group("running"))
    options = parsed(parser, arguments)
    if options.ratings is None and (options.columns or options.sep):
        parser.error("--columns and --sep are about a file: give it with --ratings")
    if options.columns and len(set(options.columns)) < 3:
        parser.error(f"--columns {' '.join(options.columns)}: three different columns are needed")
    if options.ratings is not None and options.size:
        parser.error("--size is about generated ratings: leave out --ratings")
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
        type=_column,
        metavar=("USER", "ITEM", "RATING"),
        help="the columns of the file, by name or counted from 1 (default: guessed from the header, else the "
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
    group.add_argument(
        "--test",
        type=between(0, 1),
        default=0.1,
        metavar="SHARE",
        help="of ratings, to test with (default: %(default)s)",
    )


def _add_training_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd", help="(default: %(default)s)")
    group.add_argument("--rank", type=whole(1), default=32, help="length of a row of W and H (default: 32)")
    group.add_argument("--epochs", type=whole(1), default=10, help="times through the ratings (default: 10)")
    group.add_argument("--step", type=positive, help="step size (default: set by the optimizer and the ratings' mean)")
    group.add_argument(
        "--reg", type=non_negative, default=0.05, help="weight of the penalty on W and H (default: 0.05)"
    )
    group.add_argument("--seed", type=whole(0), default=0, help="of everything random (default: 0)")


def _add_running_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--backend", choices=BACKENDS, help="where the training that is shown runs (default: threads)")
    group.add_argument("--workers", type=whole(1), help="number of workers (default: one per core)")
    group.add_argument(
        "--no-compare",
        dest="compare",
        action="store_false",
        help="time only the chosen backend at the end, not all of them",
    )


def _column(text: str) -> str:
    if text.isdecimal() and int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither the name of a column nor its number, from 1 on")
    return text


def _separator(text: str) -> str:
    return text.replace("\\t", "\t")
