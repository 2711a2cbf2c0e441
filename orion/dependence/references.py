"""Every reading and writing of an array in a loop body, in the order in which one iteration makes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from orion.dataclass import dataclass, field
from orion.dependence.index_arrays import index_arrays
from orion.ir.assigned import assigned_places, assignments, bound_rows, holds_break, own_level
from orion.ir.function import Function, written_names
from orion.ir.kept import kept
from orion.ir.nodes import (
    Assign,
    Bind,
    Break,
    Call,
    Choose,
    Compare,
    Continue,
    Count,
    Dim,
    Elements,
    Evaluate,
    Expr,
    For,
    If,
    Logic,
    Node,
    Return,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Update,
    Var,
    While,
    children,
    holds,
    names_in,
)  # fmt: skip
from orion.ir.printer import print_expr
from orion.ir.program import LoopNest
from orion.ir.types import ArrayType, ScalarType, Types
from orion.passes.writes import Ranks, local_ranks, viewed_places, written_positions
from orion.reasons import Hint
from orion.sets.affine import (
    Affine,
    Condition,
    Form,
    NotAffine,
    affine_condition,
    affine_form,
    itself,
    parameter,
    step_form,
)  # fmt: skip
from orion.sets.names import extent_name, isl_name
from orion.source import Span


@dataclass(frozen=True, slots=True)
class Interval:
    """A slice of one array axis. A bound that is None is that end of the axis."""

    lower: Form | None
    upper: Form | None
    step: Form | None


Axis = Affine | NotAffine | Interval


@dataclass(frozen=True, slots=True)
class InnerLoop:
    """A loop inside the iteration; its variable is a further dimension of the accesses below it."""

    var: str
    start: Form
    stop: Form
    step: Form


@dataclass(frozen=True, slots=True)
class Reference:
    """One access before it becomes a relation: which array, which subscripts, inside which inner loops.

    `axes` has an entry per axis of the array. `guards` are the affine conditions under which it happens. `blur` is why
    it stands for all elements of the array, where it does. `place` is where it stands in the iteration: with v the
    variables of the loops in `inner`, counted in the order of their trips, accesses happen in the lexicographic order
    of (place[0], v[0], place[1], v[1], …).
    """

    array: str
    axes: tuple[Axis, ...]
    inner: tuple[InnerLoop, ...]
    is_write: bool
    is_may: bool
    text: str
    span: Span
    blur: NotAffine | None = None
    subscript: Subscript | None = None
    guards: tuple[Condition, ...] = ()
    place: tuple[int, ...] = ()


def collect_references(nest: LoopNest, types: Types, scope: Mapping[str, Form] | None = None) -> tuple[Reference, ...]:
    """The references of one iteration of `nest`, in execution order; `scope` is its `loop_scope`, if known already."""
    collector = _Collector(nest, types, loop_scope(nest, types) if scope is None else dict(scope))
    collector.block(nest.body)
    return tuple(collector.found)


def condition_in(nest: LoopNest, types: Types, test: Expr) -> Condition | None:
    """A test at the start of an iteration as an affine condition on integers, None where it is none."""
    return _Collector(nest, types, loop_scope(nest, types)).condition(test)


def loop_scope(nest: LoopNest, types: Types, known: Mapping[str, Form] | None = None) -> dict[str, Form]:
    """The forms of the loop variables and of the integers that keep their value while the loop runs.

    A name that the function sets once, outside of all loops, to an affine expression of its arguments (`n =
    A.shape[0]`) stands for that expression. `known` are the `definitions` of the function, where they were computed.
    """
    changed = assigned_places(nest.body)
    scope: dict[str, Form] = {}
    for name in _free_names(nest):
        argument = types.get(name)
        if name not in changed and not isinstance(argument, ArrayType):
            scope[name] = parameter(name)
    found = definitions(nest.function) if known is None else known
    scope |= {name: form for name, form in found.items() if name in scope}
    scope |= index_arrays(nest, types)
    scope |= {name: parameter(name) for name in nest.dims}
    return scope


@kept
def definitions(function: Function) -> Mapping[str, Form]:
    """The affine forms of the names that are assigned once in the function, at its top level. Not of a parameter that
    is mentioned before: until then it has the value of the call, and loops before it see that."""
    counts = Counter(name for statement in function.body for name, _ in assignments(statement))
    known: dict[str, Form] = {name: parameter(name) for name in function.params if name not in counts}
    known |= {name: parameter(name) for name, _ in function.constants}
    found: dict[str, Form] = {}
    mentioned: set[str] = set()
    for statement in function.body:
        for name, value in _assigned_values(statement):
            form = affine_form(value, known)
            is_new = name not in function.params or name not in mentioned
            if counts[name] == 1 and is_new and isinstance(form, Affine):
                known[name] = found[name] = form
        mentioned |= names_in(statement)
    return found


def _assigned_values(statement: Stmt) -> list[tuple[str, Expr]]:
    """The names that a statement gives a value, with the values: two for `n, m = A.shape`."""
    match statement:
        case Assign(Var(name), value):
            return [(name, value)]
        case Assign(Tuple(targets), Tuple(values)):
            pairs = zip(targets, values, strict=False)
            return [(target.name, value) for target, value in pairs if isinstance(target, Var)]
        case _:
            return []


def _free_names(nest: LoopNest) -> set[str]:
    return names_in(nest.loops[0])


@dataclass
class _Collector:
    nest: LoopNest
    types: Types
    scope: dict[str, Form]
    found: list[Reference] = field(default_factory=list)
    assigned: dict[str, Span] = field(init=False)
    views: dict[str, set[str]] = field(default_factory=dict)
    inner: tuple[InnerLoop, ...] = ()
    guards: tuple[Condition, ...] = ()
    conditional: int = 0
    ranks: Ranks = field(init=False)
    clock: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        self.conditional = int(_may_end(self.nest.body))
        self.assigned = assigned_places(self.nest.body)
        given = {name: kind.ndim if isinstance(kind, ArrayType) else 0 for name, kind in self.types.items()}
        self.ranks = local_ranks(self.nest.body, given | dict.fromkeys(self.nest.dims, 0))
        for name, bases in bound_rows(self.nest.loops[:1]).items():
            # a row that the iteration made for itself is no array of anybody else's
            self.views[name] = {base for base in bases if isinstance(self.types.get(base), ArrayType)}

    # ------------------------------------------------------------ statements

    def block(self, statements: tuple[Stmt, ...]) -> None:
        entered = self.conditional
        for statement in statements:
            self.statement(statement)
            if any(isinstance(node, Break | Continue) for node in own_level((statement,))):
                self.conditional += 1  # what follows in this block may be skipped
        self.conditional = entered

    def statement(self, statement: Stmt) -> None:
        match statement:
            case Assign(target, value):
                self.read(value)
                self.assign(target, value)
            case Update(target, _, value):
                self.read(value)
                if isinstance(target, Subscript):
                    self.subscript(target, is_write=False)
                    self.subscript(target, is_write=True)
                else:
                    self.name(target, is_write=False)
                    self.name(target, is_write=True)
                    self.forget(target.name, statement.span)
            case Bind(_, row):
                for index in row.index:
                    self.read(index)
            case Evaluate(value):
                self.read(value)
            case If(test, body, orelse):
                self.read(test)
                self.branches(test, body, orelse)
            case While(test, body):
                self.repeated(test, body)
            case For():
                self.loop(statement)
            case Return(value) if value is not None:
                self.read(value)
            case _:
                pass

    def assign(self, target: Var | Subscript | Tuple, value: Expr) -> None:
        match target:
            case Subscript():
                self.subscript(target, is_write=True)
            case Tuple(items):
                for item in items:
                    if isinstance(item, Subscript):
                        self.subscript(item, is_write=True)
                    elif isinstance(item, Var):
                        self.forget(item.name, item.span)
            case Var(name):
                self.scope[name] = affine_form(value, self.scope)

    def forget(self, name: str, span: Span) -> None:
        if name not in self.nest.dims or name in self.assigned:
            self.scope[name] = NotAffine("ORN103", f"`{name}` changes inside the iteration", span)

    def branches(self, test: Expr | None, *blocks: tuple[Stmt, ...]) -> None:
        """Blocks of which at most one is run: the first where `test` holds, the second where it does not."""
        before, guards = dict(self.scope), self.guards
        for block, is_true in zip(blocks, (True, False), strict=False):
            self.scope = dict(before)
            with self.where(test, is_true):
                self.block(block)
        self.scope, self.guards = before, guards
        for block in blocks:
            for name, span in assigned_places(block).items():
                self.forget(name, span)

    @contextmanager
    def where(self, test: Expr | None, holds: bool) -> Iterator[None]:
        """What is evaluated only where a test holds, or only where it does not; None is a test of which nothing is
        known."""
        known, is_all = ([], False) if test is None else self.conditions(test, holds)
        guards, self.guards = self.guards, (*self.guards, *known)
        self.conditional += not is_all
        yield
        self.conditional -= not is_all
        self.guards = guards

    def conditions(self, test: Expr, holds: bool) -> tuple[list[Condition], bool]:
        """Affine conditions that are true where a test holds, or does not, and whether they say all of it:

        a and b holds: those of a, and those of b.  a or b does not: those of not a, and those of not b.
        """
        condition = self.condition(test)
        if condition is not None:
            return [condition if holds else condition.negated()], True
        match test:
            case Unary("not", operand):
                return self.conditions(operand, not holds)
            case Logic(op, operands) if (op == "and") == holds:
                found = [one for operand in operands for one in self.conditions(operand, holds)[0]]
                return found, False
            case _:
                return [], False

    def condition(self, test: Expr) -> Condition | None:
        """The test as a condition on integers, None where it is none."""
        condition = affine_condition(test, self.scope)
        if condition is not None and not condition.names <= self.integers():
            return None  # isl would take a float for an integer
        return condition

    def integers(self) -> set[str]:
        """The isl names that stand for integers for sure: loop variables, extents, integer arguments and constants."""
        found = {isl_name(name) for name in self.nest.dims} | {loop.var for loop in self.inner}
        for name, kind in self.types.items():
            if isinstance(kind, ScalarType):
                found |= {isl_name(name)} if np.dtype(kind.dtype).kind in "iu" else set()
            else:
                found |= {extent_name(name, axis) for axis in range(kind.ndim)}
        return found | {isl_name(name) for name, value in self.nest.function.constants if type(value) is int}

    def repeated(self, test: Expr | None, body: tuple[Stmt, ...]) -> None:
        for name, span in assigned_places(body).items():
            self.forget(name, span)
        if test is not None:
            self.read(test)
        self.branches(None, body)

    def loop(self, statement: For) -> None:
        space = statement.space
        if isinstance(space, Elements):
            for name in (*space.keys, *space.values):
                self.forget(name, space.span)
            self.repeated(None, statement.body)
            return
        for bound in (space.start, space.stop, space.step):
            self.read(bound)
        start, stop = (affine_form(bound, self.scope) for bound in (space.start, space.stop))
        step = step_form(space.step, self.scope)
        for name, span in assigned_places(statement.body).items():
            self.forget(name, span)
        before = self.scope.get(space.var), self.inner
        var = self.fresh(space.var)
        self.inner = (*self.inner, InnerLoop(var, start, stop, step))
        self.scope[space.var] = itself(var)
        if space.var in assigned_places(statement.body):
            self.forget(space.var, space.span)
        is_sure = all(isinstance(form, Affine) for form in (start, stop, step)) and not _may_end(statement.body)
        self.conditional += not is_sure
        self.clock.append(0)
        self.block(statement.body)
        self.clock.pop()
        self.clock[-1] += 1
        self.conditional -= not is_sure
        self.inner = before[1]
        for name, span in (*assigned_places(statement.body).items(), (space.var, space.span)):
            self.forget(name, span)  # what it is after the last trip, if there was one, is not known

    def fresh(self, name: str) -> str:
        taken = {isl_name(dim) for dim in self.nest.dims} | {loop.var for loop in self.inner}
        text = isl_name(name)
        while text in taken:
            text += "_"
        return text

    # ------------------------------------------------------------ expressions

    def read(self, expr: Node) -> None:
        match expr:
            case Subscript():
                self.subscript(expr, is_write=False)
            case Var():
                self.name(expr, is_write=False)
            case Call():
                self.call(expr)
            case Dim() | Count():
                pass
            case Logic(op, operands):
                self.joined(op, operands)
            case Choose(test, then, orelse):
                self.read(test)
                for part, is_true in ((then, True), (orelse, False)):
                    with self.where(test, is_true):
                        self.read(part)
            case Compare(_, (first, second, *rest)):
                self.read(first)
                self.read(second)
                self.read_perhaps(*rest)
            case _:
                for child in children(expr):
                    self.read(child)

    def joined(self, op: str, operands: Sequence[Expr]) -> None:
        """Operands of which each is evaluated where those before it hold, or, of `or`, where they do not."""
        first, *rest = operands
        self.read(first)
        if rest:
            with self.where(first, op == "and"):
                self.conditional += 1
                self.joined(op, rest)
                self.conditional -= 1

    def read_perhaps(self, *parts: Expr) -> None:
        """Parts of an expression that may not be evaluated."""
        self.conditional += 1
        for part in parts:
            self.read(part)
        self.conditional -= 1

    def call(self, call: Call) -> None:
        for argument in (*call.arguments, *(value for _, value in call.keywords)):
            self.read(argument)
        for position in written_positions(call, self.nest.function, self.ranks):
            self.conditional += 1  # what it writes of the argument, if anything, is not known
            for place in viewed_places(call.arguments[position]):
                if isinstance(place, Subscript):
                    self.subscript(place, is_write=True)
                else:
                    self.name(place, is_write=True)
            self.conditional -= 1

    def name(self, var: Var, *, is_write: bool) -> None:
        """A use of a whole array, or of a view that could not be resolved."""
        arrays = self.views.get(var.name, {var.name} if isinstance(self.types.get(var.name), ArrayType) else set())
        blur = None
        if var.name in self.views:
            blur = NotAffine("ORN105", f"`{var.name}` may be a view of more than one row", var.span)
        for array in sorted(arrays):
            self.add(array, (), var, is_write=is_write, blur=blur)

    def subscript(self, expr: Subscript, *, is_write: bool) -> None:
        for index in expr.index:
            self.read(index)
        if expr.base.name in self.views:
            self.name(expr.base, is_write=is_write)
        elif isinstance(self.types.get(expr.base.name), ArrayType):
            axes = tuple(self.axis(index) for index in expr.index)
            if expr.base.name in self.nest.function.lists:
                why = f"the place of an item of `{expr.base.name}` depends on how many there are"
                hint = Hint.LIST.format(name=expr.base.name)
                axes = tuple(
                    NotAffine(one.code, why, one.span, hint) if isinstance(one, NotAffine) else one for one in axes
                )
            self.add(expr.base.name, axes, expr, is_write=is_write)

    def axis(self, index: Expr) -> Axis:
        if isinstance(index, Slice):
            lower, upper, step = (
                None if bound is None else affine_form(bound, self.scope)
                for bound in (index.lower, index.upper, index.step)
            )
            return Interval(lower, upper, step)
        return affine_form(index, self.scope)

    def add(
        self,
        array: str,
        axes: tuple[Axis, ...],
        expr: Var | Subscript,
        *,
        is_write: bool,
        blur: NotAffine | None = None,
    ) -> None:
        kind = self.types[array]
        assert isinstance(kind, ArrayType)
        whole = Interval(None, None, None)
        padded = axes + (whole,) * (kind.ndim - len(axes))
        subscript = expr if isinstance(expr, Subscript) else None
        is_item = subscript is not None and array in self.nest.function.lists
        text = f"{array}.append(…)" if is_item and is_write else f"{array}[…]" if is_item else self.text(expr)
        may = bool(self.conditional)
        place = tuple(self.clock)
        self.clock[-1] += 1
        self.found.append(
            Reference(array, padded, self.inner, is_write, may, text, expr.span, blur, subscript, self.guards, place)
        )

    def text(self, expr: Var | Subscript) -> str:
        """An access as it is written; by the name of its array where nobody wrote the loops of its subscripts."""
        texts = _texts(self.nest.function)
        if id(expr) not in texts:
            is_made = isinstance(expr, Subscript) and not names_in(*expr.index) <= written_names(self.nest.function)
            texts[id(expr)] = expr, print_expr(expr.base if isinstance(expr, Subscript) and is_made else expr)
        return texts[id(expr)][1]


@kept
def _texts(_function: Function) -> dict[int, tuple[Expr, str]]:
    """The texts of accesses by the identity of these, which are kept so that no other has it."""
    return {}


def _may_end(body: tuple[Stmt, ...]) -> bool:
    """Whether a loop with this body may end before its last trip: then no trip of it is sure to be made."""
    return holds_break(body) or holds(Return, *body)
