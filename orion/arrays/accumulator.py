"""Values that all iterations of loops add to by a user's function: `orion.accumulator`.

A loop cuts its iterations into chunks. Each chunk begins with the neutral element and adds its values in their order.
The values of the chunks are then combined in their order: a reduction by a monoid, as in Blelloch, *Prefix Sums and
Their Applications*, 1990. An associative function thus gives the same value as one iteration after another, also where
it is not commutative. The chunks, and so the bits, are the same for up to 32 workers, or 8 (`orion.cost.grid`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from orion.dataclass import dataclass
from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line

Combine = Callable[[Any, Any], Any]

NEAR = {"float32": 1e-4, "float64": 1e-8}
"""How far apart, relatively, what is to be equal may be after rounding."""

KINDS: tuple[tuple[type, str], ...] = ((bool, "bool"), (int, "int64"), (float, "float64"))
"""Python's numbers, and the dtypes that they have in compiled loops."""

DTYPES = ("bool", "int64", "float64", "float32")
"""The dtypes that a number of an accumulator may have."""


@dataclass(frozen=True, slots=True)
class Number:
    """Number of an accumulator: its dtype in loops, and whether it is one of Python's types."""

    dtype: str
    is_plain: bool

    def of(self, value: Any) -> Any:
        """Return a value as this number. TypeError or OverflowError for another kind of number."""
        found = np.asarray(value)
        if found.ndim or found.dtype.kind not in "biuf" or not self.takes(found.dtype):
            raise TypeError(f"{_shown(value)} is no {self}")
        if not self.is_plain:
            return np.dtype(self.dtype).type(value)
        if self.dtype == "int64" and not -(2**63) <= int(value) < 2**63:
            raise OverflowError(f"{_shown(value)} has more than 64 bits")
        return {"bool": bool, "int64": int, "float64": float}[self.dtype](value)

    def takes(self, dtype: np.dtype[Any]) -> bool:
        """True if a value of this dtype fits without being truncated."""
        return bool(np.can_cast(dtype, self.dtype, "same_kind")) and (dtype.kind == "b") == (self.dtype == "bool")

    def __str__(self) -> str:
        if self.is_plain:
            return {"bool": "bool", "int64": "int", "float64": "float"}[self.dtype]
        return self.dtype


class Accumulator:
    """Value that iterations add to, made by `orion.accumulator`.

    `value` is the combined value, `add(value)` adds one more, and `reset()` starts again. A function of `parallel_for`
    may only use `add` and `+=`; the value is there when the call has returned.
    """

    __slots__ = ("_value", "combine", "init", "is_commutative", "numbers")

    def __init__(self, init: Any, combine: FunctionType, numbers: tuple[Number, ...], is_commutative: bool) -> None:
        self.init, self.combine, self.numbers, self.is_commutative = init, combine, numbers, is_commutative
        self._value = init

    @property
    def value(self) -> Any:
        """Combined value: a number, or a tuple of numbers, as `init` is."""
        return self._value

    def add(self, value: Any) -> None:
        """Combine a value with the earlier ones. ArgumentError where either is not of the kind of `init`."""
        self._value = self.combined(self._value, self.fitting(value, "a value that is added"))

    def __iadd__(self, value: Any) -> Accumulator:
        self.add(value)
        return self

    def reset(self) -> None:
        """Set the value to `init`."""
        self._value = self.init

    def __repr__(self) -> str:
        return f"<orion.accumulator {self._value!r}, combine={self.combine.__name__}>"

    def __reduce__(self) -> Any:
        raise TypeError("an accumulator stays in its process; save its value")

    # ------------------------------------------------------------ for calls of loops

    @property
    def is_tuple(self) -> bool:
        """Whether the value is a tuple, also where that has one item."""
        return isinstance(self.init, tuple)

    def parts(self, value: Any) -> tuple[Any, ...]:
        """Return the numbers of a value."""
        return value if self.is_tuple else (value,)

    def whole(self, parts: Sequence[Any]) -> Any:
        """Return the value of these numbers."""
        return tuple(parts) if self.is_tuple else parts[0]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Dtypes of the numbers in loops."""
        return tuple(number.dtype for number in self.numbers)

    def numbers_of(self, value: Any) -> tuple[Any, ...]:
        """Return the numbers of a value in the dtypes of loops."""
        return tuple(np.dtype(dtype).type(part) for dtype, part in zip(self.dtypes, self.parts(value), strict=True))

    def take(self, parts: Sequence[Any]) -> None:
        """Set the value to these numbers, the result of a loop."""
        self._value = self.whole([number.of(part) for number, part in zip(self.numbers, parts, strict=True)])

    def combined(self, first: Any, second: Any) -> Any:
        """Return the two values combined. ArgumentError where the result is not of the kind of `init`."""
        return self.fitting(self.combine(first, second), "what `combine` returns")

    def fitting(self, value: Any, what: str) -> Any:
        """Return a value as one of the kind of `init`. ArgumentError where it is of another kind."""
        parts = value if self.is_tuple else (value,)
        if self.is_tuple and (not isinstance(value, tuple) or len(value) != len(self.numbers)):
            hint = f"write a tuple of {len(self.numbers)} numbers, as `init` is"
            raise ArgumentError(describe(f"{what} is {_shown(value)}, and `init` {_shown(self.init)}", hint=hint))
        try:
            return self.whole([number.of(part) for number, part in zip(self.numbers, parts, strict=True)])
        except (TypeError, ValueError, OverflowError) as error:
            what = f"{what} is {_shown(value)}, and `init` {_shown(self.init)}"
            hint = "give an `init` whose numbers are of the kinds of what is added: 0.0, not 0, for floats"
            raise ArgumentError(describe(what, why=str(error), hint=hint)) from None


@ends_in_users_line
def accumulator(init: Any, combine: Combine, *, commutative: bool = False) -> Accumulator:
    """Make an accumulator: a value that iterations of loops add to by an associative function.

    - `init`: the neutral element: combine(init, a) and combine(a, init) are `a`. It is a number, or a tuple of up to 16
      numbers. A number is a bool, an int (64 bits in loops), a float or a `np.float32`.
    - `combine`: `combine(a, b)` returns the value for `a`, of earlier iterations, and `b`, of later ones. Both are of
      the kind of `init`. It must be associative, up to rounding: combine(combine(a, b), c) is combine(a, combine(b,
      c)). Orion does not check this.
    - `commutative`: True promises that combine(a, b) is combine(b, a). Without it, ordered loops whose chunks do not
      follow one another, such as wavefronts, stay on one worker (ORN134).

    Returns an accumulator with `value`, `add(value)` and `reset()`. In a function of `parallel_for`, write
    `acc.add(value)` or `acc += value`. The call adds to the current value, which is unchanged if the call fails.
    `f.serial(…)` combines one value after another. Checkpoints hold the value: `orion.checkpoint(folder,
    nearest=nearest)`.

    An ordered loop, as ranges are by default, combines in the order of its iterations. The bits are equal on all
    backends:

    - in ordered loops with independent chunks: on up to 32 workers.
    - in wavefronts, and in unordered loops over one or two keys: on up to 8 workers.
    - in unordered loops over three keys: up to 4 workers; over more keys: up to 2.

    Comparisons with NaN are often not associative: `a if a <= b else b` forgets the values before a NaN.

    Errors: `ArgumentError` for an `init` that is no such value or is not neutral. The same for a `combine` that is no
    function of two arguments, fails for (init, init), or returns another kind of value. `UnsupportedLoopError`, at the
    first call, for a `combine` that cannot be compiled.

    Source: Blelloch, "Prefix Sums and Their Applications", 1990 (reductions by a monoid).

    >>> import numpy as np, orion
    >>> nearest = orion.accumulator((np.inf, -1), combine=lambda a, b: a if a <= b else b)
    >>> @orion.parallel_for
    ... def look(x, q, nearest):
    ...     for i in range(x.shape[0]):
    ...         nearest.add((abs(x[i] - q), i))
    >>> look(np.array([1.0, 4.0, 2.5]), 2.0, nearest)
    >>> nearest.value
    (0.5, 2)
    >>> nearest.reset()
    >>> nearest.value
    (inf, -1)
    """
    if not isinstance(combine, FunctionType):
        hint = "write a function `def combine(a, b): …` or a lambda"
        raise ArgumentError(describe(f"`combine` of an accumulator is a {type(combine).__name__}", hint=hint))
    code = combine.__code__
    if code.co_flags & 0x0C or code.co_kwonlyargcount or code.co_argcount != 2:
        what = f"`combine` of an accumulator takes {code.co_argcount} arguments, and is given 2"
        raise ArgumentError(describe(what, hint="write a function of two values, `lambda a, b: …`"))
    parts = init if isinstance(init, tuple) else (init,)
    if not 1 <= len(parts) <= MOST:
        what = f"`init` of an accumulator is a tuple of {len(parts)} items"
        raise ArgumentError(describe(what, hint=f"use 1 to {MOST} numbers; arrays are added to by their elements"))
    if not isinstance(commutative, bool):
        hint = "write True where `combine(a, b)` is `combine(b, a)` for all values, else False"
        raise ArgumentError(describe(f"`commutative={commutative!r}` of an accumulator", hint=hint))
    found = Accumulator(init, combine, tuple(map(_number, parts)), commutative)
    both = _of_init_twice(found)
    if not are_near(found.parts(both), found.parts(init)):
        raise not_neutral(init, init, both)
    return found


def _of_init_twice(found: Accumulator) -> Any:
    """`combine(init, init)`. ArgumentError where the user's function fails there."""
    try:
        return found.combined(found.init, found.init)
    except (ArithmeticError, ValueError, TypeError, LookupError) as error:
        what = f"`combine({_shown(found.init)}, {_shown(found.init)})` of an accumulator fails: {error!r}"
        why = "`init` is to be neutral, so that two of it are `init` again; chunks without any value give it"
        hint = "have `combine` return the other value where one is `init`: `if a == …: return b`"
        raise ArgumentError(describe(what, why=why, hint=hint)) from error


MOST = 16
"""How many numbers an accumulator has at most."""


def _number(value: Any) -> Number:
    for kind, dtype in KINDS:
        if type(value) is kind:
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                break
            return Number(dtype, is_plain=True)
    if isinstance(value, np.generic) and value.dtype.name in DTYPES:
        return Number(value.dtype.name, is_plain=False)
    what = f"`init` of an accumulator has {_shown(value)}, a {type(value).__name__}"
    if isinstance(value, np.ndarray):
        hint = "give a tuple of its elements; sums of whole arrays are found by themselves: `total[j] += …`"
    else:
        hint = "use numbers: bool, int of 64 bits, float, np.float32, or a tuple of these"
    raise ArgumentError(describe(what, hint=hint))


def are_near(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether numbers are equal, up to rounding.

    >>> are_near((1.0, 2), (1.0 + 1e-12, 2)), are_near((np.inf, 0), (1.0, 0)), are_near((np.nan,), (np.nan,))
    (True, False, True)
    """
    return all(_is_near(one, other) for one, other in zip(first, second, strict=True))


def _is_near(one: Any, other: Any) -> bool:
    if one == other or (one != one and other != other):
        return True
    near = NEAR.get(str(np.asarray(one).dtype), 0.0) + NEAR.get(str(np.asarray(other).dtype), 0.0)
    return bool(np.isfinite([one, other]).all() and abs(one - other) <= near * float(max(abs(one), abs(other))))


def not_neutral(first: Any, second: Any, both: Any) -> ArgumentError:
    """Return the error for an `init`, one of the two values, that changes the other one."""
    what = f"`init` of an accumulator is not neutral: `combine({_shown(first)}, {_shown(second)})` is {_shown(both)}"
    why = "each chunk of iterations begins with `init`, which must change nothing"
    hint = "use what changes nothing: 0 for sums, 1 for products, np.inf for the least; add other first values by `add`"
    if any(part != part for value in (first, second) for part in (value if isinstance(value, tuple) else (value,))):
        hint = "have `combine` keep a NaN, as in `a if a <= b or a != a else b`, or leave values that are NaN out"
    return ArgumentError(describe(what, why=why, hint=hint))


def _shown(value: Any) -> str:
    """A value in a message, numbers as Python writes them."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
    return repr(value.item() if isinstance(value, np.generic) else value)


@dataclass(frozen=True, slots=True)
class Returned:
    """Result of a function, with the new numbers of the accumulators among its arguments, by name."""

    value: Any
    numbers: Mapping[str, tuple[Any, ...]]


def taken(returned: Any, arguments: Mapping[str, Any]) -> Any:
    """Return the result of a function, after the accumulators among the arguments of the call have got their new
    values."""
    if type(returned) is not Returned:
        return returned
    for name, numbers in returned.numbers.items():
        arguments[name].take(numbers)
    return returned.value
