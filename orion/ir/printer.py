"""The loop language printed as the Python that it came from."""

from __future__ import annotations

import math

from orion.ir.function import Function
from orion.ir.nodes import (
    INTEGER,
    NARROW,
    RAISE,
    RETURNED,
    Assign,
    Binary,
    Bind,
    Break,
    Call,
    Choose,
    Compare,
    Const,
    Continue,
    Count,
    Dim,
    Dtype,
    Elements,
    Evaluate,
    Expr,
    For,
    If,
    Logic,
    Range,
    Return,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Update,
    Var,
    While,
    Word,
)  # fmt: skip
from orion.source import Span

Line = tuple[str, Span]

CHOOSE, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, TERM, FACTOR, POWER, ATOM = range(14)
BINARY_LEVELS = {
    "|": BIT_OR, "^": BIT_XOR, "&": BIT_AND, "<<": SHIFT, ">>": SHIFT, "+": SUM, "-": SUM,
    "*": TERM, "/": TERM, "//": TERM, "%": TERM, "@": TERM, "**": POWER,
}  # fmt: skip


def print_function(function: Function) -> str:
    """The function as Python text, without decorators and docstring."""
    return "\n".join(text for text, _ in function_lines(function))


def print_stmt(statement: Stmt, indent: str = "") -> str:
    """A statement as Python text, one or more lines without a line break at the end."""
    return "\n".join(text for text, _ in statement_lines(statement, indent))


def print_expr(expr: Expr) -> str:
    """An expression as Python text, with parentheses only where they are needed."""
    return _print(expr)[0]


# ---------------------------------------------------------------- statements


def function_lines(function: Function) -> list[Line]:
    """The lines of a function, with their places in the source."""
    header = f"def {function.name}({', '.join(function.params)}):"
    return [(header, function.span), *_block(function.body, "    ", function.span)]


def statement_lines(statement: Stmt, indent: str = "") -> list[Line]:
    """The lines of a statement, each with the place in the source that it comes from."""
    deeper, span = indent + "    ", statement.span
    match statement:
        case If():
            return _if_lines(statement, indent, "if")
        case While(test, body):
            return [(f"{indent}while {print_expr(test)}:", test.span), *_block(body, deeper, span)]
        case For(space, body):
            return [(f"{indent}for {_space(space)}:", span), *_block(body, deeper, span)]
        case _:
            return [(indent + _simple(statement), span)]


def _block(body: tuple[Stmt, ...], indent: str, span: Span) -> list[Line]:
    if not body:
        return [(f"{indent}pass", span)]
    return [line for statement in body for line in statement_lines(statement, indent)]


def _simple(statement: Stmt) -> str:
    match statement:
        case Assign(target, value):
            return f"{_bare(target)} = {_bare(value)}"
        case Update(target, op, value):
            return f"{print_expr(target)} {op}= {print_expr(value)}"
        case Bind(name, row):
            return f"{name} = {print_expr(row)}"
        case Evaluate(value):
            return print_expr(value)
        case Return(Call(function, parts)) if function.startswith(RAISE):
            return f"raise {function.removeprefix(RAISE)}({_text_of(parts)})"
        case Return(value):
            return "return" if value is None else f"return {_bare(value)}"
        case Break():
            return "break"
        case Continue():
            return "continue"
        case _:
            return "pass"


def _text_of(parts: tuple[Expr, ...]) -> str:
    """The text of an error that is raised."""
    texts = [print_expr(part) for part in parts]
    return f"{texts[0]}.format({', '.join(texts[1:])})" if len(texts) > 1 else "".join(texts)


def _if_lines(statement: If, indent: str, word: str) -> list[Line]:
    head = (f"{indent}{word} {print_expr(statement.test)}:", statement.test.span)
    lines = [head, *_block(statement.body, indent + "    ", statement.span)]
    match statement.orelse:
        case ():
            return lines
        case (If() as nested,):
            return lines + _if_lines(nested, indent, "elif")
        case _:
            last = _block(statement.orelse, indent + "    ", statement.span)
            return [*lines, (f"{indent}else:", statement.span), *last]


def _space(space: Range | Elements) -> str:
    match space:
        case Range(var, Const(0), stop, Const(1)):
            return f"{var} in range({print_expr(stop)})"
        case Range(var, start, stop, Const(1)):
            return f"{var} in range({print_expr(start)}, {print_expr(stop)})"
        case Range(var, start, stop, step):
            return f"{var} in range({print_expr(start)}, {print_expr(stop)}, {print_expr(step)})"
        case Elements(array, keys, values, single):
            key = _tuple(keys) if len(keys) > 1 else keys[0]
            return f"{key}, {values[0] if single else _tuple(values)} in {array}"


def _bare(expr: Expr) -> str:
    """A tuple without its parentheses, where Python lets them be left out."""
    text = print_expr(expr)
    return text[1:-1] if isinstance(expr, Tuple) and expr.items else text


def _tuple(items: tuple[str, ...]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


# ---------------------------------------------------------------- expressions


def _print(expr: Expr) -> tuple[str, int]:
    """The text of an expression, and how tightly its outermost operator binds."""
    match expr:  # what there is most of is first
        case Var(name):
            return name, ATOM
        case Subscript(base, index):
            return f"{base.name}[{', '.join([_index(part) for part in index])}]", ATOM
        case Const(value):
            return _constant(value)
        case Word(value):
            return repr(value), ATOM
        case Dtype(name):
            return f"np.{name}", ATOM
        case Dim(array, axis):
            return f"{array}.shape[{axis}]", ATOM
        case Count(array):
            return f"len({array})", ATOM
        case Unary("not", operand):
            return f"not {_inside(operand, NOT)}", NOT
        case Unary(op, operand):
            return f"{op}{_inside(operand, FACTOR)}", FACTOR
        case Binary("**", left, right):
            return f"{_inside(left, ATOM)} ** {_inside(right, FACTOR)}", POWER
        case Binary(op, left, right):
            level = BINARY_LEVELS[op]
            return f"{_inside(left, level)} {op} {_inside(right, level + 1)}", level
        case Compare(ops, operands):
            rest = (f" {op} {_inside(operand, BIT_OR)}" for op, operand in zip(ops, operands[1:], strict=True))
            return _inside(operands[0], BIT_OR) + "".join(rest), COMPARE
        case Logic(op, operands):
            level = AND if op == "and" else OR
            return f" {op} ".join(_inside(operand, level + 1) for operand in operands), level
        case Choose(test, then, orelse):
            return f"{_inside(then, OR)} if {_inside(test, OR)} else {_inside(orelse, CHOOSE)}", CHOOSE
        case Call(function, (operand,)) if function == NARROW:
            return _print(operand)
        case Call():
            return _call(expr), ATOM
        case Tuple(items):
            return _tuple(tuple(_index(item) for item in items)), ATOM
        case Slice():
            return _index(expr), ATOM


def _inside(expr: Expr, level: int) -> str:
    text, own = _print(expr)
    return text if own >= level else f"({text})"


def _index(expr: Expr) -> str:
    if not isinstance(expr, Slice):
        return print_expr(expr)
    lower, upper = ("" if bound is None else print_expr(bound) for bound in (expr.lower, expr.upper))
    return f"{lower}:{upper}" + ("" if expr.step is None else f":{print_expr(expr.step)}")


def _constant(value: object) -> tuple[str, int]:
    if isinstance(value, float) and not math.isfinite(value):
        name = "nan" if math.isnan(value) else "inf"
        return (f"-np.{name}", FACTOR) if value < 0 else (f"np.{name}", ATOM)
    negative = isinstance(value, int | float) and str(value).startswith("-")
    return repr(value), FACTOR if negative else ATOM


def _call(call: Call) -> str:
    name = call.function
    if name == RETURNED:
        base, *index = call.arguments
        return f"{_inside(base, ATOM)}[{', '.join(map(_index, index))}]"
    arguments = [print_expr(argument) for argument in call.arguments]
    keywords = [f"{key}={print_expr(value)}" for key, value in call.keywords]
    if name == INTEGER:
        name = "int"
    if name == "attribute:shape" and len(arguments) == 2:
        return f"{_inside(call.arguments[0], ATOM)}.shape[{arguments[1]}]"
    if name.startswith("attribute:"):
        return f"{_inside(call.arguments[0], ATOM)}.{name.removeprefix('attribute:')}"
    if name.startswith("."):
        return f"{_inside(call.arguments[0], ATOM)}{name}({', '.join(arguments[1:] + keywords)})"
    return f"{name.removeprefix('helper:')}({', '.join(arguments + keywords)})"
