"""What each scalar of a loop body is: private to an iteration, an input, a reduction, a choice, or carried.

A scalar is private where every iteration writes it before reading it (Allen & Kennedy, *Optimizing Compilers for Modern
Architectures*, section 5.3), and a reduction where the loop only updates it with one associative operator and reads it
nowhere else. Choices are taken from one iteration: see `orion.dependence.choices`, and `orion.dependence.early_exits`
for that which ends a loop. Everything else carries a value from one iteration to the next, and makes the loop serial.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from orion.dependence.access import Choice, Reduction, ScalarRoles
from orion.dependence.choices import find_choices, is_chosen
from orion.dependence.early_exits import ends_early, set_at_exit
from orion.ir.assigned import assigned_by, assigned_places, leaves_loop
from orion.ir.exposed import exposed_scalars, exposure
from orion.ir.function import Accumulated, Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Call,
    Expr,
    For,
    Logic,
    Node,
    Range,
    Stmt,
    Update,
    Var,
    While,
    children,
    count_names,
    every,
)  # fmt: skip
from orion.ir.program import Branch, LoopNest, OfStatements, Program, Repeat, RunLoop, Scalars, Step
from orion.ir.types import ArrayType, SparseType, Types
from orion.reasons import Reason
from orion.source import Span

OPERATORS = {"+": "+", "-": "+", "*": "*"}
AFTER = "store what is added to `{name}` in an array, and add that to it in a loop of its own after this one"
FUNCTIONS = {"min": "min", "max": "max", "np.minimum": "min", "np.maximum": "max"}


def scalar_roles(nest: LoopNest, types: Types, live_after: Set[str]) -> ScalarRoles:
    """The role of every scalar of the loop body. `live_after` are the names whose values are needed after the loop."""
    elements = nest.elements
    bound = set(nest.dims) | set(elements.values if elements else ()) | nest.own_names
    arrays = {name for name, kind in types.items() if isinstance(kind, ArrayType | SparseType)}
    views = {node.name for node in every(Bind, *nest.body)}
    assigned = {name: span for name, span in assigned_places(nest.body).items() if name not in arrays | views}
    exposed = exposed_scalars(nest.body, bound - set(assigned))
    updated = _updated_names(nest.body)
    limits = exposed_scalars(_bounds(nest), set(nest.dims))  # what they were when the loop began is needed throughout
    free = [name for name in assigned if name not in limits and name not in nest.function.in_turn]
    running = nest.function.running
    reductions = [found for name in free if name in updated and (found := find_reduction(name, nest.body, running))]
    reductions += accumulations(nest.body, nest.function.accumulated)
    rest = {name: span for name, span in assigned.items() if name not in {r.name for r in reductions}}
    at_exit = _from_exit(nest, rest, {*exposed, *live_after}.difference(limits))
    rest = {name: span for name, span in rest.items() if name not in at_exit.names} if at_exit else rest
    last = {name: span for name, span in rest.items() if name in live_after and name not in {*exposed, *bound, *limits}}
    choices = (*find_choices(nest, last, live_after), *([at_exit] if at_exit else []))
    chosen = {name for choice in choices for name in choice.names}
    private, carried = [], []
    for name, span in rest.items():
        if name in chosen:
            continue
        if name in exposed and name not in bound:
            carried.append((name, exposed[name]))
        elif name in live_after or name in limits:
            carried.append((name, span))
        else:
            private.append(name)
    reads = exposed_scalars(nest.body, bound) | limits
    inputs = sorted(set(reads) - set(assigned) - arrays)
    return ScalarRoles(tuple(private), tuple(inputs), tuple(reductions), tuple(carried), choices)


def _from_exit(nest: LoopNest, assigned: Mapping[str, Span], needed: Set[str]) -> Choice | None:
    """The scalars, of those that other iterations or what follows needs, that are taken from the one that ends the
    loop."""
    if not ends_early(nest.body):
        return None
    names = tuple(name for name in sorted(assigned) if name in needed and set_at_exit(name, nest.body))
    return Choice(names, "first", assigned[names[0]]) if names else None


def _bounds(nest: LoopNest) -> tuple[Node, ...]:
    return () if nest.limits else nest.ranges


def carries(name: str, body: tuple[Stmt, ...], function: Function) -> bool:
    """Whether a scalar that a loop body of the function assigns takes a value from one iteration to another: it is no
    reduction, no choice, and read before it is written. Those that are combined in turn are neither."""
    running = function.running
    if any(name in one.names for one in function.accumulated):
        return False
    if name not in function.in_turn and (find_reduction(name, body, running) or is_chosen(name, body, running)):
        return False
    return name in exposed_scalars(body, ())


# ------------------------------------------------------------ reductions


def find_reduction(name: str, body: tuple[Stmt, ...], running: Set[str] = frozenset()) -> Reduction | None:
    """The reduction that `name` is in `body`, or None: the same operator everywhere, and no other use, neither as the
    variable of a loop. Minima and maxima of `running` names are choices."""
    updates = [(node, op) for node in every((Update, Assign), *body) if (op := _updates(node, name))]
    inside = count_names((node for node, _ in updates), name)
    everywhere = count_names(body, name)
    operators = {op for _, op in updates}
    if name in running and not operators.isdisjoint(FUNCTIONS.values()):
        return None
    if len(operators) == 1 and inside == everywhere and name not in _counters(body):
        return Reduction(name, operators.pop(), updates[0][0].span)
    return None


def accumulations(body: tuple[Stmt, ...], accumulated: Iterable[Accumulated]) -> Iterator[Reduction]:
    """The numbers of accumulators that are added to in a body: nothing else is ever done with them."""
    for one in accumulated:
        for node in every(Assign, *body):
            if isinstance(node.value, Call) and node.value.function == one.op:
                yield from (Reduction(name, one.op, node.span) for name in one.names)
                break


def is_combined_in_order(nest: LoopNest, scalars: ScalarRoles) -> bool:
    """Whether a loop adds to an accumulator whose values are to be combined as iterations follow one another: all
    iterations of a tile have to come before those of the next."""
    return any(not one.is_commutative for one in _in_order(nest, scalars))


def _in_order(nest: LoopNest, scalars: ScalarRoles) -> Iterator[Accumulated]:
    """The accumulators that a loop in its order adds to."""
    added = {one.op for one in scalars.accumulations} if nest.ordered else set()
    yield from (one for one in nest.function.accumulated if one.op in added)


def why_in_order(nest: LoopNest, scalars: ScalarRoles, *, of_lists: bool = False) -> tuple[Reason, ...]:
    """Why a loop is not shared out in tiles that do not follow one another, where it adds to accumulators. `of_lists`:
    tiles would be lists of iterations, which other numbers of workers cut in other ways, so that floats would be
    rounded in other ways whatever their order."""
    one = next((one for one in _in_order(nest, scalars) if of_lists or not one.is_commutative), None)
    if one is None:
        return ()
    told = (
        f"values of `{one.source}` are combined in the order of the iterations, and the chunks that the loop could be "
        "shared out in do not follow one another"
    )
    hint = AFTER.format(name=one.source)
    if not of_lists:
        hint = f"make `{one.source}` with `commutative=True` if `combine(a, b)` is always `combine(b, a)`, or {hint}"
    return (Reason.of("ORN134", told, one.span, hint=hint),)


def _counters(body: tuple[Stmt, ...]) -> set[str]:
    """The names that the loops in a body give values."""
    loops = every(For, *body)
    return {name for loop in loops for name in assigned_by(loop)}


def _updated_names(body: tuple[Stmt, ...]) -> set[str]:
    """The names that some statement gives a value made of their own: no others are reductions."""
    found = set()
    for node in every((Update, Assign), *body):
        match node:
            case Update(Var(name)):
                found.add(name)
            case Assign(Var(name), value) if any(_is(part, name) for part in children(value)):
                found.add(name)
            case _:
                pass
    return found


def _updates(node: Node, name: str) -> str | None:
    """The operator with which the statement updates `name`, or None where it is not an update of it."""
    match node:
        case Update(Var(target), op, value) if target == name and not count_names((value,), name):
            return OPERATORS.get(op)
        case Assign(Var(target), value) if target == name:
            return _combines(value, name)
        case _:
            return None


def _combines(value: Expr, name: str) -> str | None:
    """The operator that combines `name` with something else in `value`, where it occurs there exactly once."""
    match value:
        case Binary(op, left, right):
            parts: tuple[Expr, ...] = (left, right)
            found = OPERATORS.get(op)
            if op == "-" and _is(right, name):
                return None
        case Call(function, arguments):
            parts, found = arguments, FUNCTIONS.get(function)
        case Logic(op, operands):
            parts, found = operands, op
        case _:
            return None
    here = [part for part in parts if _is(part, name)]
    return found if len(here) == 1 and count_names((value,), name) == 1 and len(parts) == 2 else None


def _is(expr: Node, name: str) -> bool:
    return isinstance(expr, Var) and expr.name == name


# ------------------------------------------------------------ what is needed after a loop


def live_after(program: Program, number: int) -> frozenset[str]:
    """The names whose values may be read after planned loop `number` has run."""
    return live_after_each(program)[number]


def live_after_each(program: Program) -> dict[int, frozenset[str]]:
    """The names whose values may be read after each planned loop, by its number."""
    results: dict[int, frozenset[str]] = {}
    numbers = frozenset(name for one in program.function.accumulated for name in one.names)  # the caller takes them
    _live(program.steps, numbers, frozenset(), program, results)
    return results


Live = dict[int, frozenset[str]]


def _live(
    steps: tuple[Step, ...], after: frozenset[str], leaving: frozenset[str], program: Program, results: Live
) -> frozenset[str]:
    """The names live before `steps`, given those live after them; notes those live after each planned loop.

    `leaving` are the names live where a `break` or a `continue` of the loop around the steps goes to.
    """
    for step in reversed(steps):
        match step:
            case RunLoop(number):
                results[number] = results.get(number, frozenset()) | after
                nest = program.nests[number]
                elements = nest.elements
                bound = {*nest.dims, *(elements.values if elements else ()), *nest.own_names}
                if isinstance(nest.form, OfStatements):  # it makes one trip
                    after -= exposure(nest.body, of_scalars=True).defined
                after |= frozenset(exposed_scalars(nest.body, bound)) | frozenset(exposed_scalars(_bounds(nest), bound))
            case Scalars(body):
                own = exposure(body, of_scalars=True)
                after = (after - own.defined) | frozenset(own.reads)
                after |= leaving if any(leaves_loop(statement) for statement in body) else frozenset()
            case Branch(statement, (first, second)):
                sides = _live(first, after, leaving, program, results) | _live(second, after, leaving, program, results)
                after = sides | frozenset(exposed_scalars([statement.test], ()))
            case Repeat(loop, inner):
                around = after | frozenset(exposed_scalars([loop.test if isinstance(loop, While) else loop.space], ()))
                once = _live(inner, around, around, program, results)
                if not once <= around:  # it may be read in the next trip
                    once = _live(inner, around | once, around | once, program, results)
                bound = {loop.space.var} if isinstance(loop, For) and isinstance(loop.space, Range) else set()
                after = around | (once - bound)
    return after
