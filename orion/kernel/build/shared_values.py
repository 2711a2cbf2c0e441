"""Local value numbering of tiles before Numba looks at them: what a block computes twice is computed once.

Generated source converts each subscript where it stands, `A[uint64(i), uint64(k)]`. LLVM finds out that these are the
same; but Numba infers the type of every one of them, and lowers it, which took most of the time of a first call. So
conversions and tuples of the same values are shared here, within a block of instructions. And `min` and `max` of two
values call what needs no compile where both are integers: Numba compiles a function for each of them.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import count
from typing import Any

from numba.core import ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, replace_vars_stmt
from numba.core.types.misc import unliteral
from numba.extending import intrinsic

EXACT = (operator.add, operator.sub, operator.mul)
"""Operations whose results are integers where their operands are."""


def _bound(function: Callable[..., Any], sign: str) -> Any:
    """`min` or `max` of two values; Numba's own unless both are integers of 64 bits."""

    @intrinsic  # type: ignore[untyped-decorator]
    def bound(typing: Any, one: Any, other: Any) -> Any:
        given = unliteral(one), unliteral(other)
        if given == (types.int64, types.int64):

            def choose(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return builder.select(builder.icmp_signed(sign, args[1], args[0]), args[1], args[0])

            return types.int64(*given), choose
        kind = typing.resolve_value_type(function)
        found = typing.resolve_function_type(kind, given, {})
        is_packed = len(found.args) == 1

        def call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            packed = [context.make_tuple(builder, found.args[0], args)] if is_packed else args
            return context.get_function(kind, found)(builder, packed)

        return found.return_type(*given) if is_packed else found, call

    return bound


BOUNDS = {min: _bound(min, "<"), max: _bound(max, ">")}


@register_pass(mutates_CFG=False, analysis_only=False)
class SharedValues(FunctionPass):  # type: ignore[misc]
    """The pass that shares values; it comes right after the translation of bytecode."""

    _name = "orion_shared_values"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Share values in all blocks of a function."""
        blocks = state.func_ir.blocks
        homes = Counter(name for block in blocks.values() for name in {*_names(block)})
        integers = _integers(state.func_ir._definitions)
        for block in blocks.values():
            block.body = [*_Numbering(homes, integers).shared(block.body)]
        state.func_ir._definitions = build_definitions(blocks)
        return True


def _names(block: Any) -> Iterator[str]:
    return (var.name for statement in block.body for var in statement.list_vars())


def _integers(definitions: Mapping[str, list[Any]]) -> set[str]:
    """The names that stand for integers: variables of ranges, constants, sums of such. Arrays may change between two
    sums of the same ones."""
    found, before = {*definitions}, -1
    while len(found) != before:
        before = len(found)
        found = {name for name in found if all(_is_integer(value, found, definitions) for value in definitions[name])}
    return found


def _is_integer(value: Any, integers: set[str], definitions: Mapping[str, list[Any]]) -> bool:
    match value:
        case ir.Const():
            return type(value.value) is int
        case ir.Var():
            return value.name in integers
        case ir.Expr() if value.op in ("pair_first", "iternext", "getiter"):
            return value.value.name in integers
        case ir.Expr() if value.op == "binop":
            return value.fn in EXACT and value.lhs.name in integers and value.rhs.name in integers
        case ir.Expr() if value.op == "call":
            return any(isinstance(one, ir.Global) and one.value is range for one in definitions[value.func.name])
        case _:
            return False


def _is_of_two(call: Any) -> bool:
    return len(call.args) == 2 and not call.kws and not call.vararg


class _Numbering:
    """Numbers of the values of one block: equal values have equal numbers. `homes` says in how many blocks a name is
    used."""

    def __init__(self, homes: Counter[str], integers: set[str]) -> None:
        self._homes, self._integers = homes, integers
        self._of_values: defaultdict[Hashable, int] = defaultdict(count().__next__)
        self._of_names: dict[str, int] = {}
        self._conversions: set[int] = set()
        self._holders: dict[int, Any] = {}
        self._bounds: dict[str, Any] = {}
        self._instead: dict[str, Any] = {}

    def shared(self, body: list[Any]) -> Iterator[Any]:
        """The statements, without those that compute what another one has computed."""
        for statement in body:
            if any(var.name in self._instead for var in statement.list_vars()):
                replace_vars_stmt(statement, self._instead)
            if not isinstance(statement, ir.Assign):
                yield statement
                continue
            name, value = statement.target.name, statement.value
            number = self._number(value)
            is_temporary = name.startswith("$") and self._homes[name] == 1
            if is_temporary and number in self._holders:
                self._instead[name] = self._holders[number]
                continue
            self._of_names[name] = number
            if isinstance(value, ir.Global) and value.value in (min, max):
                self._bounds[name] = value
            elif isinstance(value, ir.Expr) and value.op == "call" and _is_of_two(value):
                self._call_bound(value.func.name)
            if is_temporary and not isinstance(value, ir.Var):
                self._holders[number] = statement.target
            yield statement

    def _call_bound(self, name: str) -> None:
        """Have a name that stands for `min` or `max` stand for that of integers; each call has such a name."""
        if name in self._bounds:
            found = self._bounds[name]
            found.value = BOUNDS.get(found.value, found.value)

    def _number(self, value: Any) -> int:
        """The number of a value: a new one where it is not known to be the same as another."""
        match value:
            case ir.Var():
                return self._of(value)
            case ir.Const(value=int(found)):
                return self._of_values[type(found), found]
            case ir.Global(value=types.Number() as kind):
                self._conversions.add(number := self._of_values[kind])
                return number
            case ir.Expr() if value.op == "call" and len(value.args) == 1 and not value.kws and not value.vararg:
                if (number := self._of(value.func)) in self._conversions:
                    return self._of_values["call", number, self._of(value.args[0])]
            case ir.Expr() if value.op == "build_tuple":
                return self._of_values["tuple", *map(self._of, value.items)]
            case ir.Expr() if value.op == "binop" and value.fn in EXACT:
                if value.lhs.name in self._integers and value.rhs.name in self._integers:
                    return self._of_values[value.fn, self._of(value.lhs), self._of(value.rhs)]
        return self._of_values[object()]

    def _of(self, var: Any) -> int:
        if var.name not in self._of_names:
            self._of_names[var.name] = self._of_values[var.name]
        return self._of_names[var.name]
