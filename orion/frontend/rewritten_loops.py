"""Calls of Python's that go through their argument as loops before the statement, for hints."""

from __future__ import annotations

import ast
import re

from orion.frontend.scope import Scope
from orion.ir.as_statements import STEP, put_before
from orion.source import Replacement, SourceText

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


def given_name(node: ast.expr, like: str, scope: Scope) -> Replacement | None:
    """The statement that an expression is in, with its value by a name before."""
    name = scope.source.fresh(like)
    return put_before(scope.span(node), scope.source, f"{name} = {ast.unparse(node)}", name)


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
