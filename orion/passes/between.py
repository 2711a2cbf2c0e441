"""What stands between the planned loops of a function, and what may not.

Every worker runs the statements between loops, each on its own copies of the scalars. Statements there that read
or write arrays must run once, on one worker: they become the body of a loop of one trip (`For.index` is
`SYNTHETIC`), which is planned like any other. What `return`, a test or the bounds of a loop around planned loops read
from arrays is computed in such a loop first:

    while a[0] > x:                       while True:
        for (i, j), r in R:                   test = a[0] > x         (once)
            a[i] += r                         if not test:
                                                  break
                                              for (i, j), r in R:
                                                  a[i] += r

An `if` or a `while` without a loop over elements in it is such a statement as a whole. The plan stage may take it
apart like a loop (`peel_loop`), where loops in it can be shared out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, groupby

from orion.dataclass import dataclass, field, replace
from orion.errors import UnsupportedLoopError
from orion.ir.assigned import assignments, leaves_loop
from orion.ir.exposed import exposed_reads
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Bind,
    Break,
    Call,
    Choose,
    Const,
    Elements,
    Expr,
    For,
    If,
    Node,
    Range,
    Return,
    Stmt,
    Subscript,
    Unary,
    Var,
    While,
    every,
    holds,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.program import SYNTHETIC, LoopNest, OfNewOrder, OfStatements
from orion.ir.refuse import as_said, unsupported
from orion.ir.rewriting import parts_of, with_parts
from orion.ir.types import ArrayType, SparseType, Types
from orion.passes.after_loops import LoopVariables, following
from orion.passes.in_place import with_subscripts
from orion.passes.local_arrays import is_part_returned
from orion.passes.sizes import with_arrays
from orion.source import Replacement
from orion.typing.expression_types import Typing
from orion.typing.infer import infer_types, with_local_arrays
from orion.typing.rewritten_names import copy_of_part
from orion.typing.value_type import BOOL, INT, ValueType

__all__ = ["SYNTHETIC", "PeeledLoop", "array_names", "is_repeat", "is_split", "peel_loop", "separate", "touches"]


def separate(function: Function, types: Types) -> Function:
    """The function with statements between loops that touch arrays put into loops of one trip.

    Does nothing to a function that has been through it. Arrays that are made between loops become parameters
    (`orion.passes.local_arrays`). The function has no `return` inside a loop (`orion.passes.leaving`). Raises
    `UnsupportedLoopError` for what may not stand between loops: an array made there whose size is not known, a loop
    over elements inside another one.
    """
    types = with_local_arrays(types, function)
    function = with_subscripts(function, types)
    typing = infer_types(function, types)
    separator = _Separator(function, typing, array_names(types))
    body = separator.block(function.body)
    shared = separator.shared_arrays(body)
    if shared:
        return separate(with_arrays(function, separator.typing, shared), types)
    variables = LoopVariables(function, separator.typing, separator.names)
    body = variables.kept(body, ())
    body = (*separator.zeros(body), *body)
    said = (*function.helper_locals, *variables.keepers)
    return function if body == function.body else replace(function, body=body, helper_locals=said)


@dataclass(frozen=True, slots=True)
class PeeledLoop:
    """What is run in place of a planned loop: statements like those of a function that has been through `separate`.

    `loop` is the serial loop around them; None for statements between loops, which run once. `before` comes before it.
    `names` are new, with their types.
    """

    before: tuple[Stmt, ...]
    loop: For | None
    body: tuple[Stmt, ...]
    names: tuple[tuple[str, ValueType], ...]

    @property
    def is_plain(self) -> bool:
        """Whether there are only loops and scalar statements, no statements that run once on one worker."""
        return not self.before and not any(_is_single(node) or is_split(node) for node in self.body)


def peel_loop(nest: LoopNest, types: Types) -> PeeledLoop | None:
    """A planned loop taken apart: a serial loop around the loops in its body and what stands between these. None where
    there are no loops in it, or it can only be run as a whole."""
    outer = nest.loops[0]
    if isinstance(nest.form, OfNewOrder) or isinstance(outer.space, Elements) or not _holds_loops(outer.body):
        return None
    places = [*following(nest.function.body, outer)]
    if len(places) != 1:
        return None
    again = () if isinstance(nest.form, OfStatements) else (outer,)
    typing = infer_types(nest.function, types)
    separator = _Separator(nest.function, typing, array_names(types), opening=True)
    try:
        before, space = separator.bounds(outer.space)
        body = separator.block(outer.body)
        if separator.shared_arrays((*before, *body)):
            return None
        LoopVariables(nest.function, separator.typing, separator.names).check(body, (*again, *places[0]))
    except UnsupportedLoopError:
        return None
    loop = None if isinstance(nest.form, OfStatements) else replace(outer, space=space, body=body)
    return PeeledLoop(tuple(before), loop, body, tuple(separator.names.items()))


def array_names(types: Types) -> frozenset[str]:
    """The arguments that are arrays, dense or sparse."""
    return frozenset(name for name, kind in types.items() if isinstance(kind, ArrayType | SparseType))


def touches(node: Node, arrays: frozenset[str]) -> bool:
    """Whether the code reads or writes elements of an array, or goes over one. Extents are no elements."""
    return any(
        isinstance(part, Subscript | Elements | Bind) or (isinstance(part, Var) and part.name in arrays)
        for part in walk(node)
    )


def is_repeat(statement: Stmt) -> bool:
    """Whether it is a loop over a range around loops over elements, which are planned one by one."""
    return isinstance(statement, For) and isinstance(statement.space, Range) and bool(_elements(statement))


def is_split(statement: Stmt) -> bool:
    """Whether it is, in a function that has been through `separate`, an `if` or a `while` around planned loops."""
    return isinstance(statement, If | While) and holds(For, statement)


def _is_single(statement: Stmt) -> bool:
    return isinstance(statement, For) and statement.index == SYNTHETIC


def _elements(statement: Stmt) -> list[Elements]:
    return list(every(Elements, statement))


def _holds_loops(body: tuple[Stmt, ...]) -> bool:
    """Whether some of the statements are, or hold in branches and `while`s, loops over ranges."""
    return any(isinstance(statement, For) or is_split(statement) for statement in body)


@dataclass(frozen=True, slots=True)
class _Separator:
    """`opening`: also an `if` or a `while` around loops over ranges is taken apart."""

    function: Function
    typing: Typing
    arrays: frozenset[str]
    opening: bool = False
    names: dict[str, ValueType] = field(default_factory=dict)

    def block(self, statements: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for kind, group in groupby(statements, self.kind):
            members = tuple(group)
            if kind == "return":  # nothing after it is reached
                return tuple(self.joined(found, self.result(members[0])))
            if kind == "once":
                found = self.joined(found, [self.once(members)])
            elif kind == "scalars":
                found += members
            else:
                for member in members:
                    found += self.loop(member) if isinstance(member, For) else self.apart(member)
        return tuple(found)

    def joined(self, found: list[Stmt], more: list[Stmt]) -> list[Stmt]:
        """Statements one after the other; two loops of one trip are one where an array of the function's lives in both
        alone."""
        if not found or not more or not (_is_single(found[-1]) and _is_single(more[0])):
            return [*found, *more]
        first, second = found[-1], more[0]
        assert isinstance(first, For)
        assert isinstance(second, For)
        local = {name for name, kind in self.typing.names.items() if kind.rank} - {*self.function.params}
        if local.isdisjoint(_names(first) & _names(second)):
            return [*found, *more]
        return [*found[:-1], replace(first, body=(*first.body, *second.body)), *more[1:]]

    def kind(self, statement: Stmt) -> str:
        match statement:
            case For():
                return "loop"
            case Return():
                return "return"
            case If() | While() if self.is_apart(statement):
                return "apart"
            case _:
                holds_loop = holds((For, While), statement)
                return "once" if holds_loop or touches(statement, self.arrays) else "scalars"

    def is_apart(self, statement: If | While) -> bool:
        """Whether a statement is run by every worker, with planned loops in it, rather than once as a whole."""
        loops = list(every(For, statement))
        if any(isinstance(loop.space, Elements) or loop.index == SYNTHETIC for loop in loops):
            return True
        return leaves_loop(statement) or _returns(statement) or (self.opening and bool(loops))

    def loop(self, loop: For) -> list[Stmt]:
        if is_repeat(loop):
            before, space = self.bounds(loop.space)
            return [*before, replace(loop, space=space, body=self.block(loop.body))]
        if len(_elements(loop)) > 1:
            raise self.misplaced(_elements(loop)[1])
        return [loop]

    def apart(self, statement: Stmt) -> list[Stmt]:
        match statement:
            case If(test, body, orelse):
                before, test = self.test(test)
                return [*before, replace(statement, test=test, body=self.block(body), orelse=self.block(orelse))]
            case While(test, body, span):
                before, test = self.test(test)
                if not before:
                    return [replace(statement, body=self.block(body))]
                leave = If(Unary("not", test, span), (Break(span),), (), span)
                return [While(Const(True, span), (*before, leave, *self.block(body)), span)]
            case _:
                return [statement]

    def test(self, test: Expr) -> tuple[list[Stmt], Expr]:
        """A test that reads scalars only, and what is to be run before it."""
        if not touches(test, self.arrays):
            return [], test
        span = test.span
        is_truth = self.typing.condition(test).dtype == "bool"
        value = test if is_truth else Choose(test, Const(True, span), Const(False, span), span)
        name = self.fresh("test", BOOL, test)
        return [self.once((Assign(name, value, span),))], name

    def bounds(self, space: Range | Elements) -> tuple[list[Stmt], Range | Elements]:
        """A range whose bounds read scalars only, and what is to be run before it."""
        if isinstance(space, Elements) or not touches(space, self.arrays):
            return [], space
        bounds = space.start, space.stop, space.step
        names = [self.fresh("bound", INT, bound) for bound in bounds]
        assigned = (Assign(name, bound, bound.span) for name, bound in zip(names, bounds, strict=True))
        return [self.once(tuple(assigned))], Range(space.var, names[0], names[1], names[2], space.span)

    def once(self, statements: tuple[Stmt, ...]) -> For:
        """One trip around statements that touch arrays."""
        span, variable = statements[0].span, "once"
        taken = self.typing.names.keys() - _single_variables(self.function.body)
        while variable in taken:
            variable += "_"
        trip = Range(variable, Const(0, span), Const(1, span), Const(1, span), span)
        return For(trip, statements, SYNTHETIC, span)

    def result(self, last: Stmt) -> list[Stmt]:
        """A `return`; what it reads from arrays is computed by one worker first."""
        assert isinstance(last, Return)
        if last.value is None:
            return [last]
        parts = parts_of(last.value)
        arrays = [part for part in parts if self.typing.of(part).rank]
        for part in arrays:
            self.check_returned(part)
        own = frozenset(name for name, kind in self.typing.names.items() if kind.rank)
        if not any(touches(part, self.arrays | own) for part in parts if part not in arrays):
            return [last]
        kept: list[Stmt] = []
        numbers = count()

        def named(part: Expr) -> Expr:
            number = next(numbers)
            if part in arrays:
                return part
            name = self.fresh(f"result_{number}", self.typing.of(part), last)
            kept.append(Assign(name, part, last.span))
            return name

        value = with_parts(last.value, named)
        return [self.once(tuple(kept)), replace(last, value=value)]

    def check_returned(self, part: Expr) -> None:
        """UnsupportedLoopError for an array that is returned, unless it is one of the function's or the caller's, or a
        part of one."""
        whole: Expr = part
        index: list[Expr] = []
        while isinstance(whole, Call) and is_part_returned(whole, self.typing):
            index += whole.arguments[1:]
            whole = whole.arguments[0]
        name = whole.base.name if isinstance(whole, Subscript) else whole.name if isinstance(whole, Var) else ""
        index += whole.index if isinstance(whole, Subscript) else ()
        bound = {node.name for node in every(Bind, *self.function.body)}
        if not name or name in bound or any(touches(one, self.arrays) for one in index):
            why = (
                "a function returns scalars, arrays that it makes or is given, and parts of these by slices and scalars"
            )
            hint = "write into an array that is an argument, or return a copy, `return A.copy()`"
            raise self.refuse(part, "this array cannot be returned", why, hint)

    def fresh(self, name: str, kind: ValueType, place: Node) -> Var:
        """A new name for a value of this type."""
        while name in self.typing.names or name in self.names:
            name += "_"
        self.names[name] = kind
        return Var(name, place.span)

    def zeros(self, body: tuple[Stmt, ...]) -> list[Stmt]:
        """Assignments of zero to the scalars that may be read before they have a value, such as what only a loop sets.

        A planned loop is given the values that its scalars have before it. Where Python would find a name without a
        value (no trip of the loop was made) the compiled function finds zero. As a Python scalar it takes the dtype
        of what is assigned later.
        """
        found: list[Stmt] = []
        for name, span in exposed_reads(body, {*self.function.params}).items():
            kind = self.names.get(name) or self.typing.name(name)
            value = False if kind.dtype == "bool" else 0 if kind.is_integer else 0.0
            if kind.rank == 0:
                found.append(Assign(Var(name, span), Const(value, span), span))
        return found

    # ------------------------------------------------------------ what may not be

    def shared_arrays(self, body: tuple[Stmt, ...]) -> tuple[str, ...]:
        """The arrays that are neither arguments nor live in one planned loop alone: all workers must share them.

        Raises `UnsupportedLoopError` where one stands for parts of other arrays.
        """
        local = {name for name, kind in self.typing.names.items() if kind.rank} - {*self.function.params}
        homes: dict[str, Node] = {}
        shared: dict[str, None] = {}
        for unit in _units(body):
            for name in sorted(local & _names(unit)):
                if homes.setdefault(name, unit) is not unit or not isinstance(unit, For):
                    self.check_whole(name, homes[name], body)
                    shared[name] = None
        return tuple(shared)

    def refuse(
        self, node: Node, what: str, why: str, hint: str, replacement: Replacement | None = None
    ) -> UnsupportedLoopError:
        source = self.function.source
        return unsupported(what, node.span, source, why=why, hint=hint, is_for_numba=True, replacement=replacement)

    def check_whole(self, name: str, home: Node, body: tuple[Stmt, ...]) -> None:
        if any(node.name == name for node in every(Bind, *body)):
            said = as_said(name, home.span, self.function)
            what = f"`{said}` stands for parts of arrays in more than one loop"
            hint = f"give the part its name inside the loop that uses it, or make a copy: `{said} = ….copy()`"
            raise self.refuse(home, what, "", hint, self.copied(name, body))

    def copied(self, name: str, body: tuple[Stmt, ...]) -> Replacement | None:
        """A copy of the part that a name stands for, where the source makes it a single time."""
        spans = {node.span for node in every(Bind, *body) if node.name == name}
        return copy_of_part(spans.pop(), self.function.source) if len(spans) == 1 else None

    def misplaced(self, elements: Elements) -> UnsupportedLoopError:
        what = "a loop over elements inside another loop over elements is not supported"
        why = "how the elements are shared out is planned before the function runs"
        hint = "put it at the top level of the function, or into an `if`, a `while` or a loop over a range"
        return self.refuse(elements, what, why, hint)


def _single_variables(body: tuple[Stmt, ...]) -> set[str]:
    """The variables of the loops of one trip that are there already; nothing reads them."""
    loops = every(For, *body)
    return {loop.space.var for loop in loops if loop.index == SYNTHETIC and isinstance(loop.space, Range)}


def _returns(statement: Stmt) -> bool:
    return holds(Return, statement)


def _units(body: tuple[Stmt, ...]) -> Iterator[Node]:
    """The planned loops, and the statements and tests between them, in textual order."""
    for statement in body:
        if is_split(statement):
            assert isinstance(statement, If | While)
            yield statement.test
            yield from _units(statement.body)
            yield from _units(statement.orelse if isinstance(statement, If) else ())
        elif isinstance(statement, For) and is_repeat(statement):
            yield from _units(statement.body)
        else:
            yield statement


def _names(unit: Node) -> set[str]:
    return {name for name, _ in assignments(unit)} | names_in(unit)
