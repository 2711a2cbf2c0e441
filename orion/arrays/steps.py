"""What is done to each element of a sparse array, one after another: `map`, `map_keys`, `filter`, `shuffle_keys`.

A step is given some elements as columns, calls its function for each of them, and gives what comes out as columns. What
a function is given is what a loop over the array would: Python's integers as keys, NumPy's numbers as values.
"""

from __future__ import annotations

import inspect
import linecache
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from orion.arrays.check import Arrays
from orion.arrays.collected import Column, WrongResultError, key_columns, kind_text, shown
from orion.arrays.permuted import check_length, key_permutation
from orion.arrays.storage import IN_MEMORY
from orion.dataclass import dataclass
from orion.errors import PLAIN_ERRORS, ArgumentError, DataFormatError, describe, of_user

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Some elements as columns."""

    keys: Arrays
    values: Arrays
    is_tuple: bool

    def __len__(self) -> int:
        return len(self.values[0])

    def where(self, index: Any) -> Part:
        """Some of the elements, by a slice, a mask or their places."""
        return Part(tuple(k[index] for k in self.keys), tuple(v[index] for v in self.values), self.is_tuple)

    def element(self, place: int) -> str:
        """An element in the words of messages."""
        key = shown(tuple(int(axis[place]) for axis in self.keys))
        values = tuple(column[place] for column in self.values)
        return f"the element with the key {key} and the value {shown(values if self.is_tuple else values[0])}"


class MixedTypesError(Exception):
    """The values of some elements have another dtype than those of others: a step after must see one for all."""


class Step(ABC):
    """One of the steps."""

    method: ClassVar[str]
    """The method that it stands for."""

    def shape(self, before: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """The shape of what comes out, None where that is not known before it runs."""
        return before

    @abstractmethod
    def begin(self, shape: tuple[int, ...] | None, count: int) -> Callable[[Part, Part | None], Part]:
        """What does the step to some of `count` elements of an array of this shape. It is also given what has come out
        of others before, if anything has: there must be as many keys and values."""

    def maps(self, shape: tuple[int, ...] | None, count: int) -> Arrays:
        """The arrays that keys are looked up in, for `count` elements of an array of this shape."""
        return ()


@dataclass(frozen=True, slots=True)
class Calling(Step):
    """A step that calls a function of the user's."""

    function: Function
    hint: ClassVar[str]
    """What the function should return."""

    @abstractmethod
    def told(self, keys: int, values: int) -> tuple[int, str]:
        """With how many arguments the function is called, and which these are."""

    @abstractmethod
    def given(self, part: Part) -> Iterable[tuple[Any, ...]]:
        """What the function is given, for each element."""

    @abstractmethod
    def converted(self, part: Part, results: list[Any], before: Part | None) -> Part:
        """What comes out, by what the function has returned. WrongResultError where that is not as it should be."""

    def check(self, keys: int | None, values: int | None) -> None:
        """ArgumentError where the function is none, or cannot be called for elements of so many keys and values."""
        if keys is not None and values is not None:
            check_takes(self.function, self.method, *self.told(keys, values))
        elif not callable(self.function):
            check_takes(self.function, self.method, 0, "")

    def begin(self, shape: tuple[int, ...] | None, count: int) -> Callable[[Part, Part | None], Part]:
        def apply(part: Part, before: Part | None) -> Part:
            results = self.results(part)
            with self.told_of(part, results):
                return self.converted(part, results, before)

        return apply

    def results(self, part: Part) -> list[Any]:
        """What the function returns for each element."""
        results: list[Any] = []
        function, add = self.function, results.append
        self.check(len(part.keys), len(part.values))
        try:
            for arguments in self.given(part):
                add(function(*arguments))
        except Exception as error:
            raise self._raised(error, part.element(len(results))) from error
        return results

    @contextmanager
    def told_of(self, part: Part, results: list[Any]) -> Iterator[None]:
        """Says of a result that is wrong what it is, and for which element."""
        try:
            yield
        except WrongResultError as error:
            returned = f"`{self.method}`: {name_of(self.function)} returns {shown(results[error.place])}"
            text = describe(f"{returned} for {part.element(error.place)}", why=str(error), hint=self.hint)
            raise (ArgumentError if error.of_type else DataFormatError)(text) from None

    def _raised(self, error: Exception, element: str) -> Exception:
        """The error that the function has raised, with the element and the line."""
        line = _line_of(error, getattr(self.function, "__code__", None))
        what = f"{line[0]}: {error}\n    | {line[1]}" if line else str(error)
        text = describe(what, why=f"`{self.method}` has called {name_of(self.function)} for {element}")
        if type(error) in PLAIN_ERRORS:
            return of_user(type(error)(text))
        error.add_note(text)
        return of_user(error)


def _line_of(error: BaseException, code: CodeType | None) -> tuple[str, str] | None:
    """The place in a function that an error has come through, and its line."""
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code is code and code is not None:
            file = code.co_filename
            return f"{file}:{entry.tb_lineno}", linecache.getline(file, entry.tb_lineno).strip()
        entry = entry.tb_next
    return None


def name_of(function: Function) -> str:
    """A function in the words of messages, with its place.

    >>> name_of(len)
    '`len`'
    """
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"{'the lambda' if name == '<lambda>' else f'`{name}`'}{place}"


def check_takes(function: Function, method: str, count: int, told: str) -> None:
    """ArgumentError where the function cannot be called with so many arguments."""
    if not callable(function):
        raise ArgumentError(f"`{method}` takes a function, and is given {shown(function)}, {kind_text(type(function))}")
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some of C's have none
        return
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        what = f"`{method}` calls its function with {told}; {name_of(function)} takes {signature}"
        raise ArgumentError(describe(what, why=str(error))) from None


@dataclass(frozen=True, slots=True)
class MapValues(Calling):
    """Other values for the same keys."""

    method = "map"
    hint = "return a number, or a tuple of numbers, as many for each element"

    def told(self, keys: int, values: int) -> tuple[int, str]:
        if values == 1:
            return 1, "the value of an element, f(v)"
        return values, f"the {values} values of an element, f({_names('v', values)})"

    def given(self, part: Part) -> Iterable[tuple[Any, ...]]:
        return zip(*part.values, strict=True)

    def converted(self, part: Part, results: list[Any], before: Part | None) -> Part:
        columns, is_tuple = self.columns(results, before)
        return Part(part.keys, tuple(_array(column) for column in columns), is_tuple)

    def columns(self, results: list[Any], before: Part | None) -> tuple[list[Sequence[Any]], bool]:
        """What the function returns, value by value, and whether it is tuples. WrongResultError where not all are."""
        first = results[0]
        is_tuple = isinstance(first, tuple) if before is None else before.is_tuple
        count = (len(first) if is_tuple else 1) if before is None else len(before.values)
        for place, result in enumerate(results):
            if isinstance(result, tuple) is not is_tuple or (is_tuple and (len(result) != count or not count)):
                others = f"a tuple of {count}" if is_tuple else "one number"
                raise WrongResultError(place, f"for other elements it returns {others}" if count else "it is empty")
        return list(zip(*results, strict=True)) if is_tuple else [results], is_tuple


def _array(results: Sequence[Any]) -> NDArray[Any]:
    column = Column(IN_MEMORY)
    column.add(results)
    return column.whole()


def _names(letter: str, count: int) -> str:
    return ", ".join(f"{letter}{at + 1}" for at in range(count))


@dataclass(frozen=True, slots=True)
class MapKeys(Calling):
    """Other keys for the same values. `limits` is the shape, where it is given."""

    limits: tuple[int, ...] | None
    method = "map_keys"
    hint = "return a tuple of integers, or one integer for an array of one dimension"

    def shape(self, before: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return self.limits

    def told(self, keys: int, values: int) -> tuple[int, str]:
        if keys == 1:
            return 1, "the key of an element, f(i)"
        return keys, f"the {keys} keys of an element, f({', '.join('ijklmnop'[:keys])})"

    def given(self, part: Part) -> Iterable[tuple[Any, ...]]:
        return zip(*(axis.tolist() for axis in part.keys), strict=True)

    def converted(self, part: Part, results: list[Any], before: Part | None) -> Part:
        tuples = [result if isinstance(result, tuple) else (result,) for result in results]
        dims = len(tuples[0]) if self.limits is None else len(self.limits)
        if before is not None:
            dims = len(before.keys)
        if not dims:
            raise WrongResultError(0, "an element has at least one key")
        keys = key_columns(tuples, dims)
        for dim, axis in enumerate(keys if self.limits is not None else ()):
            assert self.limits is not None
            outside = axis >= self.limits[dim]
            if outside.any():
                place = int(np.argmax(outside))
                raise WrongResultError(place, f"{axis[place]} lies outside of the shape {self.limits}", of_type=False)
        return Part(keys, part.values, part.is_tuple)


@dataclass(frozen=True, slots=True)
class Filter(Calling):
    """Those elements for which the function returns True."""

    method = "filter"
    hint = "return True or False"

    def told(self, keys: int, values: int) -> tuple[int, str]:
        return 2, "the key and the value of an element, f(key, value)"

    def given(self, part: Part) -> Iterable[tuple[Any, ...]]:
        keys = zip(*(axis.tolist() for axis in part.keys), strict=True)
        return zip(keys, zip(*part.values, strict=True) if part.is_tuple else part.values[0], strict=True)

    def converted(self, part: Part, results: list[Any], before: Part | None) -> Part:
        for kind in set(map(type, results)) - {bool, np.bool_}:
            place = next(at for at, result in enumerate(results) if type(result) is kind)
            raise WrongResultError(place, f"that is {kind_text(kind)}, not a truth value")
        return part.where(np.array(results, dtype=bool))


@dataclass(frozen=True, slots=True)
class Shuffle(Step):
    """The keys of some dimensions in other places."""

    dims: tuple[int, ...]
    seed: int
    method = "shuffle_keys"

    def begin(self, shape: tuple[int, ...] | None, count: int) -> Callable[[Part, Part | None], Part]:
        maps = dict(zip(self.dims, self.maps(shape, count), strict=True))

        def apply(part: Part, before: Part | None) -> Part:
            keys = tuple(maps[dim][axis] if dim in maps else axis for dim, axis in enumerate(part.keys))
            return Part(keys, part.values, part.is_tuple)

        return apply

    def maps(self, shape: tuple[int, ...] | None, count: int) -> Arrays:
        if shape is None or max(self.dims, default=-1) >= len(shape):
            raise ArgumentError(f"`shuffle_keys` of dimensions {self.dims}: the array has {len(shape or ())}")
        for dim in self.dims:
            check_length(shape[dim], dim, count)
        return tuple(key_permutation(shape[dim], dim, self.seed) for dim in self.dims)
