"""`raise` and `assert`, as a `return` of what is raised.

    if n < 2:                               if n < 2:
        raise ValueError(f"{n} rows")           return raise:ValueError("{} rows", n)
    assert n <= m                           if not n <= m:
                                                return raise:AssertionError()

Both end the function, so that whatever holds for `return` holds for them: inside a loop they leave it by `break`, and
what they tell of arrays is read before. Every worker then raises the same between the loops.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from orion.frontend.parse_expressions import parse_expression
from orion.frontend.rewritten import with_text
from orion.frontend.scope import Scope
from orion.ir.nodes import RAISE, Call, Expr, If, Return, Stmt, Unary, Word

TEXT = 'write its text as a string or an f-string of numbers: `raise ValueError(f"{n} rows")`'
PLAIN = 'raise one of Python\'s own errors with a text, such as `raise ValueError("too short")`'
OF_HELPERS = "raise it in the decorated function, or return a number that tells what is wrong"


def parse_raise(node: ast.Raise, scope: Scope) -> list[Stmt]:
    """The end of a function that raises an error of Python's own."""
    what = "this `raise` is not supported"
    if scope.is_helper:
        raise scope.refuse(node, what, "a function that the loop calls is compiled, and raises nothing", OF_HELPERS)
    called = node.exc if isinstance(node.exc, ast.Call) else None
    named = node.exc if called is None else called.func
    found = None if named is None else scope.value(named)
    has_cause = node.cause is not None and not (isinstance(node.cause, ast.Constant) and node.cause.value is None)
    if not isinstance(found, type) or not _is_plain(found) or has_cause:
        raise scope.refuse(node, what, "every worker raises it anew, from its class and its text", PLAIN)
    arguments = [] if called is None else called.args
    if len(arguments) > 1 or (called is not None and called.keywords):
        raise scope.refuse(node, what, "an error is made from its text alone", TEXT)
    return [_raised(found.__name__, node, arguments[0] if arguments else None, scope)]


def parse_assert(node: ast.Assert, scope: Scope) -> list[Stmt]:
    """A test, and the end of the function that raises an AssertionError; nothing where Python checks no assertions."""
    if not __debug__:
        return []
    if scope.is_helper:
        why = "a function that the loop calls is compiled, and raises nothing"
        raise scope.refuse(node, "this `assert` is not supported", why, OF_HELPERS)
    span = scope.span(node, until=node.test)
    failed = Unary("not", parse_expression(node.test, scope), scope.span(node.test))
    return [If(failed, (_raised("AssertionError", node, node.msg, scope),), (), span)]


def _is_plain(kind: type) -> bool:
    return issubclass(kind, Exception) and getattr(builtins, kind.__name__, None) is kind


def _raised(name: str, node: ast.stmt, text: ast.expr | None, scope: Scope) -> Return:
    """What ends the function with an error of this class and text."""
    span = scope.span(node)
    parts = () if text is None else tuple(_text(text, node, scope))
    return Return(Call(RAISE + name, parts, span), span)


def _text(node: ast.expr, statement: ast.stmt, scope: Scope) -> Iterator[Expr]:
    """The text of an error that a statement raises: a string, or a format and the values that it is of."""
    match node:
        case ast.Constant(str(text)):
            yield Word(text, scope.span(node))
        case ast.JoinedStr(parts) if all(map(_is_plain_part, parts)):
            values = [part.value for part in parts if isinstance(part, ast.FormattedValue)]
            text = "".join(map(_format_of, parts))
            yield Word(text if values else text.format(), scope.span(node))
            yield from (parse_expression(value, scope) for value in values)
        case _:
            what, instead = "the text of this error is not supported", with_text(statement, node)
            raise scope.refuse(node, what, "", TEXT, replaced_by=instead, place=statement)


def _is_plain_part(part: ast.expr) -> bool:
    """Whether a part of an f-string is text, or a value that is formatted in one way."""
    if not isinstance(part, ast.FormattedValue):
        return True
    spec = part.format_spec
    has_text = spec is None or (isinstance(spec, ast.JoinedStr) and len(spec.values) == 1)
    return part.conversion == -1 and has_text and not any(isinstance(n, ast.FormattedValue) for n in _inside(spec))


def _inside(spec: ast.expr | None) -> Iterator[ast.AST]:
    return iter(()) if spec is None else ast.walk(spec)


def _format_of(part: ast.expr) -> str:
    """A part of an f-string in a format for `str.format`."""
    match part:
        case ast.Constant(str(text)):
            return text.replace("{", "{{").replace("}", "}}")
        case ast.FormattedValue(format_spec=ast.JoinedStr([ast.Constant(str(spec))])):
            return f"{{:{spec}}}"
        case _:
            return "{}"
