"""That workers may have scalars of their own: each is what the plan says it is, read from the loop's text.

Each scalar that a loop assigns is one of these:

    combined    all that is done with it are updates s = s ∘ v by one associative operator, v not having s; several
                together by a function of the user's, where the tiles follow one another
    chosen      all that is done with it is to replace it, with others, where a value compares so with the first of them
    last        no iteration reads it before giving it a value; its last value is kept
    first       no iteration gives it a value but the one that ends the loop (`orion.verify.early_exits`)
    carried     the loop is not shared out: one worker runs its iterations in their order
    private     no iteration reads it before giving it a value, and nothing after the loop needs it

and each other that it reads is given to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from orion.dependence.access import Choice, Reduction
from orion.errors import PlanError
from orion.ir.assigned import assigned_names
from orion.ir.exposed import exposed_scalars
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Expr,
    If,
    Logic,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Update,
    Var,
    count_names,
    every,
    names_in,
    walk,
)
from orion.ir.spans import without_spans
from orion.plan.plan import LoopPlan, Tiled
from orion.verify.early_exits import prove_set_at_exit
from orion.verify.sums import FUNCTIONS, OPERATORS

FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
KEEPING = {
    ("min", 0): "<", ("min", 1): "!>", ("max", 0): ">", ("max", 1): "!<",
    ("np.minimum", 0): "n<=", ("np.minimum", 1): "n<", ("np.maximum", 0): "n>=", ("np.maximum", 1): "n>",
}  # fmt: skip
"""The comparison by which a call with a scalar at a place takes another value in its stead, for numbers with NaN."""


def prove_scalars(loop: LoopPlan, after: frozenset[str], arrays: Set[str]) -> None:
    """PlanError where a scalar of a loop is not what the plan says. `after` may be read after the loop."""
    roles, body = loop.analysis.scalars, loop.nest.body
    variables = {*loop.nest.dims}
    carried = {name for name, _ in roles.carried}
    if carried and loop.space is not None:
        raise PlanError(f"iterations need {', '.join(sorted(carried))} from one another")
    combined = {one.name: one for one in roles.reductions}
    chosen = {name: one for one in roles.choices for name in one.names}
    assigned = assigned_names(body) - variables
    exposed = exposed_scalars(loop.nest.loops[:1], variables)
    missing = exposed.keys() - assigned - arrays - loop.nest.own_names - {*roles.inputs}
    if missing:
        raise PlanError(f"the loop is not given {', '.join(sorted(missing))}")
    for name in sorted(assigned):
        if name in combined and combined[name].op.startswith("helper:"):
            _prove_accumulated(loop, combined[name])
        elif name in combined:
            _prove_combined(body, combined[name])
            if combined[name].op in ("min", "max") and name in loop.nest.function.running:
                raise PlanError(f"blocks cannot combine `{name}` by {combined[name].op}: a NaN counts by its place")
        elif name in chosen and chosen[name].op == "first":
            prove_set_at_exit(name, body)
        elif name in chosen and chosen[name].op != "last":
            _prove_chosen(body, chosen[name])
        elif name in carried:
            continue
        elif name in exposed:
            raise PlanError(f"iterations cannot each have their own `{name}`: one reads what another leaves")
        elif name in after and name not in chosen:
            raise PlanError(f"iterations cannot each have their own `{name}`: its last value is needed after the loop")


def _prove_combined(body: Sequence[Stmt], one: Reduction) -> None:
    updates = [*_updates(body, one.name)]
    counted = sum(mentions(statement, one.name) for statement, _ in updates)
    if {op for _, op in updates} != {one.op} or counted != sum(mentions(part, one.name) for part in body):
        raise PlanError(f"blocks cannot combine `{one.name}` by {one.op}")


def _prove_accumulated(loop: LoopPlan, one: Reduction) -> None:
    """All that is done with the numbers of an accumulator is `a, b = f(a, b, v, w)`, neither v nor w having them, and
    what tiles find can be combined in the order of the iterations."""
    accumulated = next((own for own in loop.nest.function.accumulated if one.name in own.names), None)
    names = () if accumulated is None else accumulated.names
    found = 0
    for node in every(Assign, *loop.nest.body):
        match node:
            case Assign(target, Call(called, arguments, _, ())) if called == one.op:
                items = target.items if isinstance(target, Tuple) else (target,)
                first, rest = arguments[: len(names)], arguments[len(names) :]
                is_own = tuple(map(_name, items)) == names == tuple(map(_name, first))
                if is_own and len(rest) == len(names) and not mentions_in_all(rest, names):
                    found += mentions(node, one.name)
    if not found or found != sum(mentions(part, one.name) for part in loop.nest.body):
        raise PlanError(f"blocks cannot combine `{one.name}` by `{one.op.removeprefix('helper:')}`")
    may_move = accumulated is not None and accumulated.is_commutative
    if loop.ordered and loop.space is not None and not may_move and not has_blocks_in_order(loop):
        raise PlanError(f"the blocks of iterations that `{one.name}` is combined from do not follow one another")


def has_blocks_in_order(loop: LoopPlan) -> bool:
    """Whether all iterations of a tile come before all of the next one, in the order of the loop: nothing but its first
    dimension is cut."""
    return isinstance(loop.tiles, Tiled) and loop.tiles.space == 0 and all(cuts == 1 for cuts in loop.cuts[1:])


def _name(expr: Expr) -> str:
    return expr.name if isinstance(expr, Var) else ""


def mentions_in_all(parts: Sequence[Expr], names: Sequence[str]) -> bool:
    return any(mentions_in(part, names) for part in parts)


def mentions(statement: Stmt, name: str) -> int:
    """How often a name stands in a statement, also where it is assigned."""
    return sum(isinstance(node, Var) and node.name == name for node in walk(statement))


def _updates(body: Sequence[Stmt], name: str) -> Iterator[tuple[Stmt, str]]:
    """The statements s = s ∘ v, each with ∘."""
    for node in every((Assign, Update), *body):
        match node:
            case Update(Var(target), op, value) if target == name and op in OPERATORS:
                found: tuple[str, tuple[Expr, ...]] | None = OPERATORS[op], (value,)
            case Assign(Var(target), value) if target == name:
                found = _operands(value, name)
            case _:
                continue
        if found is not None and not count_names(found[1], name):
            yield node, found[0]


def _operands(value: Expr, name: str) -> tuple[str, tuple[Expr, ...]] | None:
    """The operator and the other operands of an expression that has the name as one of its operands."""
    match value:
        case Binary(op, left, right) if op in OPERATORS and (op != "-" or left == Var(name, left.span)):
            found: str = OPERATORS[op]
            operands: tuple[Expr, ...] = (left, right)
        case Call(called, arguments, _, ()) if called in FUNCTIONS:
            found, operands = FUNCTIONS[called], arguments
        case Logic(op, operands):
            found = op
        case _:
            return None
    rest = tuple(operand for operand in operands if not (isinstance(operand, Var) and operand.name == name))
    return (found, rest) if len(operands) == 2 and len(rest) == 1 else None


def _prove_chosen(body: Sequence[Stmt], one: Choice) -> None:
    counted = 0
    for node in every((If, Assign), *body):
        if isinstance(node, If):
            counted += _replaces(node, one)
        elif len(one.names) == 1:
            counted += _keeps(node, one)
    if not counted or counted != sum(mentions(part, name) for part in body for name in one.names):
        raise PlanError(f"blocks cannot choose {', '.join(one.names)} by {one.op}")


def _keeps(node: Assign, one: Choice) -> int:
    """The mentions in s = max(s, v) and its like, if it is by the comparison of the choice."""
    match node:
        case Assign(Var(target), Call(called, (first, second), _, ())) if target == one.names[0]:
            at = 0 if isinstance(first, Var) and first.name == target else 1
            other = second if at == 0 else first
            is_own = KEEPING.get((called, at)) == one.op and not count_names((other,), target)
            return mentions(node, target) if is_own else 0
        case _:
            return 0


def _replaces(node: If, one: Choice) -> int:
    """The mentions in `if v < s: s, t = v, w`, if it is by the comparison of the choice."""
    values = dict(_assigned(node.body))
    tests = [test for test in _parts(node.test) if count_names((test,), one.names[0])]
    if node.orelse or set(one.names) - values.keys() or len(tests) != 1:
        return 0
    compared = _compared(tests[0], one.names[0])
    if compared is None or compared[0] != one.op or without_spans(compared[1]) != without_spans(values[one.names[0]]):
        return 0
    if _changes_before(node.body, one.names[0], compared[1]):
        return 0
    own = mentions_in(tests[0], one.names) + len(one.names)
    return own if sum(mentions(node, name) for name in one.names) == own else 0


def _changes_before(body: Sequence[Stmt], name: str, value: Expr) -> bool:
    """Whether statements change what a value is made of before it is stored under a name."""
    for statement in body:
        if name in assigned_names((statement,)):
            return False
        targets = (node.target for node in every((Assign, Update), statement))
        parts = (part for target in targets for part in (target.items if isinstance(target, Tuple) else (target,)))
        bases = (part.base if isinstance(part, Subscript) else part for part in parts)
        changed = {base.name for base in bases if isinstance(base, Var)}
        if not changed.isdisjoint(names_in(value)):
            return True
    return False


def mentions_in(expr: Expr, names: Sequence[str]) -> int:
    return sum(isinstance(node, Var) and node.name in names for node in walk(expr))


def _parts(test: Expr) -> tuple[Expr, ...]:
    """The conditions that a test joins by `and`."""
    match test:
        case Logic("and", operands):
            return tuple(part for operand in operands for part in _parts(operand))
        case _:
            return (test,)


def _compared(test: Expr, name: str) -> tuple[str, Expr] | None:
    """How a value must compare with a scalar to replace it, and the value: `v < s`, `s > v`, `not v >= s`."""
    match test:
        case Compare((op,), (value, Var(other))) if other == name and op in FLIPPED:
            return op, value
        case Compare((op,), (Var(other), value)) if other == name and op in FLIPPED:
            return FLIPPED[op], value
        case Unary("not", inner) if (found := _compared(inner, name)) is not None:
            return "!" + found[0], found[1]
        case _:
            return None


def _assigned(body: Sequence[Stmt]) -> Iterator[tuple[str, Expr]]:
    for statement in body:
        match statement:
            case Assign(Var(name), value):
                yield name, value
            case Assign(Tuple(targets), Tuple(values)):
                for target, value in zip(targets, values, strict=False):
                    if isinstance(target, Var):
                        yield target.name, value
            case _:
                pass
