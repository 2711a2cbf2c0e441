"""Order and pace of late updates that go to other nodes ahead of time: `orion.pacing`."""

from __future__ import annotations

import re
from numbers import Real

import numpy as np

from orion.arrays.sending import BATCH, ORDERS, Sending
from orion.arrays.sizes import size_in_bytes
from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line

MEASURED = "measured"
BITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


@ends_in_users_line
def pacing(bandwidth: str | float = MEASURED, batch: str | int = BATCH, order: str = "magnitude") -> Sending:
    """Make a policy that sends late updates to other nodes ahead of time, for `orion.buffer(…, send=)`.

    Messages that `max_delay` asks for always go first. Pacing uses the link's remaining time for further updates. On
    one node nothing is sent.

    - `bandwidth`: the most that pacing sends, in bits per second, or a text such as "40Mbit/s" or "1Gbit/s".
      "measured", the default, sends the next message once half of the last one has arrived. That is as much as the link
      takes.
    - `batch`: the size of a message in bytes, or a text such as "100KB", the default. A message holds rows of the
      array; in one dimension, 64 neighbouring elements are a row.
    - `order`: which changed rows go first, "magnitude" by default.

    The orders are:

    - "magnitude": the largest relative update first. It is the sum of |δ| / |v| over a row with values v and updates δ.
      A value counts as at least a hundredth of the mean size at the beginning of the loop.
    - "round_robin": one row after another.
    - "random": any row.
    - "fifo": rows that have waited longest.

    Errors: `ArgumentError` for another order, bandwidth or size.

    Source: managed communication, of Wei et al., "Managed Communication and Consistency for Fast Data-Parallel
    Iterative Analytics", SoCC 2015.

    >>> import numpy as np, orion
    >>> totals = np.zeros(100)
    >>> late = orion.buffer(totals, max_delay=5000, send=orion.pacing(bandwidth="40Mbit/s", batch="20KB"))
    """
    if order not in ORDERS:
        hint = f"write one of {', '.join(map(repr, ORDERS))}"
        raise ArgumentError(describe(f"`order={order!r}` of a pacing", hint=hint))
    size = size_in_bytes(batch, "batch", ArgumentError)
    if not size:
        raise ArgumentError(describe(f"`batch={batch!r}` of a pacing", hint='write a size, such as "100KB"'))
    return Sending(order, size, 0.0 if bandwidth == MEASURED else _bits_per_second(bandwidth) / 8)


def _bits_per_second(given: object) -> float:
    found = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)bit/s\s*", given, re.IGNORECASE) if isinstance(given, str) else None
    )
    number = float(found[1]) * BITS[found[2].upper()] if found else given
    if isinstance(number, Real) and not isinstance(number, bool | np.bool_) and 0 < float(number) < float("inf"):
        return float(number)
    hint = 'write a number of bits per second, a text such as "40Mbit/s" or "1Gbit/s", or "measured"'
    raise ArgumentError(describe(f"`bandwidth={given!r}` of a pacing", hint=hint))
