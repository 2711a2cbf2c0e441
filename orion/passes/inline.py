"""Calls of the user's helper functions replaced by what these do, so that the analysis sees through them.

A call is replaced where it is evaluated exactly once, before anything else of its statement that it could change: as
the whole right side, or, for a helper that writes nothing, anywhere but in a part that may be skipped (`and`, `or`,
`… if …`). The helper's statements go before the statement, its locals under their own names where the function has no
others of these names, so that what is said of them is what the user wrote, or else with the helper's name before. Its
parameters are assignments (`w = W[i]`, a view like any other) or, for names and constants, the arguments themselves.
Helpers that return early, and calls in other places, remain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orion.dataclass import dataclass, field, fields, replace
from orion.ir.assigned import assigned_names
from orion.ir.function import Function, HelperLocal
from orion.ir.nodes import (
    IS_NODE,
    Assign,
    Call,
    Choose,
    Compare,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    Logic,
    Node,
    Range,
    Return,
    Stmt,
    Update,
    Var,
    While,
    every,
    holds,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.renaming import renamed
from orion.ir.rewriting import with_new
from orion.ir.spans import relocated
from orion.ir.types import ScalarType, Types
from orion.passes.writes import Ranks, local_ranks, written_positions
from orion.source import SourceText, Span

LARGEST = 400
"""Helpers of more nodes than this remain functions."""


def inline_helpers(function: Function, types: Types | None = None) -> Function:
    """The function with calls of helpers replaced where that is right; helpers that are not called any more go.

    `types` tell which arguments are scalars, which no helper can write.
    """
    if not function.helpers:
        return function
    done: dict[str, Function] = {}
    for helper in function.helpers:  # callees come first
        done[helper.name] = _inlined(helper, done, {})
    ranks = {name: 0 if isinstance(kind, ScalarType) else kind.ndim for name, kind in (types or {}).items()}
    result, before = _inlined(function, done, ranks), function
    while result != before:  # what was called by a helper now is by the function, with arguments of known types
        result, before = _inlined(result, done, ranks), result
    applied = {one.apply for one in function.buffered if one.apply}  # called where updates are applied
    applied |= {one.combine for one in function.accumulated}
    called = _called(result, done).union(applied, *(_called(done[name], done) for name in applied))
    helpers = tuple(helper for helper in done.values() if helper.name in called)
    return replace(result, helpers=helpers)


def _inlined(function: Function, helpers: dict[str, Function], ranks: Ranks) -> Function:
    constants = {name for one in (function, *helpers.values()) for name, _ in one.constants}
    taken = {*function.params, *assigned_names(function.body), *names_in(*function.body), *constants}
    loops = [node.index for node in every(For, *function.body)]
    known = local_ranks(function.body, {**ranks, **_loop_variables(function)})
    inliner = _Inliner(function, helpers, known, taken, 1 + max(loops, default=-1))
    body = inliner.block(function.body)
    others = tuple(dict.fromkeys((*function.source.others, *inliner.sources)))
    source = function.source if others == function.source.others else replace(function.source, others=others)
    return with_new(function, body=body, source=source, helper_locals=(*function.helper_locals, *inliner.renamed))


def _loop_variables(function: Function) -> dict[str, int]:
    nodes = (node for statement in function.body for node in walk(statement))
    return {node.var: 0 for node in nodes if isinstance(node, Range)}


def _called(function: Function, helpers: dict[str, Function]) -> set[str]:
    names: set[str] = set()
    for node in (node for statement in function.body for node in walk(statement)):
        if isinstance(node, Call) and node.function.startswith("helper:"):
            name = node.function.removeprefix("helper:")
            names |= {name} | _called(helpers[name], helpers)
    return names


def is_inlinable(helper: Function) -> bool:
    """Whether the helper runs from top to bottom, and returns at its end if at all."""
    nodes = [node for statement in helper.body for node in walk(statement)]
    returns = [node for node in nodes if isinstance(node, Return)]
    return len(nodes) <= LARGEST and (not returns or (len(returns) == 1 and helper.body[-1] is returns[0]))


@dataclass(slots=True)
class _Inliner:
    function: Function
    helpers: dict[str, Function]
    ranks: Ranks
    taken: set[str]
    next_loop: int
    before: list[Stmt] = field(default_factory=list)
    sources: list[SourceText] = field(default_factory=list)
    renamed: list[HelperLocal] = field(default_factory=list)

    def block(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        return tuple(new for statement in body for new in self.statement(statement))

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        self.before = []
        changed = self.header(statement)
        before = tuple(self.before)
        match changed:
            case If(_, body, orelse):
                changed = replace(changed, body=self.block(body), orelse=self.block(orelse))
            case For(_, body) | While(_, body):
                changed = replace(changed, body=self.block(body))
            case Evaluate(value) if before and not holds(Call, value):
                return before
            case _:
                pass
        return (*before, changed)

    def header(self, statement: Stmt) -> Stmt:
        """The statement with the calls in its own expressions replaced, not those in its blocks."""
        match statement:
            case Assign(_, Call() as call) | Evaluate(Call() as call) | Return(Call() as call) if self.is_open(call):
                return replace(statement, value=self.replaced(call))
            case Assign(_, value) | Update(_, _, value) | Evaluate(value) if self.is_pure(statement):
                return replace(statement, value=self.expression(value))
            case Return(value) if value is not None and self.is_pure(statement):
                return replace(statement, value=self.expression(value))
            case If(test) if self.is_pure(test):
                return replace(statement, test=self.expression(test))
            case For(Range(_, start, stop, step) as space) if self.is_pure(space):
                start, stop, step = (self.expression(bound) for bound in (start, stop, step))
                return replace(statement, space=replace(space, start=start, stop=stop, step=step))
            case _:
                return statement

    def is_open(self, call: Call) -> bool:
        helper = self.helper(call)
        if helper is not None and helper.name in self.combining:
            return False  # it stays to be seen by which function values are combined
        return helper is not None and is_inlinable(helper) and all(self.is_pure(a) for a in call.arguments)

    def is_pure(self, node: Node) -> bool:
        """Whether no helper called in the code writes anything, so that the order of evaluation does not matter."""
        whole = replace(self.function, helpers=tuple(self.helpers.values()))
        calls = list(every(Call, node))
        return not any(written_positions(call, whole, self.ranks) for call in calls)

    def helper(self, call: Call) -> Function | None:
        return self.helpers.get(call.function.removeprefix("helper:")) if call.function.startswith("helper:") else None

    @property
    def combining(self) -> set[str]:
        return {one.combine for one in self.function.accumulated}

    # ------------------------------------------------------------ expressions

    def expression(self, expr: Expr) -> Expr:
        """The expression with calls replaced that are evaluated once for sure, innermost first."""
        match expr:
            case Logic(_, (first, *rest)):
                return replace(expr, operands=(self.expression(first), *rest))
            case Choose(test):
                return replace(expr, test=self.expression(test))
            case Compare(_, operands) if len(operands) > 2:
                return replace(expr, operands=tuple(self.expression(o) for o in operands[:2]) + operands[2:])
            case Call():
                return self.replaced(expr) if self.is_open(expr) else self.parts(expr)
            case _:
                return self.parts(expr)

    def parts(self, expr: Expr) -> Expr:
        names = [field.name for field in fields(expr) if field.name not in ("span", "base")]  # in source order
        return replace(expr, **{name: self.part(getattr(expr, name)) for name in names})

    def part(self, value: Any) -> Any:
        if type(value) in IS_NODE:
            return self.expression(value)
        if type(value) is tuple:
            return tuple([self.part(item) for item in value])
        return value

    # ------------------------------------------------------------ one call

    def replaced(self, call: Call) -> Expr:
        """What the call stands for; the statements to be run first are added to `before`."""
        helper = self.helper(call)
        assert helper is not None
        arguments = tuple(self.expression(argument) for argument in call.arguments)
        changed = assigned_names(helper.body)
        names: dict[str, str | Const] = {}
        for param, argument in zip(helper.params, arguments, strict=True):
            if isinstance(argument, Var) and param not in changed:
                names[param] = argument.name
            elif isinstance(argument, Const) and param not in changed:
                names[param] = argument
            else:
                names[param] = self.fresh(param, helper)
                self.before.append(Assign(Var(str(names[param]), argument.span), argument, argument.span))
        names |= {name: self.fresh(name, helper) for name in sorted(changed - names.keys())}
        body = [self.placed(statement, helper, call, names) for statement in helper.body]
        last = body.pop() if isinstance(body[-1], Return) else None
        self.before += body
        if helper.source.file == self.function.source.file:
            self.sources += (replace(helper.source, others=()), *helper.source.others)
        return last.value if isinstance(last, Return) and last.value is not None else Const(None, call.span)

    def placed(self, statement: Stmt, helper: Function, call: Call, names: dict[str, str | Const]) -> Stmt:
        """Return a statement of the helper as it stands in the function: of another file, where the call does. No other
        call has the same spans."""
        is_here = helper.source.file == self.function.source.file

        def place(own: Span) -> Span:
            shown, other = (own, call.span) if is_here else (call.span, own)
            return replace(shown, inlined=(*shown.inlined, other))

        return relocated(self.numbered(renamed(statement, names)), place)

    def numbered(self, statement: Stmt) -> Stmt:
        """The statement with new numbers for its `for`s."""
        match statement:
            case For(_, body):
                number, self.next_loop = self.next_loop, self.next_loop + 1
                return replace(statement, index=number, body=tuple(self.numbered(inner) for inner in body))
            case While(_, body):
                return replace(statement, body=tuple(self.numbered(inner) for inner in body))
            case If(_, body, orelse):
                blocks = (tuple(self.numbered(inner) for inner in block) for block in (body, orelse))
                first, second = blocks
                return replace(statement, body=first, orelse=second)
            case _:
                return statement

    def fresh(self, local: str, helper: Function) -> str:
        """A name for a local of a helper that nothing else in the function has."""
        name = local if local not in self.taken else f"{helper.name}_{local}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        origin = next((one for one in helper.helper_locals if one.name == local), None)
        if name != local or origin is not None:
            self.renamed.append(HelperLocal(name, *((origin.helper, origin.local) if origin else (helper.name, local))))
        return name
