"""What is found of neighbouring loops: which may be run as one, and which not."""

from __future__ import annotations

from orion.analysis.one_loop import AnalysedLoop
from orion.dataclass import dataclass
from orion.reasons import Reason
from orion.rewrites.fuse.apply import Group


@dataclass(frozen=True, slots=True)
class Fusable:
    """Neighbouring planned loops, and the one that does the same."""

    group: Group
    loop: AnalysedLoop


@dataclass(frozen=True, slots=True)
class NotFused:
    """Planned loop `number` and the one before it, which go through the same arrays and are not run as one."""

    number: int
    arrays: tuple[str, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Found:
    """Neighbours that may be run as one, and those that use the same arrays but may not."""

    fusable: tuple[Fusable, ...]
    not_fused: tuple[NotFused, ...]
