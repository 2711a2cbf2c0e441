"""Result of `f.verify(...)`: runs of one call compared, array by array. Frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from orion.arrays.accumulator import NEAR
from orion.dataclass import dataclass, replace
from orion.inspect.text.words import counted, listed
from orion.printable import printable

if TYPE_CHECKING:
    from orion.planned import Plan

PYTHON, ONE = "Python", "one worker"
"""What runs are called."""

Runs = tuple[str, str]
"""What two runs are called: the one with the expected values first."""

Expected = Literal["bits", "rounding", "nothing"]
WORDS = {
    "bits": "which must have the same bits",
    "rounding": "which may round otherwise",
    "nothing": "not comparable exactly",
}
EACH = "[…]"
"""Stands in a name for the subscript of an element, where the name is one of parts of elements."""

RETURNED = "return value"
"""The name of what a call returns; parts of tuples have a subscript after it."""

ERROR = "error"
"""The name of what differs where one run raises an error, and the other does not, or another one."""

TINY = {"float32": 1e-6, "float64": 1e-12}
"""Differences that are this part of the largest element of the arrays of a call count as rounding: of what cancels
out."""

OF_SUMS = 4
"""So do those of a number that are this many units of rounding of all that a sum over an array of the call adds up, the
magnitudes of its elements: a sum of n numbers of both signs is as wrong as n of them are by one unit."""


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """An array or a number that a run has left; `keys` are those of the elements of a sparse array."""

    array: NDArray[Any]
    keys: tuple[NDArray[Any], ...] | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of the floats of some arrays: the `largest` magnitude of an element, and the largest `total` magnitude of an
    array."""

    largest: float
    total: float

    def joined(self, other: Scale) -> Scale:
        """Return the scale of the arrays of both."""
        return Scale(max(self.largest, other.largest), max(self.total, other.total))


NO_SCALE = Scale(0.0, 0.0)


def scale_of(arrays: Iterable[NDArray[Any]]) -> Scale:
    """Return the scale of the arrays that have floats.

    >>> scale_of([np.array([1.0, -3.0, np.inf]), np.array([9])])
    Scale(largest=3.0, total=4.0)
    """
    found = NO_SCALE
    for array in arrays:
        if array.dtype.kind in "fc":
            sizes, where = np.abs(array), np.isfinite(array)
            largest = np.max(sizes, where=where, initial=0)
            found = found.joined(Scale(float(largest), float(np.sum(sizes, where=where, dtype=np.float64))))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Outcome of a run: arrays and returned values by name, or its error, and the scale of its arrays."""

    contents: Mapping[str, Content]
    error: Exception | None = None
    scale: Scale = NO_SCALE


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Difference of two runs in one array, by its name in the call, or in a part of the returned value.

    - `count`, `size`: how many of its elements differ, and how many it has.
    - `absolute`, `relative`, `ulps`: the largest differences, as numbers, by the expected value, and in floats between
      the two. None where there is no such number.
    - `place`: the subscript of the first difference, or its key in a sparse array.
    - `values`: those of the two `runs` there, or their types, shapes or errors where these differ.
    - `is_rounding`: the size is that of another rounding.
    """

    name: str
    runs: Runs
    count: int
    size: int
    absolute: float | None
    relative: float | None
    ulps: int | None
    place: tuple[int, ...]
    values: tuple[Any, Any]
    is_rounding: bool

    def __str__(self) -> str:
        pairs = zip(self.runs, self.values, strict=True)
        if self.absolute is None:
            return f"{_quoted(self.name)}: {', '.join(f'{_told(value)} {_where(run)}' for run, value in pairs)}"
        by = [counted(self.ulps, "ulp")] if self.ulps is not None and self.is_rounding else []
        by += [f"{self.absolute:.2g} absolute", f"{self.relative:.2g} relative"]
        values = ", ".join(f"{value!s} {_where(run)}" for run, value in pairs)
        if not self.place:
            return f"{_quoted(self.name)}: {values}; the difference is {', '.join(by)}"
        how_many = f"{self.count:,} of {counted(self.size, 'element')} {'differs' if self.count == 1 else 'differ'}"
        return f"{_quoted(self.name)}: {how_many}, by at most {', '.join(by)}; first {self._first}: {values}"

    @property
    def _first(self) -> str:
        """The first element that differs, as it is written in Python."""
        subscript = f"[{', '.join(map(str, self.place))}]"
        return self.name.replace(EACH, subscript) if EACH in self.name else f"{self.name}{subscript}"


def _quoted(name: str) -> str:
    return name if name == ERROR else f"the {name}" if name.startswith(RETURNED) else f"`{name}`"


def _where(run: str) -> str:
    return f"in {run}" if run == PYTHON else f"on {run}"


def _told(value: Any) -> str:
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {str(value).splitlines()[0] if str(value) else ''}"
    return "none" if value is None else str(value)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two runs of a call compared. `compared` are the names of what was, without the parts of tuples.

    `expected` says what has to be the same: all bits ("bits"), all but how floats are rounded ("rounding"), or nothing
    ("nothing"); `note` why that is so, or how the runs were made alike. `error` is the name of the error that both
    raise."""

    runs: Runs
    compared: tuple[str, ...]
    expected: Expected
    note: str
    differences: tuple[Difference, ...]
    error: str = ""

    @property
    def is_same(self) -> bool:
        """Whether all is the same that has to be."""
        return self.expected == "nothing" or all(
            one.is_rounding and self.expected == "rounding" for one in self.differences
        )

    def lines(self) -> Iterator[str]:
        """Yield what is printed."""
        expected, other = self.runs
        yield f"{other[0].upper()}{other[1:]} against {expected}, {WORDS[self.expected]}: {self._found()}"
        if self.note:
            yield f"  {self.note}."
        yield from (f"  {one}." for one in self.differences)

    def _found(self) -> str:
        if self.error:
            return f"both raise {self.error}."
        if not self.compared:
            return "there is nothing to compare."
        if not self.differences:
            return f"no difference in {listed([*map(_quoted, self.compared)])}."
        if self.expected == "nothing":
            return "these differences do not count."
        if self.expected == "bits":
            return "they differ. This is a fault of Orion: please report it, with this text and the function."
        return "they differ by rounding." if self.is_same else "they differ by more than rounding."


@dataclass(frozen=True, slots=True, eq=False)
class Verification:
    """Result of `f.verify(...)`, true if nothing differs that must be equal. `print` shows it.

    - `function`: the name of the function.
    - `plan`: the plan that ran; None where no loop is planned.
    - `workers`: the number of workers of the parallel run.
    - `parallel`: the comparison of that run with one worker, by the same plan and kernels. It must give equal bits.
      None where the plan has one worker, where no loop is planned, and where updates may be late.
    - `python`: the comparison with the undecorated function.
    - `differences`: all differences, rounding included.
    """

    function: str
    plan: Plan | None
    workers: int
    parallel: Comparison | None
    python: Comparison

    @property
    def is_same(self) -> bool:
        """Whether nothing differs that must be equal."""
        return all(one.is_same for one in self._comparisons)

    def __bool__(self) -> bool:
        return self.is_same

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All differences, rounding included: between workers first, then against Python."""
        return tuple(difference for one in self._comparisons for difference in one.differences)

    @property
    def _comparisons(self) -> tuple[Comparison, ...]:
        return (self.python,) if self.parallel is None else (self.parallel, self.python)

    def __repr__(self) -> str:
        return f"<orion.Verification of {self.function}: {'same' if self.is_same else 'different'}>"

    def __str__(self) -> str:
        lines = [f"{self.function}: the results {'are the same' if self.is_same else 'differ'}."]
        if self.plan is not None and self.workers == 1:
            lines.append("The plan has one worker: nothing runs in parallel.")
        return printable("\n".join([*lines, *(line for one in self._comparisons for line in one.lines())]))


# ------------------------------------------------------------ comparing


def compare(runs: Runs, first: Outcome, second: Outcome, expected: Expected, note: str = "") -> Comparison:
    """Compare two runs of a call."""
    if first.error is not None or second.error is not None:
        raised = first.error, second.error
        if _are_alike(*raised):
            return Comparison(runs, (), expected, note, (), type(first.error).__name__)
        return Comparison(runs, (), expected, note, (_structural(ERROR, runs, raised),))
    names = (*first.contents, *(name for name in second.contents if name not in first.contents))
    scale = first.scale.joined(second.scale)
    compared = (_difference(name, runs, first.contents.get(name), second.contents.get(name), scale) for name in names)
    return Comparison(runs, _shown(names), expected, note, tuple(one for one in compared if one is not None))


def _shown(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the compared arrays, the returned value as one."""
    arrays = tuple(name for name in names if not name.startswith(RETURNED))
    return (*arrays, RETURNED) if len(arrays) < len(names) else arrays


def _are_alike(first: Exception | None, second: Exception | None) -> bool:
    """Whether two errors are of the same kind, as an `OutOfBoundsError` is an `IndexError`."""
    return isinstance(second, type(first)) or isinstance(first, type(second))


def _structural(name: str, runs: Runs, values: tuple[Any, Any]) -> Difference:
    return Difference(name, runs, 1, 1, None, None, None, (), values, is_rounding=False)


def _difference(
    name: str, runs: Runs, expected: Content | None, found: Content | None, scale: Scale
) -> Difference | None:
    """Return the difference of two runs in an array or a number, or None."""
    if expected is None or found is None or _form(expected.array) != _form(found.array):
        told = tuple(None if one is None else _in_words(one.array) for one in (expected, found))
        return _structural(name, runs, (told[0], told[1]))
    differing = _differing(expected.array, found.array)
    if not differing.any():
        return None
    if expected.array.dtype.kind not in "biufc":
        return _structural(name, runs, (expected.array[()], found.array[()]))
    first, second = expected.array[differing], found.array[differing]
    scale = scale.joined(scale_of([expected.array, found.array]))
    sizes = _absolute(first, second)
    with np.errstate(all="ignore"):
        relative = sizes / np.abs(first).astype(np.float64)
    at = int(np.flatnonzero(differing)[0])
    place = tuple(int(k) for k in np.unravel_index(at, differing.shape))
    return Difference(
        name,
        runs,
        count=len(first),
        size=differing.size,
        absolute=float(sizes.max()),
        relative=float(np.where(sizes == 0, 0.0, relative).max()),
        ulps=_ulps(first, second),
        place=place if expected.keys is None else tuple(int(key[at]) for key in expected.keys),
        values=(first[0], second[0]),
        is_rounding=_are_near(first, second, sizes, scale if not place else replace(scale, total=0.0)),
    )


def _form(array: NDArray[Any]) -> tuple[tuple[int, ...], str]:
    """Return the properties that must be equal. Widths of dtypes are not among them: sums of narrow integers differ
    there."""
    return array.shape, {"i": "integer", "u": "integer", "f": "float", "c": "complex"}.get(array.dtype.kind, "other")


def _in_words(array: NDArray[Any]) -> str:
    if array.shape:
        return f"an array of {array.dtype} of shape {array.shape}"
    value = array[()]
    return f"{value} ({type(value).__name__})"


def _differing(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the elements that differ: floats by their bits, except that all NaN are equal."""
    if first.dtype.kind == "c":
        return _differing(first.real, second.real) | _differing(first.imag, second.imag)
    same = np.asarray(first == second)
    if first.dtype.kind == "f":
        same = (same & (np.signbit(first) == np.signbit(second))) | (np.isnan(first) & np.isnan(second))
    return ~same.astype(bool)


def _absolute(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Return the absolute differences of elements; infinity where one of two is NaN."""
    if first.dtype.kind in "iu" and second.dtype.kind in "iu":
        return _distance(first, second).astype(np.float64)
    kind = np.complex128 if first.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        found = np.abs(first.astype(kind) - second.astype(kind))
    return np.where(np.isnan(found), inf, found)


def _distance(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.uint64]:
    """The distances of integers of up to 64 bits."""
    upper, lower = np.where(first > second, first, second), np.where(first > second, second, first)
    with np.errstate(over="ignore"):
        return np.asarray(upper.astype(np.uint64) - lower.astype(np.uint64))


def _ulps(first: NDArray[Any], second: NDArray[Any]) -> int | None:
    """Return the most floats between two that differ, the larger one included; None without finite floats.

    >>> _ulps(np.array([1.0]), np.array([np.nextafter(1.0, 2.0)])), _ulps(np.array([1]), np.array([2]))
    (1, None)
    """
    if first.dtype.kind == "c":
        parts = [_ulps(first.real, second.real), _ulps(first.imag, second.imag)]
        return max((one for one in parts if one is not None), default=None)
    if first.dtype.kind != "f" or first.dtype.itemsize > 8:
        return None
    kind = min(first.dtype, second.dtype, key=lambda one: one.itemsize)
    are_finite = np.isfinite(first) & np.isfinite(second)
    places = [_numbered(one[are_finite].astype(kind)) for one in (first, second)]
    return int(_distance(*places).max()) if places[0].size else None


def _numbered(floats: NDArray[Any]) -> NDArray[np.int64]:
    """The numbers of floats in their order, 0 for both zeros."""
    bits = floats.view(f"i{floats.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, np.iinfo(f"i{floats.dtype.itemsize}").min - bits, bits)


def _are_near(first: NDArray[Any], second: NDArray[Any], sizes: NDArray[np.float64], scale: Scale) -> bool:
    """Whether elements that differ by `sizes` do so by rounding: by little of themselves, by very little of the largest
    element, or as sums of numbers of this total do."""
    if first.dtype.kind not in "fc":
        return False
    kind = min((one.real.dtype for one in (first, second)), key=lambda one: one.itemsize)
    each = np.maximum(np.abs(first), np.abs(second)).astype(np.float64)
    near, tiny = (table.get(kind.name, table["float64"]) for table in (NEAR, TINY))
    least = max(tiny * scale.largest, OF_SUMS * float(np.finfo(kind).eps) * scale.total)
    with np.errstate(all="ignore"):
        return bool(np.all(np.isfinite(sizes) & (sizes <= np.maximum(near * each, least))))
