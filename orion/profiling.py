"""`orion.profile`: where the time of calls goes, and what is in the way."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from time import perf_counter_ns
from typing import Any

from orion.arrays.files.whole import write_text
from orion.errors import ArgumentError, describe
from orion.inspect.profiles.bottleneck import Bottleneck, bottleneck_of
from orion.inspect.profiles.data import profile_to_dict
from orion.inspect.profiles.html import profile_html
from orion.inspect.profiles.numbers import Numbers, numbers_of
from orion.inspect.profiles.text import profile_text
from orion.inspect.profiles.timeline import timeline_svg
from orion.inspect.profiles.trace import trace_of
from orion.printable import printable
from orion.runtime.profile.collector import Collector
from orion.runtime.session import Session, current_session
from orion.tracebacks import ends_in_users_line

_last: list[Profile] = []


def last_profile() -> Profile | None:
    """Return the profile that began last in this process; None before the first."""
    return _last[-1] if _last else None


class Profile(AbstractContextManager["Profile"]):
    """Times of the calls in a `with` statement; made by `orion.profile`. `print` shows them, a notebook draws them."""

    def __init__(self) -> None:
        self._collected = Collector()
        self._session: Session | None = None

    @ends_in_users_line
    def __enter__(self) -> Profile:
        if self._session is not None:
            hint = "write `with orion.profile() as profile:` once for each block"
            raise ArgumentError(describe("a profile is of one `with` statement", hint=hint))
        self._session = current_session()
        self._collected.start = perf_counter_ns()
        self._session.profile(self._collected, is_on=True)
        _last[:] = [self]
        return self

    @ends_in_users_line
    def __exit__(self, *_: object) -> None:
        assert self._session is not None
        self._session.profile(self._collected, is_on=False)
        self._collected.end = perf_counter_ns()

    @property
    def bottleneck(self) -> Bottleneck:
        """Bottleneck of the program: its `kind`, the `loop`, and a `sentence` with the numbers."""
        return bottleneck_of(self.numbers)

    @property
    def numbers(self) -> Numbers:
        """All sums as a frozen value, in nanoseconds."""
        return numbers_of(self._collected)

    @ends_in_users_line
    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace for ui.perfetto.dev and chrome://tracing, with a track for the driver and one per worker.

        - `path`: the file to write. It has the first calls, up to some 200,000 parts; the sums have all calls.

        Errors: `StorageError` where the file cannot be written.
        """
        write_text(path, json.dumps(trace_of(self._collected.calls, self._collected.start)))

    @ends_in_users_line
    def save_svg(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline of all workers to `path`, as SVG. `StorageError` where the file cannot be written."""
        write_text(path, self._picture())

    def to_dict(self) -> dict[str, Any]:
        """Return the sums and the bottleneck as plain dicts, lists, strings and numbers. Times are seconds."""
        numbers = self.numbers
        return profile_to_dict(numbers, bottleneck_of(numbers))

    def _picture(self) -> str:
        collected = self._collected
        return timeline_svg(collected.calls, collected.start, collected.start + collected.wall(), self.bottleneck)

    def _repr_html_(self) -> str:
        numbers = self.numbers
        return profile_html(numbers, bottleneck_of(numbers), self._picture())

    def __str__(self) -> str:
        return printable(profile_text(self.numbers))

    def __repr__(self) -> str:
        numbers = self.numbers
        return f"<orion.Profile: {numbers.calls} calls, {numbers.wall / 1e9:.3g} s, bottleneck: {self.bottleneck.kind}>"


@ends_in_users_line
def profile() -> Profile:
    """Measure the calls of loops in a `with` statement, and return an `orion.Profile`.

    Write `with orion.profile() as profile: …`, and `print(profile)` after it. The text has, per loop and worker, the
    time in tiles, waiting for other workers and moving data. It has the driver's time, too, and ends with a sentence
    that names the bottleneck.

    A profile covers the calls of all threads in its session, so `with orion.session(…)` stands around it, not inside.
    Profiles may be nested. A call that ends by an error or Ctrl-C is measured until then.

    Under a profile, workers start tiles one by one, which costs some microseconds each. Results have the same bits.

    Errors: `ArgumentError` where one profile is used for two `with` statements.

    >>> import numpy as np, orion
    >>> @orion.parallel_for
    ... def double(a):
    ...     for i in range(a.shape[0]):
    ...         a[i] = 2.0 * a[i]
    >>> with orion.profile() as profile:
    ...     double(np.ones(1000))
    >>> profile.numbers.calls, profile.bottleneck.loop is None or profile.bottleneck.loop.function
    (1, True)
    """
    return Profile()
