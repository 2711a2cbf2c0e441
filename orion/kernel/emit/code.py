"""Pieces of generated source: a text, the dtype that Numba gives it, and how tightly it binds."""

from __future__ import annotations

import numpy as np

from orion.dataclass import dataclass
from orion.ir.nodes import Const, Expr

CHOOSE, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, SIGN, POWER, ATOM = range(14)
LEVELS = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT, "@": PRODUCT, "**": POWER,
    "|": BIT_OR, "^": BIT_XOR, "&": BIT_AND, "<<": SHIFT, ">>": SHIFT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Code:
    """A generated expression. `dtype` is the NumPy dtype name of its value; `level` is that of its outermost
    operator."""

    text: str
    dtype: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """The text, in parentheses where it binds less tightly than `level`.

        >>> Code("a + b", "float64", SUM).at(PRODUCT)
        '(a + b)'
        """
        return self.text if self.level >= level else f"({self.text})"


def infix(op: str, left: Code, right: Code, dtype: str) -> Code:
    """`left op right`.

    >>> a, b = Code("a", "float64"), Code("b + c", "float64", SUM)
    >>> infix("*", a, b, "float64").text, infix("-", a, b, "float64").text
    ('a * (b + c)', 'a - (b + c)')
    """
    level = LEVELS[op]
    if op == "**":
        return Code(f"{left.at(ATOM)} ** {right.at(SIGN)}", dtype, level)
    return Code(f"{left.at(level)} {op} {right.at(level + 1)}", dtype, level)


def is_small(expr: Expr) -> bool:
    """Whether it is an integer constant that is a count of bits, or a power, without further thought."""
    return isinstance(expr, Const) and isinstance(expr.value, int) and 0 <= expr.value < 64


def infix_compare(op: str, left: Code, right: Code) -> Code:
    """`left op right`, a truth value."""
    return Code(f"{left.at(BIT_OR)} {op} {right.at(BIT_OR)}", "bool", COMPARE)


def call(function: str, *arguments: Code | str, dtype: str) -> Code:
    """`function(arguments…)`.

    >>> call("dot", Code("a + b", "float32", SUM), "c", dtype="float32").text
    'dot(a + b, c)'
    """
    texts = (argument.text if isinstance(argument, Code) else argument for argument in arguments)
    return Code(f"{function}({', '.join(texts)})", dtype)


def number(value: complex, dtype: str) -> Code:
    """A constant of that dtype.

    >>> number(2, "float64").text, number(0.5, "float32").text, number(3, "int64").text
    ('2.0', 'float32(0.5)', '3')
    >>> number(2 - 1j, "complex128").text
    'complex(2.0, -1.0)'
    """
    if dtype.startswith("complex"):
        parts = ", ".join(number(part, "float64").text for part in (complex(value).real, complex(value).imag))
        return Code(f"complex({parts})" if dtype == "complex128" else f"{dtype}(complex({parts}))", dtype)
    assert not isinstance(value, complex)
    if dtype == "bool":
        return Code(str(bool(value)), dtype)
    if dtype == "int64":
        return _signed(str(int(value)), dtype)
    special = {float("inf"): "np.inf", float("-inf"): "-np.inf"}.get(value, "np.nan" if value != value else "")
    text = special or repr(float(value) if dtype.startswith("float") else int(value))
    return _signed(text, dtype) if dtype == "float64" else Code(f"{dtype}({text})", dtype)


def _signed(text: str, dtype: str) -> Code:
    return Code(text, dtype, SIGN if text.startswith("-") else ATOM)


def numba_result(op: str, left: str, right: str, rank: int) -> str:
    """The dtype that Numba gives `left op right`: NumPy's, but integers that are scalars have at least 64 bits.

    >>> numba_result("+", "int32", "int32", 0), numba_result("+", "int32", "int32", 1)
    ('int64', 'int32')
    >>> numba_result("/", "int64", "int64", 0), numba_result("*", "float32", "float32", 0)
    ('float64', 'float32')
    >>> numba_result("+", "uint64", "int64", 0), numba_result("+", "uint8", "uint8", 0)
    ('int64', 'uint64')
    >>> numba_result("-", "bool", "uint64", 0), numba_result("|", "bool", "bool", 0)
    ('int64', 'bool')
    """
    kinds = np.dtype(left).kind + np.dtype(right).kind
    bits = op in "&|^" and ("b" not in kinds or kinds == "bb")
    if rank == 0 and op != "/" and set(kinds) <= set("biu") and not bits:
        return "uint64" if kinds == "uu" else "int64"  # a truth value counts as one with a sign
    found = np.promote_types(left, right)
    if op == "/" and found.kind in "biu":
        return "float64"
    return str(found.name)


def numpy_name(dtype: str) -> str:
    """What a dtype is called in the module `np`, for Numba.

    >>> numpy_name("float32"), numpy_name("bool")
    ('float32', 'bool_')
    """
    return "bool_" if dtype == "bool" else dtype
