"""A function taken apart into the loops that are planned and what stands between them."""

from __future__ import annotations

from dataclasses import dataclass

from orion.loop.ir import Elements, For, Function, Range, Stmt
from orion.loop.source import Span


@dataclass(frozen=True, slots=True)
class LoopNest:
    """One planned loop: perfectly nested `for`s and the body of the innermost.

    `number` counts the planned loops of the function from 0, in textual order. `loops` are the `for`s that span the
    iteration space, outermost first (a single one where it goes over the elements of a sparse array); `dims` are the
    names of the loop dimensions: the range variables, or the keys of the sparse array. One iteration runs `body`.
    `is_rewritten`: its loops are not those of the source but others that do the same in another order. `limits` then
    has the names of the limits of a box in each dimension; all that is run for a box is the body of the innermost
    loop.
    """

    number: int
    loops: tuple[For, ...]
    dims: tuple[str, ...]
    body: tuple[Stmt, ...]
    ordered: bool
    function: Function
    is_rewritten: bool = False
    limits: tuple[tuple[str, str], ...] = ()

    @property
    def elements(self) -> Elements | None:
        """The sparse array's elements that the loop goes over, or None for a nest of ranges."""
        space = self.loops[0].space
        return space if isinstance(space, Elements) else None

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The ranges of a nest of ranges, outermost first; empty for a loop over elements."""
        return tuple(loop.space for loop in self.loops if isinstance(loop.space, Range))

    @property
    def span(self) -> Span:
        return self.loops[0].span


@dataclass(frozen=True, slots=True)
class Scalars:
    """Statements between loops. Every worker runs them, each on its own copy of the scalars."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class RunLoop:
    """Run planned loop `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """A serial loop around planned loops; its rounds run without going back to the driver."""

    loop: For
    steps: tuple[Step, ...]


Step = Scalars | RunLoop | Repeat


@dataclass(frozen=True, slots=True)
class Program:
    """A decorated function as steps: what each worker runs from top to bottom.

    `variables` are the integers that loops in another order have as their variables, beside the function's own.
    """

    function: Function
    nests: tuple[LoopNest, ...]
    steps: tuple[Step, ...]
    variables: tuple[str, ...] = ()
