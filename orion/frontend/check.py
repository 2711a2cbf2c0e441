"""A check that a function is well formed, run between passes: what a pass may rely on, and must leave."""

from __future__ import annotations

from orion.dataclass import dataclass, field
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import (
    RETURNED,
    Assign,
    Bind,
    Break,
    Call,
    Const,
    Continue,
    Count,
    Dim,
    Dtype,
    Elements,
    Evaluate,
    Expr,
    For,
    If,
    Node,
    Pass,
    Range,
    Return,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    While,
    children,
)  # fmt: skip
from orion.ir.printer import print_expr, print_stmt
from orion.source import Span

STATEMENTS = (Assign, Update, Bind, Evaluate, If, While, For, Break, Continue, Return, Pass)
BINARY = frozenset({"+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"})
UNARY = frozenset({"-", "+", "not", "~"})
OPERATORS = BINARY | UNARY | {"and", "or"}
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "is", "is not"})


class MalformedError(AssertionError):
    """A pass has left a function that is not well formed: a defect of Orion, not of the user's code."""


class UndefinedNameError(MalformedError):
    """A name is used where nothing before has defined it. In a function just parsed, that is the user's mistake."""

    def __init__(self, name: str, span: Span, function: Function) -> None:
        super().__init__(f"{span}: uses `{name}` before it is defined")
        self.name, self.span, self.function = name, span, function


def check_function(function: Function) -> Function:
    """The function itself; MalformedError where it, or a helper, breaks a rule of the loop language.

    The rules: a name is a parameter, `sure`, or assigned somewhere before or around its use; a `Slice` stands in a
    subscript only, a `Dtype` in a call only; `break` and `continue` stand in loops; operators are those of the
    language; a comparison has one operand more than operators; targets are names, subscripts or tuples of these; blocks
    of loops and branches are not empty (an `else` may be); a range's step is not 0; helpers that are called exist, and
    have as many parameters as arguments are given; the `for`s that come from the source have distinct numbers.
    """
    names = {helper.name: len(helper.params) for helper in function.helpers}
    for one in (function, *function.helpers):
        known = {*one.params, *assigned_names(one.body)}
        _Checker(one, frozenset(known), names).block(one.body, {*one.params, *one.sure}, in_loop=False)
    return function


@dataclass(slots=True)
class _Checker:
    function: Function
    known: frozenset[str]
    helpers: dict[str, int]
    numbers: set[int] = field(default_factory=set)

    # ------------------------------------------------------------ statements

    def block(self, body: tuple[Stmt, ...], defined: set[str], *, in_loop: bool) -> set[str]:
        """Check the statements; the names that may be defined after them."""
        for statement in body:
            if not isinstance(statement, STATEMENTS):
                raise self.malformed(statement, "is not a statement")
            defined = self.statement(statement, defined, in_loop)
        return defined

    def statement(self, statement: Stmt, defined: set[str], in_loop: bool) -> set[str]:
        match statement:
            case If(test, body, orelse):
                if not body:
                    raise self.malformed(statement, "has an empty block")
                self.value(test, defined)
                after = self.block(body, set(defined), in_loop=in_loop)
                return after | self.block(orelse, set(defined), in_loop=in_loop)
            case For() | While():
                return self.loop(statement, defined)
            case Assign(target, value):
                self.value(value, defined)
                self.target(target, defined)
            case Update(target, op, value):
                if op not in BINARY:
                    raise self.malformed(statement, f"has an unknown operator {op}")
                self.value(target, defined)
                self.value(value, defined)
            case Bind(_, row):
                if not isinstance(row, Subscript):
                    raise self.malformed(statement, "binds something that is not a subscript")
                self.value(row, defined)
            case Evaluate(value):
                self.value(value, defined)
            case Return(value) if value is not None:
                self.value(value, defined)
            case Break() | Continue():
                if not in_loop:
                    raise self.malformed(statement, "stands outside of a loop")
            case _:
                pass
        return defined | assigned_names((statement,))

    def loop(self, loop: For | While, defined: set[str]) -> set[str]:
        if not loop.body:
            raise self.malformed(loop, "has an empty block")
        inside = defined | assigned_names((loop,))  # a later round sees what an earlier one has assigned
        if isinstance(loop, While):
            self.value(loop.test, inside)
        else:
            self.header(loop, defined)
        self.block(loop.body, set(inside), in_loop=True)
        return inside

    def header(self, loop: For, defined: set[str]) -> None:
        if loop.index >= 0:
            if loop.index in self.numbers:
                raise self.malformed(loop, "has the number of another `for`")
            self.numbers.add(loop.index)
        match loop.space:
            case Range(_, start, stop, step):
                for bound in (start, stop, step):
                    self.value(bound, defined)
                if isinstance(step, Const) and step.value == 0:
                    raise self.malformed(loop, "has the step 0")
            case Elements(array, keys, values, single):
                self.name(array, loop, defined)
                if len({*keys, *values}) != len(keys) + len(values):
                    raise self.malformed(loop, "names a variable twice")
                if not keys or not values:
                    raise self.malformed(loop, "has no keys or no values")
                if single and len(values) != 1:
                    raise self.malformed(loop, "has one value and names several")

    def target(self, target: Expr, defined: set[str]) -> None:
        match target:
            case Var():
                pass
            case Subscript():
                self.value(target, defined)
            case Tuple(items):
                for item in items:
                    if not isinstance(item, Var | Subscript):
                        raise self.malformed(target, "is a nested target")
                    self.target(item, defined)
            case _:
                raise self.malformed(target, "cannot be assigned to")

    # ------------------------------------------------------------ expressions

    def value(self, expr: Node, defined: set[str]) -> None:
        match expr:
            case Slice() | Dtype():
                raise self.malformed(expr, "stands where a value is needed")
            case Var(name) | Dim(name) | Count(name):
                self.name(name, expr, defined)
            case Subscript(base, index):
                self.name(base.name, expr, defined)
                if not index:
                    raise self.malformed(expr, "has no subscripts")
                for part in index:
                    self.index(part, defined)
            case Call():
                self.call(expr, defined)
            case _ if isinstance(expr, (*STATEMENTS, Range, Elements)):
                raise self.malformed(expr, "is a statement")
            case _:
                self.operators(expr)
                for child in children(expr):
                    self.value(child, defined)

    def index(self, part: Expr, defined: set[str]) -> None:
        if isinstance(part, Slice):
            for bound in children(part):
                self.value(bound, defined)
        else:
            self.value(part, defined)

    def call(self, call: Call, defined: set[str]) -> None:
        if call.function == RETURNED:
            for part in call.arguments:
                self.index(part, defined)
            return
        for argument in (*call.arguments, *(value for _, value in call.keywords)):
            if not isinstance(argument, Dtype):
                self.value(argument, defined)
        if call.function.startswith("helper:"):
            params = self.helpers.get(call.function.removeprefix("helper:"))
            if params is None:
                raise self.malformed(call, "calls a function that is not there")
            if params != len(call.arguments) or call.keywords:
                raise self.malformed(call, "does not fit the parameters")

    def operators(self, expr: Node) -> None:
        op = getattr(expr, "op", None)
        ops = getattr(expr, "ops", ())
        if op is not None and op not in OPERATORS:
            raise self.malformed(expr, f"has an unknown operator {op}")
        if not all(one in COMPARISONS for one in ops):
            raise self.malformed(expr, "has an unknown comparison")
        if ops and len(getattr(expr, "operands", ())) != len(ops) + 1:
            raise self.malformed(expr, "has operands to spare")

    def name(self, name: str, node: Node, defined: set[str]) -> None:
        if name not in self.known:
            raise self.malformed(node, f"uses `{name}`, which nothing defines")
        if name not in defined:
            raise UndefinedNameError(name, node.span, self.function)

    def malformed(self, node: Node, what: str) -> MalformedError:
        return MalformedError(f"{node.span}: {_text(node)} {what}")


def _text(node: Node) -> str:
    """The code as text where it can be printed: this must not fail on what is broken."""
    try:
        return f"`{print_stmt(node) if isinstance(node, STATEMENTS) else print_expr(node)}`"  # type: ignore[arg-type]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return type(node).__name__
