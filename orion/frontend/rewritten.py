"""Code as other code that does the same, for the hints of code that is not compiled."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

BAR = ("desc", "total", "leave")
"""The first arguments of a progress bar after what it goes through."""

ATOMS = ast.Name | ast.Constant | ast.Subscript | ast.Attribute | ast.Call
"""What needs no parentheses as an operand."""


def same_call(call: ast.Call, name: str) -> str | None:
    """What does the same as a call of a function that is not known, of a name."""
    match name, call.args:
        case "np.count_nonzero", [array] if not call.keywords:
            return f"np.sum({ast.unparse(_operand(array))} != 0)"
        case "divmod", [left, right] if not call.keywords and _is_plain(left) and _is_plain(right):
            one, other = (ast.BinOp(left, op, right) for op in (ast.FloorDiv(), ast.Mod()))
            return ast.unparse(ast.Tuple([one, other], ast.Load()))
        case _:
            return None


def without_order(call: ast.Call, keyword: ast.keyword) -> str | None:
    """The call without `order="C"`, the layout that arrays have without it."""
    if keyword.arg != "order" or not isinstance(keyword.value, ast.Constant) or keyword.value.value != "C":
        return None
    return ast.unparse(ast.Call(call.func, call.args, [one for one in call.keywords if one is not keyword]))


def with_items(call: ast.Call) -> str | None:
    """`f(**{"a": x})` as `f(a=x)`."""
    keywords: list[ast.keyword] = []
    for keyword in call.keywords:
        match keyword:
            case ast.keyword(None, ast.Dict(keys, values)):
                named = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
                if len(named) != len(values) or not all(map(str.isidentifier, named)):
                    return None
                keywords += [ast.keyword(name, value) for name, value in zip(named, values, strict=True)]
            case ast.keyword(None):
                return None
            case _:
                keywords.append(keyword)
    return ast.unparse(ast.Call(call.func, call.args, keywords))


def chosen_part(node: ast.Subscript) -> str | None:
    """`(x if c else y)[i]` as `x[i] if c else y[i]`."""
    match node.value:
        case ast.IfExp(test, ast.Name() as then, ast.Name() as orelse):
            parts = (ast.Subscript(one, node.slice, ast.Load()) for one in (then, orelse))
            return ast.unparse(ast.IfExp(test, *parts))
        case _:
            return None


def part_of_array(node: ast.Subscript, value: Callable[[ast.expr], object]) -> str | None:
    """A part of a tuple of numbers of one type as that of an array."""
    numpy = ast.Name("np", ast.Load())
    match node.value:
        case ast.Tuple(items) if value(numpy) is np:
            types = {type(item.value) if isinstance(item, ast.Constant) else None for item in items}
            if types not in ({int}, {float}):
                return None
            array = ast.Call(ast.Attribute(numpy, "array", ast.Load()), [node.value], [])
            return ast.unparse(ast.Subscript(array, node.slice, ast.Load()))
        case _:
            return None


def called_each(call: ast.Call) -> str | None:
    """`(f if c else g)(x)` as `f(x) if c else g(x)`."""
    match call.func:
        case ast.IfExp(test, ast.Name() as then, ast.Name() as orelse):
            calls = (ast.Call(one, call.args, call.keywords) for one in (then, orelse))
            return ast.unparse(ast.IfExp(test, *calls))
        case _:
            return None


def one_of_shape(node: ast.Subscript) -> str | None:
    """`A.shape[i % 2]` as `A.shape[0] if i % 2 == 0 else A.shape[1]`."""
    match node.slice:
        case ast.BinOp(_, ast.Mod(), ast.Constant(2)) if _is_plain(node.value):
            first, last = (ast.Subscript(node.value, ast.Constant(axis), ast.Load()) for axis in (0, 1))
            test = ast.Compare(node.slice, [ast.Eq()], [ast.Constant(0)])
            return ast.unparse(ast.IfExp(test, first, last))
        case _:
            return None


def best_by_key(call: ast.Call) -> str | None:
    """`max(x, y, key=f)` as `y if f(y) > f(x) else x`: the first of equal ones, as Python takes it."""
    match call:
        case ast.Call(ast.Name(name), [first, second], [ast.keyword("key", ast.Name() as key)]):
            pass
        case _:
            return None
    if not (_is_plain(first) and _is_plain(second)) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    its, other = (ast.Call(key, [one], []) for one in (second, first))
    test = ast.Compare(its, [ast.Gt() if name == "max" else ast.Lt()], [other])
    return ast.unparse(ast.IfExp(test, second, first))


def with_text(statement: ast.stmt, value: ast.expr) -> str | None:
    """An `assert` or a `raise` of a value as one of the text of that; a KeyError shows its text in quotes."""
    shown = ast.unparse(value)
    is_plain = isinstance(value, ast.Name | ast.Attribute | ast.Subscript) and _is_plain(value)
    if not is_plain or set(shown) & set("\"'\\{}"):
        return None
    text = ast.Name(f'f"{{{shown}}}"', ast.Load())
    match statement:
        case ast.Assert(test):
            return ast.unparse(ast.Assert(test, text))
        case ast.Raise(ast.Call(ast.Name(name) as error, [_], []), None) if name != "KeyError":
            return ast.unparse(ast.Raise(ast.Call(error, [text], []), None))
        case _:
            return None


def one_by_one(targets: Sequence[ast.expr], value: ast.expr) -> str | None:
    """`a, b = c, d = x, y` with a line for each; None where an assignment changes what the next one reads."""
    changed = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    names = (one for target in targets for one in (target.elts if isinstance(target, ast.Tuple) else [target]))
    if changed & read or not _is_plain(value) or not all(isinstance(one, ast.Name) for one in names):
        return None
    return "\n".join(f"{_without_parentheses(target)} = {_without_parentheses(value)}" for target in targets)


def stored_result(call: ast.Call) -> str | None:
    """`np.add(a, b, out=a)` as `a[:] = np.add(a, b)`; None where it gives its result to more than `out`."""
    others = [one for one in call.keywords if one.arg != "out"]
    match [one.value for one in call.keywords if one.arg == "out"]:
        case [ast.Name() | ast.Subscript() as out] if not others:
            target = f"{ast.unparse(out)}[:]" if isinstance(out, ast.Name) else ast.unparse(out)
            return f"{target} = {ast.unparse(ast.Call(call.func, call.args, others))}"
        case _:
            return None


def bar_by_names(call: ast.Call) -> str | None:
    """`tqdm(x, "rows")` as `tqdm(x, desc="rows")`, and `tqdm(iterable=x)` as `tqdm(x)`."""
    spaces = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "iterable")]
    options = [ast.keyword(name, value) for name, value in zip(BAR, call.args[1:], strict=False)]
    if len(spaces) != 1 or len(call.args) > len(BAR) + 1:
        return None
    keywords = [one for one in call.keywords if one.arg != "iterable"]
    return ast.unparse(ast.Call(call.func, spaces, [*options, *keywords]))


def ends_names(node: ast.stmt) -> bool:
    """Whether a statement does nothing but `del` names."""
    return isinstance(node, ast.Delete) and all(isinstance(one, ast.Name) for one in node.targets)


def is_imported(node: ast.stmt, known: Mapping[str, object]) -> bool:
    """Whether a statement imports what the file has under the same names: known are those from outside the function."""
    match node:
        case ast.Import(names):
            found = [(one.asname or one.name, sys.modules.get(one.name)) for one in names]
        case ast.ImportFrom(str(module), names, 0):
            found = [(one.asname or one.name, getattr(sys.modules.get(module), one.name, None)) for one in names]
        case _:
            return False
    return all(value is not None and known.get(name) is value for name, value in found)


def _without_parentheses(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text.removeprefix("(").removesuffix(")") if isinstance(node, ast.Tuple) and node.elts else text


def _operand(node: ast.expr) -> ast.expr:
    return node if isinstance(node, ATOMS) else ast.Name(f"({ast.unparse(node)})", ast.Load())


def _is_plain(node: ast.expr) -> bool:
    """Whether to evaluate an expression twice is to evaluate it once."""
    return not any(isinstance(one, ast.Call | ast.NamedExpr | ast.Lambda) for one in ast.walk(node))
