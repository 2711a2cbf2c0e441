"""Statements: Python's syntax tree to the loop language."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count

from orion.frontend.iterables import Iteration, iteration
from orion.frontend.lists import appended, new_list
from orion.frontend.parse_calls import check_keywords
from orion.frontend.parse_expressions import OPERATORS, parse_expression
from orion.frontend.parts import as_one_subscript
from orion.frontend.raising import parse_assert, parse_raise
from orion.frontend.ranges import trips_of
from orion.frontend.refusals import EXPRESSIONS, OBJECTS, STATEMENTS
from orion.frontend.rewritten import ends_names, is_imported, one_by_one
from orion.frontend.rewritten_loops import as_branches_of
from orion.frontend.scope import Scope, all_nodes, assigned_names
from orion.frontend.tuples import Target, flattened
from orion.ir.assigned import holds_break, mentions
from orion.ir.constants import constant_value
from orion.ir.function import SourceFor
from orion.ir.nodes import (
    LIST,
    PART,
    Assign,
    Binary,
    Break,
    Call,
    Const,
    Continue,
    Elements,
    Evaluate,
    Expr,
    For,
    If,
    Pass,
    Range,
    Return,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Update,
    Var,
    While,
    every,
    names_in,
)  # fmt: skip
from orion.ir.renaming import renamed
from orion.ir.spans import with_span
from orion.ir.sums import difference, literal, total
from orion.source import Span, Way
from orion.typing.rewritten_names import names_of_items

Numbers = Iterator[int]

OTHER_LISTS = (
    "a list is an array in between where it begins empty, `for`s over known ranges append to it, and it is returned, "
    "counted by `len`, gone through by a `for`, or given to a function of NumPy",
    "append so, write `np.sum(y)` for `sum(y)`, or write the elements of an array, `a[i] = …`",
)
"""Why a list is none of those that loops make item by item, and what to write."""

LISTS_OF_HELPERS = (
    "lists are known in the decorated function alone, not in functions that it calls",
    "append in the decorated function, or write the elements of an array, `a[i] = …`",
)
"""The same in a function that the decorated one calls."""


def parse_body(body: list[ast.stmt], scope: Scope) -> tuple[Stmt, ...]:
    """The statements of a function, without its docstring; its `for`s are numbered in textual order."""
    return _block(body, scope, count())


def _block(body: list[ast.stmt], scope: Scope, numbers: Numbers) -> tuple[Stmt, ...]:
    return tuple(statement for node in body for statement in _statement(node, scope, numbers))


def _statement(node: ast.stmt, scope: Scope, numbers: Numbers) -> list[Stmt]:
    match node:
        case ast.Assign() | ast.AnnAssign() if (name := new_list(node)) is not None:
            if name in scope.counted:
                return _counted_list(name, node, scope)
            if name not in scope.lists:
                others = LISTS_OF_HELPERS if scope.is_helper else OTHER_LISTS
                raise scope.refuse(node, f"{EXPRESSIONS[ast.List].what} is not supported", *others)
            return []  # it is made where the loop is that fills it
        case ast.Assign(targets, value):
            return _assign(node, targets, value, scope)
        case ast.AnnAssign(target, _, value):
            return [] if value is None else _assign(node, [target], value, scope)
        case ast.AugAssign():
            return [_update(node, scope)]
        case ast.Expr():
            return _expression(node, scope)
        case ast.If(test, body, orelse):
            parsed = parse_expression(test, scope)
            blocks = _block(body, scope, numbers), _block(orelse, scope, numbers)
            return [If(parsed, *blocks, scope.span(node, until=test))]
        case ast.While():
            return _with_else(_while(node, scope, numbers), node, scope, numbers)
        case ast.For():
            found = iteration(node, scope)
            before, loop = _with_bounds_before(_for(node, found, scope, numbers), scope)
            lists = [_list_of(name, loop, scope) for name, maker in scope.lists.items() if maker is node]
            return [*(found.before if found else ()), *before, *lists, *_with_else(loop, node, scope, numbers)]
        case ast.Return(value):
            return [Return(None if value is None else parse_expression(value, scope), scope.span(node))]
        case ast.Raise():
            return parse_raise(node, scope)
        case ast.Assert():
            return parse_assert(node, scope)
        case ast.Break():
            return [Break(scope.span(node))]
        case ast.Continue():
            return [Continue(scope.span(node))]
        case ast.Pass():
            return [Pass(scope.span(node))]
        case _:
            refusal = STATEMENTS[type(node)]
            what, text, way = f"{refusal.what} is not supported", None, Way.HERE
            if ends_names(node) or is_imported(node, scope.globals):
                text = ""
            elif isinstance(node, ast.FunctionDef):
                text, way = scope.source.block(scope.source.whole_lines(scope.span(node))), Way.OUTSIDE
            elif isinstance(node, ast.Match):
                text = as_branches_of(node, scope)
            raise scope.refuse(node, what, refusal.why, refusal.hint, replaced_by=text, way=way)


def _expression(node: ast.Expr, scope: Scope) -> list[Stmt]:
    """A call for what it does; a docstring, or any other string that stands alone, is left out."""
    if isinstance(node.value, ast.Constant) and (node.value.value is ... or isinstance(node.value.value, str)):
        return [Pass(scope.span(node))] if node.value.value is ... else []
    item = appended(node)
    if item is not None and item[0] in scope.places:
        span = scope.span(node)
        target = Subscript(Var(item[0], span), (with_span(scope.places[item[0]], span),), span)
        value = ast.copy_location(ast.Tuple(given.elts), given) if isinstance(given := item[1], ast.List) else given
        return [Assign(target, parse_expression(value, scope), span)]
    if isinstance(node.value, ast.Call):
        check_keywords(node.value, scope, node)
    return [Evaluate(parse_expression(node.value, scope), scope.span(node))]


# ---------------------------------------------------------------- assignments


def _assign(node: ast.stmt, targets: list[ast.expr], value: ast.expr, scope: Scope) -> list[Stmt]:
    span = scope.span(node)
    first, *others = (_target(target, scope) for target in targets)
    if not others:
        return _in_turn(_assigned(first, value, node, scope), scope)
    if any(isinstance(target, Tuple) for target in (first, *others)):
        what, text = "a chain of assignments to tuples is not supported", one_by_one(targets, value)
        raise scope.refuse(node, what, "", "write one on each line", replaced_by=text)
    parsed = _value(value, first, scope)
    if isinstance(first, Var):  # the first target to be assigned
        return [Assign(first, parsed, span), *(Assign(target, first, target.span) for target in others)]
    kept = parsed if isinstance(parsed, Const) else Var(scope.free(f"value_{node.lineno}"), span)
    before = [Assign(kept, parsed, span)] if isinstance(kept, Var) else []
    return [*before, *(Assign(target, kept, target.span) for target in (first, *others))]


def _assigned(target: Target, value: ast.expr, node: ast.stmt, scope: Scope) -> Assign:
    """An assignment to one target; nested tuples of targets take nested tuples of values."""
    if isinstance(target, Tuple) and any(isinstance(item, Tuple) for item in target.items):
        found = flattened(target, parse_expression(value, scope))
        if found is None:
            hint = "write one assignment on each line"
            raise scope.refuse(node, "nested tuples of targets and values do not go together", "", hint)
        return Assign(found[0], found[1], scope.span(node))
    return Assign(target, _value(value, target, scope), scope.span(node))


def _in_turn(assigned: Assign, scope: Scope) -> list[Stmt]:
    """An assignment; where a target to the left may change what a subscript of another is made of, one for each target,
    from left to right, as Python makes them."""
    found = assigned.target.items if isinstance(assigned.target, Tuple) else ()
    targets = [target for target in found if isinstance(target, Var | Subscript)]
    if not any(_may_change(targets[:k], target) for k, target in enumerate(targets)):
        return [assigned]
    names = tuple(Var(scope.free(f"value_{assigned.span.line}_{k}"), assigned.span) for k in range(len(targets)))
    first = Assign(Tuple(names, assigned.span), assigned.value, assigned.span)
    return [first, *(Assign(target, name, target.span) for target, name in zip(targets, names, strict=True))]


def _may_change(before: list[Var | Subscript], target: Var | Subscript) -> bool:
    """Whether targets that are given values before it change where one lies: names in its subscripts, or arrays in
    these, of which there may be other names."""
    index = target.index if isinstance(target, Subscript) else ()
    given = {one.base.name if isinstance(one, Subscript) else one.name for one in before}
    writes = any(isinstance(one, Subscript) for one in before)
    return not given.isdisjoint(names_in(*index)) or (writes and next(every(Subscript, *index), None) is not None)


def _target(node: ast.expr, scope: Scope) -> Target:
    match node:
        case ast.Name(name):
            return scope.variable(name, scope.span(node))
        case ast.Subscript():
            target = parse_expression(node, scope)
            if isinstance(target, Call) and target.function == PART:
                target = as_one_subscript(target) or target
            if isinstance(target, Subscript):
                return target
            raise scope.refuse(node, "this cannot be assigned to", "", "assign to a name or to an array element")
        case ast.Tuple(items) | ast.List(items):
            return Tuple(tuple(_target(item, scope) for item in items), scope.span(node))
        case ast.Starred():
            raise scope.refuse(node, "a starred target is not supported", OBJECTS, "write the targets one by one")
        case _:
            what = f"assigning to `{ast.unparse(node)}` is not supported"
            hint = "write the elements of an array, `a[i] = …`, or return the value"
            raise scope.refuse(node, what, "attributes belong to Python objects", hint)


def _value(node: ast.expr, target: Target, scope: Scope) -> Expr:
    """The assigned value. A tuple of targets takes as many values, an array's extents, or a function's result."""
    if isinstance(target, Tuple) and isinstance(node, ast.List):
        node = ast.copy_location(ast.Tuple(node.elts, ast.Load()), node)
    value = parse_expression(node, scope)
    if not isinstance(target, Tuple):
        if isinstance(value, Tuple) and not (isinstance(target, Subscript) and len(value.items) > 1):
            what, hint = "a tuple as a value is not supported", "give each item a name of its own"
            named = None
            if isinstance(target, Var) and not any(isinstance(item, Tuple) for item in value.items):
                named = names_of_items(target.span, target.name, len(value.items), scope.source)
            raise scope.refuse(node, what, OBJECTS, hint, replacement=named)
        return value
    match value:
        case Tuple(items) if len(items) == len(target.items):
            return value
        case Call(name) if name == "attribute:shape" or name.startswith("helper:"):
            return value
        case Var() | Subscript():  # a row, if anything
            return value
        case _:
            what = f"this cannot be unpacked into {len(target.items)} targets"
            raise scope.refuse(node, what, "", "write a tuple of as many values")


def _update(node: ast.AugAssign, scope: Scope) -> Update:
    target = _target(node.target, scope)
    assert not isinstance(target, Tuple)
    return Update(target, OPERATORS[type(node.op)], parse_expression(node.value, scope), scope.span(node))


# ---------------------------------------------------------------- loops


def _while(node: ast.While, scope: Scope, numbers: Numbers) -> While:
    test = parse_expression(node.test, scope)
    return While(test, _block(node.body, scope, numbers), scope.span(node, until=node.test))


def _with_else(loop: For | While, node: ast.For | ast.While, scope: Scope, numbers: Numbers) -> list[Stmt]:
    """The loop and what its `else` is: statements after it that run where no `break` has set a flag."""
    orelse = _block(node.orelse, scope, numbers)
    if not orelse or not holds_break(loop.body):
        return [loop, *orelse]
    flag = Var(scope.free(f"broken_{node.lineno}"), loop.span)
    test = Unary("not", flag, loop.span)
    changed = replace(loop, body=_setting(flag, loop.body))
    return [Assign(flag, Const(False, loop.span), loop.span), changed, If(test, orelse, (), loop.span)]


def _setting(flag: Var, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body of a loop with the flag set before each `break` that leaves it."""
    found: list[Stmt] = []
    for statement in body:
        match statement:
            case Break(span):
                found += [Assign(flag, Const(True, span), span), statement]
            case If(_, then, orelse):
                found.append(replace(statement, body=_setting(flag, then), orelse=_setting(flag, orelse)))
            case _:
                found.append(statement)
    return tuple(found)


def _for(node: ast.For, found: Iteration | None, scope: Scope, numbers: Numbers) -> For:
    span = scope.span(node, until=node.iter)
    spaces = (_elements(node, scope),) if found is None else found.loops
    scope.places.update((name, _place(name, node, spaces, scope)) for name, one in scope.lists.items() if one is node)
    each = [(space, next(numbers)) for space in spaces]
    body = (*(() if found is None else found.first), *_block(node.body, scope, numbers))
    for space, number in reversed(each):
        body = (For(space, body, number, span),)
    (loop,) = body
    assert isinstance(loop, For)
    return loop


def source_fors(body: tuple[Stmt, ...]) -> tuple[SourceFor, ...]:
    """Return the `for`s of a body that was parsed, in textual order."""
    found: dict[Span, set[int]] = {}
    around: dict[Span, set[Span]] = {}
    for loop in sorted(every(For, *body), key=lambda loop: loop.index):
        found.setdefault(loop.span, set()).add(loop.index)
        for inner in every(For, *loop.body):
            around.setdefault(inner.span, set()).add(loop.span)
    return tuple(
        SourceFor(span, tuple(sorted(loops)), len(around.get(span, set()) - {span})) for span, loops in found.items()
    )


def _place(name: str, node: ast.For, spaces: Sequence[Range | Elements], scope: Scope) -> Expr:
    """The number of an iteration of a loop that appends to a list: the place of its item."""
    match spaces:
        case (Range(variable, start, _, by, span),) if step := constant_value(by):
            passed = difference(Var(variable, span), start)
            if assigned_names(all_nodes(node.body)).isdisjoint(names_in(passed)):
                return passed if step == 1 else Binary("//", passed, literal(step, span), span)
    refusal = EXPRESSIONS[ast.List]
    what = f"the list `{name}`, which this loop makes, is not supported"
    raise scope.refuse(node, what, refusal.why, refusal.hint)


def _list_of(name: str, loop: For, scope: Scope) -> Assign:
    """A list of as many items as a loop makes trips."""
    assert isinstance(loop.space, Range)
    length = _trips(loop.space, scope)
    assert length is not None  # `_place` has looked
    return Assign(Var(name, loop.span), Call(LIST, (length,), loop.span), loop.span)


def _counted_list(name: str, node: ast.stmt, scope: Scope) -> list[Stmt]:
    """A list that loops append to now and then, of as many items as it may get, and the number of those it has."""
    span, one = scope.span(node), scope.counted[name]
    most: Expr = Const(0, span)
    for loops in one.loops:
        trips = [trips for loop in loops for trips in _most_trips(loop, scope)]
        known = [each for each in trips if each is not None]
        if len(known) < len(trips) or not names_in(*known).isdisjoint(one.assigned):
            raise scope.refuse(node, f"the list `{name}` is not supported", *OTHER_LISTS)
        most = total(most, reduce(_product, known or [Const(1, span)]))
    return [
        Assign(Var(one.length, span), Const(0, span), span),
        Assign(Var(name, span), Call(LIST, (with_span(most, span),), span), span),
    ]


def _product(left: Expr, right: Expr) -> Expr:
    return Binary("*", left, right, right.span)


def _most_trips(loop: ast.For, scope: Scope) -> list[Expr | None]:
    """How many trips the loops that a `for` stands for make, if they are not left early; None where nobody knows."""
    found = iteration(loop, scope)
    spaces = () if found is None or found.before else found.loops
    return [_trips(space, scope) for space in spaces] or [None]


def _trips(space: Range, scope: Scope) -> Expr | None:
    """How many trips a loop makes; None where its step is not known."""
    step = constant_value(space.step)
    if not step:
        return None
    trips = trips_of(space.start, space.stop, step)
    return trips if scope.is_counted(trips) else Call("max", (Const(0, space.span), trips), space.span)


def _with_bounds_before(loop: For, scope: Scope) -> tuple[list[Stmt], For]:
    """A loop with bounds that do not mention its own variable, and what is to be run before it: Python computes the
    bounds of `for i in range(i, n)` before it gives `i` the first of its new values."""
    space = loop.space
    if not isinstance(space, Range) or not mentions(space, {space.var}):
        return [], loop
    name = scope.free(f"{space.var}_before_{loop.span.line}")
    kept = Assign(Var(name, loop.span), Var(space.var, loop.span), loop.span)
    start, stop, step = (renamed(bound, {space.var: name}) for bound in (space.start, space.stop, space.step))
    return [kept], replace(loop, space=Range(space.var, start, stop, step, space.span))


def _elements(node: ast.For, scope: Scope) -> Elements:
    """`for (i, j), r in array`, `for (i, j), (r, weight) in array`, or `for i, r in array` with a single key."""
    assert isinstance(node.iter, ast.Name)
    array = node.iter.id
    single = True
    key_names = value_names = None
    match node.target:
        case ast.Tuple([keys, values]):
            key_names, value_names = _names(keys), _names(values)
            single = not isinstance(values, ast.Tuple)
    if key_names is None or value_names is None:
        what = f"the elements of `{array}` are not taken apart into keys and values"
        why = "a loop over a sparse array gives a tuple of keys and a value for every element"
        hint = (
            f"write `for (i, j), value in {array}:`, with as many keys as the array has; over a dense array, "
            f"`for row in {array}:`"
        )
        raise scope.refuse(node.target, what, why, hint)
    names = _distinct([*key_names, *value_names], node, scope)
    split = len(key_names)
    return Elements(array, names[:split], names[split:], single, scope.span(node, until=node.iter))


def _names(node: ast.expr) -> list[str] | None:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    names = [item.id for item in items if isinstance(item, ast.Name)]
    return names if len(names) == len(items) and names else None


def _distinct(names: list[str], node: ast.For, scope: Scope) -> tuple[str, ...]:
    """The names, with a second and further `_` made into names of their own."""
    taken: list[str] = []
    for name in names:
        fresh = name
        for number in count(2):
            if fresh not in taken:
                break
            if name != "_":
                raise scope.refuse(node.target, f"`{name}` stands twice among the loop variables")
            fresh = f"_{number}"
        taken.append(fresh)
    return tuple(taken)
