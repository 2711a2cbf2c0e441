"""Where one iteration reads and writes names: which reads come before every write of the iteration, and which are sure.

The walk is over the syntax tree, so that scalars are seen as Numba sees them. It errs on one side: a read that may see
the value of another iteration is exposed, and one is sure only where every iteration makes it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable

from orion.dataclass import dataclass, field

JUMPS = (ast.Break, ast.Continue, ast.Return, ast.Raise)


@dataclass(frozen=True, slots=True)
class Use:
    """A read or a write of a name. `is_sure`: every iteration makes it. `statement` is the one that it stands in."""

    node: ast.expr | ast.stmt
    statement: ast.stmt
    is_sure: bool


@dataclass(slots=True)
class Flow:
    """The uses of names in a loop body. `exposed` has the first read of each name that may see a value from before the
    iteration; `defined` are the names that every iteration gives a value."""

    fixed: frozenset[str]
    stores: Counter[str] = field(default_factory=Counter)
    exposed: dict[str, Use] = field(default_factory=dict)
    writes: dict[str, list[Use]] = field(default_factory=dict)
    reads: dict[str, list[Use]] = field(default_factory=dict)
    must: set[str] = field(default_factory=set)
    may: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    conditional: int = 0
    jumped: list[set[str]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    statement: ast.stmt = field(default_factory=ast.Pass)

    @property
    def defined(self) -> set[str]:
        return self.must.intersection(*self.jumped)

    # ------------------------------------------------------------ statements

    def block(self, statements: Iterable[ast.stmt]) -> bool:
        """Walk statements; return whether the end may be reached."""
        entered = self.conditional
        for statement in statements:
            self.statement = statement
            if isinstance(statement, JUMPS):
                self.expressions(getattr(statement, "value", None), getattr(statement, "exc", None))
                self.jumped.append(set(self.must))
                self.conditional = entered
                return False
            if not self.one(statement):
                self.conditional = entered
                return False
            if _holds_jump(statement):
                self.conditional += 1  # what follows may be skipped
        self.conditional = entered
        return True

    def one(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Assign(targets, value):
                self.expressions(value)
                for target in targets:
                    self.target(target, statement)
            case ast.AnnAssign(target, _, value):
                self.expressions(value)
                if value is not None:
                    self.target(target, statement)
            case ast.AugAssign(target, _, value):
                self.expressions(value)
                if isinstance(target, ast.Name):
                    self.read(target)
                self.target(target, statement)
            case ast.If(test, body, orelse):
                self.expressions(test)
                before = set(self.must)
                ends = self.branches(body, orelse)
                if ends and self.is_invariant(test):
                    settled = self.set_inside(statement, before) - self.must
                    self.settled |= settled
                    self.must |= settled
                return ends
            case ast.For():
                self.loop(statement)
            case ast.While(test, body, orelse):
                self.expressions(test)
                self.repeated(body, is_sure=False)
                self.block(orelse)
            case ast.With(items, body):
                for item in items:
                    self.expressions(item.context_expr)
                return self.block(body)
            case ast.FunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
                pass
            case ast.Try(body, handlers, orelse, final):
                blocks = [body, *(one.body for one in handlers), orelse, final]
                self.repeated([one for block in blocks for one in block], is_sure=False)
            case _:
                self.expressions(*(one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.expr)))
        return True

    def branches(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> bool:
        """Walk two blocks of which one is run."""
        before = set(self.must)
        ends = []
        self.conditional += 1
        for block in (body, orelse):
            self.must = set(before)
            if self.block(block):
                ends.append(self.must)
        self.conditional -= 1
        self.must = ends[0].intersection(*ends) if ends else before
        return bool(ends)

    def is_invariant(self, test: ast.expr) -> bool:
        """Whether a test has the same value in every iteration: no name in it changes, and it reads no elements."""
        plain = not any(isinstance(one, ast.Subscript | ast.Call | ast.NamedExpr) for one in ast.walk(test))
        return plain and self.fixed.isdisjoint(_names(test))

    def set_inside(self, statement: ast.If, before: set[str]) -> set[str]:
        """The names that one branch gives values and nothing outside of the statement does: where every iteration, or
        none, takes the branch, no iteration sees the value of another."""
        found = set[str]()
        for block in (statement.body, statement.orelse):
            flow = Flow(self.fixed)
            flow.must = set(before)
            if flow.block(block):
                found |= flow.must - before
        inside = Counter(_stores(statement))
        return {name for name in found if inside[name] == self.stores[name]}

    def loop(self, statement: ast.For) -> None:
        self.expressions(statement.iter)
        is_sure = _is_range(statement.iter) and self.fixed.isdisjoint(_names(statement.iter))
        before, conditional = set(self.must), self.conditional
        self.conditional += not is_sure
        self.target(statement.target, statement)
        self.conditional = conditional
        self.repeated(statement.body, is_sure=is_sure)
        if not is_sure:
            self.must = before
        self.block(statement.orelse)

    def repeated(self, body: list[ast.stmt], *, is_sure: bool) -> None:
        """Walk a body that is run any number of times, or, where it `is_sure`, at least once."""
        before, jumped, self.jumped = set(self.must), self.jumped, []
        self.conditional += not is_sure
        ends = self.block(body)
        self.conditional -= not is_sure
        left = [self.must] if ends else []
        self.must = before | (set.intersection(*left, *self.jumped) if is_sure and (left or self.jumped) else set())
        self.jumped = jumped

    # ------------------------------------------------------------ expressions

    def target(self, target: ast.expr, statement: ast.stmt) -> None:
        match target:
            case ast.Name(name):
                self.writes.setdefault(name, []).append(Use(target, statement, not self.conditional))
                self.must.add(name)
                self.may.add(name)
            case ast.Tuple(items) | ast.List(items):
                for item in items:
                    self.target(item, statement)
            case ast.Starred(value):
                self.target(value, statement)
            case _:
                self.expressions(target)

    def expressions(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.expression(node)

    def expression(self, node: ast.AST) -> None:
        match node:
            case ast.Name():
                self.read(node)
            case ast.IfExp(test, then, orelse):
                self.expression(test)
                self.perhaps(then, orelse)
            case ast.BoolOp(_, [first, *rest]):
                self.expression(first)
                self.perhaps(*rest)
            case ast.Lambda():
                self.perhaps(node.body)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self.comprehension(node)
            case ast.NamedExpr(target, value):
                self.expression(value)
                self.target(target, self.statement)
            case _:
                self.expressions(*ast.iter_child_nodes(node))

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        own = [name for one in node.generators for name in _names(one.target)]
        self.expression(node.generators[0].iter)
        self.hidden += own
        self.perhaps(*(one for one in ast.iter_child_nodes(node)))
        del self.hidden[len(self.hidden) - len(own) :]

    def perhaps(self, *nodes: ast.AST) -> None:
        """Walk parts that may not be evaluated."""
        self.conditional += 1
        before = set(self.must)
        self.expressions(*nodes)
        self.must = before
        self.conditional -= 1

    def read(self, node: ast.Name) -> None:
        name = node.id
        if name in self.hidden:
            return
        is_sure = not self.conditional
        self.reads.setdefault(name, []).append(Use(node, self.statement, is_sure))
        if name in self.must:
            return
        use = Use(node, self.statement, is_sure and name not in self.may)
        if name not in self.exposed or (use.is_sure and not self.exposed[name].is_sure):
            self.exposed[name] = use


def flow_of(loop: ast.For) -> Flow:
    """Return the uses of names in one iteration of a loop."""
    stores = Counter(_stores(loop))
    flow = Flow(frozenset(stores), stores)
    flow.must.update(_names(loop.target))
    flow.block(loop.body)
    return flow


def leaves_loop(loop: ast.For) -> ast.stmt | None:
    """Return a statement that ends the whole loop early, if it has one."""
    waiting: list[tuple[ast.AST, bool]] = [(one, True) for one in loop.body]
    while waiting:
        node, is_own = waiting.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and is_own):
            return node
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        inside = is_own and not isinstance(node, ast.For | ast.While)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return None


def _holds_jump(statement: ast.stmt) -> bool:
    """Whether a statement may end the block that it stands in, or leave a loop around it."""
    waiting: list[tuple[ast.AST, bool]] = [(statement, True)]
    while waiting:
        node, is_own = waiting.pop()
        if isinstance(node, ast.Return | ast.Raise) or (isinstance(node, ast.Break | ast.Continue) and is_own):
            return True
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        inside = is_own and not isinstance(node, ast.For | ast.While)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return False


def _stores(node: ast.AST) -> list[str]:
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("range", "prange")


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
