"""A function taken apart into the loops that are planned and what stands between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count

from orion.dataclass import dataclass, replace
from orion.ir.function import Buffered, Function
from orion.ir.nodes import STORE, Call, Const, Elements, For, If, Range, Stmt, Subscript, While, every, names_in
from orion.ir.replicas import Replica
from orion.source import Span

SYNTHETIC = -1
"""`For.index` of a loop that is not in the source: one trip around statements that run once, on one worker."""

FILLING = -2
"""`For.index` of the loops that fill arrays which the function makes: this and smaller numbers, each used once."""


def new_numbers(body: Iterable[Stmt]) -> Iterator[int]:
    """`For.index` of loops that take the place of other statements: after those of the source."""
    return count(1 + max((SYNTHETIC, *(loop.index for loop in every(For, *body)))))


def new_fillings(body: Iterable[Stmt]) -> Iterator[int]:
    """`For.index` of loops that fill arrays, or do anything else that no loop of the source does."""
    return count(min((FILLING + 1, *(loop.index for loop in every(For, *body)))) - 1, -1)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A row of `length` elements that each box has for itself, for parts of an array of the same dtype.

    Every subscript of it, and every subscript of the array by the variables `indices`, is in range.
    """

    name: str
    array: str
    length: int
    indices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopiedIn:
    """Reads of an array that see a copy of it made before the loop, where the copy has another name: `reads` are as
    they were."""

    array: str
    copy: str
    reads: tuple[Subscript, ...]


@dataclass(frozen=True, slots=True)
class OfSource:
    """Loops of the source. `copied_in` are the reads in them that see copies made before."""

    copied_in: tuple[CopiedIn, ...]


@dataclass(frozen=True, slots=True)
class OfStatements:
    """One trip around statements of the source that run once, on one worker."""


@dataclass(frozen=True, slots=True)
class OfFilling:
    """Loops that fill an array which the function makes, in place of a statement of the source."""


@dataclass(frozen=True, slots=True)
class OfBox:
    """Loops that do what those of the source do in another order, from limit to limit of a box.

    `limits` has the names of the limits in each dimension; all that is run for a box is the body of the innermost loop,
    which may keep parts of arrays in `buffers`.
    """

    limits: tuple[tuple[str, str], ...]
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class BesideBoxes:
    """One trip around statements of another order that run once, on one worker, in each round of the loops around."""


OfNewOrder = OfBox | BesideBoxes
NestForm = OfSource | OfStatements | OfFilling | OfNewOrder


def form_of(outermost: For) -> NestForm:
    """What the loops of a nest are that is not in another order."""
    if outermost.index == SYNTHETIC:
        return OfStatements()
    return OfFilling() if outermost.index <= FILLING else OfSource(())


@dataclass(frozen=True, slots=True)
class LoopNest:
    """One planned loop: perfectly nested `for`s and the body of the innermost.

    `number` counts the planned loops of the function from 0, in textual order. `form` says what its loops are to the
    source. `loops` are the `for`s that span the iteration space, outermost first (a single one where it goes over the
    elements of a sparse array); `dims` are the names of the loop dimensions: the range variables, or the keys of the
    sparse array. One iteration runs `body`.
    """

    number: int
    form: NestForm
    loops: tuple[For, ...]
    dims: tuple[str, ...]
    body: tuple[Stmt, ...]
    ordered: bool
    function: Function

    def __repr__(self) -> str:
        return f"<LoopNest {self.number}: ({', '.join(self.dims)}) in line {self.span.line}>"

    @property
    def elements(self) -> Elements | None:
        """The sparse array's elements that the loop goes over, or None for a nest of ranges."""
        space = self.loops[0].space
        return space if isinstance(space, Elements) else None

    @property
    def stored(self) -> frozenset[int]:
        """The numbers of the values that iterations store in their elements, of a loop over those."""
        if self.elements is None:
            return frozenset()
        stores = [call for call in every(Call, *self.body) if call.function == STORE]
        numbers = [call.arguments[0] for call in stores]
        return frozenset(number.value for number in numbers if isinstance(number, Const) and type(number.value) is int)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The ranges of a nest of ranges, outermost first; empty for a loop over elements."""
        return tuple(loop.space for loop in self.loops if isinstance(loop.space, Range))

    @property
    def limits(self) -> tuple[tuple[str, str], ...]:
        """The names of the limits of a box in each dimension, where it is run for boxes."""
        return self.form.limits if isinstance(self.form, OfBox) else ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """What the body keeps parts of arrays in."""
        return self.form.buffers if isinstance(self.form, OfBox) else ()

    @property
    def copied_in(self) -> tuple[CopiedIn, ...]:
        """The reads that see copies made before the loop."""
        return self.form.copied_in if isinstance(self.form, OfSource) else ()

    @property
    def buffered(self) -> tuple[Buffered, ...]:
        """The arrays that the body updates by a buffer, or reads while one may be behind."""
        names = names_in(*self.body)
        return tuple(one for one in self.function.buffered if one.name in names)

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """The arrays of which each worker has a copy that the body uses."""
        names = names_in(*self.body)
        return tuple(one for one in self.function.replicas if one.name in names)

    @property
    def late(self) -> tuple[Buffered | Replica, ...]:
        """These and the arrays with buffers."""
        return (*self.buffered, *self.replicas)

    @property
    def own_names(self) -> frozenset[str]:
        """What the body uses and gets from no one: the limits of a box, and its buffers."""
        return frozenset(name for pair in self.limits for name in pair) | {buffer.name for buffer in self.buffers}

    @property
    def span(self) -> Span:
        return self.loops[0].span


@dataclass(frozen=True, slots=True)
class Scalars:
    """Statements between loops. Every worker runs them, each on its own copy of the scalars.

    A `break` or `continue` in them belongs to the `Repeat` around them; a `return` ends the function.
    """

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class RunLoop:
    """Run planned loop `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """A serial loop around planned loops; its rounds run without going back to the driver.

    A `for` over a range, or a `while` whose test reads scalars only. `loop` has the body as it is written.
    """

    loop: For | While
    steps: tuple[Step, ...]

    @property
    def space(self) -> Range | None:
        """The range that the rounds go through; None for a `while`."""
        return self.loop.space if isinstance(self.loop, For) and isinstance(self.loop.space, Range) else None


@dataclass(frozen=True, slots=True)
class Branch:
    """An `if` around planned loops. Its test reads scalars only, so that all workers take the same side: the steps of
    `sides[0]` where it holds, else those of `sides[1]`."""

    statement: If
    sides: tuple[tuple[Step, ...], tuple[Step, ...]]


Step = Scalars | RunLoop | Repeat | Branch


def blocks_of(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The sequences of steps inside a step."""
    match step:
        case Repeat(_, steps):
            return (steps,)
        case Branch(_, sides):
            return sides
        case _:
            return ()


def statements_between(steps: Iterable[Step]) -> Iterator[Stmt]:
    """The statements that stand between and around planned loops. Serial loops and `if`s come without what is in them:
    that comes after them."""
    for step in steps:
        match step:
            case Scalars(body):
                yield from body
            case Repeat(loop, inner):
                yield replace(loop, body=())
                yield from statements_between(inner)
            case Branch(statement, (first, second)):
                yield replace(statement, body=(), orelse=())
                yield from statements_between((*first, *second))
            case RunLoop():
                pass


def repeated_loops(steps: Iterable[Step], *, is_repeated: bool = False) -> frozenset[int]:
    """The numbers of the planned loops inside of serial ones, or of all where the steps are."""
    found = set[int]()
    for step in steps:
        if isinstance(step, RunLoop) and is_repeated:
            found.add(step.number)
        for block in blocks_of(step):
            found |= repeated_loops(block, is_repeated=is_repeated or isinstance(step, Repeat))
    return frozenset(found)


def with_loops(steps: Iterable[Step], change: Callable[[int], Iterable[Step]]) -> tuple[Step, ...]:
    """The steps with every planned loop replaced by what `change` gives for its number, in textual order."""
    found: list[Step] = []
    for step in steps:
        match step:
            case RunLoop(number):
                found += change(number)
            case Repeat(loop, inner):
                found.append(Repeat(loop, with_loops(inner, change)))
            case Branch(statement, (first, second)):
                found.append(Branch(statement, (with_loops(first, change), with_loops(second, change))))
            case Scalars():
                found.append(step)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Program:
    """A decorated function as steps: what each worker runs from top to bottom.

    `variables` are names that its loops have beside the function's own, all integers: the variables of loops in another
    order, bounds computed beforehand. `tests` are further ones, all truth values.
    """

    function: Function
    nests: tuple[LoopNest, ...]
    steps: tuple[Step, ...]
    variables: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Program of {self.function.name}: {len(self.nests)} loops>"
