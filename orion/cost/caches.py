"""The size of a core's second-level cache, as far as the machine tells."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from orion.dataclass import dataclass

CPU = Path("/sys/devices/system/cpu/cpu0/cache")
VARIABLE = "ORION_L2"
"""The variable that has the bytes of the second-level cache of another machine, which kernels are built for."""

UNITS = {"": 1, "K": 2**10, "M": 2**20}


@dataclass(frozen=True, slots=True)
class Caches:
    """Bytes of the second-level cache of a core: what is usual, if nothing else is known."""

    second: int = 2**20


USUAL = Caches()


def caches_in(folder: Path) -> Caches:
    """What Linux says of caches in a folder; what is usual where it says nothing.

    >>> caches_in(Path("/nowhere")) == USUAL
    True
    """
    try:
        for index in sorted(folder.glob("index*")):
            level, size = ((index / name).read_text().strip() for name in ("level", "size"))
            number = re.fullmatch(r"(\d+)([KM]?)", size)
            if level == "2" and number is not None and int(number[1]):
                return Caches(int(number[1]) * UNITS[number[2]])
    except OSError:
        pass
    return USUAL


def caches_here() -> Caches:
    """The caches of this machine, or as the environment says. With actors on several machines those of the driver's
    count for all: kernels are made there."""
    said = os.environ.get(VARIABLE, "")
    return Caches(int(said)) if said.isdecimal() else _found()


@cache
def _found() -> Caches:
    return caches_in(CPU)
