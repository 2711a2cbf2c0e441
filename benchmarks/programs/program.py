"""A whole program, and the arguments that it is planned for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orion

SIZES = ("tiny", "large")
"""`large` has other extents than `tiny` in every dimension that may vary; both take at most a few megabytes."""


@dataclass(frozen=True, slots=True)
class Program:
    """A decorated function, and fresh arguments of one of two sizes."""

    name: str
    function: orion.ParallelFunction
    arguments: Callable[[str], tuple[Any, ...]]
