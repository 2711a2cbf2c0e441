"""What is kept of what some iterations do with a scalar, and what the scalar is after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from orion.dataclass import dataclass
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Dtype,
    Expr,
    If,
    Logic,
    Stmt,
    Subscript,
    Unary,
    Var,
)  # fmt: skip
from orion.ir.spans import NOWHERE, with_span
from orion.rewrites.scans.steps import Change, Scan, Step, keeps_first
from orion.source import Span

LOWEST: dict[str, Expr] = {
    "float64": Const(float("-inf"), NOWHERE),
    "int64": Binary("-", Const(-(2**63 - 1), NOWHERE), Const(1, NOWHERE), NOWHERE),
}
INFINITE = Const(float("inf"), NOWHERE)
HIGHEST: dict[str, Expr] = {"float64": INFINITE, "int64": Const(2**63 - 1, NOWHERE)}
NOTHING: dict[str, Expr] = {
    "float64": Const(-0.0, NOWHERE),
    "int64": Const(0, NOWHERE),
    "bool": Const(False, NOWHERE),
}
"""What a sum begins with: x + -0.0 is x, also for -0.0."""

TRUE, FALSE = Const(True, NOWHERE), Const(False, NOWHERE)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a scan: `term` is t and `factor` f of `orion.rewrites.scans.steps`, `is_new` whether there was a
    new value, `is_plain` whether the scalar is what t and f make of it: factors greater than 1 may grow past all
    numbers while the scalar is 0 all the time, those less than 1 may become 0 while it is infinite (`tells`), and
    Python's `max(e, s)` forgets what was before a NaN. Each is a scalar of that name, or "" where it is not needed.
    """

    scan: Scan
    dtype: str
    span: Span
    term: str
    factor: str
    is_new: str
    is_plain: str

    @classmethod
    def of(cls, scan: Scan, dtype: str, span: Span, fresh: Callable[[str], str]) -> Kept:
        """`fresh` gives new names."""
        extreme = scan.extreme
        may_forget = extreme is not None and dtype == "float64" and not keeps_first(extreme)
        return cls(
            scan,
            dtype,
            span,
            fresh(f"{scan.name}_part"),
            fresh(f"{scan.name}_factor") if scan.is_linear else "",
            fresh(f"{scan.name}_new") if scan.has_new_values else "",
            fresh(f"{scan.name}_plain") if scan.is_linear or may_forget else "",
        )

    @property
    def parts(self) -> Iterator[tuple[str, str, Expr]]:
        """The scalars, with their dtypes and what they are before the first iteration."""
        yield self.term, self.dtype, self.first
        for name, dtype, first in (
            (self.factor, self.dtype, Const(1.0, NOWHERE)),
            (self.is_new, "bool", FALSE),
            (self.is_plain, "bool", TRUE),
        ):
            if name:
                yield name, dtype, first

    @property
    def first(self) -> Expr:
        if self.scan.extreme is None:
            return NOTHING[self.dtype]
        return (LOWEST if self.scan.extreme.function.endswith(("max", "maximum")) else HIGHEST)[self.dtype]

    def begun(self) -> Iterator[Stmt]:
        for name, _, first in self.parts:
            yield self.given(name, with_span(first, self.span))

    def changed(self, change: Change) -> Iterator[Stmt]:
        """What a change of the scalar does to what is kept."""
        term, factor = self.var(self.term), change.factor
        match change.step:
            case Step.SUM:
                yield self.given(self.term, self.binary("+", term, change.term))
            case Step.EXTREME:
                if self.is_plain:
                    yield self.unless(Compare(("==",), (change.term, change.term), self.span))
                yield self.given(self.term, change.applied(term, change.term))
            case Step.NEW:
                yield self.given(self.term, change.term)
                yield self.given(self.is_new, Const(True, self.span))
            case Step.LINEAR:
                assert factor is not None
                if self.is_plain:
                    size = Call("abs", (factor,), self.span)
                    yield self.unless(Compare(("<=",), (size, Const(1.0, self.span)), self.span))
                yield self.given(self.term, self.binary("+", self.binary("*", factor, term), change.term))
                yield self.given(self.factor, self.binary("*", factor, self.var(self.factor)))

    def unless(self, test: Expr) -> Stmt:
        """The scalar is not what the rest makes of it unless something holds."""
        return If(Unary("not", test, self.span), (self.given(self.is_plain, Const(False, self.span)),), (), self.span)

    def tells(self, before: Expr, read: Callable[[str], Expr]) -> Expr | None:
        """Whether the scalar is what is kept makes of what it was before; None where that is sure."""
        if not self.is_plain:
            return None
        plain = read(self.is_plain)
        return Logic("and", (plain, self.is_finite(before)), self.span) if self.factor else plain

    def is_finite(self, value: Expr) -> Expr:
        return Compare(("<",), (Call("abs", (value,), self.span), with_span(INFINITE, self.span)), self.span)

    def joined(self, after: Kept) -> Iterator[Stmt]:
        """This, and what was done after it, as one."""
        yield self.given(self.term, after.applied(self.var(self.term), after.read))
        if self.factor:
            yield self.unless(self.is_finite(self.var(self.term)))
            yield self.given(self.factor, self.binary("*", self.var(after.factor), self.var(self.factor)))
        for own, other, value in ((self.is_new, after.is_new, True), (self.is_plain, after.is_plain, False)):
            if own:
                test: Expr = self.var(other) if value else Unary("not", self.var(other), self.span)
                yield If(test, (self.given(own, Const(value, self.span)),), (), self.span)

    def applied(self, before: Expr, read: Callable[[str], Expr]) -> Expr:
        """The scalar after what is kept, from what it was before."""
        term, scan = read(self.term), self.scan
        if scan.steps == {Step.NEW}:
            found = before
        elif scan.extreme is not None:
            found = scan.extreme.applied(before, term)
        elif self.factor:
            found = self.binary("+", self.binary("*", read(self.factor), before), term)
        else:
            found = self.binary("+", before, term)
        return Choose(read(self.is_new), term, found, self.span) if self.is_new else found

    def read(self, name: str) -> Expr:
        return self.var(name)

    # ------------------------------------------------------------ shorthand

    def given(self, name: str, value: Expr) -> Assign:
        return Assign(self.var(name), value, self.span)

    def binary(self, op: str, left: Expr, right: Expr) -> Expr:
        return Binary(op, left, right, self.span)

    def var(self, name: str) -> Var:
        return Var(name, self.span)


def array_of(name: str, dtype: str, length: Expr, span: Span) -> Stmt:
    """An array with a place for each block."""
    return Assign(Var(name, span), Call("np.empty", (length, Dtype(dtype, span)), span), span)


def place(array: str, at: Var) -> Subscript:
    return Subscript(Var(array, at.span), (at,), at.span)
