"""Where a function that Numba compiled as it is has failed: tracebacks as Python's, with the user's lines.

Machine code on its way out of a function by an error writes down the line, and so do the functions that called it.
Numba itself knows the lines of `raise` alone. The place to write to has a symbol, so that code can be kept on disk.
"""

from __future__ import annotations

import ast
import ctypes
import dis
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType, TracebackType
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core.callconv import RETCODE_NONE, RETCODE_OK, CPUCallConv
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering

from orion.errors import of_user

MOST = 32
"""How many functions that call one another are told of at most."""

INT = ir.IntType(64)


class Lines:
    """The lines in which functions have failed, from the innermost to the outermost: written by machine code, which
    holds the GIL, and taken by who called it. `name` is that of the code, which has a symbol for them."""

    def __init__(self, name: str) -> None:
        self._functions: list[FunctionType] = []
        self._symbol = f"orion_lines_{name}"
        self._notes = _memory_of(self._symbol)

    def pipeline(self, plain: type, function: FunctionType) -> type:
        """The pipeline for a function, like the plain one."""
        number = len(self._functions)
        self._functions.append(function)
        return type(plain.__name__, (_Noting, plain), {"number": number, "symbol": self._symbol})

    def taken(self) -> Iterator[tuple[CodeType, int]]:
        """The code that has failed since the last time, with the lines, from the outermost to the innermost. Where one
        of the functions catches errors, only the outermost is known."""
        count, self._notes[0] = int(self._notes[0]), 0
        noted = self._notes[1:].reshape(MOST, 2)[: min(count, MOST)][::-1].tolist()
        catches = any(function.__code__.co_exceptiontable for function in self._functions)
        for number, line in noted[:1] if catches else noted:
            yield self._functions[number].__code__, line

    def error_of(self, error: Exception) -> Exception:
        """Return what was raised last as the error that Python raises, with its traceback."""
        places = [*self.taken()]
        if isinstance(error, StopIteration) and self._is_of_nothing(places):
            error = ValueError("the least or greatest of nothing")
        return of_user(error, traceback=_traceback(places))

    def _is_of_nothing(self, places: list[tuple[CodeType, int]]) -> bool:
        """Whether a StopIteration comes from `min` or `max`, which Numba lets through, rather than from the user."""
        named = {name for code, line in places[-1:] for name in _names_in(code, line)}
        if named & STOPPING:
            return False
        everywhere = {name for function in self._functions for name in _names_in(function.__code__)}
        return bool(named & {"min", "max"}) or not everywhere & STOPPING


def _memory_of(symbol: str) -> Any:
    """The integers at a symbol, made where it has none yet. Like machine code, they stay until the process ends: code
    that is loaded twice writes to the same."""
    address = llvm.address_of_symbol(symbol)
    if address is None:
        made = np.zeros(1 + 2 * MOST, np.int64)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
        address = made.ctypes.data
        llvm.add_symbol(symbol, address)
    return np.ctypeslib.as_array((ctypes.c_int64 * (1 + 2 * MOST)).from_address(address))


STOPPING = frozenset({"next", "StopIteration"})
"""What may raise StopIteration in Python."""


def _names_in(code: CodeType, line: int | None = None) -> Iterator[str]:
    """The names in a line of a function and of those defined in it; in all lines where none is given."""
    for one in dis.get_instructions(code):
        is_there = line is None or (one.positions is not None and one.positions.lineno == line)
        if is_there and isinstance(one.argval, str):
            yield one.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_in(inner, line)


def _traceback(places: list[tuple[CodeType, int]]) -> TracebackType | None:
    """The traceback of an error, from the outermost place to the innermost; None where there are none."""
    found: TracebackType | None = None
    for code, line in reversed(places):
        own = _entry(code, line)
        found = TracebackType(found, own.tb_frame, own.tb_lasti, line)
    return found


def _entry(code: CodeType, line: int) -> TracebackType:
    """An entry of a traceback, as if the code had raised an error in that line."""
    written = linecache.getline(code.co_filename, line).rstrip()
    tree = ast.parse("raise ValueError")
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):  # all of the line, so that no part of it is pointed at
            node.lineno = node.end_lineno = line
            node.col_offset, node.end_col_offset = len(written) - len(written.lstrip()), len(written.encode())
    text = compile(tree, code.co_filename, "exec")
    entry: TracebackType | None = None
    try:
        exec(text.replace(co_name=code.co_name, co_qualname=code.co_qualname), {})
    except ValueError as error:
        entry = error.__traceback__
    assert entry is not None
    assert entry.tb_next is not None
    return entry.tb_next


class _Noting:
    """A compiler of one function of several."""

    number: int
    symbol: str

    def define_pipelines(self) -> list[Any]:
        (made,) = super().define_pipelines()  # type: ignore[misc]
        self.state.noting = self  # type: ignore[attr-defined]
        made.passes = [(_NotingLowering if one is NativeLowering else one, name) for one, name in made.passes]
        made.finalize()
        return [made]


@register_pass(mutates_CFG=True, analysis_only=False)
class _NotingLowering(BaseNativeLowering):  # type: ignore[misc]
    _name = "orion_noting_lowering"

    def run_pass(self, state: Any) -> bool:
        self._noting = state.noting
        found: bool = super().run_pass(state)
        return found

    @property
    def lowering_class(self) -> Any:
        noting = self._noting

        class NotingLower(Lower):  # type: ignore[misc]
            def init(self) -> None:
                self.context.__class__ = _NotingContext
                self.context.noted_by = noting, self
                super().init()

        return NotingLower


class _NotingContext(CPUContext):  # type: ignore[misc]
    noted_by: Any

    @property
    def call_conv(self) -> Any:
        return _NotingCallConv(self)


class _NotingCallConv(CPUCallConv):  # type: ignore[misc]
    def _return_errcode_raw(self, builder: Any, code: Any) -> None:
        noting, lower = self.context.noted_by
        is_own = builder.function is getattr(lower, "function", None)  # else what Numba compiles meanwhile
        if is_own and code is not RETCODE_OK and code is not RETCODE_NONE:
            _note(builder, self.context, noting, getattr(lower.loc, "line", 0))
        super()._return_errcode_raw(builder, code)


def _note(builder: Any, context: Any, noting: _Noting, line: int) -> None:
    notes = context.get_c_value(builder, ir.ArrayType(INT, 1 + 2 * MOST), noting.symbol)
    zero, one, two = (ir.Constant(INT, number) for number in range(3))

    def at(place: Any) -> Any:
        return builder.gep(notes, [zero, place])

    count = builder.load(at(zero))
    last = ir.Constant(INT, MOST - 1)
    place = builder.mul(two, builder.select(builder.icmp_signed("<", count, last), count, last))
    builder.store(ir.Constant(INT, noting.number), at(builder.add(place, one)))
    builder.store(ir.Constant(INT, line), at(builder.add(place, two)))
    builder.store(builder.add(count, one), at(zero))
