"""Programs whose loops are small and many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Program:
    """A function whose loops are short and run many times, and the arguments of its calls.

    `arguments()` makes the same new arguments at each call. `outputs` names the parameters whose arrays are results,
    beside the returned value. Compiled code takes 1 to 200 ms on one core.
    """

    name: str
    function: Callable[..., Any]  # as a user writes it, without a decorator
    arguments: Callable[[], tuple[Any, ...]]
    outputs: tuple[str, ...] = ()
