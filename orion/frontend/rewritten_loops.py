"""Calls of Python's that go through their argument as loops before the statement, for hints."""

from __future__ import annotations

import ast
import re

from orion.dataclass import replace
from orion.frontend.scope import Scope
from orion.ir.as_statements import STEP, place_of, put_before
from orion.ir.unread import left_out
from orion.source import Replacement, SourceText, Way

STARTS = {"sum": ("total", "0"), "any": ("found", "False"), "all": ("holds", "True")}
"""Functions → a name for their result, and what it is of nothing."""

COMPREHENSIONS = ast.GeneratorExp | ast.ListComp


def comprehended(call: ast.Call, scope: Scope) -> Replacement | None:
    """`sum(v * w for v in x)`, `any(…)` and `all(…)` as a loop before the statement; None for any other call."""
    function = call.func.id if isinstance(call.func, ast.Name) else ""
    match call.args:
        case [ast.GeneratorExp(element, parts) | ast.ListComp(element, parts) as given] if not call.keywords:
            pass
        case _:
            return None
    if function not in STARTS or any(part.is_async for part in parts):
        return None
    if function != "sum" and isinstance(given, ast.ListComp):  # all items are made, whatever the first is
        return None
    names = _named_apart(given, scope.source)
    like, start = STARTS[function]
    result = scope.source.fresh(like)
    lines = [f"{result} = {start}"]
    for part in parts:
        lines.append(f"for {_text(part.target, names, is_target=True)} in {_text(part.iter, names)}:")
        lines += [f"if {_text(test, names)}:" for test in part.ifs]
    item = _text(element, names)
    if function == "sum":
        lines.append(f"{result} += {item}")
    else:
        lines.append(f"if {item}:" if function == "any" else f"if not ({item}):")
    text = "\n".join([lines[0], *(STEP * depth + line for depth, line in enumerate(lines[1:]))])
    if function != "sum":
        if len(parts) > 1:  # a `break` leaves one loop
            return None
        inner = "\n" + STEP * (len(lines) - 1)
        text += f"{inner}{result} = {'True' if function == 'any' else 'False'}{inner}break"
    return put_before(scope.span(call), scope.source, text, result)


def named_first(node: ast.NamedExpr, scope: Scope) -> Replacement | None:
    """`(t := x[i]) + t` with an assignment before the statement."""
    name = node.target.id
    return put_before(scope.span(node), scope.source, f"{name} = {ast.unparse(node.value)}", name)


def defined_outside(node: ast.Lambda, scope: Scope) -> Replacement | None:
    """`g = lambda a: a + 1` as a function outside; None where nothing reads the name."""
    place = place_of(scope.span(node), scope.source)
    found = None if place is None else place.replaced("")
    match place and place.statement:
        case ast.Assign([ast.Name(name)], ast.Lambda()) if found is not None:
            if left_out(scope.span(node), scope.source) is not None:
                return None
        case _:
            return None
    text = f"def {name}({ast.unparse(node.args)}):\n{STEP}return {ast.unparse(node.body)}"
    return Replacement(found.span, text, Way.OUTSIDE)


def given_name(node: ast.expr, like: str, scope: Scope) -> Replacement | None:
    """The statement that an expression is in, with its value by a name before."""
    name = scope.source.fresh(like)
    return put_before(scope.span(node), scope.source, f"{name} = {ast.unparse(node)}", name)


def as_branches_of(node: ast.Match, scope: Scope) -> str | None:
    """`match i:` of numbers as `if i == 1:` and `elif`; None where a case takes the value apart."""
    if not isinstance(node.subject, ast.Name | ast.Subscript) or any(
        isinstance(part, ast.Call | ast.NamedExpr) for part in ast.walk(node.subject)
    ):
        return None
    subject, lines = ast.unparse(node.subject), list[str]()
    for number, case in enumerate(node.cases):
        test = _test(subject, case.pattern)
        first, last = scope.span(case.body[0]), scope.span(case.body[-1])
        last = last if case is node.cases[-1] else scope.source.whole_lines(last)
        block = scope.source.block(replace(first, end_line=last.end_line, end_column=last.end_column))
        if test is None or block is None or (not test and (case.guard or number + 1 < len(node.cases) or not number)):
            return None
        if case.guard is not None:
            test += f" and ({ast.unparse(case.guard)})"
        lines.append(f"{'if' if not number else 'elif'} {test}:" if test else "else:")
        lines += [f"{STEP}{line}" if line else "" for line in block.splitlines()]
    return "\n".join(lines)


def _test(subject: str, pattern: ast.pattern) -> str | None:
    """The test of a pattern; empty where that is none, None where there is more to it than numbers."""
    match pattern:
        case ast.MatchAs(None, None):
            return ""
        case ast.MatchValue(value) if _is_number(value):
            return f"{subject} == {ast.unparse(value)}"
        case ast.MatchOr(parts):
            values = [part.value for part in parts if isinstance(part, ast.MatchValue) and _is_number(part.value)]
            listed = ", ".join(map(ast.unparse, values))
            return f"{subject} in ({listed})" if len(values) == len(parts) else None
        case _:
            return None


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int | float)


def _named_apart(given: ast.GeneratorExp | ast.ListComp, source: SourceText) -> dict[str, str]:
    """Other names for those of a comprehension that the function has elsewhere, where they mean something else."""
    parts = [part.id for part in ast.walk(given) if isinstance(part, ast.Name)]
    bound = {part.id for part in ast.walk(given) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    words = re.findall(r"\w+", "\n".join(source.lines))
    return {name: source.fresh(name) for name in bound if words.count(name) > parts.count(name)}


def _text(node: ast.expr, names: dict[str, str], *, is_target: bool = False) -> str:
    class Renamed(ast.NodeTransformer):
        def visit_Name(self, one: ast.Name) -> ast.Name:
            return ast.Name(names.get(one.id, one.id), one.ctx)

    text = ast.unparse(Renamed().visit(ast.parse(ast.unparse(node), mode="eval")))
    return text.removeprefix("(").removesuffix(")") if is_target and isinstance(node, ast.Tuple) else text
