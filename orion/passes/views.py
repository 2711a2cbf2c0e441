"""Names that stand for parts of arrays, replaced by those parts.

`w = W[i]` makes `w` another name for a row where `W` has more than one dimension: `w -= g` then writes `W`. Each use
of such a name becomes the row itself (`w` → `W[i]`, `w[k]` → `W[i, k]`, `w -= g` → `W[i] -= g`) where the name stands
for one view on every path to the use, and nothing that the view is made of (its array's name, names in its
subscripts) is assigned in between. Names with a use for which that cannot be said keep their assignments, as `Bind`;
what they touch is taken for the whole array by the analysis.

`w = W[i].copy()` and `w = w - g` make new rows, private to the iteration: those are no views. `x = a[i]` of a
one-dimensional array is a scalar.
"""

from __future__ import annotations

from typing import Any

from orion.dataclass import dataclass, field, replace
from orion.frontend.check import check_function
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Bind,
    Call,
    Dim,
    Expr,
    For,
    If,
    Pass,
    Slice,
    Stmt,
    Subscript,
    Update,
    Var,
    While,
    every,
    walk,
)  # fmt: skip
from orion.ir.rewriting import rewrite, with_new
from orion.passes.view import View, compose
from orion.passes.view_names import is_view, never_negative, plain_assignments, view_assignments, written_names
from orion.source import Span
from orion.typing.expression_types import Typing


def replace_views(function: Function, typing: Typing) -> Function:
    """The function with names of views replaced by the parts of arrays that they stand for. UnsupportedLoopError where
    a view is of a kind that cannot be named (a transpose)."""
    function = check_function(with_new(function, body=plain_assignments(function, typing)))
    names = frozenset(view_assignments(function, typing))
    kept: frozenset[str] = frozenset()
    while True:
        resolver = _Resolver(
            typing, names - kept, written_names(function, typing), never_negative(function), _used(function)
        )
        body = resolver.block(function.body)
        if not resolver.failed:
            return with_new(function, body=body)
        kept |= resolver.failed


def _used(function: Function) -> set[str]:
    return {*function.params, *assigned_names(function.body)}


@dataclass(slots=True)
class _Resolver:
    """One pass over the function.

    `names` are the names of views to be replaced; `written` those whose elements may be written somewhere; `positive`
    those that are never negative; `taken` all names of the function. `views` is the state at the statement that is
    being looked at: what a name stands for, or None where that is not one view for sure. `failed` are the names that
    turn out to have a use which cannot be replaced.
    """

    typing: Typing
    names: frozenset[str]
    written: frozenset[str]
    positive: frozenset[str]
    taken: set[str]
    views: dict[str, View | None] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()

    # ------------------------------------------------------------ statements

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        found = tuple(new for statement in body for new in self.statement(statement))
        return found or (Pass(body[0].span),) if body else ()

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Var(name), value) if is_view(value, self.typing):
                return self.take_view(name, value, statement.span)
            case If(test, body, orelse):
                return (self.branches(statement, test, body, orelse),)
            case For() | While():
                return (self.loop(statement),)
            case _:
                changed = rewrite(statement, self.replaced)
                for name in assigned_names((statement,)):
                    if not self.is_in_place(statement):
                        self.views.pop(name, None)
                        self.forget(name)
                return (changed,)

    def is_in_place(self, statement: Stmt) -> bool:
        """Whether an `x op= e` writes the elements of an array rather than giving the name a new value."""
        return isinstance(statement, Update) and self.typing.of(statement.target).rank > 0

    def take_view(self, name: str, value: Expr, span: Span) -> tuple[Stmt, ...]:
        before, view = self.view_of(rewrite(value, self.replaced), name)
        self.forget(name)
        if name in self.names and not view.mentions(name):
            self.views[name] = view
            return before
        self.failed |= {name} & self.names
        row = view.at(span)
        whole = (Slice(None, None, None, span),)
        return (*before, Bind(name, row if isinstance(row, Subscript) else Subscript(row, whole, span), span))

    def view_of(self, value: Expr, name: str) -> tuple[tuple[Stmt, ...], View]:
        """The view, and assignments that keep those of its subscripts whose value may change before it is used."""
        assert isinstance(value, Var | Subscript)
        if isinstance(value, Var):
            return (), View(value.name, ())
        before: list[Stmt] = []
        index: list[Expr] = []
        for part in value.index:
            if name in self.names and not isinstance(part, Slice) and self.may_change(part):
                kept = Var(self.fresh(f"{name}_index"), part.span)
                before.append(Assign(kept, part, part.span))
                part = kept
            index.append(part)
        return tuple(before), View(value.base.name, tuple(index))

    def may_change(self, part: Expr) -> bool:
        return any(
            isinstance(node, Call) or (isinstance(node, Subscript) and node.base.name in self.written)
            for node in walk(part)
        )

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def forget(self, name: str) -> None:
        """After an assignment to `name`, the views made with it stand for something else."""
        for other, view in self.views.items():
            if view is not None and view.mentions(name):
                self.views[other] = None

    # ------------------------------------------------------------ control flow

    def branches(self, statement: If, test: Expr, body: tuple[Stmt, ...], orelse: tuple[Stmt, ...]) -> If:
        test = rewrite(test, self.replaced)
        before = dict(self.views)
        body = self.block(body)
        after_body, self.views = self.views, before
        orelse = self.block(orelse)
        names = {*after_body, *self.views}
        self.views = {name: _common(after_body.get(name), self.views.get(name)) for name in names}
        return with_new(statement, test=test, body=body, orelse=orelse)

    def loop(self, statement: For | While) -> For | While:
        head: dict[str, Any] = {}
        if isinstance(statement, For):
            head["space"] = rewrite(statement.space, self.replaced)
        self.enter(statement)
        entered = dict(self.views)
        if isinstance(statement, While):
            head["test"] = rewrite(statement.test, self.replaced)
        body = self.block(statement.body)
        self.views = entered
        return with_new(statement, body=body, **head)

    def enter(self, loop: For | While) -> None:
        """At the start of a round, and after the loop, what it assigns is from before or was made by a round."""
        for name in assigned_names((loop,)):
            if name in self.views or self.takes_view(loop, name):
                self.views[name] = None
            self.forget(name)

    def takes_view(self, loop: For | While, name: str) -> bool:
        return name in self.names and any(
            node.target == Var(name, node.target.span) and is_view(node.value, self.typing)
            for node in every(Assign, loop)
        )

    # ------------------------------------------------------------ expressions

    def replaced(self, expr: Expr) -> Expr:
        """The expression with a name of a view at its top replaced."""
        match expr:
            case Subscript(base, index) if base.name in self.views:
                return self.part(expr, base.name, index)
            case Var(name) if name in self.views:
                view = self.views[name]
                if view is None:
                    self.failed |= {name}
                    return expr
                return view.at(expr.span)
            case Dim(array) if array in self.views:
                view = self.views[array]
                if view is not None and not view.index:
                    return replace(expr, array=view.base)
                self.failed |= {array}
                return expr
            case _:
                return expr

    def part(self, expr: Subscript, name: str, index: tuple[Expr, ...]) -> Expr:
        view = self.views[name]
        parts = None if view is None else compose(view, index, self.positive)
        if view is None or parts is None:
            self.failed |= {name}
            return expr
        return Subscript(Var(view.base, expr.base.span), parts, expr.span)


def _common(first: View | None, second: View | None) -> View | None:
    return first if first is not None and first.says_same(second) else None
