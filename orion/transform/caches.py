"""The sizes of a core's caches, as far as the machine tells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CPU = Path("/sys/devices/system/cpu/cpu0/cache")
FIRST, SECOND = 32 * 2**10, 2**20
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class Caches:
    """Bytes of the first- and second-level data cache of one core. The defaults are those of many."""

    first: int = FIRST
    second: int = SECOND


def caches_in(folder: Path) -> Caches:
    """The caches that Linux lists in a folder; the defaults for what is not there. What several cores share is taken
    for one's own.

    >>> caches_in(Path("/nowhere")) == Caches()
    True
    """
    found: dict[str, int] = {}
    try:
        for index in sorted(folder.glob("index*")):
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            number = re.fullmatch(r"(\d+)([KMG]?)", size)
            if kind != "Instruction" and number and int(number[1]):
                found.setdefault(level, int(number[1]) * UNITS[number[2]])
    except (OSError, ValueError):
        pass
    return Caches(found.get("1", FIRST), found.get("2", SECOND))


@cache
def caches_here() -> Caches:
    """The caches of this machine. With actors on several machines it is the driver that asks, for all of them."""
    return caches_in(CPU)
