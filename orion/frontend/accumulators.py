"""Accumulators in the source of a function (`orion.accumulator`), and the functions that combine their values.

| in the source | becomes |
|---|---|
| `best.add(v)`, `best += v` | `best = best_combine(best, v)` |
| the same of a tuple | `best_0, best_1 = best_combine(best_0, best_1, v[0], v[1])` |
| `def combine(a, b)` of tuples | a function of their items, `best_combine(a_0, a_1, b_0, b_1)` |

In the latter `a` is `(a_0, a_1)`, `a[0]` is `a_0`, and tuples are compared as Python does it, item by item.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from functools import partial
from types import FunctionType
from typing import Any

from orion.dataclass import dataclass, field
from orion.frontend.buffers import SameCode
from orion.frontend.locate import Located, span_of
from orion.ir.function import Accumulated
from orion.ir.refuse import unsupported
from orion.ir.renaming import fresh
from orion.source import SourceText, Span

STRICT: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.LtE: ast.Lt, ast.GtE: ast.Gt, ast.Lt: ast.Lt, ast.Gt: ast.Gt}
HINT = "use its value after the loop, or keep a scalar of the function's own"


@dataclass(frozen=True, slots=True)
class AccumulatorOf:
    """What a call gives for parameter `name`: an accumulator, by what the code of the function depends on. `init` has
    its neutral numbers, told apart by `key`; `is_tuple` says whether its value is a tuple of them, `is_commutative`
    whether it may be combined in another order."""

    name: str
    combine: SameCode
    dtypes: tuple[str, ...]
    is_tuple: bool
    is_commutative: bool
    key: str
    init: tuple[Any, ...] = field(compare=False)


NO_ACCUMULATORS: tuple[AccumulatorOf, ...] = ()
Change = Callable[[Located], None]


@dataclass
class Added:
    """The accumulators of a function; the functions that its source calls from now on, by name; and what is to be done
    to the definitions of these."""

    accumulated: list[Accumulated] = field(default_factory=list)
    functions: dict[str, FunctionType] = field(default_factory=dict)
    changes: dict[FunctionType, Change] = field(default_factory=dict)

    def params(self, params: Sequence[str]) -> tuple[str, ...]:
        """The parameters, with the numbers of accumulators in place of these."""
        numbers = {one.source: one.names for one in self.accumulated}
        return tuple(new for name in params for new in numbers.get(name, (name,)))


def write_out_accumulators(located: Located, given: Collection[AccumulatorOf], taken: Collection[str]) -> Added:
    """Write what a function adds to accumulators so. `taken` are names that are no others'. UnsupportedLoopError where
    one is used in another way."""
    found = Added()
    definition = located.definition
    names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)} if given else set()
    used = {*names, *taken, *(one.arg for one in ast.walk(definition.args) if isinstance(one, ast.arg))}
    for one in given:
        own = tuple(fresh(f"{one.name}_{k}", used) for k in range(len(one.init))) if one.is_tuple else (one.name,)
        called = fresh(f"{one.name}_combine", used)
        writer = _Adds(one, own, called, located.source)
        definition.body = [writer.visit(statement) for statement in definition.body]
        function = one.combine.function
        found.functions[called] = again = FunctionType(
            function.__code__, function.__globals__, called, function.__defaults__, function.__closure__
        )
        if one.is_tuple:
            found.changes[again] = partial(write_items, length=len(own))
        written = "combine" if function.__name__ == "<lambda>" else function.__name__
        span = writer.span or span_of(definition, located.source)
        numbers = Accumulated(
            one.name, own, called, one.init, one.dtypes, one.is_tuple, one.is_commutative, written, span
        )
        found.accumulated.append(numbers)
    if given:
        ast.fix_missing_locations(definition)
    return found


class _Adds(ast.NodeTransformer):
    """Writes what is added to one accumulator; `span` is the first place that does so."""

    span: Span | None = None

    def __init__(self, given: AccumulatorOf, names: tuple[str, ...], called: str, source: SourceText) -> None:
        self.given, self.names, self.called, self.source = given, names, called, source

    def refuse(self, node: ast.expr | ast.stmt, what: str, hint: str) -> Exception:
        return unsupported(what, span_of(node, self.source), self.source, hint=hint, is_for_numba=False)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(ast.Attribute(ast.Name(name), "add"), arguments, keywords) if name == self.given.name:
                if len(arguments) != 1 or keywords or isinstance(arguments[0], ast.Starred):
                    what = f"`{name}.add` takes one value"
                    raise self.refuse(node, what, f"write `{name}.add({self.wanted()})`")
                return self.added(node, self.visit(arguments[0]))
        self.generic_visit(node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        match node:
            case ast.AugAssign(ast.Name(name), ast.Add(), value) if name == self.given.name:
                return self.added(node, self.visit(value))
            case ast.AugAssign(ast.Name(name)) if name == self.given.name:
                what = f"an accumulator is added to by `+=`, whatever `combine` does with `{name}` and the value"
                raise self.refuse(node, what, f"write `{name} += …` or `{name}.add(…)`")
        self.generic_visit(node)
        return node

    def added(self, node: ast.stmt, value: ast.expr) -> ast.stmt:
        """The statement that combines the numbers with those of a value."""
        self.span = self.span or span_of(node, self.source)
        numbers = [ast.Name(name, ast.Load()) for name in self.names]
        call = ast.Call(ast.Name(self.called, ast.Load()), [*numbers, *self.items(node, value)], [])
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in self.names]
        whole: ast.expr = ast.Tuple(targets, ast.Store()) if len(targets) > 1 else targets[0]
        for part in ast.walk(whole):
            ast.copy_location(part, node)
        for part in (call, call.func, *numbers):
            ast.copy_location(part, node)
        return ast.copy_location(ast.Assign([whole], call), node)

    def items(self, node: ast.stmt, value: ast.expr) -> list[ast.expr]:
        """The numbers of a value."""
        if not self.given.is_tuple:
            if isinstance(value, ast.Tuple):
                what = f"a tuple is added to `{self.given.name}`, whose value is one number"
                raise self.refuse(node, what, f"write `{self.given.name}.add({self.wanted()})`")
            return [value]
        count = len(self.names)
        match value:
            case ast.Tuple(items) if len(items) == count and not any(isinstance(one, ast.Starred) for one in items):
                return items
            case ast.Tuple(items):
                what = f"{len(items)} values are added to `{self.given.name}`, which has {count}"
                raise self.refuse(node, what, f"write `{self.given.name}.add({self.wanted()})`")
            case ast.Name():
                return [_item(value, k) for k in range(count)]
            case _:
                what = f"what is added to `{self.given.name}` is not seen to be a tuple of {count} numbers"
                raise self.refuse(node, what, f"write its items: `{self.given.name}.add({self.wanted()})`")

    def wanted(self) -> str:
        """What a value looks like."""
        if not self.given.is_tuple:
            return "value"
        return f"({', '.join('…' for _ in self.names)}{',' * (len(self.names) == 1)})"

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = self.given.name
        for part in (*node.args, *(one.value for one in node.keywords)):
            if isinstance(part, ast.Name) and part.id == name:
                called = ast.unparse(node.func)
                hint = f"have `{called}` return what is to be added, and write `{name}.add({called}(…))`"
                raise self.refuse(part, f"the accumulator `{name}` is given to `{called}`", hint)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == self.given.name:
            name = node.id
            if isinstance(node.ctx, ast.Load):
                what = f"the accumulator `{name}` is read, and can only be added to while the function runs"
                raise self.refuse(node, what, f"write `{name}.add(…)`; {HINT}")
            raise self.refuse(node, f"the accumulator `{name}` is given another value", f"write `{name}.add(…)`")
        return node


def _item(value: ast.Name, number: int) -> ast.expr:
    """An item of a name that stands for a tuple."""
    found = ast.Subscript(ast.Name(value.id, ast.Load()), ast.Constant(number), ast.Load())
    for part in ast.walk(found):
        if isinstance(part, ast.expr):
            ast.copy_location(part, value)
    return found


# ---------------------------------------------------------------- functions of two tuples


def write_items(located: Located, length: int) -> None:
    """Write a function of two tuples of this length as one of their items. UnsupportedLoopError where it does with them
    what only whole tuples can."""
    definition = located.definition
    params = [one.arg for one in (*definition.args.posonlyargs, *definition.args.args)]
    used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)} | {*params}
    names = {param: [fresh(f"{param}_{k}", used) for k in range(length)] for param in params}
    nested = [one for statement in definition.body for one in ast.walk(statement)]
    lambdas = [one for one in nested if isinstance(one, ast.Lambda | ast.FunctionDef | ast.ListComp | ast.GeneratorExp)]
    if lambdas:
        what, hint = "`combine` of an accumulator of tuples has a function or a comprehension in it", "write it out"
        raise unsupported(what, span_of(lambdas[0], located.source), located.source, hint=hint, is_for_numba=False)
    writer = _Items(names, located.source)
    definition.args.posonlyargs = []
    arguments = [ast.copy_location(ast.arg(new), definition) for param in params for new in names[param]]
    definition.args.args = arguments
    definition.args.defaults = []
    definition.body = [new for statement in definition.body for new in writer.statement(statement)]
    ast.fix_missing_locations(definition)


class _Items(ast.NodeTransformer):
    """`names` are those of the items of each tuple."""

    def __init__(self, names: dict[str, list[str]], source: SourceText) -> None:
        self.names, self.source = names, source

    def refuse(self, node: ast.expr, what: str, hint: str) -> Exception:
        return unsupported(what, span_of(node, self.source), self.source, hint=hint, is_for_numba=False)

    # ------------------------------------------------------------ statements

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """A statement with tuples as their items, choices of tuples as `if`s."""
        for name in ("body", "orelse"):
            if isinstance(block := getattr(node, name, None), list):
                setattr(node, name, [new for inner in block for new in self.statement(inner)])
        match node:
            case ast.If() | ast.While():
                node.test = self.visit(node.test)
                return [node]
            case ast.For():
                node.iter = self.visit(node.iter)
                return [node]
            case ast.Return(value) | ast.Assign(_, value) if value is not None:
                if isinstance(node, ast.Assign):
                    self.check_targets(node)
                return self.chosen(node, self.visit(value))
            case _:
                return [self.visit(node)]

    def check_targets(self, node: ast.Assign) -> None:
        for part in (part for target in node.targets for part in ast.walk(target)):
            if isinstance(part, ast.Name) and part.id in self.names:
                hint = "give what is computed a name of its own"
                raise self.refuse(part, f"`combine` gives its argument `{part.id}` another value", hint)

    def chosen(self, node: ast.Return | ast.Assign, value: ast.expr) -> list[ast.stmt]:
        """`x = (a, b) if test else (c, d)` as an `if`."""
        if not isinstance(value, ast.IfExp) or not _is_tuple(value):
            node.value = value
            return [node]
        sides = []
        for side in (value.body, value.orelse):
            sides.append(self.chosen(deepcopy(node), side))
        return [ast.copy_location(ast.If(value.test, *sides), node)]

    # ------------------------------------------------------------ expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.names:
            return node
        items: list[ast.expr] = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in self.names[node.id]]
        return ast.copy_location(ast.Tuple(items, ast.Load()), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.value, ast.Name) or node.value.id not in self.names:
            self.generic_visit(node)
            return node
        names, at = self.names[node.value.id], _number(node.slice)
        if at is None or not -len(names) <= at < len(names):
            what = f"`{ast.unparse(node)}` is no item of a tuple of {len(names)} that is known before it runs"
            raise self.refuse(node, what, f"write {node.value.id}[0] … {node.value.id}[{len(names) - 1}]")
        return ast.copy_location(ast.Name(names[at], ast.Load()), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        if not any(isinstance(side, ast.Tuple) for side in sides):
            return node
        tests = [self.compared(node, *three) for three in zip(sides, node.ops, sides[1:], strict=False)]
        return tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), node)

    def compared(self, node: ast.Compare, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        """How Python compares two tuples, item by item."""
        if not isinstance(left, ast.Tuple) or not isinstance(right, ast.Tuple) or len(left.elts) != len(right.elts):
            raise self.refuse(node, "a tuple is compared with something else", "compare its items, one by one")
        pairs = [*zip(left.elts, right.elts, strict=True)]
        if isinstance(op, ast.Eq | ast.NotEq):
            joined: ast.boolop = ast.And() if isinstance(op, ast.Eq) else ast.Or()
            tests = [_test(first, op, second, node) for first, second in pairs]
            return ast.copy_location(ast.BoolOp(joined, tests), node) if len(tests) > 1 else tests[0]
        if type(op) not in STRICT:
            raise self.refuse(node, "tuples are compared by `in` or `is`", "compare their items, one by one")
        found = _test(*pairs[-1][:1], op, pairs[-1][1], node)
        for first, second in reversed(pairs[:-1]):
            before, equal = _test(first, STRICT[type(op)](), second, node), _test(first, ast.Eq(), second, node)
            rest = ast.copy_location(ast.BoolOp(ast.And(), [equal, found]), node)
            found = ast.copy_location(ast.BoolOp(ast.Or(), [before, rest]), node)
        return found

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        arguments = [item for one in node.args for item in _spread(one)]
        match node.func, arguments:
            case ast.Name("len"), [ast.Tuple(items)]:
                return ast.copy_location(ast.Constant(len(items)), node)
            case ast.Name("min" | "max" as name), [ast.Tuple() as first, ast.Tuple() as second]:
                op: ast.cmpop = ast.Lt() if name == "min" else ast.Gt()
                test = self.compared(ast.copy_location(ast.Compare(second, [op], [first]), node), second, op, first)
                return ast.copy_location(ast.IfExp(test, second, first), node)
        node.args = arguments
        return node


def _is_tuple(value: ast.expr) -> bool:
    match value:
        case ast.IfExp(_, first, second):
            return _is_tuple(first) and _is_tuple(second)
        case _:
            return isinstance(value, ast.Tuple)


def _spread(argument: ast.expr) -> list[ast.expr]:
    """`*(a, b)` among the arguments of a call as two of them."""
    match argument:
        case ast.Starred(ast.Tuple(items)):
            return items
        case _:
            return [argument]


def _test(first: ast.expr, op: ast.cmpop, second: ast.expr, place: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Compare(deepcopy(first), [op], [deepcopy(second)]), place)


def _number(index: ast.expr) -> int | None:
    match index:
        case ast.Constant(int(value)):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            return -value
        case _:
            return None
