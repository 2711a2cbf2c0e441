"""What Orion makes of an everyday loop before anything runs: taken or not, and how much of its work is parallel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orion
from benchmarks.everyday.case import Case
from orion.errors import OrionError
from orion.plan.shares import shares

WHOLLY = 0.9
"""A loop is wholly parallel where at least this part of its predicted work on one worker is shared out."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A loop that is not analysed, and why: the first line of the message, without places and names. `as_it_is`: a call
    runs it as it is, on one worker, if Numba compiles it."""

    kind: str
    message: str
    as_it_is: bool

    @property
    def cause(self) -> str:
        return re.sub(r"`[^`]*`", "`…`", self.message.partition(": ")[2] or self.message)


@dataclass(frozen=True, slots=True)
class Planned:
    """A loop that is taken: the part of its work that is parallel, and the codes of what is in the way of the rest."""

    part: float
    codes: tuple[str, ...]
    headline: str

    @property
    def is_wholly_parallel(self) -> bool:
        return self.part >= WHOLLY


def planned(case: Case, arguments: tuple[Any, ...]) -> Refused | Planned:
    """The plan of a case for these arguments, in short."""
    try:
        plan = orion.parallel_for(case.function).plan(*arguments)
    except OrionError as error:
        return Refused(type(error).__name__, str(error).splitlines()[0], error.is_for_numba)
    found = shares(plan.function)
    part = sum(share.part for share in found if share.loop.is_parallel or share.loop.parallel_inside)
    codes = sorted(
        {
            reason.code
            for loop in plan.loops
            if not loop.is_parallel
            for reason in loop.reasons
            if reason.kind == "blocks"
        }
    )
    return Planned(part, tuple(codes), str(plan).splitlines()[0])
