"""Names in Python text that is made of the loop language and executed: skeletons, traced bodies, `combine` functions.

Such text calls functions by their canonical names (`max`, `len`, `np.sqrt`, `orion.random`), also where the user has
written none: bounds, extents and steps are computed. A variable or a function of the user's may have one of these names
(`max = a[0]`), and would then hide it. It gets a new name in the text, here and nowhere else.
"""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from orion.dataclass import dataclass, replace
from orion.ir.function import Function
from orion.ir.nodes import Expr, Node, names_in
from orion.ir.printer import Line, function_lines, print_expr, statement_lines
from orion.ir.renaming import fresh, renamed, with_functions
from orion.keyed_random import random

N = TypeVar("N", bound=Node)

MODULES: Mapping[str, Any] = {"np": np, "math": math, "orion": SimpleNamespace(random=random)}
"""What canonical names of functions begin with, but for Python's own."""


def is_said(name: str) -> bool:
    """Whether text may mean a module or one of Python's functions by a name. `_` is among those once an interactive
    prompt has shown a value."""
    return name in MODULES or (name != "_" and hasattr(builtins, name))


@dataclass(frozen=True, slots=True)
class PythonNames:
    """The names of one text: of `variables` and `functions` (`helper:f`) those that differ from the user's, of the
    function itself `entry`, and of Orion's `own` parts."""

    variables: Mapping[str, str]
    functions: Mapping[str, str]
    entry: str
    own: Mapping[str, str]

    @staticmethod
    def of(function: Function, variables: Iterable[str], *own: str) -> PythonNames:
        """The names of a text that mentions these variables, and parts of Orion's by names like `own`."""
        mentioned = {*variables, *function.params}
        helpers = [helper.name for helper in function.helpers]
        taken = {*mentioned, *helpers, *dict(function.constants), function.name}
        functions = {
            f"helper:{name}": f"helper:{_unsaid(name, taken)}" for name in helpers if is_said(name) or name in mentioned
        }
        entry = _unsaid(function.name, taken) if is_said(function.name) else function.name
        return PythonNames(_others(mentioned, taken), functions, entry, {name: _unsaid(name, taken) for name in own})

    def variable(self, name: str) -> str:
        return self.variables.get(name, name)

    def node(self, node: N) -> N:
        """A node with the names of the text."""
        return with_functions(renamed(node, self.variables), self.functions)

    def expr(self, expr: Expr) -> str:
        return print_expr(self.node(expr))

    def statement(self, statement: Any, indent: str) -> list[Line]:
        return statement_lines(self.node(statement), indent)

    def function(self, name: str) -> str:
        """The name of a helper."""
        return self.functions.get(f"helper:{name}", name).removeprefix("helper:")

    def helper(self, helper: Function) -> list[Line]:
        """The lines of a helper."""
        unhidden = with_functions(unhiding(helper), self.functions)
        return function_lines(replace(unhidden, name=self.function(helper.name)))

    def space(self, **others: Any) -> dict[str, Any]:
        """The namespace in which the text is executed, with `others` in place of modules or beside them."""
        return {**MODULES, "__builtins__": builtins, **others}

    def in_users_words(self, text: str) -> str:
        """What Python says of variables, `'max_'`, with the names that the user has written."""
        said = {new: name for name, new in self.variables.items()}
        return re.sub(r"'(\w+)'", lambda found: f"'{said.get(found[1], found[1])}'", text)


def unhiding(helper: Function, reserved: Iterable[str] = ()) -> Function:
    """A helper none of whose variables hides what its text may mean, or one of the names that are `reserved`.

    >>> from orion.frontend.parse import parse_function
    >>> def scaled(max):
    ...     return 2 * max
    >>> unhiding(parse_function(scaled)).params
    ('max_',)
    """
    variables = {*helper.params, *names_in(*helper.body)}
    others = _others(variables, {*variables, *reserved}, frozenset(reserved))
    if not others:
        return helper
    params = tuple(others.get(name, name) for name in helper.params)
    return replace(helper, params=params, body=tuple(renamed(one, others) for one in helper.body))


def _others(names: Iterable[str], taken: set[str], reserved: frozenset[str] = frozenset()) -> dict[str, str]:
    return {name: _unsaid(name, taken) for name in sorted(names) if is_said(name) or name in reserved}


def _unsaid(name: str, taken: set[str]) -> str:
    while is_said(name):
        name += "_"
    return fresh(name, taken)
