"""The first oracle: conflicts found by running the user's function in Python on arrays that record every access.

It knows nothing of the loop language, of isl or of Orion's analysis: `range` and sparse arrays are replaced by ones
that note which iteration is running, dense arrays by ones that note which elements are read and written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

Iteration = tuple[int, ...]


@dataclass
class Recorder:
    """Accesses by array and element: the iterations that read it and those that write it."""

    dims: int
    stack: list[int] = field(default_factory=list)
    reads: dict[tuple[str, int], set[Iteration]] = field(default_factory=lambda: defaultdict(set))
    writes: dict[tuple[str, int], set[Iteration]] = field(default_factory=lambda: defaultdict(set))
    iterations: list[Iteration] = field(default_factory=list)
    events: list[tuple[Iteration, str, int, bool]] = field(default_factory=list)

    def now(self) -> Iteration:
        return tuple(self.stack[: self.dims])

    def note(self, table: dict[tuple[str, int], set[Iteration]], array: str, ids: np.ndarray) -> None:
        if len(self.stack) >= self.dims:
            for element in np.atleast_1d(ids).ravel():
                table[array, int(element)].add(self.now())
                self.events.append((self.now(), array, int(element), table is self.writes))

    def range(self, *arguments: int) -> Iterator[int]:
        """As the builtin, with the running iteration on the stack: the value for step 1, else the trip number."""
        step = arguments[2] if len(arguments) == 3 else 1
        self.stack.append(0)
        for trip, value in enumerate(range(*arguments)):
            self.stack[-1] = value if step == 1 else trip
            if len(self.stack) == self.dims:
                self.iterations.append(self.now())
            yield value
        self.stack.pop()

    def elements(self, coords: tuple[np.ndarray, ...], values: np.ndarray) -> Iterator[tuple[Any, Any]]:
        """The elements of a sparse array; iterations are named by key and the rank among elements of equal key."""
        seen: dict[tuple[int, ...], int] = defaultdict(int)
        for position, value in enumerate(values):
            key = tuple(int(axis[position]) for axis in coords)
            self.stack[:] = [*key, seen[key]]
            seen[key] += 1
            self.iterations.append(self.now())
            yield (key if len(key) > 1 else key[0]), value
        self.stack.clear()

    def conflicts(self, but: Collection[str] = ()) -> set[tuple[Iteration, Iteration]]:
        """All ordered pairs of different iterations that touch one element, at least one writing it; elements of the
        arrays in `but` do not count."""
        pairs: set[tuple[Iteration, Iteration]] = set()
        for element, writers in self.writes.items():
            if element[0] in but:
                continue
            for writer in writers:
                for other in writers | self.reads.get(element, set()):
                    if other != writer:
                        pairs |= {(writer, other), (other, writer)}
        return pairs

    def private(self) -> set[str]:
        """The arrays of which no iteration reads an element that it has not written before, and of which the last
        iteration writes every element that any iteration writes."""
        exposed: set[str] = set()
        written: dict[Iteration, set[tuple[str, int]]] = defaultdict(set)
        for iteration, array, element, is_write in self.events:
            if is_write:
                written[iteration].add((array, element))
            elif (array, element) not in written[iteration]:
                exposed.add(array)
        last = written[self.iterations[-1]] if self.iterations else set()
        lost = {array for elements in written.values() for array, _ in elements - last}
        return {array for _, array, _, _ in self.events} - exposed - lost


class Tracked:
    """An array, or a view of one, that records what is read and written through it."""

    def __init__(self, name: str, data: np.ndarray, ids: np.ndarray, recorder: Recorder) -> None:
        self.name, self.data, self.ids, self.recorder = name, data, ids, recorder

    @classmethod
    def of(cls, name: str, data: np.ndarray, recorder: Recorder) -> Tracked:
        return cls(name, data, np.arange(data.size).reshape(data.shape), recorder)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def size(self) -> int:
        return self.data.size

    def __len__(self) -> int:
        return len(self.data)

    def read(self) -> np.ndarray:
        self.recorder.note(self.recorder.reads, self.name, self.ids)
        return self.data

    def write(self) -> None:
        self.recorder.note(self.recorder.writes, self.name, self.ids)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.read(), dtype=dtype)

    def copy(self) -> np.ndarray:
        return self.read().copy()

    def fill(self, value: Any) -> None:
        self.write()
        self.data.fill(value)

    def sum(self) -> Any:
        return self.read().sum()

    def __getitem__(self, index: Any) -> Any:
        index = _plain(index)
        part = Tracked(self.name, self.data[index], self.ids[index], self.recorder)
        return part.read() if np.ndim(part.ids) == 0 else part

    def __setitem__(self, index: Any, value: Any) -> None:
        index = _plain(index)
        Tracked(self.name, self.data[index], self.ids[index], self.recorder).write()
        self.data[index] = _values(value)


def _plain(index: Any) -> Any:
    return tuple(int(i) if isinstance(i, np.integer) else i for i in index) if isinstance(index, tuple) else index


def _values(value: Any) -> Any:
    return value.read() if isinstance(value, Tracked) else value


def _operator(name: str) -> Callable[[Tracked, Any], Any]:
    def apply(self: Tracked, other: Any = None) -> Any:
        method = getattr(self.read(), name)
        return method() if other is None else method(_values(other))

    return apply


def _in_place(name: str) -> Callable[[Tracked, Any], Tracked]:
    def apply(self: Tracked, other: Any) -> Tracked:
        self.read()
        self.write()
        getattr(self.data, name)(_values(other))
        return self

    return apply


for _name in ("add", "sub", "mul", "truediv", "matmul", "pow", "floordiv", "mod"):
    setattr(Tracked, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Tracked, f"__r{_name}__", _operator(f"__r{_name}__"))
    if _name != "matmul":
        setattr(Tracked, f"__i{_name}__", _in_place(f"__i{_name}__"))
Tracked.__neg__ = _operator("__neg__")  # type: ignore[attr-defined]


def record(function: FunctionType, arguments: dict[str, Any], dims: int) -> Recorder:
    """Run the undecorated function once, recording. Dense arrays are given as ndarrays, a sparse one as a tuple
    (coords, values); `dims` is the number of components that name an iteration (keys and rank, for a sparse array)."""
    recorder = Recorder(dims)
    bound: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            bound[name] = Tracked.of(name, value.copy(), recorder)
        elif isinstance(value, tuple):
            bound[name] = recorder.elements(*value)
        else:
            bound[name] = value
    scope = {**function.__globals__, "range": recorder.range}
    copy = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    copy(**bound)
    return recorder
