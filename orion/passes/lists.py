"""What lists that loops make item by item hold: numbers of one type, which the arrays that stand for them have
(`orion.frontend.lists`)."""

from __future__ import annotations

from orion.ir.function import Function
from orion.ir.nodes import LIST, Assign, Call, Dtype, Stmt, Subscript, Var, every
from orion.ir.rewriting import expand, with_new
from orion.typing.expression_types import Typing
from orion.typing.value_type import ValueType


def with_types_of_items(function: Function, typing: Typing) -> Function:
    """The function with such arrays of the types of their items, and the names of those whose items are Python's
    numbers, not NumPy's."""
    if not function.lists:
        return function
    kinds: dict[str, ValueType] = {}
    for node in every(Assign, *function.body):
        match node:
            case Assign(Subscript(Var(name)), value) if name in function.lists:
                kinds[name] = typing.of(value)
            case _:
                pass

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Var(name), Call(function, (length,), at), span) if function == LIST:
                dtype = Dtype(kinds[name].dtype, at)
                return (Assign(statement.target, Call("np.empty", (length, dtype), at), span),)
            case _:
                return (statement,)

    plain = frozenset(name for name, kind in kinds.items() if kind.weak)
    return with_new(function, body=expand(function.body, change), plain_lists=plain)
