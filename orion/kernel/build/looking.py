"""Numba's compiler for functions that run as they are, with passes that give them Python's and NumPy's meaning.

Checks of what only a run knows stand before the operations that Numba does not check: lengths, masks, shared memory
and names without a value. Functions defined in a function get their arguments as Python binds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numba import njit
from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.inline_closurecall import InlineClosureCallPass, callee_ir_validator, inline_closure_call
from numba.core.ir_utils import build_definitions, find_callname, fixup_var_define_in_scope, guard, require
from numba.core.postproc import PostProcessor
from numba.core.untyped_passes import InlineClosureLikes, IRProcessing, MakeFunctionToJitFunction, TranslateByteCode

from orion.kernel.build.builtin_functions import array_of
from orion.kernel.build.checked_operations import IN_PLACE, as_it_is, check_mask
from orion.kernel.build.local_functions import (
    bind_arguments,
    hold_defaults,
    refuse_unbindable,
    refuse_unwritable_defaults,
)
from orion.kernel.build.unassigned import (
    check_assigned_names,
    check_captured_names,
    refuse_captured_names,
    refuse_unassigned,
)


@register_pass(mutates_CFG=True, analysis_only=False)
class TranslateWithChecks(TranslateByteCode):  # type: ignore[misc]
    """Translates bytecode, with checks of the names that may have no value, and without `del`."""

    _name = "orion_translate_with_checks"

    def run_pass(self, state: Any) -> bool:
        function, loc = state.func_id.func, ir.Loc.from_function_id(state.func_id)
        refuse_unbindable(function.__code__, loc)
        refuse_unassigned(function, loc)
        super().run_pass(state)
        state.orion_flags = check_assigned_names(state.func_ir)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class LookAtLengths(FunctionPass):  # type: ignore[misc]
    """Puts what looks at lengths before what Numba does without looking."""

    _name = "orion_look_at_lengths"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        hold_defaults(state.func_ir)
        _look(state.func_ir.blocks.values(), state.func_ir)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineLocalFunctions(FunctionPass):  # type: ignore[misc]
    """Inlines functions defined in the function, with arguments bound as Python does, and with the same checks."""

    _name = "orion_inline_local_functions"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        inliner = _Inliner(state.func_ir, state.flags.auto_parallel, state.parfor_diagnostics.replaced_fns, typed=True)
        inliner.flags = state.orion_flags
        inliner.run()
        PostProcessor(state.func_ir).run()
        fixup_var_define_in_scope(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class CompileLocalFunctions(MakeFunctionToJitFunction):  # type: ignore[misc]
    """Compiles the functions defined in the function that are left, such as keys of `sort`, with the same checks."""

    _name = "orion_compile_local_functions"

    def run_pass(self, state: Any) -> bool:
        functions = [one for block in state.func_ir.blocks.values() for one in block.find_insts(ir.Assign)]
        functions = [one for one in functions if getattr(one.value, "op", "") == "make_function"]
        refuse_unwritable_defaults(state.func_ir)
        refuse_captured_names(state.func_ir, state.orion_flags)
        is_changed: bool = super().run_pass(state)
        for one in functions:
            if isinstance(one.value, ir.Global):
                plain = one.value.value.py_func
                own = njit(plain, boundscheck=True, error_model="python", pipeline_class=LookingCompiler)
                one.value = ir.Global(one.value.name, own, one.loc)
        return is_changed


def is_local(dispatcher: Any) -> bool:
    """Whether a function was compiled by that pass."""
    return dispatcher._compiler.pipeline_class is LookingCompiler


class _Inliner(InlineClosureCallPass):  # type: ignore[misc]
    """Numba's inliner of local functions; `flags` say of names that may have no value whether they have one."""

    flags: Mapping[str, Any]

    def _inline_closure(self, work_list: Any, block: Any, i: int, func_def: Any) -> bool:
        require(isinstance(func_def, ir.Expr) and func_def.op == "make_function")
        bind_arguments(block.body[i].value, func_def, self.func_ir)
        bound = ir.Expr.make_function(func_def.name, func_def.code, func_def.closure, None, func_def.loc)
        space = self.func_ir.func_id.func.__globals__
        made, _ = inline_closure_call(
            self.func_ir, space, block, i, bound, work_list=work_list, callee_validator=callee_ir_validator
        )
        check_captured_names(made.values(), self.flags)
        _look(made.values(), self.func_ir)
        return True


def _look(blocks: Iterable[Any], func_ir: Any) -> None:
    """Put the checks into some blocks of a function."""
    blocks = list(blocks)
    called = {part.func.name for block in blocks for part in block.find_exprs("call")}
    for block in blocks:
        body = []
        for one in block.find_insts(ir.Assign):
            is_complex = isinstance(one.value, ir.Global) and one.value.value is complex
            if is_complex and one.target.name not in called:
                one.value = ir.Global("complex128", np.complex128, one.loc)  # Numba has no dtype of that name
        for statement in block.body:
            body += [*_with_array_of(statement, func_ir, block.scope), *_looked_at(statement, block.scope)]
        block.body[:] = body
    func_ir._definitions = build_definitions(func_ir.blocks)


def _looked_at(statement: Any, scope: Any) -> list[Any]:
    value = getattr(statement, "value", None)
    if isinstance(statement, ir.Assign) and isinstance(value, ir.Expr):
        if value.op == "inplace_binop" and value.fn in IN_PLACE:
            before, called = _call(IN_PLACE[value.fn], (value.lhs, value.rhs), scope, statement.loc)
            return [*before, ir.Assign(called, statement.target, statement.loc)]
        if value.op == "getitem":
            return [*_check(value.value, value.index, scope, statement.loc), statement]
    if isinstance(statement, ir.SetItem):
        return [*_check(statement.target, statement.index, scope, statement.loc), statement]
    return [statement]


def _with_array_of(statement: Any, func_ir: Any, scope: Any) -> list[Any]:
    """Keep a list that is given to `np.array`, and call a function of Orion's in place of that.

    Numba would make the list itself an array, also where it is used afterwards. Its length would be that of the loop's
    bounds, which may be negative.
    """
    value: Any = getattr(statement, "value", None)
    if guard(find_callname, func_ir, value) != ("array", "numpy") or not value.args:
        return []
    before, called = _call(as_it_is, value.args[:1], scope, statement.loc)
    kept = scope.redefine("$kept", statement.loc)
    made, own = _call(array_of, (kept, *value.args[1:]), scope, statement.loc)
    value.func, value.args = own.func, own.args
    return [*before, ir.Assign(called, kept, statement.loc), *made]


def _check(array: Any, index: Any, scope: Any, loc: Any) -> list[Any]:
    before, called = _call(check_mask, (array, index), scope, loc)
    return [*before, ir.Assign(called, scope.redefine("$looked_at", loc), loc)]


def _call(function: Any, arguments: tuple[Any, ...], scope: Any, loc: Any) -> tuple[list[Any], Any]:
    name = scope.redefine("$look", loc)
    made = ir.Assign(ir.Global(function.__name__, function, loc), name, loc)
    return [made], ir.Expr.call(name, arguments, (), loc)


class LookingCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with these passes."""

    def define_pipelines(self) -> list[Any]:
        made = DefaultPassBuilder.define_nopython_pipeline(self.state)
        instead = {
            TranslateByteCode: TranslateWithChecks,
            InlineClosureLikes: InlineLocalFunctions,
            MakeFunctionToJitFunction: CompileLocalFunctions,
        }
        made.passes = [(instead.get(one, one), name) for one, name in made.passes]
        made.add_pass_after(LookAtLengths, IRProcessing)
        made.finalize()
        return [made]
