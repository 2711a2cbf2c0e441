"""Names that may have no value where a function that runs as it is reads them: Python's UnboundLocalError.

Numba gives such a name any value. Each such name gets a flag that says whether it has one, and reads of it look at the
flag. In functions defined in the function, which Numba inlines out of reach of our passes, such names are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import CellType, FunctionType
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler import run_frontend
from numba.core.errors import UnsupportedError
from numba.extending import overload

from orion.kernel.build.local_functions import described, local_codes


def refuse_unassigned(function: FunctionType, loc: Any) -> None:
    """Raise UnsupportedError where a function defined in it may read a name without a value."""
    for code in local_codes(function.__code__):
        closure = tuple(CellType(None) for _ in code.co_freevars)
        local = FunctionType(code, function.__globals__, code.co_name, None, closure or None)
        refuse_unassigned(local, loc)
        if code.co_name.startswith("<"):
            continue
        try:
            blocks = run_frontend(local).blocks
        except Exception:  # Numba raises it again when it compiles the function
            continue
        refuse_names_without_value(blocks, described(code), loc)


def refuse_names_without_value(blocks: Mapping[int, Any], function: str, loc: Any) -> None:
    """Raise UnsupportedError where the blocks of a function may read a name without a value."""
    for name, place in _uses_without_value(blocks):
        raise UnsupportedError(f"`{name}` may have no value in {function}", ir.Loc(loc.filename, place.line))


def _uses_without_value(blocks: Mapping[int, Any]) -> Iterator[tuple[str, Any]]:
    for label, given in _given_at_entry(blocks).items():
        for statement, before in _with_given(blocks[label], given):
            for name in _read(statement):
                if _is_users(name) and name not in before:
                    yield _unversioned(name), statement.loc


def check_assigned_names(func_ir: Any) -> dict[str, Any]:
    """Put checks before reads of names that may have no value, and take `del` statements out of a function. Return the
    flags by names: local functions, which are inlined later, read names when they are called.
    """
    blocks = func_ir.blocks
    entry = _given_at_entry(blocks)
    unsure: dict[str, None] = {}
    captures = _captures(blocks)
    for label, given in entry.items():
        for statement, before in _with_given(blocks[label], given):
            unsure |= dict.fromkeys(name for name in _read(statement) if _is_users(name) and name not in before)
    first = min(blocks)
    scope = blocks[first].scope
    flags = {name: scope.redefine(f"$given_{_unversioned(name)}", func_ir.loc) for name in unsure}
    for label, block in blocks.items():
        made = [_set(flag, False, func_ir.loc) for flag in flags.values()] if label == first else []
        for statement, before in _with_given(block, entry.get(label, frozenset())):
            names = () if statement in captures else _read(statement)
            for name in [name for name in names if name in flags and name not in before]:
                made += _check(flags[name], _unversioned(name), block.scope, statement.loc)
            if not isinstance(statement, ir.Del):
                made.append(statement)
            made += [_set(flags[name], True, statement.loc) for name in _assigned(statement) if name in flags]
            made += [_set(flag, False, statement.loc) for name, flag in flags.items() if _is_deleted(name, statement)]
        block.body[:] = made
    return flags


def check_captured_names(blocks: Iterable[Any], flags: Mapping[str, Any]) -> None:
    """Put checks before reads of names that may have no value into the blocks of a local function."""
    for block in blocks:
        made: list[Any] = []
        for statement in block.body:
            for name in [] if isinstance(statement, ir.Del) else _read(statement):
                if name in flags:
                    made += _check(flags[name], _unversioned(name), block.scope, statement.loc)
            made.append(statement)
        block.body[:] = made


def refuse_captured_names(func_ir: Any, flags: Mapping[str, Any]) -> None:
    """Raise UnsupportedError where a local function that was not inlined reads a name that may have no value."""
    for statement in _captures(func_ir.blocks):
        for name in _read(statement):
            if name in flags:
                text = f"`{_unversioned(name)}` may have no value where a function is defined that reads it"
                raise UnsupportedError(text, statement.loc)


def _captures(blocks: Mapping[int, Any]) -> set[Any]:
    """The statements that give functions defined in the function the names that they read."""
    closures = {part.closure.name for block in blocks.values() for part in block.find_exprs("make_function")
                if isinstance(part.closure, ir.Var)}  # fmt: skip
    assignments = [one for block in blocks.values() for one in block.find_insts(ir.Assign)]
    tuples = {one for one in assignments if one.target.name in closures}
    items = {item.name for one in tuples for item in one.value.items}
    return tuples | {one for one in assignments if one.target.name in items and one.target.name.startswith("$")}


# ------------------------------------------------------------ which names have a value


def _given_at_entry(blocks: Mapping[int, Any]) -> dict[int, frozenset[str]]:
    """The names that have a value on every path to a block, by its label. Blocks that no path reaches are left out."""
    cfg = compute_cfg_from_blocks(blocks)
    order = [label for label in cfg.topo_order() if label in blocks]
    found: dict[int, frozenset[str]] = {cfg.entry_point(): frozenset()}
    ends: dict[int, frozenset[str]] = {}
    is_changed = True
    while is_changed:
        is_changed = False
        for label in order:
            known = [ends[before] for before, _ in cfg.predecessors(label) if before in ends]
            if label != cfg.entry_point():
                found[label] = frozenset.intersection(*known)
            end = found[label]
            for statement in blocks[label].body:
                end = _after(statement, end)
            if ends.get(label) != end:
                ends[label], is_changed = end, True
    return found


def _with_given(block: Any, given: frozenset[str]) -> Iterator[tuple[Any, frozenset[str]]]:
    """The statements of a block, each with the names that have a value before it."""
    for statement in block.body:
        yield statement, given
        given = _after(statement, given)


def _after(statement: Any, given: frozenset[str]) -> frozenset[str]:
    """The names that have a value after a statement."""
    if isinstance(statement, ir.Del):
        return frozenset(name for name in given if not _is_deleted(name, statement))
    return given.union(_assigned(statement))


def _assigned(statement: Any) -> tuple[str, ...]:
    return (statement.target.name,) if isinstance(statement, ir.Assign) else ()


def _read(statement: Any) -> list[str]:
    """The names that a statement reads, or that it deletes, in its order."""
    if isinstance(statement, ir.Del):
        return [statement.value]
    value = statement.value if isinstance(statement, ir.Assign) else statement
    if isinstance(value, ir.Var):
        return [value.name]
    variables = value.list_vars() if isinstance(value, ir.Stmt | ir.Expr | ir.Yield) else ()
    return list(dict.fromkeys(one.name for one in variables))


def _is_deleted(name: str, statement: Any) -> bool:
    return isinstance(statement, ir.Del) and _unversioned(name) == _unversioned(statement.value)


def _is_users(name: str) -> bool:
    return name.isidentifier() or _unversioned(name).isidentifier()


def _unversioned(name: str) -> str:
    return name.partition(".")[0]


# ------------------------------------------------------------ checks


def _set(flag: Any, value: bool, loc: Any) -> Any:
    return ir.Assign(ir.Const(value, loc), flag, loc)


def _check(flag: Any, name: str, scope: Any, loc: Any) -> list[Any]:
    function, text = scope.redefine("$check_given", loc), scope.redefine("$name", loc)
    called = ir.Expr.call(function, (flag, text), (), loc)
    return [
        ir.Assign(ir.Global("check_given", check_given, loc), function, loc),
        ir.Assign(ir.Const(name, loc), text, loc),
        ir.Assign(called, scope.redefine("$checked_given", loc), loc),
    ]


def check_given(is_given: bool, name: str) -> None:
    """Raise UnboundLocalError where a name has no value.

    >>> check_given(False, "x")
    Traceback (most recent call last):
    UnboundLocalError: cannot access local variable 'x' where it is not associated with a value
    """
    if not is_given:
        raise UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")


@overload(check_given, prefer_literal=True)  # type: ignore[untyped-decorator]
def _check_given(is_given: Any, name: Any) -> Any:
    message = f"cannot access local variable '{name.literal_value}' where it is not associated with a value"

    def check(is_given: Any, name: Any) -> None:  # pragma: no cover - compiled
        if not is_given:
            raise UnboundLocalError(message)

    return check
