"""Local value numbering of tiles before Numba looks at them: what a block computes twice is computed once.

Generated source converts each subscript where it stands, `A[uint64(i), uint64(k)]`. LLVM finds out that these are the
same; but Numba infers the type of every one of them, and lowers it, which took most of the time of a first call. So
conversions and tuples of the same values are shared here, within a block of instructions.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from itertools import count
from typing import Any

from numba.core import ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, replace_vars_stmt

EXACT = (operator.add, operator.sub, operator.mul)
"""Operations whose results are integers where their operands are."""


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


class _Numbering:
    """Numbers of the values of one block: equal values have equal numbers. `homes` says in how many blocks a name is
    used."""

    def __init__(self, homes: Counter[str], integers: set[str]) -> None:
        self._homes, self._integers = homes, integers
        self._of_values: defaultdict[Hashable, int] = defaultdict(count().__next__)
        self._of_names: dict[str, int] = {}
        self._conversions: set[int] = set()
        self._holders: dict[int, Any] = {}
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
            if is_temporary and not isinstance(value, ir.Var):
                self._holders[number] = statement.target
            yield statement

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
