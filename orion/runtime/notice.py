"""A line for whoever waits for the first call of a loop: that it is being compiled."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import TextIO

PATIENCE = 1.0
"""After how many seconds of compiling it is said."""


@contextmanager
def said_if_slow(name: str) -> Iterator[None]:
    """Say once on the standard error stream what happens to `name`, if what stands inside takes longer than a second
    and somebody watches: at a terminal, or in a notebook."""
    stream = sys.stderr
    if not _is_watched(stream):
        yield
        return
    text = f"orion: the first call of `{name}` compiles it, or loads what is compiled from disk\n"
    timer = Timer(PATIENCE, _say, (stream, text))
    timer.daemon = True
    with suppress(RuntimeError):  # no thread can be started: nothing is said
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _is_watched(stream: TextIO | None) -> bool:
    if stream is None:
        return False
    with suppress(Exception):  # a stream of somebody else's making
        return stream.isatty() or type(stream).__module__.startswith("ipykernel.")
    return False


def _say(stream: TextIO, text: str) -> None:
    with suppress(Exception):  # closed meanwhile: nothing to say, and nobody to say it to
        stream.write(text)
        stream.flush()
