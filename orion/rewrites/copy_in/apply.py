"""Reads that see a copy of their array, made before the loop, so that no later iteration can write what they read.

    for i in range(n - 1):                for A_before_0 in range(A.shape[0]):
        A[i] = A[i] + A[i + 1]                A_before[A_before_0] = A[A_before_0]
                                          for i in range(n - 1):
                                              A[i] = A[i] + A_before[i + 1]

When that is legal is said in `orion.rewrites.copy_in.find`. The copy is an array that the function makes
(`orion.passes.local_arrays`), and making it is a planned loop like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orion.dataclass import dataclass, field, replace
from orion.dependence.access import LoopDependences
from orion.ir.function import Function, LocalArray
from orion.ir.nodes import Assign, Const, Dim, Expr, For, Range, Stmt, Subscript, Var, names_in, walk
from orion.ir.program import (
    CopiedIn,
    LoopNest,
    OfFilling,
    OfSource,
    Program,
    RunLoop,
    Step,
    form_of,
    new_fillings,
    with_loops,
)
from orion.ir.renaming import fresh
from orion.ir.rewriting import rewrite
from orion.ir.spans import NOWHERE, with_span
from orion.ir.types import ArrayType, Types
from orion.rewrites.copy_in.find import renamable_reads
from orion.source import Span


def with_copies_before(program: Program, number: int, types: Types, analysis: LoopDependences) -> Program | None:
    """The program with copies made before planned loop `number`, and its reads redirected to those where they may be.

    The copies are loops `number`, …; None where there are none. Whether that makes the loop parallel is left open.
    """
    nest = program.nests[number]
    is_fit = nest.ordered and nest.elements is None and isinstance(nest.form, OfSource)
    if not is_fit or analysis.reasons or analysis.scalars.carried or any(d.reason for d in analysis.dependences):
        return None
    reads = renamable_reads(nest, types, analysis.dependences)
    if not reads:
        return None
    taken = _names(program)
    copied_in = tuple(CopiedIn(array, fresh(f"{array}_before", taken), own) for array, own in reads.items())
    made = tuple(_copy_of(one, program.function, types, nest.span) for one in copied_in)
    function = replace(
        program.function,
        params=(*program.function.params, *(one.name for one in made)),
        local_arrays=(*program.function.local_arrays, *made),
    )
    renamer = _Renamer(program, number, function, copied_in, taken)
    steps = with_loops(program.steps, renamer.steps)
    return Program(function, tuple(renamer.nests), steps, (*program.variables, *renamer.variables), program.tests)


def original(nest: LoopNest) -> LoopNest:
    """A nest with reads that see copies as it was without those."""
    arrays = {one.copy: one.array for one in nest.copied_in}
    return replace(_with_reads(nest, lambda read: arrays.get(read.base.name)), form=form_of(nest.loops[0]))


def _copy_of(one: CopiedIn, function: Function, types: Types, span: Span) -> LocalArray:
    kind = types[one.array]
    assert isinstance(kind, ArrayType)
    known = {made.name: made.lengths for made in function.local_arrays}
    lengths = known.get(one.array) or tuple(Dim(one.array, axis, NOWHERE) for axis in range(kind.ndim))
    return LocalArray(one.copy, kind.dtype, lengths, is_returned=False, is_sure=True, span=span)


def _names(program: Program) -> set[str]:
    function = program.function
    found = {*function.params, *dict(function.constants), *(helper.name for helper in function.helpers)}
    found |= names_in(*function.body) | {*program.variables, *program.tests}
    nodes = (node for nest in program.nests for node in walk(nest.loops[0]))
    return found | {node.var for node in nodes if isinstance(node, Range)}


@dataclass(slots=True)
class _Renamer:
    program: Program
    number: int
    function: Function
    copied_in: tuple[CopiedIn, ...]
    taken: set[str]
    nests: list[LoopNest] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)

    def steps(self, number: int) -> list[Step]:
        """What is run in place of a planned loop: they are numbered anew."""
        nest = self.program.nests[number]
        return [self.run(one) for one in (self.replaced(nest) if number == self.number else [nest])]

    def run(self, nest: LoopNest) -> RunLoop:
        self.nests.append(replace(nest, number=len(self.nests), function=self.function))
        return RunLoop(len(self.nests) - 1)

    def replaced(self, nest: LoopNest) -> list[LoopNest]:
        copies = {read: one.copy for one in self.copied_in for read in one.reads}
        return [*(self.copying(one, nest) for one in self.copied_in), _renamed(nest, copies, self.copied_in)]

    def copying(self, one: CopiedIn, nest: LoopNest) -> LoopNest:
        """The loop that makes a copy."""
        span = nest.span
        lengths = next(made.lengths for made in self.function.local_arrays if made.name == one.copy)
        names = [fresh(f"{one.copy}_{axis}", self.taken) for axis in range(len(lengths))]
        self.variables += names
        index = tuple(Var(name, span) for name in names)
        inside: Stmt = Assign(
            Subscript(Var(one.copy, span), index, span), Subscript(Var(one.array, span), index, span), span
        )
        fillings = new_fillings(loop for other in (*self.program.nests, *self.nests) for loop in other.loops)
        numbers, loops = sorted(next(fillings) for _ in lengths), list[For]()
        for axis in reversed(range(len(lengths))):
            space = Range(names[axis], Const(0, span), with_span(lengths[axis], span), Const(1, span), span)
            inside = For(space, (inside,), numbers[axis], span)
            loops.append(inside)
        loops.reverse()
        return LoopNest(0, OfFilling(), tuple(loops), tuple(names), loops[-1].body, True, self.function)


def _renamed(nest: LoopNest, copies: Mapping[Subscript, str], copied_in: tuple[CopiedIn, ...]) -> LoopNest:
    return replace(_with_reads(nest, copies.get), form=OfSource(copied_in))


def _with_reads(nest: LoopNest, name: Callable[[Subscript], str | None]) -> LoopNest:
    """The nest with other names for the arrays of some of its subscripts."""

    def change(expr: Expr) -> Expr:
        if not isinstance(expr, Subscript) or (other := name(expr)) is None:
            return expr
        return replace(expr, base=Var(other, expr.base.span))

    loops = [rewrite(nest.loops[0], change)]
    while len(loops) < len(nest.loops):
        inner = loops[-1].body[0]
        assert isinstance(inner, For)
        loops.append(inner)
    return replace(nest, loops=tuple(loops), body=loops[-1].body)
