"""Arguments that are None or a string: what depends on them is settled when the loop is planned.

    def f(x, y, w=None, mode="sum"):
        for i in range(len(x)):                     called with neither
            if w is None:                           for i in range(len(x)):
                y[i] = x[i]                             y[i] = x[i]
            elif mode == "sum":
                y[i] += w[i] * x[i]

Compiled code has neither: they are compared, and that is all. `x is None` is false of a number or an array. A name that
was None may be given a value (`if w is None: w = np.ones(n)`); from then on it is that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from orion.dataclass import dataclass, replace
from orion.errors import ArgumentError, describe
from orion.ir.assigned import assigned_names
from orion.ir.cures import other_kind
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Call,
    Choose,
    Compare,
    Const,
    Count,
    Dim,
    Expr,
    For,
    If,
    Logic,
    Node,
    Pass,
    Stmt,
    Tuple,
    Unary,
    Var,
    While,
    Word,
    every,
)  # fmt: skip
from orion.ir.refuse import unsupported
from orion.ir.rewriting import rewrite, with_new

Words = Mapping[str, str | None]
"""Arguments that are strings or None, by name."""

NO_WORDS: Words = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Other:
    """A value that is neither None nor a string, or may be either."""


MOST_SHOWN = 40
"""How many characters of a string are shown."""

UNSURE = Other()

Known = dict[str, str | Other | None]
"""What names are that were None or a string when the call began; UNSURE where they may be something else by now."""


def words_in(arguments: Mapping[str, Any]) -> Words:
    """The arguments of a call that are strings or None.

    >>> words_in({"n": 3, "w": None, "mode": "sum"})
    {'w': None, 'mode': 'sum'}
    """
    return {name: value for name, value in arguments.items() if value is None or type(value) is str}


def with_options(function: Function, words: Words) -> Function:
    """The function for calls with these arguments, which are then none of its parameters. ArgumentError where it does
    more than compare one; UnsupportedLoopError for a comparison with a string or None that is left."""
    compared = (one for one in every(Compare, *function.body) if _is_settled_here(one))
    if words or next(compared, None) is not None:
        body = _Folder(function).block(function.body, dict(words)) or (Pass(function.span),)
    else:
        body = function.body
    _refuse_helpers(function, body)
    params = tuple(name for name in function.params if name not in words)
    return with_new(function, body=body, params=params, words=tuple(words.items()))


def _refuse_helpers(function: Function, body: tuple[Stmt, ...]) -> None:
    """An error for a helper that compares with None or a string and is called as it is: others are in the body."""
    called = {call.function.removeprefix("helper:") for call in every(Call, *body)}
    for helper in function.helpers:
        compared = (one for one in every(Compare, *helper.body) if _is_settled_here(one))
        if helper.name in called and (found := next(compared, None)) is not None:
            what = f"`{helper.name}` compares with None or a string, and returns in more than one place"
            hint = "write it with one `return`, at its end: `return 1.0 if w is None else w[i]`"
            raise unsupported(what, found.span, helper.source, why="it is compiled by itself", hint=hint)


def _is_settled_here(compare: Compare) -> bool:
    return compare.ops[0] in ("is", "is not") or any(isinstance(part, Word) for part in compare.operands)


@dataclass(slots=True)
class _Folder:
    """Goes through a function with what is known of its names at each place."""

    function: Function

    def block(self, body: tuple[Stmt, ...], known: Known) -> tuple[Stmt, ...]:
        """The statements; `known` is then what is known after them."""
        return tuple(new for statement in body for new in self.statement(statement, known))

    def statement(self, statement: Stmt, known: Known) -> tuple[Stmt, ...]:
        match statement:
            case If():
                return self.branch(statement, known)
            case Assign(Var(name), Var(other)) if not isinstance(known.get(other, UNSURE), Other):
                known[name] = known[other]  # as where a helper is given it
                return ()
            case For() | While():
                known.update({name: UNSURE for name in assigned_names((statement,)) if name in known})
                head: dict[str, Any] = (
                    {"test": self.test(statement.test, known)}
                    if isinstance(statement, While)
                    else {"space": self.settled(statement.space, known)}
                )
                inner = self.block(statement.body, dict(known)) or (Pass(statement.span),)
                return (replace(statement, body=inner, **head),)
            case _:
                found = self.settled(statement, known)
                for name in assigned_names((statement,)):
                    known.pop(name, None)
                return () if _gives_itself(found) else (found,)

    def branch(self, statement: If, known: Known) -> tuple[Stmt, ...]:
        test = self.test(statement.test, known)
        if isinstance(test, Const) and isinstance(test.value, bool):
            return self.block(statement.body if test.value else statement.orelse, known)
        sides = dict(known), dict(known)
        body = self.block(statement.body, sides[0]) or (Pass(statement.span),)
        orelse = self.block(statement.orelse, sides[1])
        for name in [*known]:
            if all(name not in side for side in sides):
                del known[name]
            elif any(side.get(name, UNSURE) != known[name] for side in sides):
                known[name] = UNSURE
        return (replace(statement, test=test, body=body, orelse=orelse),)

    # ------------------------------------------------------------ expressions

    def settled(self, node: Any, known: Known) -> Any:
        """A statement or expression without comparisons of what is known."""
        found = rewrite(node, lambda expr: self.folded(expr, known))
        self.refuse_uses(found, known)
        return found

    def test(self, expr: Expr, known: Known) -> Expr:
        """A test, in which the name of a string or of None may stand for whether it is something."""
        match expr:
            case Var(name) if not isinstance(value := known.get(name, UNSURE), Other):
                return Const(bool(value), expr.span)
            case Unary("not", operand):
                inner = self.test(operand, known)
                is_known = isinstance(inner, Const) and isinstance(inner.value, bool)
                return Const(not inner.value, expr.span) if is_known else replace(expr, operand=inner)  # type: ignore[union-attr]
            case Logic(op, operands):
                return _joined(replace(expr, operands=tuple(self.test(one, known) for one in operands)), op == "or")
            case _:
                found: Expr = self.settled(expr, known)
                return found

    def folded(self, expr: Expr, known: Known) -> Expr:
        match expr:
            case Compare((op,), (left, right)) if _is_settled_here(expr):
                return self.compared(expr, op, left, right, known)
            case Compare() if _is_settled_here(expr):
                raise self.refuse(expr, "a chain of comparisons with strings or None", "write them one by one")
            case Unary("not", Const(bool(value))):
                return Const(not value, expr.span)
            case Logic(op):
                return _joined(expr, op == "or")
            case Choose(Const(bool(value)), then, orelse):
                return then if value else orelse
            case _:
                return expr

    def compared(self, expr: Compare, op: str, left: Expr, right: Expr, known: Known) -> Expr:
        """A comparison with None or a string, settled."""
        first, second = (self.value(part, known) for part in (left, right))
        if op in ("is", "is not"):
            other = first if isinstance(right, Const) else second
            return Const((other is None) == (op == "is"), expr.span)
        if op not in ("==", "!="):
            raise self.refuse(expr, f"strings are compared by `{op}`", "compare them with `==` or `!=`")
        if isinstance(first, Other) or isinstance(second, Other):
            raise self.refuse(expr, "a string is compared with what is no string", "compare arguments that are strings")
        return Const((first == second) == (op == "=="), expr.span)

    def refuse(self, expr: Expr, what: str, hint: str) -> Exception:
        return unsupported(what, expr.span, self.function.source, hint=hint)

    def value(self, expr: Expr, known: Known) -> str | Other | None:
        match expr:
            case Word(value):
                return value
            case Const(None):
                return None
            case Var(name) if name in known:
                self.refuse_unsure(name, expr, known)
                return known[name]
            case _:
                return Other()

    def refuse_uses(self, node: Node, known: Known) -> None:
        """An error where what is None or a string is used as if it were a number or an array."""
        for name, part in _uses(node):
            if name not in known:
                continue
            self.refuse_unsure(name, part, known)
            word = "None" if known[name] is None else f"the string {_shown(known[name])}"
            what = f"argument `{name}` is {word}, and is more than compared here"
            why, hint = "a compiled loop works on numbers and arrays", other_kind(name, known[name])
            raise ArgumentError(describe(what, span=part.span, source=self.function.source, why=why, hint=hint))

    def refuse_unsure(self, name: str, part: Var | Dim | Count, known: Known) -> None:
        if isinstance(known[name], Other):
            what = f"whether `{name}` is still what the call gave is not known here"
            raise self.refuse(part, what, "give it its value before the loop, in both branches of an `if`")


def _shown(value: object) -> str:
    """Return a string as it is shown: the beginning of a long one."""
    text = str(value)
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…")


def _gives_itself(statement: Stmt) -> bool:
    """Whether it is `w = w`, as is left of `w = np.ones(n) if w is None else w`."""
    match statement:
        case Assign(Var(name), Var(value)):
            return name == value
        case _:
            return False


def _uses(node: Node) -> Iterator[tuple[str, Var | Dim | Count]]:
    """The names that a node reads, with the places; those that it gives values to are none."""
    targets = node.target.items if isinstance(node, Assign) and isinstance(node.target, Tuple) else ()
    given = [node.target, *targets] if isinstance(node, Assign) else []
    for part in every((Var, Dim, Count), node):
        if not (isinstance(part, Var) and any(part is target for target in given)):
            yield (part.name if isinstance(part, Var) else part.array), part


def _joined(expr: Logic, deciding: bool) -> Expr:
    """`and` or `or` without operands in front that do not decide; the truth value that decides alone."""
    operands = list(expr.operands)
    while len(operands) > 1 and isinstance(operands[0], Const) and operands[0].value is (not deciding):
        del operands[0]
    if isinstance(operands[0], Const) and operands[0].value is deciding:
        return operands[0]
    return operands[0] if len(operands) == 1 else replace(expr, operands=tuple(operands))
