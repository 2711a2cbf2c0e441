"""Calls: which function is meant, and how its arguments are passed."""

from __future__ import annotations

import ast
import builtins
import copy
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from random import Random
from types import FunctionType

import numpy as np

from orion.errors import did_you_mean
from orion.frontend.functions import canonical_name
from orion.frontend.outside import MISSING
from orion.frontend.refusals import CALLS, DATES, EXPRESSIONS, METHODS, OBJECTS, SPACES
from orion.frontend.rewritten import best_by_key, same_call, stored_result, without_order
from orion.frontend.rewritten_loops import STARTS, comprehended
from orion.frontend.scope import Helper, Scope, constant
from orion.ir.nodes import Call, Const, Expr
from orion.source import Way
from orion.typing.functions import FUNCTIONS, known

Keywords = tuple[tuple[str, Expr], ...]
DRAWS = (
    ("random rand random_sample", "write `orion.random(seed, i)`"),
    ("uniform", "write `low + (high - low) * orion.random(seed, i)`"),
    ("normal randn standard_normal gauss normalvariate", "write `mean + deviation * orion.random.normal(seed, i)`"),
    ("randint integers randrange", "write `orion.random.integers(low, high, seed, i)` (numbers below `high`)"),
    ("choice", "write `x[orion.random.integers(0, len(x), seed, i)]`"),
)
"""Names of functions that draw from a generator, and what to write instead."""

KEYS = (
    "with the variables of all loops around as keys, and one more number for each draw of an iteration, "
    "`orion.random(seed, i, 1)`: equal keys give equal numbers, in any order"
)

BEFORE = "pass `{0}`, computed before the call, as an argument"
IN_PLACE_OF = {
    "np.nonzero": "for the places in a row write `np.flatnonzero({1})` inside a loop, or pass that as an argument",
    "np.argwhere": BEFORE,
    "np.count_nonzero": f"write `np.sum({{1}} != 0)`, or {BEFORE}",
}
"""Functions that are not known, and what does the same: `{0}` is the call, `{1}` what it is given first."""

REFUSED_KEYWORDS = {
    "out": "it hides a write from the analysis; assign the result instead, `a[:] = …`",
    "where": "write an `if`, or np.where with three arguments",
    "key": "write a `for` loop that keeps the best value so far",
    "order": "leave it out",
    "casting": "leave it out",
}


def build_call(node: ast.Call, scope: Scope, arguments: tuple[Expr, ...], keywords: Keywords) -> Call:
    """The call of a function that is named: Python's, `math`'s, NumPy's, or the user's own."""
    function = scope.value(node.func)
    python = plain_function(function)
    name = canonical_name(function)
    if name is None and python is not None:
        helper = scope.helper_of(python, scope.span(node), scope.source)
        return Call(f"helper:{helper.name}", _bind(node, scope, helper, arguments, keywords), scope.span(node))
    if name is None or known(name) is None:
        raise _unknown(node, scope, function, name)
    return Call(name, arguments, scope.span(node), _without_defaults(name, keywords))


def build_method(node: ast.Call, scope: Scope, owner: Expr, arguments: tuple[Expr, ...], keywords: Keywords) -> Call:
    """The call of a method of an array: `W[i].copy()`."""
    assert isinstance(node.func, ast.Attribute)
    name = "." + node.func.attr
    if known(name) is None and any(node.func.attr in names.split() for names, _ in DRAWS):
        raise draw_refused(node, scope)
    if known(name) is None:
        what = f"the method `{node.func.attr}` is not known"
        methods = [other.removeprefix(".") for other in FUNCTIONS if other.startswith(".")]
        hint = METHODS.get(node.func.attr, "").format(ast.unparse(node.func.value))
        hint = hint or did_you_mean(node.func.attr, methods, "write it with operators, NumPy functions or a loop")
        raise scope.refuse(node, what, OBJECTS, hint)
    return Call(name, (owner, *arguments), scope.span(node), _without_defaults(name, keywords))


def _without_defaults(name: str, keywords: Keywords) -> Keywords:
    """The arguments by name without `axis=None`, of functions for which that is the whole array, as it is without."""
    row = known(name)
    if row is None or "axis" not in row.keywords:
        return keywords
    return tuple((key, value) for key, value in keywords if key != "axis" or value != Const(None, value.span))


DECORATORS = frozenset({"numba", "orion"})
"""The packages whose decorators keep what a function does."""


def plain_function(function: object) -> FunctionType | None:
    """The Python function behind an object: itself, or the one that Numba or Orion has decorated. Other objects may do
    something else than a function that they hold, and so does one that Numba was told the types of names in."""
    if isinstance(function, FunctionType):
        return function
    if type(function).__module__.partition(".")[0] not in DECORATORS:
        return None
    found = getattr(function, "py_func", None)
    has_types = bool(getattr(getattr(function, "_compiler", None), "locals", None))
    return found if isinstance(found, FunctionType) and not has_types else None


NOT_KNOWN = "it is not among the functions that Orion can compile"
CALLABLE = "call a function written in Python, one of NumPy's, or one of `math`'s"


OBJECTS_MADE = {
    defaultdict: "dict", OrderedDict: "dict", Counter: "dict", ChainMap: "dict", deque: "list",
}  # fmt: skip
"""Classes of Python's `collections`, and what they make."""


def check_callable(node: ast.Call, scope: Scope) -> None:
    """Refuse functions of Python's and NumPy's that no loop can call, whatever they are given."""
    function = scope.value(node.func)
    name = getattr(function, "__name__", "")
    if name in CALLS and function is getattr(builtins, name, MISSING):
        refusal = CALLS[name]
        what, is_space = f"{refusal.what} is not supported", name in SPACES
        text = ast.unparse(node) if is_space else same_call(node, name)
        way = Way.NAMED if is_space else Way.HERE
        raise scope.refuse(node, what, refusal.why, refusal.hint, replaced_by=text, way=way)
    if name in STARTS and function is getattr(builtins, name) and (loop := comprehended(node, scope)) is not None:
        refusal = EXPRESSIONS[type(node.args[0])]
        what = f"{refusal.what} is not supported"
        raise scope.refuse(node.args[0], what, refusal.why, refusal.hint, replacement=loop)
    if isinstance(function, type) and function in OBJECTS_MADE:
        made = OBJECTS_MADE[function]
        what = f"`{ast.unparse(node)}` makes a {made}, and is not supported"
        raise scope.refuse(node, what, OBJECTS, CALLS[made].hint)
    if function in (np.datetime64, np.timedelta64):
        what, letter = f"`{ast.unparse(node.func)}` is not supported", "M" if function is np.datetime64 else "m"
        why = "a compiled loop works on numbers, not on dates and spans of time"
        raise scope.refuse(node, what, why, DATES.format(ast.unparse(node), letter))


def check_keywords(node: ast.Call, scope: Scope, statement: ast.Expr | None = None) -> None:
    """Refuse arguments by name that no function here takes; the call may be a statement."""
    for keyword in node.keywords:
        if keyword.arg in REFUSED_KEYWORDS:
            hint, what = REFUSED_KEYWORDS[keyword.arg], f"the argument `{keyword.arg}=` is not supported"
            text = stored_result(node) if statement is not None else _without(node, keyword, scope)
            raise scope.refuse(keyword.value, what, "", hint, replaced_by=text, place=statement or node)


def _without(node: ast.Call, keyword: ast.keyword, scope: Scope) -> str | None:
    if keyword.arg == "key" and scope.value(node.func) in (min, max):
        return best_by_key(node)
    return without_order(node, keyword)


def _bind(
    node: ast.Call, scope: Scope, helper: Helper, arguments: tuple[Expr, ...], keywords: Keywords
) -> tuple[Expr, ...]:
    """The arguments of a helper function by position, with defaults filled in."""
    given = dict(zip(helper.params, arguments, strict=False))
    names = [name for name, _ in keywords]
    if len(arguments) > len(helper.params) or set(names) - set(helper.params) or set(names) & set(given):
        hint = next((did_you_mean(name, helper.params) for name in names if name not in helper.params), "")
        what = f"the arguments do not fit `{helper.name}({', '.join(helper.params)})`"
        raise scope.refuse(node, what, "", hint, is_wrong=True)
    given |= dict(keywords)
    for name, value in helper.defaults.items():
        if name in given:
            continue
        default = constant(value, scope.span(node))
        if default is None or isinstance(value, tuple):
            what = f"the default of `{name}` in `{helper.name}` is a {type(value).__name__}"
            raise scope.refuse(node, what, "", "give every parameter that is no scalar at the call", is_wrong=True)
        given[name] = default
    missing = [name for name in helper.params if name not in given]
    if missing:
        raise scope.refuse(node, f"`{helper.name}` is called without `{missing[0]}`", is_wrong=True)
    return tuple(given[name] for name in helper.params)


def is_generator(value: object) -> bool:
    return isinstance(value, Random | np.random.Generator | np.random.RandomState)


def draw_refused(node: ast.Call, scope: Scope) -> Exception:
    """The refusal of a number that is drawn from a generator."""
    written = ast.unparse(node.func)
    name = written.rpartition(".")[2]
    why = "a generator's hidden state makes every draw depend on the one before"
    if canonical_name(scope.value(getattr(node.func, "value", node.func))) == "orion.random":
        why = "it is not among the draws by seed and keys"
    instead = next((text for names, text in DRAWS if name in names.split()), "")
    hint = "draw before the call, into an array"
    if instead:
        hint = f"{instead}, {KEYS}; or {hint}"
    elif name == "seed":
        hint = "leave it out: `orion.random(seed, i)` takes the seed with each number"
    return scope.refuse(node, f"`{written}` is not supported", why, hint, is_wrong=True)


def refuse_method_of_object(node: ast.Call, scope: Scope) -> None:
    """Refuse a method of an object of NumPy's or SciPy's that takes arrays, such as `scipy.stats.norm.cdf`."""
    assert isinstance(node.func, ast.Attribute)
    owner = scope.value(node.func.value)
    if owner is not MISSING and not hasattr(owner, "dtype") and is_of_arrays(type(owner)):
        written = ast.unparse(node.func)
        hint = on_whole_arrays(node) or BEFORE.format(ast.unparse(node))
        raise scope.refuse(node, f"`{written}` is not supported", NOT_KNOWN, hint, is_wrong=True)


def is_of_arrays(function: object) -> bool:
    """Whether a function, or a class, is one of NumPy's or SciPy's, which take arrays for numbers."""
    if isinstance(function, np.ufunc):
        return True
    return str(getattr(function, "__module__", "")).partition(".")[0] in ("numpy", "scipy")


def on_whole_arrays(node: ast.Call) -> str:
    """Return the hint to call a function once, on the arrays whose elements it is given; "" where it is given none."""
    whole = ast.unparse(_Whole().visit(copy.deepcopy(node)))
    if whole == ast.unparse(node):
        return ""
    return f"call it on the whole array before the loop, `{whole}`, and pass the result as an argument"


class _Whole(ast.NodeTransformer):
    """Arrays in place of elements whose subscripts have names."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        has_names = any(isinstance(part, ast.Name) for part in ast.walk(node.slice))
        return node.value if isinstance(node.value, ast.Name) and has_names else node


def _unknown(node: ast.Call, scope: Scope, function: object, name: str | None) -> Exception:
    written = ast.unparse(node.func)
    if isinstance(node.func, ast.Attribute) and canonical_name(scope.value(node.func.value)) == "orion.random":
        return draw_refused(node, scope)
    if function is MISSING:
        hint = scope.similar(node.func, "define or import it before the loop is planned")
        return scope.refuse(node, f"`{written}` is not defined", "", hint, is_wrong=True)
    what = f"`{written}` is not supported"
    if written.startswith(("np.random", "numpy.random", "random.")):
        raise draw_refused(node, scope)
    if is_of_arrays(function) and (whole := on_whole_arrays(node)) and name not in IN_PLACE_OF:
        return scope.refuse(node, what, NOT_KNOWN, whole)
    if name is not None:
        why = NOT_KNOWN
        hint = f"pass `{ast.unparse(node)}`, computed before the call, as an argument, or write it as a loop"
        if name in IN_PLACE_OF:
            hint = IN_PLACE_OF[name].format(ast.unparse(node), *map(ast.unparse, node.args))
        return scope.refuse(node, what, why, hint, replaced_by=same_call(node, name))
    why = f"Orion cannot look into an object of type {type(function).__name__}"
    hint = f"pass `{ast.unparse(node)}`, computed before the call, as an argument, or {CALLABLE}"
    return scope.refuse(node, f"`{written}` cannot be called here", why, hint)
