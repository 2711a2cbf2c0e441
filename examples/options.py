"""The command lines of the examples: what a value must be. argparse says it with the name of the option, and exits
before anything is computed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path

from live import show_lines_at_once

BACKENDS = ("threads", "ray", "serial")


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of a whole number from `least` on, or up to `most`."""
    wanted = f"a whole number from {least} " + ("on" if most is None else f"to {most}")

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}") from None
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
        return value

    return read


def _number(wanted: str, holds: Callable[[float], bool]) -> Callable[[str], float]:
    """The type of a finite number of which something holds."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}") from None
        if not isfinite(value) or not holds(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
        return value

    return read


positive = _number("a finite number above 0", lambda x: x > 0)
non_negative = _number("a finite number from 0 on", lambda x: x >= 0)


def between(low: float, high: float) -> Callable[[str], float]:
    """The type of a number above `low` and below `high`."""
    return _number(f"a number between {low:g} and {high:g}", lambda x: low < x < high)


def picture_file(*endings: str) -> Callable[[str], Path]:
    """The type of a file to write a picture to, in a folder that is there."""

    def read(text: str) -> Path:
        path = Path(text)
        if path.suffix not in endings:
            raise argparse.ArgumentTypeError(f"{text!r} must be a file {' or '.join(endings)}")
        if not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r} for {text!r}")
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"{text!r} is a folder")
        return path

    return read


def add_edges_options(parser: argparse.ArgumentParser) -> None:
    """The options about a file of edges, for `graph_data.read_edges`."""
    parser.add_argument(
        "--edges",
        type=Path,
        metavar="FILE",
        help="a file of edges, the numbers of two vertices a line, in both directions (default: a graph is generated)",
    )
    parser.add_argument(
        "--skip",
        type=whole(0),
        default=0,
        metavar="LINES",
        help="lines at the head of the file that are no edges: one of counts, `4039 88234`, would be read as an edge "
        "(default: %(default)s)",
    )


def add_running_options(parser: argparse.ArgumentParser, last_seed: int | None = None) -> None:
    """The options that all examples have."""
    parser.add_argument("--backend", choices=BACKENDS, default="threads", help="(default: %(default)s)")
    parser.add_argument("--workers", type=whole(1), help="(default: one per core)")
    parser.add_argument("--seed", type=whole(0, last_seed), default=0, help="of everything random (default: 0)")


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; exits with code 2 where the backend cannot have so many workers."""
    options = parser.parse_args(arguments)
    show_lines_at_once()
    if options.backend == "serial" and options.workers not in (None, 1):
        parser.error(f"--workers {options.workers}: the serial backend has one worker")
    return options
