"""Names and numbers of Python in the text that isl reads: every number gets there by the functions of this file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import islpy as isl

RESERVED = frozenset({
    "mod", "floor", "ceil", "floord", "ceild", "min", "max", "and", "or", "not", "exists", "true", "false", "implies",
    "infty", "nan", "rat", "if", "then", "else",
})  # fmt: skip


LARGEST = 2**31 - 1
"""The largest number that is surely one of a C `long`."""


@lru_cache(maxsize=4096)
def isl_name(name: str) -> str:
    """A name that isl takes for the Python name: the same unless isl reserves it or it is not ASCII. Different names
    have different ones; none is that of an extent or of anything else that Orion names with two underscores.

    >>> isl_name("step"), isl_name("mod"), isl_name("mod_"), isl_name("λ"), isl_name("W__0")
    ('step', 'mod_', 'mod__', 'u3bb_', 'x575f5f30_')
    """
    if "__" in name:
        return f"x{name.encode().hex()}_"
    if name.rstrip("_") in RESERVED:
        return name + "_"
    if name.isascii():
        return name
    return "".join(c if c.isascii() else f"u{ord(c):x}_" for c in name)


def extent_name(array: str, axis: int) -> str:
    """The isl parameter that stands for `array.shape[axis]`.

    >>> extent_name("W", 1)
    'W__1'
    """
    return f"{isl_name(array)}__{axis}"


def parameter_list(names: Iterable[str]) -> str:
    """The parameter part of an isl set or map.

    >>> parameter_list({"n", "A__0"})
    '[A__0, n] -> '
    """
    return f"[{', '.join(sorted(names))}] -> "


# ---------------------------------------------------------------- numbers


def number_text(number: int) -> str:
    """An integer. isl reads a sign before its digits alone: not one before a parenthesis, nor a product of numbers.

    >>> number_text(-2)
    '-2'
    """
    return str(number)


def product_text(factor: int, text: str) -> str:
    """`factor` times an expression, which is a name or in parentheses.

    >>> product_text(-2, "i"), product_text(3, "(i + 1)")
    ('(-2 * i)', '(3 * (i + 1))')
    """
    return f"({number_text(factor)} * {text})"


def sum_text(terms: Mapping[str, int]) -> str:
    """A sum of names with integer factors; the name "" stands for 1.

    >>> sum_text({"i": 2, "": -1}), sum_text({})
    ('(2 * i) + -1', '0')
    """
    parts = (product_text(factor, name) if name else number_text(factor) for name, factor in terms.items())
    return " + ".join(parts) or "0"


def isl_value(number: int, context: isl.Context) -> isl.Val:
    """An integer of any size as a value of isl."""
    import islpy as isl

    if -LARGEST <= number <= LARGEST:
        return isl.Val.int_from_si(context, number)
    return isl.Val(number_text(number), context)


def number_of(value: isl.Val) -> int:
    """An integer of isl as one of Python. islpy's `to_python` goes through its text, which takes three times as long.

    >>> import islpy as isl
    >>> number_of(isl.Val(-3)), number_of(isl.Val(0)), number_of(isl.Val("12345678901234567890"))
    (-3, 0, 12345678901234567890)
    """
    found = value.get_num_si()  # 0 also where a number is none of 64 bits
    if not value.is_int():
        raise ValueError(f"{value.to_str()} is no integer")
    return found if found or value.is_zero() else int(value.to_str())
