"""Expressions: Python's syntax tree to the loop language."""

from __future__ import annotations

import ast
from contextlib import suppress
from types import ModuleType

import numpy as np

from orion.arrays.accumulator import Accumulator
from orion.errors import did_you_mean
from orion.frontend.matrices import ARRAYS, OF_ARRAYS
from orion.frontend.numpy_forms import deviation_along, limit_of_dtype
from orion.frontend.outside import MISSING
from orion.frontend.parse_calls import (
    build_call,
    build_method,
    check_callable,
    check_keywords,
    draw_refused,
    is_generator,
    refuse_method_of_object,
)
from orion.frontend.refusals import EXPRESSIONS, OBJECTS
from orion.frontend.rewritten import called_each, chosen_part, one_of_shape, part_of_array, with_items
from orion.frontend.rewritten_loops import defined_outside, given_name, named_first
from orion.frontend.scope import Scope, constant
from orion.frontend.ufunc_methods import refuse_ufunc_method
from orion.ir.constants import as_literal, constant_value
from orion.ir.nodes import (
    PART,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Count,
    Dim,
    Dtype,
    Expr,
    Logic,
    Slice,
    Subscript,
    Tuple,
    Unary,
    Var,
    Word,
    every,
)  # fmt: skip
from orion.source import Way

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Not: "not", ast.Invert: "~"}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
WORDS = ("side", "kind")
"""Keyword arguments that are strings."""
BITS = 64
WIDTH = "integers have 64 bits in a compiled loop"
PYTHON_DTYPES = {int: "int64", float: "float64", bool: "bool", complex: "complex128"}


def parse_expression(node: ast.expr, scope: Scope) -> Expr:
    """The expression in the loop language; UnsupportedLoopError where it has no counterpart there."""
    span = scope.span(node)
    match node:
        case ast.Constant():
            return _constant(node, scope)
        case ast.BinOp() | ast.UnaryOp() if (value := _with_powers(node)) is not None:
            return _number(value, node, scope)
        case ast.Name():
            return _name(node, scope)
        case ast.UnaryOp(op, operand):
            return Unary(UNARY[type(op)], parse_expression(operand, scope), span)
        case ast.BinOp(left, op, right):
            return Binary(OPERATORS[type(op)], parse_expression(left, scope), parse_expression(right, scope), span)
        case ast.BoolOp(op, values):
            operands = tuple(parse_expression(value, scope) for value in values)
            return Logic("and" if isinstance(op, ast.And) else "or", operands, span)
        case ast.Compare():
            return _compare(node, scope)
        case ast.IfExp(test, body, orelse):
            condition, then, other = (parse_expression(part, scope) for part in (test, body, orelse))
            return Choose(condition, then, other, span)
        case ast.Tuple(items):
            return Tuple(tuple(parse_expression(item, scope) for item in items), span)
        case ast.Call():
            return _call(node, scope)
        case ast.Attribute():
            return _attribute(node, scope)
        case ast.Subscript():
            return _subscript(node, scope)
        case _:
            refusal = EXPRESSIONS[type(node)]
            found = named_first(node, scope) if isinstance(node, ast.NamedExpr) else None
            found = defined_outside(node, scope) if isinstance(node, ast.Lambda) else found
            what = f"{refusal.what} is not supported"
            raise scope.refuse(node, what, refusal.why, refusal.hint, replacement=found)


def _with_powers(node: ast.expr) -> int | None:
    """The value of integer constants of which some are powers: `2**20`, `(1 << 10) - 1`. No analysis then has to look
    for it, and the powers themselves may take more bits than the value. None for anything else."""
    value = _integer(node)
    if value is None:
        return None
    powers = (part.op for part in ast.walk(node) if isinstance(part, ast.BinOp))
    return value if any(isinstance(op, ast.Pow | ast.LShift) for op in powers) else None


def _integer(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return int(value)
        case ast.UnaryOp(ast.USub(), operand):
            found = _integer(operand)
            return None if found is None else -found
        case ast.BinOp(left, op, right):
            return _of_two(op, _integer(left), _integer(right))
        case _:
            return None


def _of_two(op: ast.operator, left: int | None, right: int | None) -> int | None:
    if left is None or right is None or max(left.bit_length(), right.bit_length()) > 2 * BITS:
        return None
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Pow() if 0 <= right <= BITS:
            return int(left**right)
        case ast.LShift() if 0 <= right <= BITS:
            return left << right
        case _:
            return None


def _number(value: int, node: ast.expr, scope: Scope) -> Expr:
    """An integer; one that has 64 bits only without a sign says so (`orion.passes.large`)."""
    if -(2**63) <= value < 2**63:
        return Const(value, scope.span(node))
    if not 0 <= value < 2**64:
        raise scope.refuse(node, f"{value} is too large", WIDTH, is_wrong=True)
    return Call("np.uint64", (Const(value, scope.span(node)),), scope.span(node))


def _constant(node: ast.Constant, scope: Scope) -> Expr:
    if isinstance(node.value, bool | float | complex) or node.value is None:
        return Const(node.value, scope.span(node))
    if isinstance(node.value, int):
        return _number(node.value, node, scope)
    kind = "a string" if isinstance(node.value, str | bytes) else "`...`"
    raise scope.refuse(node, f"{kind} is not supported", OBJECTS, "use numbers, and arrays of numbers")


def _name(node: ast.Name, scope: Scope) -> Expr:
    if node.id in scope.variables:
        return scope.variable(node.id, scope.span(node))
    value = scope.value(node)
    if type(value) is np.ndarray and scope.arrays is not None:
        scope.arrays[node.id] = None
        return Var(node.id, scope.span(node))
    found = constant(value, scope.span(node))
    if found is None:
        raise _not_a_value(node, scope, value)
    if not isinstance(found, Tuple):
        scope.constants[node.id] = value.item() if isinstance(value, np.generic) else value  # type: ignore[assignment]
    return found


def _not_a_value(node: ast.Name | ast.Attribute, scope: Scope, value: object) -> Exception:
    written = ast.unparse(node)
    if value is MISSING:
        hint = scope.similar(node, "make it an argument of the function")
        return scope.refuse(node, f"`{written}` is not defined", "", hint, is_wrong=True)
    if not isinstance(value, ModuleType | type) and hasattr(value, "dtype"):
        what = f"`{written}` is an array from outside the function"
        if isinstance(node, ast.Name) and type(value) is np.ndarray:
            what += ", used in a function that the loop calls"
        why = "of such only NumPy's are known, by a name of their own in the decorated function"
        return scope.refuse(node, what, why, "pass it as an argument", is_wrong=True)
    if isinstance(value, type):
        hint = "make what it is for before the call, and pass the numbers and arrays that it holds as arguments"
        return scope.refuse(node, f"`{written}` is a class", OBJECTS, hint, is_wrong=True)
    if isinstance(value, ModuleType) or (callable(value) and hasattr(value, "__name__")):
        what = "a module" if isinstance(value, ModuleType) else "a function"
        what, hint = f"`{written}` is {what} used as a value", "name the function where it is called"
        return scope.refuse(node, what, OBJECTS, hint, replaced_by=written, way=Way.NAMED)
    if isinstance(value, Accumulator):
        what, why = f"`{written}` is an accumulator from outside the function", "a call is given what it adds to"
        return scope.refuse(node, what, why, "pass it as an argument", is_wrong=True)
    what = f"`{written}` is a {type(value).__name__} from outside the function"
    return scope.refuse(node, what, OBJECTS, "pass the numbers and arrays that it holds as arguments", is_wrong=True)


def _compare(node: ast.Compare, scope: Scope) -> Expr:
    operands = [node.left, *node.comparators]
    match node.ops, operands:
        case [ast.In() | ast.NotIn() as op], [value, ast.Tuple(items) | ast.List(items) | ast.Set(items)] if items:
            return _among(node, op, value, items, scope)
        case [ast.Is() | ast.IsNot() as op], [_, ast.Constant(None)] | [ast.Constant(None), _]:
            parsed = tuple(_operand(operand, scope) for operand in operands)
            return Compare(("is" if isinstance(op, ast.Is) else "is not",), parsed, scope.span(node))
    for other in node.ops:
        if type(other) not in COMPARISONS:
            word = {ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}[type(other)]
            hint = (
                "compare with `==` or `!=`; with None, an argument"
                if word.startswith("is")
                else "compare with each value, `x in (1, 2)`, or keep an array of flags"
            )
            raise scope.refuse(node, f"`{word}` is not supported", OBJECTS, hint)
    parsed = tuple(_operand(operand, scope) for operand in operands)
    return Compare(tuple(COMPARISONS[type(op)] for op in node.ops), parsed, scope.span(node))


def _among(node: ast.Compare, op: ast.cmpop, value: ast.expr, items: list[ast.expr], scope: Scope) -> Expr:
    """`x in (1, 2)` as `x == 1 or x == 2`."""
    span = scope.span(node)
    word, join = ("==", "or") if isinstance(op, ast.In) else ("!=", "and")
    found = _operand(value, scope)
    if len(items) > 1 and any(call.function.startswith(("helper:", ".")) for call in every(Call, found)):
        hint = "give the value a name before, and look for that"
        what, why = "a call stands before `in`", "it would be made for each of the values"
        raise scope.refuse(value, what, why, hint, replacement=given_name(value, "value", scope))
    pairs = [(found, _operand(item, scope)) for item in items]
    each: tuple[Expr, ...] = tuple(Compare((word,), pair, span) for pair in pairs)
    return Logic(join, each, span) if len(each) > 1 else each[0]


def _operand(node: ast.expr, scope: Scope) -> Expr:
    """What is compared: a string too, which stands for nothing but itself."""
    value = node.value if isinstance(node, ast.Constant) else scope.value(node)
    return Word(value, scope.span(node)) if isinstance(value, str) else parse_expression(node, scope)


# ---------------------------------------------------------------- calls


def _number_in_words(node: ast.Call, scope: Scope) -> Expr | None:
    """`float("inf")` and the like as the number that it is."""
    match node:
        case ast.Call(ast.Name("float"), [ast.Constant(str(text))], []) if scope.value(node.func) is float:
            with suppress(ValueError):
                return as_literal(Const(float(text), scope.span(node)))
    return None


def _call(node: ast.Call, scope: Scope) -> Expr:
    check_callable(node, scope)
    check_keywords(node, scope)
    number = _number_in_words(node, scope)
    if number is not None:
        return number
    refuse_ufunc_method(node, scope)
    method = isinstance(node.func, ast.Attribute) and scope.value(node.func) is MISSING
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_array_method = method and owner is not None and not isinstance(scope.value(owner), ModuleType)
    if owner is not None and is_generator(scope.value(owner)):
        raise draw_refused(node, scope)
    if isinstance(node.func, ast.Name) and node.func.id in scope.variables:
        name = node.func.id
        hint = f"call a function that is defined outside, and decorate one for each that `{name}` may be"
        raise scope.refuse(node, f"`{name}` is called, and is a local name", OBJECTS, hint)
    if not is_array_method and not isinstance(node.func, ast.Name | ast.Attribute):
        what, text = "what is called here is not a name", called_each(node)
        raise scope.refuse(node, what, OBJECTS, "call a function by its name", replaced_by=text)
    if (deviation := deviation_along(node, scope, parse_expression)) is not None:
        return deviation
    of_list = _array_of_list(node, scope)
    if scope.value(node.func) in (np.array, np.asarray) and len(node.args) > 0:
        if of_list is not None:
            return of_list
        node = _with_tuples(node)
    arguments = tuple(_argument(argument, scope) for argument in node.args) if of_list is None else (of_list,)
    keywords = tuple(_keyword(keyword, node, scope) for keyword in node.keywords)
    if is_array_method and owner is not None:
        refuse_method_of_object(node, scope)
        return build_method(node, scope, parse_expression(owner, scope), arguments, keywords)
    call = build_call(node, scope, arguments, keywords)
    if call.function == "len" and arguments and isinstance(arguments[0], Tuple):
        return Const(len(arguments[0].items), call.span)
    if call.function == "len" and arguments and isinstance(arguments[0], Var) and arguments[0].name in scope.sparse:
        return Count(arguments[0].name, call.span)
    return call


def _array_of_list(call: ast.Call, scope: Scope) -> Call | None:
    """The array that NumPy makes of a list, where a function of its is given one alone; it is no part of the list."""
    match call:
        case ast.Call(ast.Attribute(), [ast.Name(name) | ast.Subscript(ast.Name(name)) as given], []) if (
            name in scope.counted or (name in scope.places and isinstance(given, ast.Name))
        ):
            return Call(".copy", (parse_expression(given, scope),), scope.span(call))
        case _:
            return None


def _with_tuples(call: ast.Call) -> ast.Call:
    """`np.array([[1, 2], [3, 4]])` with tuples for lists."""

    def changed(node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.List | ast.Tuple):
            return node
        return ast.copy_location(ast.Tuple([changed(item) for item in node.elts], ast.Load()), node)

    found = ast.Call(call.func, [changed(call.args[0]), *call.args[1:]], call.keywords)
    return ast.copy_location(found, call)


def _keyword(keyword: ast.keyword, call: ast.Call, scope: Scope) -> tuple[str, Expr]:
    if keyword.arg is None:
        hint, text = "write the arguments one by one", with_items(call)
        raise scope.refuse(call, "`**` arguments are not supported", OBJECTS, hint, replaced_by=text)
    if keyword.arg in WORDS and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
        return keyword.arg, Word(keyword.value.value, scope.span(keyword.value))
    return keyword.arg, _argument(keyword.value, scope)


def _argument(node: ast.expr, scope: Scope) -> Expr:
    """An argument of a call: a dtype, or any expression."""
    value = scope.value(node)
    if isinstance(value, type):
        if value in PYTHON_DTYPES:
            return Dtype(PYTHON_DTYPES[value], scope.span(node))
        if issubclass(value, np.bool | np.integer | np.floating | np.complexfloating):
            return Dtype(np.dtype(value).name, scope.span(node))
    return parse_expression(node, scope)


# ---------------------------------------------------------------- attributes and subscripts


def _attribute(node: ast.Attribute, scope: Scope) -> Expr:
    if (limit := limit_of_dtype(node, scope, parse_expression)) is not None:
        return limit
    value = scope.value(node)
    found = constant(value, scope.span(node))
    if found is not None:  # np.pi
        return found
    if value is not MISSING or isinstance(scope.value(node.value), ModuleType):
        raise _not_a_value(node, scope, value)
    if (refused := _of_object(node, scope)) is not None:
        raise refused
    owner = parse_expression(node.value, scope)
    if node.attr not in OF_ARRAYS:
        why = "of an array, `shape`, `size`, `nnz`, `ndim`, `dtype` and `T` are known"
        hint = did_you_mean(node.attr, OF_ARRAYS, "pass its value as an argument")
        if node.attr in ARRAYS:
            why = "only SciPy's sparse matrices have it, as arguments of the decorated function"
            hint = "pass one; an array of `orion.sparse` is gone through by rows, `for j, v in A[i]:`"
        raise scope.refuse(node, f"the attribute `{node.attr}` is not supported", why, hint)
    return Call(f"attribute:{node.attr}", (owner,), scope.span(node))


def _of_object(node: ast.Attribute, scope: Scope) -> Exception | None:
    """The refusal of an attribute of a class, or of any other object from outside but numbers and arrays."""
    owner: ast.expr = node
    while isinstance(owner, ast.Attribute):
        owner = owner.value
        value = scope.value(owner)
        is_known = value is MISSING or isinstance(value, ModuleType | Accumulator) or hasattr(value, "dtype")
        if is_known or constant(value, scope.span(node)) is not None:
            continue
        written, is_class = ast.unparse(node), isinstance(value, type)
        kind = "a class" if is_class else f"a {type(value).__name__}"
        what = f"`{written}` is an attribute of {kind} from outside the function"
        return scope.refuse(node, what, OBJECTS, f"pass `{written}` as an argument", is_wrong=not is_class)
    return None


def _subscript(node: ast.Subscript, scope: Scope) -> Expr:
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return _dimension(node, node.value, scope)
    base = parse_expression(node.value, scope)
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        written = ast.unparse(node)
        hint = f"pass it as an argument: of a dict, `{written}`; of a data frame, `{written}.to_numpy()`"
        raise scope.refuse(node.slice, "a string is not supported", OBJECTS, hint)
    if any(_is_new_axis(part, scope) for part in _parts(node.slice)):
        return _with_axes(node, scope)
    index = tuple(_index(part, scope) for part in _parts(node.slice))
    if not index:
        why = "it stands for the one element of an array without axes, or for a whole array"
        hint = "pass the number itself, or an array with one element; write `a[:]` for a whole array"
        text = f"{ast.unparse(node.value)}[:]" if isinstance(node.ctx, ast.Store) else None
        raise scope.refuse(node, "an empty subscript is not supported", why, hint, replaced_by=text)
    match base:
        case Tuple(items):
            return _item(items, index, node, scope)
        case Var():
            return Subscript(base, index, scope.span(node))
        case Subscript(array, outer) if all(map(scope.is_number, outer)):
            return Subscript(array, (*outer, *index), scope.span(node))  # W[i][k] is W[i, k]
        case Call("attribute:T"):
            raise scope.refuse(node, "a subscript of a transpose is not supported", "", "write `A[:, j]` for `A.T[j]`")
        case Const() | Word() | Logic() | Choose():
            hint = "write one subscript, `A[i, j]`, or give the value a name first"
            what = "only a subscript of an array by its name is supported"
            raise scope.refuse(node, what, "", hint, replaced_by=chosen_part(node))
        case _:
            return Call(PART, (base, *index), scope.span(node))


def _is_new_axis(part: ast.expr, scope: Scope) -> bool:
    """Whether a subscript is None, or `np.newaxis`, which is None."""
    return (isinstance(part, ast.Constant) and part.value is None) or scope.value(part) is None


def _with_axes(node: ast.Subscript, scope: Scope) -> Expr:
    """`x[:, None]` as what it is without the new axes, and these one by one."""
    span, parts = scope.span(node), _parts(node.slice)
    axes: list[int] = []
    others: list[ast.expr] = []
    for part in parts:
        if _is_new_axis(part, scope):
            axes.append(len(axes) + sum(isinstance(other, ast.Slice) for other in others))
        else:
            others.append(part)
    found = _without_axes(node, others, scope)
    for axis in axes:
        found = Call("np.expand_dims", (found, Const(axis, span)), span)
    return found


def _without_axes(node: ast.Subscript, others: list[ast.expr], scope: Scope) -> Expr:
    """The part of an array at all subscripts but the new axes: slices, and numbers, which leave no axis."""
    while others and _is_whole(others[-1]):
        others = others[:-1]
    numbers = [part for part in others if not isinstance(part, ast.Slice)]
    if not all(scope.is_number(parse_expression(part, scope)) for part in numbers):
        what = "a new axis beside a subscript that may be an array is not supported"
        raise scope.refuse(node, what, "", "give the part a name first: `row = x[i]`, then `row[:, None]`")
    if not others:
        return parse_expression(node.value, scope)
    index = ast.Tuple(others, ast.Load()) if len(others) > 1 else others[0]
    return _subscript(ast.copy_location(ast.Subscript(node.value, index, node.ctx), node), scope)


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None


def _item(items: tuple[Expr, ...], index: tuple[Expr, ...], node: ast.Subscript, scope: Scope) -> Expr:
    """An item of a tuple."""
    place = constant_value(index[0]) if len(index) == 1 else None
    if place is None:
        hint, text = "make it an array before the call, and pass that", part_of_array(node, scope.value)
        what, why = "the subscript of a tuple is not a number", "its items may be of different types"
        raise scope.refuse(node, what, why, hint, replaced_by=text)
    if not -len(items) <= place < len(items):
        raise scope.refuse(node, f"the tuple has {len(items)} items")
    return items[place]


def _dimension(node: ast.Subscript, shape: ast.Attribute, scope: Scope) -> Expr:
    match node.slice:
        case ast.Slice(None, ast.Constant(int(count)), None):  # the first of them: `h, w = image.shape[:2]`
            axes = [ast.copy_location(ast.Constant(axis), node.slice) for axis in range(count)]
            each = [ast.copy_location(ast.Subscript(shape, axis, ast.Load()), node) for axis in axes]
            return Tuple(tuple(_dimension(one, shape, scope) for one in each), scope.span(node))
        case ast.Constant(int(axis)) | ast.UnaryOp(ast.UAdd(), ast.Constant(int(axis))):
            pass
        case ast.UnaryOp(ast.USub(), ast.Constant(int(axis))):
            axis = -axis
        case _:
            what, text = "the subscript of `shape` is not a constant", one_of_shape(node)
            raise scope.refuse(node, what, "", "write `a.shape[0]`", replaced_by=text)
    array = parse_expression(shape.value, scope)
    if isinstance(array, Var):
        return Dim(array.name, axis, scope.span(node))
    return Call("attribute:shape", (array, Const(axis, scope.span(node.slice))), scope.span(node))


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _index(node: ast.expr, scope: Scope) -> Expr:
    match node:
        case ast.Slice(lower, upper, step):
            first, last, by = (
                None if bound is None else parse_expression(bound, scope) for bound in (lower, upper, step)
            )
            return Slice(first, last, by, scope.span(node))
        case ast.Constant(value) if value is ...:
            hint = "write a subscript for each axis, `:` for a whole one: `A[:, 0]` for `A[..., 0]`"
            raise scope.refuse(node, "`...` in a subscript is not supported", "", hint)
        case _:
            return parse_expression(node, scope)
