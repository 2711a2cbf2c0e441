"""What lists that loops make item by item hold: numbers of one type, or arrays of one shape (`orion.frontend.lists`).
The arrays that stand for them are of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile

from orion.errors import UnsupportedLoopError
from orion.ir.assigned import assigned_by, assigned_names
from orion.ir.function import Function
from orion.ir.nodes import (
    LIST,
    Assign,
    Binary,
    Bind,
    Call,
    Dtype,
    Expr,
    For,
    Return,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Var,
    count_names,
    every,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.refuse import as_said, unsupported
from orion.ir.rewriting import expand, rewrite, with_new
from orion.ir.spans import with_span
from orion.passes.view_names import view_assignments, written_names
from orion.typing.expression_types import Typing
from orion.typing.functions import form_of, may_be_view
from orion.typing.value_type import ValueType, as_row

PYTHONS = {"int64": "int", "float64": "float", "bool": "bool", "complex128": "complex"}
"""The functions that make Python's numbers of elements of a dtype."""


def with_types_of_items(function: Function, typing: Typing) -> Function:
    """The function with such arrays of the types of their items, and the names of those whose items are Python's
    numbers, not NumPy's. UnsupportedLoopError where an item may be an array that is written to later."""
    if not function.lists:
        return function
    items = {name: [one for one in every(Assign, *function.body) if _is_item(one, name)] for name in function.lists}
    kinds = {name: _kind_of(name, found, function, typing) for name, found in items.items() if found}

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Var(name), Call(called, (length,), at), span) if called == LIST:
                kind = kinds[name]
                lengths = tuple(with_span(one, at) for one in kind.lengths if one is not None)
                shape = Tuple((length, *lengths), at) if lengths else length
                return (Assign(statement.target, Call("np.empty", (shape, Dtype(kind.dtype, at)), at), span),)
            case _:
                return (statement,)

    plain = {name: kind.dtype for name, kind in kinds.items() if kind.weak}
    body = tuple(_with_pythons_items(statement, plain) for statement in expand(function.body, change))
    return with_new(function, body=body, plain_lists=frozenset(plain))


def _with_pythons_items(statement: Stmt, lists: Mapping[str, str]) -> Stmt:
    """A statement in which items that are Python's numbers, of lists with these dtypes, are such when they are read."""
    stored = {id(node.target) for node in every(Assign, statement)}

    def change(expr: Expr) -> Expr:
        match expr:
            case Subscript(Var(name), (place,), span) if name in lists and not isinstance(place, Slice):
                if id(expr) not in stored:
                    return Call(PYTHONS[lists[name]], (expr,), span)
        return expr

    return rewrite(statement, change)


def _is_item(node: Assign, name: str) -> bool:
    return isinstance(node.target, Subscript) and node.target.base.name == name


def _kind_of(name: str, items: list[Assign], function: Function, typing: Typing) -> ValueType:
    """The one type of all items of a list."""
    kinds = [_kind_of_item(name, item, function, typing) for item in items]
    other = next((item for item, kind in zip(items, kinds, strict=True) if kind != kinds[0]), None)
    if other is not None:
        what = f"the items of the list `{as_said(name, other.span, function)}` are not all of one type"
        raise unsupported(what, other.span, function.source, hint="write `float(…)` of each", is_for_numba=True)
    return kinds[0]


def _kind_of_item(name: str, item: Assign, function: Function, typing: Typing) -> ValueType:
    """The type of an item of a list."""

    def refuse(what: str, why: str, hint: str) -> UnsupportedLoopError:
        said = as_said(name, item.span, function)
        return unsupported(
            f"the items of the list `{said}` {what}", item.span, function.source, why=why, hint=hint, is_for_numba=True
        )

    kind = as_row(typing.of(item.value))
    is_returned = any(name in _returned(node) for node in every(Return, *function.body))
    if isinstance(item.value, Tuple) and is_returned:
        raise refuse(
            "are tuples or lists of numbers, and the list is returned",
            "",
            "return `np.array(…)` of it, which makes all numbers of one type",
        )
    around = [loop for loop in every(For, *function.body) if any(one is item for one in walk(loop))]
    lengths = [length for length in kind.lengths if length is not None]
    if len(lengths) < kind.rank or not names_in(*lengths).isdisjoint(assigned_names(tuple(around[:1]))):
        raise refuse("are arrays of lengths that are not known before", "", "write rows of an array, `a[i, :n] = …`")
    if kind.rank and not _is_new(item.value) and _are_items_written(function, typing, name):
        hint = "append a copy, `x.copy()`, if the rows of the list alone are to change"
        raise refuse("are arrays that are written to", "a list holds an array itself", hint)
    if kind.rank and not _is_kept(item, is_returned, function, typing):
        why = "a list holds an array itself, and has in the end what is written to it later"
        raise refuse("are arrays that have other names", why, "append a copy, `x.copy()`")
    return kind


def _are_items_written(function: Function, typing: Typing, name: str) -> bool:
    """Whether a name of an item of a list is written to, `w = y[k]` and then `w[0] = 1.0`, or a helper is given one."""
    calls = (one for one in every(Call, *function.body) if one.function.startswith("helper:"))
    if any(name in names_in(*call.arguments) for call in calls):
        return True
    written = written_names(function, typing)
    views = view_assignments(function, typing)
    return any(name in bases and view in written for view, bases in views.items())


def _returned(node: Return) -> set[str]:
    """The names that are returned as they are, or of which a part is."""
    parts = node.value.items if isinstance(node.value, Tuple) else (node.value,)
    bases = (part.base if isinstance(part, Subscript) else part for part in parts)
    return {base.name for base in bases if isinstance(base, Var)}


def _is_kept(item: Assign, is_returned: bool, function: Function, typing: Typing) -> bool:
    """Whether an array that is an item of a list stays what it is when it is appended: it has no name, or one whose
    elements nobody writes afterwards."""
    match item.value:
        case Subscript(base):
            return not is_returned and base.name not in written_names(function, typing)
        case Var(name):
            nodes = every((Assign, Bind), *function.body)
            is_own = all(_keeps_apart(node, name, typing) for node in nodes if node is not item)
            is_over = name not in written_names(function, typing) or _is_made_before(item, name, function)
            return name not in function.params and is_own and is_over
        case _:
            return _is_new(item.value)


def _is_new(value: Expr) -> bool:
    """Whether an array is made where it stands, so that nothing else has it."""
    match value:
        case Tuple() | Binary() | Unary():
            return True
        case Call(name):
            return form_of(name) is not None and not may_be_view(name)
        case _:
            return False


def _keeps_apart(node: Assign | Bind, name: str, typing: Typing) -> bool:
    """Whether a statement leaves an array with its one name, and the name with an array of its own."""
    match node:
        case Bind(other, row):
            return name not in (other, row.base.name)
        case Assign(target, value) if name in assigned_by(node):
            return not isinstance(target, Var) or _is_new(value)
        case Assign(Var(), value) if name in names_in(value):
            return not typing.of(value).rank or _is_new(value)
        case _:
            return True


def _is_made_before(item: Assign, name: str, function: Function) -> bool:
    """Whether an iteration gives a name a new array before it appends that, and the name stands nowhere else."""
    block = next(block for block in _blocks(function.body) if any(one is item for one in block))
    before = [*takewhile(lambda one: one is not item, block)]
    made = next((at for at, one in enumerate(before) if name in assigned_by(one)), None)
    return made is not None and count_names((*before[made:], item), name) == count_names(function.body, name)


def _blocks(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    yield body
    for statement in body:
        for inner in (getattr(statement, "body", ()), getattr(statement, "orelse", ())):
            yield from _blocks(inner)
