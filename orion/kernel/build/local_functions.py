"""Functions defined in a function that runs as it is: their arguments, bound as Python binds them.

Numba inlines such functions with positional arguments alone, and appends all defaults to those that a call gives. What
it inlines two levels deep is out of reach of our passes, and therefore refused where it has defaults.
"""

from __future__ import annotations

import dis
import inspect
import math
from collections.abc import Iterator
from types import CodeType
from typing import Any

from numba.core import ir
from numba.core.errors import UnsupportedError
from numba.core.ir_utils import guard

COLLECTING = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
HAS_DEFAULTS = 0x03
"""The bits of their arguments for defaults of positional and of keyword-only parameters."""


def local_codes(code: CodeType) -> list[CodeType]:
    """Return the code of the functions that a function defines directly.

    >>> def outer():
    ...     def inner(x):
    ...         return lambda y: x + y
    ...     return inner
    >>> [code.co_name for code in local_codes(outer.__code__)]
    ['inner']
    """
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def refuse_unbindable(code: CodeType, loc: Any) -> None:
    """Raise UnsupportedError where a function defines another one whose arguments cannot be bound."""
    for local in local_codes(code):
        name = described(local)
        if local.co_kwonlyargcount:
            raise UnsupportedError(f"{name} has keyword-only parameters", _loc(local, loc))
        if local.co_flags & COLLECTING:
            raise UnsupportedError(f"{name} collects arguments by `*` or `**`", _loc(local, loc))
        refuse_local_defaults(local, name, _loc(local, loc))
        refuse_unbindable(local, loc)


def refuse_local_defaults(code: CodeType, name: str, loc: Any) -> None:
    """Raise UnsupportedError where a function defines another one that has defaults."""
    if any(_defines_with_defaults(code)):
        raise UnsupportedError(f"{name} defines a function with defaults", loc)


def refuse_unwritable_defaults(func_ir: Any) -> None:
    """Raise UnsupportedError where Numba would write the source of a default that is no finite number."""
    for block in func_ir.blocks.values():
        for function in block.find_exprs("make_function"):
            for variable in _defaults(function, func_ir):
                constant = guard(func_ir.get_definition, variable)
                value = getattr(constant, "value", None)
                if isinstance(constant, ir.Const) and not (isinstance(value, int | float) and math.isfinite(value)):
                    text = f"a default of {described(function.code)} is no finite number"
                    raise UnsupportedError(text, function.loc)


def _defines_with_defaults(code: CodeType) -> Iterator[bool]:
    for one in dis.get_instructions(code):
        if one.opname in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE"):  # the second one from Python 3.13
            yield bool((one.arg or 0) & HAS_DEFAULTS)


def described(code: CodeType) -> str:
    """Return what a message calls a local function.

    >>> described((lambda x: x).__code__)
    'a lambda'
    """
    return "a lambda" if code.co_name == "<lambda>" else f"the local function `{code.co_name}`"


def _loc(code: CodeType, loc: Any) -> Any:
    return ir.Loc(loc.filename, code.co_firstlineno)


def bind_arguments(call: Any, function: Any, func_ir: Any) -> None:
    """Give a call of a local function all arguments, in the order of its parameters. Raise UnsupportedError where they
    do not fit.
    """
    if call.vararg or getattr(call, "varkwarg", None):
        return  # Numba refuses it
    code = function.code
    names = code.co_varnames[: code.co_argcount]
    name = described(code)
    if len(call.args) > len(names):
        noun = "argument" if len(names) == 1 else "arguments"
        raise UnsupportedError(f"{name} takes {len(names)} {noun}, and a call gives {len(call.args)}", call.loc)
    bound = dict(zip(names, call.args, strict=False))
    for keyword, value in call.kws:
        if keyword not in names or keyword in bound:
            raise UnsupportedError(f"{name} takes no further argument `{keyword}`", call.loc)
        bound[keyword] = value
    defaults = _defaults(function, func_ir)
    for parameter, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        bound.setdefault(parameter, value)
    if missing := [parameter for parameter in names if parameter not in bound]:
        raise UnsupportedError(f"{name} gets no argument `{missing[0]}`", call.loc)
    call.args, call.kws = tuple(bound[parameter] for parameter in names), ()


def hold_defaults(func_ir: Any) -> None:
    """Keep the values that defaults of local functions have where these are defined, in variables of their own."""
    made = [part for block in func_ir.blocks.values() for part in block.find_exprs("make_function")]
    held = {part.defaults.name for part in made if isinstance(part.defaults, ir.Var)}
    for block in func_ir.blocks.values():
        body: list[Any] = []
        for statement in block.body:
            if isinstance(statement, ir.Assign) and statement.target.name in held:
                kept = [block.scope.redefine("$default", statement.loc) for _ in statement.value.items]
                pairs = zip(statement.value.items, kept, strict=True)
                body += [ir.Assign(item, name, statement.loc) for item, name in pairs]
                statement.value = ir.Expr.build_tuple(kept, statement.loc)
            body.append(statement)
        block.body[:] = body


def _defaults(function: Any, func_ir: Any) -> tuple[Any, ...]:
    """The variables that hold the defaults of a local function."""
    found = function.defaults
    if isinstance(found, ir.Var):
        found = func_ir.get_definition(found).items
    return tuple(found or ())
