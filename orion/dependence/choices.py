"""Scalars that a loop takes from one of its iterations: argmin and argmax by the usual `if`, and last values.

Let the iterations be x1, x2, … in the order of the loop, and s the scalars before it. Each iteration may offer values
c(x); they replace s where

    c(x).first op s.first    `if a[i] > best: best = a[i]; at = i`, op one of < <= > >=
    always                   `last = a[i]`, also under a condition that does not read it
    a running extreme        `best = max(best, a[i])` and its like of floats: `orion.passes.extremes`

and s is read and written nowhere else. Then the loop can be cut into tiles that each begin with the values from before
the loop and remember the iteration of their last replacement, and the tiles be put together by the same rule in the
order of those iterations:

- op: s ends as the offer with the best first value, if that is better than the start: of equal ones the first where op
  is strict, the last where it is not. A tile ends with the best of its own by the same rule. The offer that wins is the
  one that its tile ends with, and the same comparisons in the same order of iterations choose it among the tiles. A NaN
  compares with nothing: offered, it is never taken; at the start, it is never replaced, in any tile.
- op where a NaN wins ("n>="): a tile that meets one ends with it, is better than all others, and none is better.
- op where a NaN makes it begin anew ("!<"): a tile begins with NaN, so that it takes the first offer, whatever that is,
  and says whether one of its offers was NaN. Then what was before it does not matter. Otherwise it ends with the best
  of its offers, which is compared with what the tiles before it ended with. Tiles must follow one another: their
  iterations must not alternate with those of others (`orion.passes.dimensions` sees to that for ranges).
- last: s ends as the offer of the last iteration that makes one, which is the last of its tile.

Nothing is computed anew or in another order, so the result is the same bit for bit. Sources: Pottenger and Eigenmann,
*Idiom recognition in the Polaris parallelizing compiler*, ICS 1995, for reductions with a location; Allen and Kennedy,
*Optimizing Compilers for Modern Architectures*, section 5.3, for private scalars that are live after the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace

from orion.dependence.access import Choice
from orion.ir.assigned import assigned_by, assigned_places
from orion.ir.nodes import (
    Assign,
    Call,
    Compare,
    Expr,
    For,
    If,
    Logic,
    Node,
    Stmt,
    Tuple,
    Unary,
    Var,
    count_names,
    every,
    walk,
)  # fmt: skip
from orion.ir.program import LoopNest, OfFilling, OfSource
from orion.ir.spans import without_spans
from orion.passes.extremes import AGAINST, FLIPPED
from orion.passes.extremes import running as extreme_kept
from orion.sets.affine import Affine, affine_form
from orion.source import Span


def find_choices(nest: LoopNest, last: Mapping[str, Span], live_after: Set[str]) -> tuple[Choice, ...]:
    """The choices that a loop makes, without names that are not in `live_after` (but for the first of each). `last` are
    the scalars that no iteration reads before it writes them and that are needed after the loop, each with a place that
    writes it."""
    if not can_tell_order(nest):
        return ()
    found = extremes(nest.body, nest.function.running)
    best = [choice for choice in found if nest.function.in_turn.isdisjoint(choice.names)]
    if nest.ordered and len(nest.dims) > 1:
        best = [choice for choice in best if not choice.begins_anew]
    known = {name for choice in best for name in choice.names}
    needed = [replace(c, names=(c.names[0], *(n for n in c.names[1:] if n in live_after))) for c in best]
    return (*needed, *(Choice((name,), "last", span) for name, span in last.items() if name not in known))


def can_tell_order(nest: LoopNest) -> bool:
    """Whether the iterations can be told apart and put in their order by the variables of the loop while it runs."""
    if not isinstance(nest.form, OfSource | OfFilling):
        return False
    return set(nest.dims).isdisjoint(assigned_places(nest.body)) and all(directions(nest))


def directions(nest: LoopNest) -> tuple[int, ...]:
    """For each range of a nest 1 where its variable grows, -1 where it falls, 0 where that is not known."""
    forms = [affine_form(space.step, {}) for space in nest.ranges]
    steps = [form.value or 0 if isinstance(form, Affine) else 0 for form in forms]
    return tuple((step > 0) - (step < 0) for step in steps)


# ------------------------------------------------------------ argmin and argmax


def extremes(body: tuple[Stmt, ...], running: Set[str] = frozenset()) -> tuple[Choice, ...]:
    """The choices by comparison in a loop body; `running` are the names of those that are kept by `min` and `max`."""
    found: dict[str, list[tuple[Choice, Node]]] = {}
    for node in every((If, Assign), *body):
        choice = choice_of(node) if isinstance(node, If) else _running(node)
        if choice is not None and (isinstance(node, If) or choice.names[0] in running):
            found.setdefault(choice.names[0], []).append((choice, node))
    return tuple(pairs[0][0] for pairs in found.values() if _is_alone(pairs, body))


def is_chosen(name: str, body: tuple[Stmt, ...], running: Set[str]) -> bool:
    """Whether a scalar is part of a choice by comparison."""
    return any(name in choice.names for choice in extremes(body, running))


def _running(node: Node) -> Choice | None:
    """The choice that `best = max(best, value)` makes."""
    kept = extreme_kept(node)
    return Choice((kept.name,), kept.op, node.span) if kept is not None and kept.op else None


def choice_of(condition: If) -> Choice | None:
    """The choice that `if value op best: best = value; at = …` makes; None where the statement is no such `if`."""
    if condition.orelse or any(_may_write(node) for node in walk(condition)):
        return None
    values = dict(_assignments(condition.body))
    for test in _joined(condition.test):
        is_against = isinstance(test, Unary) and test.op == "not"
        match test.operand if isinstance(test, Unary) and is_against else test:
            case Compare((op,), (left, right)) if op in FLIPPED:
                for first, value, sign in ((right, left, op), (left, right, FLIPPED[op])):
                    if isinstance(first, Var) and _same(values.get(first.name), value):
                        names = first.name, *(n for n in values if n != first.name)
                        choice = Choice(names, AGAINST * is_against + sign, test.span)
                        return choice if _fits(choice, condition) else None
            case _:
                pass
    return None


def guarded_values(choice: Choice, condition: If) -> tuple[Expr, ...]:
    """What the `if` of a choice evaluates only where the comparison holds: later conditions, and the values taken,
    but for the one that is compared."""
    tests = _joined(condition.test)
    place = next(k for k, test in enumerate(tests) if count_names((test,), choice.names[0]))
    values = dict(_assignments(condition.body))
    return (*tests[place + 1 :], *(value for name, value in values.items() if name != choice.names[0]))


def _joined(test: Expr) -> tuple[Expr, ...]:
    """The conditions that a test joins by `and`."""
    return test.operands if isinstance(test, Logic) and test.op == "and" else (test,)


def _fits(choice: Choice, condition: If) -> bool:
    """Whether the `if` does nothing but set the names, once each, from other names, and tests only the first, once."""
    assigned = list(_assignments(condition.body))
    pieces = [*(value for _, value in assigned), condition.test]
    return (
        _is_plain(condition.body)
        and len(assigned) == len(choice.names)
        and sum(count_names((piece,), *choice.names) for piece in pieces) == 1
    )


def _is_plain(body: Iterable[Stmt]) -> bool:
    """Whether the statements are nothing but assignments of scalars."""
    return all(isinstance(statement, Assign) and list(_assignments((statement,))) for statement in body)


def _assignments(body: Iterable[Stmt]) -> Iterator[tuple[str, Expr]]:
    """The scalars that the statements assign, each with its value; two for `best, at = a[i], i`."""
    for statement in body:
        match statement:
            case Assign(Var(name), value):
                yield name, value
            case Assign(Tuple(targets), Tuple(values)) if all(isinstance(target, Var) for target in targets):
                pairs = zip(targets, values, strict=True)
                yield from ((target.name, value) for target, value in pairs if isinstance(target, Var))
            case _:
                pass


def _may_write(node: Node) -> bool:
    """Whether a call may change something: a helper that is not known here, or a method."""
    return isinstance(node, Call) and node.function.startswith(("helper:", "."))


def _same(first: Expr | None, second: Expr) -> bool:
    return first is not None and without_spans(first) == without_spans(second)


def _is_alone(pairs: list[tuple[Choice, Node]], body: tuple[Stmt, ...]) -> bool:
    """Whether the names of a choice occur in these statements only, and all set the same names by the same op."""
    choice = pairs[0][0]
    if any(set(other.names) != set(choice.names) or other.op != choice.op for other, _ in pairs):
        return False
    names = set(choice.names)
    counters = {name for node in every(For, *body) for name in assigned_by(node)}
    within = [node for _, node in pairs]
    return names.isdisjoint(counters) and count_names(body, *names) == count_names(within, *names)
