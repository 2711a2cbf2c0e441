"""The variants of a function: programs that do what it does, as planning chooses among them."""

from __future__ import annotations

from orion.analysis.one_loop import AnalysedLoop
from orion.cost.worth import Work
from orion.dataclass import dataclass
from orion.ir.program import Program
from orion.plan.plan import Verdict
from orion.rewrites.fuse.found import Found
from orion.rewrites.reorder.apply import Deferred
from orion.typing.expression_types import Typing


@dataclass(frozen=True, slots=True)
class Variant:
    """A program that does what the source does, with its analysed loops. `changed` are those that stand for others of
    the source. `deferred`: what is still to be made of loops in another order (`orion.plan.deferred_bodies`).
    `neighbours` are those that may be run as one. `rewrites` are the names of those of the whole function, with the
    lines of their loops. `typing` has the types of all names of the program, those of arrays that it makes too.

    The conditions under which it may run are `program.function.assumed`.
    """

    program: Program
    loops: tuple[AnalysedLoop, ...]
    verdicts: tuple[Verdict, ...]
    changed: tuple[Changed, ...]
    deferred: tuple[Deferred, ...]
    neighbours: Found
    rewrites: tuple[tuple[str, int], ...]
    typing: Typing


@dataclass(frozen=True, slots=True)
class Changed:
    """The loops that stand for one loop of the source, which begins in `line`, what that one has to do (see
    `orion.cost.worth`), and the names of the rewrites that made them. There are `around` loops around it."""

    numbers: range
    around: int
    work: tuple[Work, ...]
    line: int
    rewrites: tuple[str, ...]
