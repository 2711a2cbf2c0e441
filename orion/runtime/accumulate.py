"""The value of an accumulator after a loop, from what its tiles have found.

Each tile begins with the neutral numbers and adds its values in their order (`orion.kernel.emit.tile`). Here these are
combined, tile by tile in the order of the loop, by the user's function as Python runs it on NumPy's numbers: they wrap
around and are rounded as in compiled code. All workers do the same with the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.accumulator import are_near, not_neutral
from orion.dataclass import dataclass
from orion.ir.function import Accumulated, Function
from orion.ir.python_names import PythonNames
from orion.kernel.calling import Argument
from orion.schedule.schedule import Ints, Schedule


@dataclass(frozen=True)
class Accumulation:
    """What a loop adds to an accumulator: `outputs` are the numbers of its numbers among the outputs of the loop,
    `tiles` all tiles in the order in which what they have found is combined."""

    function: Function
    accumulated: Accumulated
    outputs: tuple[int, ...]
    tiles: Ints

    @cached_property
    def combine(self) -> Callable[..., Any]:
        """The user's function, of two times as many numbers."""
        return helper_function(self.function, self.accumulated.combine)

    @cached_property
    def kinds(self) -> tuple[type[np.generic], ...]:
        """The types of the numbers."""
        return tuple(np.dtype(dtype).type for dtype in self.accumulated.dtypes)

    def result(self, start: Sequence[Any], partials: Sequence[NDArray[Any]], count: int | None) -> tuple[Any, ...]:
        """The numbers after the loop, which were `start` before it; of the tiles only the first `count` count.
        ArgumentError where combining with the neutral numbers changes something."""
        found, init = self._numbers(start), self._numbers(self.accumulated.init)
        with np.errstate(all="ignore"):
            for tile in self.tiles[:count].tolist():
                partial = tuple([values[tile] for values in partials])
                for first, second, value in ((found, init, found), (init, partial, partial)):
                    both = self._combined(first, second)
                    if both != value and not are_near(both, value):  # the first is sooner told, NaN aside
                        raise not_neutral(*map(self._value, (first, second, both)))
                found = self._combined(found, partial)
        return found

    def _combined(self, first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, ...]:
        returned = self.combine(*first, *second)
        values: tuple[Any, ...] = returned if self.accumulated.is_tuple else (returned,)
        return values if (*map(type, values),) == self.kinds else self._numbers(values)

    def _numbers(self, values: Sequence[Any]) -> tuple[Any, ...]:
        pairs = zip(self.kinds, values, strict=True)
        return tuple([value if type(value) is kind else np.asarray(value).astype(kind)[()] for kind, value in pairs])

    def _value(self, numbers: tuple[Any, ...]) -> Any:
        """The numbers as the user has them."""
        return numbers if self.accumulated.is_tuple else numbers[0]


def accumulations_among(
    function: Function, outputs: Sequence[Argument], schedule: Schedule, *, ordered: bool
) -> Iterator[Accumulation]:
    """The accumulators that the arguments for the outputs of a loop are about."""
    for one in function.accumulated:
        found = sorted((output.position, k) for k, output in enumerate(outputs) if output.op == one.op)
        if found:
            tiles = (
                np.arange(schedule.tiles) if ordered else schedule.serial_tiles()
            )  # commutative ones: any, but fixed
            yield Accumulation(function, one, tuple(k for _, k in found), tiles)


class _Compiled:
    """`math` as compiled code has it: where Python's raises an error, the results are infinite or NaN."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(math, name)
        if not callable(found):
            return found

        def without_errors(*values: Any) -> Any:
            try:
                return found(*values)
            except (ValueError, OverflowError):
                own = getattr(np, OTHERWISE.get(name, name), None)
                return math.nan if own is None else own(*values)

        return without_errors


OTHERWISE = {"pow": "float_power", "acos": "arccos", "asin": "arcsin", "acosh": "arccosh", "atanh": "arctanh"}
"""Functions of `math` that NumPy has by other names."""


def helper_function(function: Function, name: str) -> Callable[..., Any]:
    """A helper of a function, as Python runs it."""
    names = PythonNames.of(function, ())
    space = names.space(math=_Compiled())
    exec("\n".join(text for helper in function.helpers for text, _ in names.helper(helper)), space)
    found: Callable[..., Any] = space[names.function(name)]
    return found
