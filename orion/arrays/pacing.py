"""What goes to other nodes first, and how fast, of updates that may be late: `orion.pacing`."""

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
    """What a node sends to the others of updates that may be late, between the messages that `max_delay` asks for:
    given to `orion.buffer(…, send=)`. These come first, however fast the link is; what follows is for the time that the
    link has left (managed communication: Wei et al., "Managed Communication and Consistency for Fast Data-Parallel
    Iterative Analytics", SoCC 2015). On one node there is nothing to send.

    `bandwidth`: so many bits per second at most, such as "40Mbit/s", "1Gbit/s", or a number of them; "measured" sends a
    message when the last one has come to the other end but for half of it, which is as many as the link takes.

    `batch`: the bytes of a message, such as "100KB". A message has some rows of the array: of an array of one dimension
    64 neighbouring elements are one.

    `order`: which of the rows that have changed since they were sent go first. "magnitude": those whose updates δ
    change the values v most, by the sum of |δ| / |v| over the elements of a row. Values of less than a hundredth of
    their mean size at the beginning of the loop are taken for that. "round_robin": one row after the other; "random":
    any; "fifo": those that have waited longest.

    Errors: `ArgumentError` for another order, and for a bandwidth or a size that is none.

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
