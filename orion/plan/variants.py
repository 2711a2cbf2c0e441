"""The variants of a function: programs that do what it does, as planning chooses among them."""

from __future__ import annotations

from dataclasses import dataclass

from orion.analysis.one_loop import AnalysedLoop
from orion.cost.worth import Work
from orion.ir.program import Program
from orion.plan.plan import Verdict
from orion.reasons import Reason
from orion.rewrites.fuse.apply import Group
from orion.rewrites.reorder.apply import Outlined


@dataclass(frozen=True, slots=True)
class Variant:
    """A program that does what the source does, with its analysed loops; serial loops that hold parallel ones are
    peeled into `Repeat`s, others are in another order. `changed` are those loops. `outlined`: what is still to be made
    of loops in another order (`orion.plan.bodies`).

    `fusable` are neighbours that may be run as one, and `apart` those that use the same arrays but may not. The
    conditions under which it may run are `program.function.assumed`.
    """

    program: Program
    loops: tuple[AnalysedLoop, ...]
    verdicts: tuple[Verdict, ...]
    changed: tuple[Changed, ...] = ()
    outlined: tuple[Outlined, ...] = ()
    fusable: tuple[Fusable, ...] = ()
    apart: tuple[Separate, ...] = ()


@dataclass(frozen=True, slots=True)
class Fusable:
    """Neighbouring planned loops, and the one that does the same."""

    group: Group
    loop: AnalysedLoop


@dataclass(frozen=True, slots=True)
class Separate:
    """Planned loop `number` and the one before it, which go through the same arrays and are not run as one."""

    number: int
    arrays: tuple[str, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Changed:
    """The loops that stand for one loop of the source, and what that one has to do: see `orion.cost.worth`.

    `is_taken_apart`: there are statements among them that run once, so that rounds of them are started from Python.
    `has_other`: they were preferred to another order of the loops, which may be better at some sizes.
    """

    numbers: range
    around: int
    work: tuple[Work, ...]
    is_taken_apart: bool
    is_swept: bool = False
    has_other: bool = False


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which changes of loops are made where they can be.

    `apart`: serial loops are taken apart also where statements between those in them then run once, on one worker. As
    that costs more, the program without it, but with the other changes, is what it is as written. `sweeps`: serial
    loops around planned ones are run in tiles; as that pays for large arrays only, what it is as written then is the
    program without it. `renames`: the same for reads that see copies of arrays made before their loop
    (`orion.rewrites.copy_in.apply`).
    """

    apart: bool = True
    sweeps: bool = True
    renames: bool = True


ALL = Allowed()
