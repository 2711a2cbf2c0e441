"""Progress bars of tqdm around what a `for` goes through: taken off the source, and noted, so that runs show them.

for epoch in tqdm(range(n), desc="training"):        for epoch in range(n):
for i in trange(n):                                  for i in range(n):
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from orion.frontend.locate import span_of
from orion.frontend.rewritten import bar_by_names
from orion.ir.assigned import assigned_names
from orion.ir.function import Bar
from orion.ir.nodes import Break, Call, Count, For, Range, Return, Stmt, every, holds, names_in
from orion.ir.refuse import unsupported
from orion.source import Replacement, SourceText

KNOWN = frozenset({"total", "initial"})
"""Options that a run knows by itself."""


def taken_off(
    definition: ast.FunctionDef, nodes: Iterable[ast.AST], outer: Mapping[str, object], source: SourceText
) -> tuple[Bar, ...]:
    """The bars of a function, which its source no longer has then; `nodes` are those of its body, `outer` the names
    that it has from outside. UnsupportedLoopError for options that are no constants."""
    calls = (part for node in nodes if isinstance(node, ast.For) for part in ast.walk(node.iter))
    if not any(isinstance(call, ast.Call) and _is_bar(_value(call.func, outer)) for call in calls):
        return ()
    taker = _Taker(outer, source)
    taker.visit(definition)
    return tuple(taker.found)


def with_trips(bars: tuple[Bar, ...], body: tuple[Stmt, ...], params: Iterable[str]) -> tuple[Bar, ...]:
    """The bars with what their loops go through, where that is known when the function begins."""
    if not bars:
        return ()
    given = {*params} - assigned_names(body)
    loops = {loop.span.line: loop for loop in reversed([*every(For, *body)])}
    found = []
    for bar in bars:
        loop = loops[bar.line]
        space = loop.space
        bounds = (space.start, space.stop, space.step) if isinstance(space, Range) else (Count(space.array, loop.span),)
        others = {call.function for call in every(Call, *bounds)} - {"len", "min", "max"}
        trips = space if names_in(*bounds) <= given and not others else None
        is_whole = not holds(Return, loop) and not any(every(Break, *loop.body))
        found.append(replace(bar, trips=trips, is_whole=is_whole))
    return tuple(found)


class _Taker(ast.NodeTransformer):
    def __init__(self, outer: Mapping[str, object], source: SourceText) -> None:
        self.outer, self.source = outer, source
        self.found: list[Bar] = []
        self.line = 0

    def visit_For(self, node: ast.For) -> ast.AST:
        self.line = node.lineno
        node.iter = self.visit(node.iter)
        self.line = 0
        node.body = [self.visit(statement) for statement in node.body]
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        make = _value(node.func, self.outer) if self.line else None
        if not _is_bar(make):
            return node
        counts = str(getattr(make, "__name__", "")).endswith("range")
        if not node.args or (len(node.args) > 1 and not counts):
            what = f"`{ast.unparse(node)}` is not taken apart"
            hint = 'write what it goes through first, and options by name: `tqdm(range(n), desc="…")`'
            text, span = None if counts else bar_by_names(node), span_of(node, self.source)
            found = Replacement(span, text) if text else None
            raise unsupported(what, span, self.source, hint=hint, replacement=found)
        options = tuple((str(part.arg), self.option(part)) for part in node.keywords if part.arg not in KNOWN)
        bar = getattr(sys.modules[str(getattr(make, "__module__", ""))], "tqdm", None) if counts else make
        self.found.append(Bar(self.line, bar, options))
        if not counts:
            return node.args[0]
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name("range", ast.Load()), node), node.args, []), node)

    def option(self, part: ast.keyword) -> object:
        try:
            return ast.literal_eval(part.value)
        except ValueError:
            what = f"the option `{ast.unparse(part)}` of a progress bar is no constant"
            span = span_of(part.value, self.source)
            raise unsupported(what, span, self.source, hint="write a number, a string, True or False") from None


def _is_bar(make: Any) -> bool:
    """Whether it is tqdm's class, or one of tqdm made from it, or its `trange`."""
    package = str(getattr(make, "__module__", "")).partition(".")[0]
    return package == "tqdm" and (isinstance(make, type) or str(getattr(make, "__name__", "")).endswith("range"))


def _value(node: ast.expr, outer: Mapping[str, object]) -> object:
    match node:
        case ast.Name(name):
            return outer.get(name)
        case ast.Attribute(owner, name):
            found = _value(owner, outer)
            return getattr(found, name, None) if isinstance(found, ModuleType) else None
        case _:
            return None
