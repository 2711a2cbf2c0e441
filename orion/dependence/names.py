"""Names of Python in the text that isl reads."""

from __future__ import annotations

from collections.abc import Iterable

RESERVED = frozenset({
    "mod", "floor", "ceil", "floord", "ceild", "min", "max", "and", "or", "not", "exists", "true", "false", "implies",
    "infty", "nan", "rat", "if", "then", "else",
})  # fmt: skip


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
