"""Integer expressions as text, each with the values that it may take: by that, random subscripts stay inside arrays.

Every expression is bounded for two sizes of the arguments, a small and a larger one, so that one source fits both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Interval = tuple[int, int]
"""Least and greatest value."""

SIZES = (0, 1)
"""The two sizes that a nest is made for."""


@dataclass(frozen=True)
class Bounded:
    """An expression; `spans[size]` is the interval of its values."""

    text: str
    spans: tuple[Interval, Interval]

    def __str__(self) -> str:
        return self.text

    def in_product(self) -> str:
        """The text as an operand of * // % or on the right of a minus."""
        return self.text if self.text.isidentifier() or self.text.isdigit() or "[" in self.text else f"({self.text})"


def constant(value: int) -> Bounded:
    return Bounded(str(value), ((value, value), (value, value)))


def named(name: str, small: Interval, large: Interval) -> Bounded:
    return Bounded(name, (small, large))


def plus(left: Bounded, right: Bounded | int) -> Bounded:
    """`left + right`.

    >>> i = named("i", (0, 4), (0, 8))
    >>> plus(i, -1)
    Bounded(text='i - 1', spans=((-1, 3), (-1, 7)))
    >>> plus(i, times(2, i)).text, plus(times(-1, i), 0).text
    ('i + 2*i', '-i')
    """
    if isinstance(right, int):
        return Bounded(with_constant(left.text, right), _each(lambda a: (a[0] + right, a[1] + right), left))
    return Bounded(f"{left.text} + {right.text}", _both(lambda a, b: (a[0] + b[0], a[1] + b[1]), left, right))


def with_constant(text: str, number: int) -> str:
    """`text + number`, with the number added to one that is there.

    >>> with_constant("i - 1", 1), with_constant("5 - i", 2), with_constant("i // 2", -1), with_constant("-2", 3)
    ('i', '7 - i', 'i // 2 - 1', '1')
    """
    if text.lstrip("-").isdigit():
        return str(int(text) + number)
    head, _, tail = text.rpartition(" ")
    if tail.isdigit() and head.endswith((" +", " -")):
        number += int(tail) if head.endswith("+") else -int(tail)
        text = head[:-2]
    first, _, rest = text.partition(" - ")
    if first.isdigit() and int(first) + number > 0:
        return f"{int(first) + number} - {rest}"
    return f"{text} {'-' if number < 0 else '+'} {abs(number)}" if number else text


def minus(left: Bounded, right: Bounded) -> Bounded:
    simple = right.text.replace("*", "").isalnum()
    text = f"{left.text} - {right.text if simple else f'({right.text})'}"
    return Bounded(text, _both(lambda a, b: (a[0] - b[1], a[1] - b[0]), left, right))


def times(factor: int, value: Bounded) -> Bounded:
    """`factor*value`; only a minus sign for -1."""
    text = f"-{value.in_product()}" if factor == -1 else f"{factor}*{value.in_product()}"
    low_high = _each(lambda a: (min(factor * a[0], factor * a[1]), max(factor * a[0], factor * a[1])), value)
    return Bounded(text, low_high)


def product(left: Bounded, right: Bounded) -> Bounded:
    def corners(a: Interval, b: Interval) -> Interval:
        found = [x * y for x in a for y in b]
        return min(found), max(found)

    return Bounded(f"{left.in_product()} * {right.in_product()}", _both(corners, left, right))


def either(left: Bounded, right: Bounded, name: str) -> Bounded:
    """A name for the one or the other."""
    return Bounded(name, _both(lambda a, b: (min(a[0], b[0]), max(a[1], b[1])), left, right))


def divided(value: Bounded, divisor: int) -> Bounded:
    return Bounded(f"{value.in_product()} // {divisor}", _each(lambda a: (a[0] // divisor, a[1] // divisor), value))


def modulo(value: Bounded, divisor: int) -> Bounded:
    """`value % divisor`, for a positive divisor."""
    return Bounded(f"{value.in_product()} % {divisor}", ((0, divisor - 1),) * 2)


def least(left: Bounded, right: Bounded) -> Bounded:
    spans = _both(lambda a, b: (min(a[0], b[0]), min(a[1], b[1])), left, right)
    return Bounded(f"min({left.text}, {right.text})", spans)


def greatest(left: Bounded, right: Bounded) -> Bounded:
    spans = _both(lambda a, b: (max(a[0], b[0]), max(a[1], b[1])), left, right)
    return Bounded(f"max({left.text}, {right.text})", spans)


def loop_values(start: Bounded, stop: Bounded, step: int) -> tuple[Interval, Interval]:
    """The values of the variable of `range(start, stop, step)`, where it makes any trip."""
    if step > 0:
        return _both(lambda a, b: (a[0], max(a[0], b[1] - 1)), start, stop)
    return _both(lambda a, b: (min(b[0] + 1, a[1]), a[1]), start, stop)


def _each(rule: Callable[[Interval], Interval], value: Bounded) -> tuple[Interval, Interval]:
    return rule(value.spans[0]), rule(value.spans[1])


def _both(rule: Callable[[Interval, Interval], Interval], left: Bounded, right: Bounded) -> tuple[Interval, Interval]:
    return rule(left.spans[0], right.spans[0]), rule(left.spans[1], right.spans[1])
