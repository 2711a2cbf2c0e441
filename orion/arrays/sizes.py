"""Numbers of bytes as users write them."""

from __future__ import annotations

import re
from numbers import Integral

from orion.errors import OrionError, describe

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def size_in_bytes(given: object, name: str, error: type[OrionError]) -> int:
    """A number of bytes that is given as a whole number, or as a text with a unit; `error` where it is neither, which
    says of what by its `name`.

    >>> from orion.errors import PlanError
    >>> [size_in_bytes(one, "memory", PlanError) for one in ("2GB", "1.5 MiB", "7", 7)]
    [2000000000, 1572864, 7, 7]
    """
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([a-zA-Z]*)", given.strip()) if isinstance(given, str) else None
    if found and found[2].upper() in UNITS:
        number = float(found[1]) if "." in found[1] else int(found[1])
        return int(number * UNITS[found[2].upper()])
    if isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= 0:
        return int(given)
    hint = 'write a whole number of bytes from 0 on, or a text such as "256MB" or "1.5GiB"'
    raise error(describe(f"{name}={given!r} is no number of bytes", hint=hint))
