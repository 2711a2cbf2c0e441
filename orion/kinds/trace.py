"""A sampled trace of a loop: which blocks of memory its tiles touch, by its body run on every n-th iteration.

The body is run as Python, on arrays that note what is read of them and written to them. What it writes goes to copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.ir.nodes import Bind, For, Range, every, names_in
from orion.ir.program import LoopNest, OfBox
from orion.ir.python_names import PythonNames
from orion.schedule.schedule import Ints

Array = NDArray[Any]


class UntracedError(Exception):
    """Why the accesses of a loop cannot be listed."""


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The accesses of a window to an array: int64 (blocks, 2), the numbers of blocks of memory, ascending, and how many
    elements of each were read, or written, by the iterations that were run."""

    reads: Ints
    writes: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """The trace of a loop in one of its rounds: by tile, in the order in which they were run, and array."""

    loop: int
    round: int
    tiles: Mapping[int, Mapping[str, Touched]]


class TracedArray(NDArrayOperatorsMixin):
    """An array that counts the accesses to its elements, by blocks of so many bytes from its first one on."""

    def __init__(self, data: Array, block: int) -> None:
        self.data, self.block = data, block
        self.low, high = np.lib.array_utils.byte_bounds(data)
        self.start = data.__array_interface__["data"][0] - self.low
        blocks = max(1, -(-(high - self.low) // block))
        self.reads, self.writes = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)

    def taken(self) -> Touched | None:
        """What was counted since the last time; None where that is nothing."""
        found = [np.flatnonzero(counts) for counts in (self.reads, self.writes)]
        if not any(blocks.size for blocks in found):
            return None
        pairs = zip(found, (self.reads, self.writes), strict=True)
        touched = Touched(*(np.stack([blocks, counts[blocks]], axis=1) for blocks, counts in pairs))
        self.reads[:] = self.writes[:] = 0
        return touched

    # ------------------------------------------------------------ what the body does with it

    def __getitem__(self, index: Any) -> Any:
        self._note(self.reads, index)
        return self.data[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._note(self.writes, index)
        self.data[index] = value.read() if isinstance(value, TracedArray) else value

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.asarray(self.read(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        given = [one.read() if isinstance(one, TracedArray) else one for one in inputs]
        out = keywords.pop("out", None)
        found = getattr(ufunc, method)(*given, **keywords)
        if out is None:
            return found
        out[0][...] = found
        return out[0]

    def __getattr__(self, name: str) -> Any:
        if name not in ("shape", "dtype", "size", "ndim"):
            self._note(self.reads, ...)
        return getattr(self.data, name)

    def read(self) -> Array:
        """The array, all of which is read."""
        self._note(self.reads, ...)
        return self.data

    # ------------------------------------------------------------ counting

    def _note(self, counts: Ints, index: Any) -> None:
        places = index if isinstance(index, tuple) else (index,)
        if len(places) == self.data.ndim and all(isinstance(place, int | np.integer) for place in places):
            offset = self.start
            for place, length, stride in zip(places, self.data.shape, self.data.strides, strict=True):
                offset += (int(place) + length if place < 0 else int(place)) * stride
            counts[offset // self.block] += 1
            return
        if any(isinstance(place, np.ndarray | list) for place in places):
            numbers = np.arange(self.data.size).reshape(self.data.shape)[index].ravel()
            axes = np.unravel_index(numbers, self.data.shape)
            offsets = sum((axis * stride for axis, stride in zip(axes, self.data.strides, strict=True)), self.start)
        else:
            offsets = self._offsets(self.data[index])
        counts += np.bincount(np.ravel(offsets) // self.block, minlength=counts.size)

    def _offsets(self, view: Array) -> Ints:
        found: Any = view.__array_interface__["data"][0] - self.low
        for axis, (length, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
            steps = np.arange(length) * stride
            found = found + steps.reshape(-1, *(1 for _ in range(view.ndim - axis - 1)))
        return np.asarray(found)


@dataclass(eq=False)
class Sampler:
    """Takes every `every`-th of the iterations that it is shown, whatever loops they are in."""

    every: int
    skip: int = 0

    def of(self, iterations: range) -> range:
        """Those of one more run of an innermost loop that are taken."""
        found = iterations[self.skip :: self.every]
        self.skip = (self.skip - len(iterations)) % self.every
        return found


class LoopTracer:
    """Traces a planned loop whose body needs `names`: its text is compiled once. UntracedError where it has none."""

    def __init__(self, nest: LoopNest, names: Sequence[str]) -> None:
        bound = next(every(Bind, *nest.body), None)
        if bound is not None:
            raise UntracedError(f"line {bound.span.line} gives a part of an array another name, which is not followed")
        self._sampler = Sampler(1)
        self._box: Any = np.zeros((0, 2), np.int64)
        variables = {*names, *nest.dims, *nest.own_names, *names_in(*nest.loops, *nest.body)}
        text = _Text(nest, PythonNames.of(nest.function, variables, *OWN))
        own: dict[str, Any] = {
            "orion_part": lambda space, dim: _part(space, self._box[dim]),
            "orion_sampled": self._taken,
            "orion_elements": lambda: _elements(self._box, self._sampler),
            "orion_boxes": lambda: _unit_boxes(self._box, self._sampler),
        }
        space = text.names.space(**{text.names.own[name]: function for name, function in own.items()})
        try:
            exec(text.of(names), space)
        except SyntaxError as error:
            raise UntracedError(f"its text is not that of Python ({error})") from None
        self._names, self._run = text.names, space[text.names.own["orion_trace"]]

    def _taken(self, space: range) -> range:
        return self._sampler.of(space)

    def tile(self, given: Mapping[str, Any], box: Any, sampler: Sampler) -> None:
        """Run some iterations of a tile with these values of the names: of a nest of ranges those in `box`, int64
        (dims, 2); of a loop over elements those of which `box` has keys and values. UntracedError where it does not
        run as Python."""
        self._box, self._sampler = box, sampler
        try:
            with np.errstate(all="ignore"):
                self._run(**{self._names.variable(name): value for name, value in given.items()})
        except Exception as error:
            raise UntracedError(f"some of its iterations do not run as Python by themselves ({error})") from None


def _part(space: range, box: Any) -> range:
    """The part of a range that is in a box: of its values where it goes up by 1, else of its numbers from 0."""
    low, high = (int(end) for end in box)
    if space.step == 1:
        return range(max(space.start, low), min(space.stop, high))
    return space[low:high]


def _elements(box: Any, sampler: Sampler) -> Iterator[tuple[Any, ...]]:
    """Keys and values of the elements of a tile that are taken."""
    count = len(box[0])
    for at in sampler.of(range(count)):
        yield tuple(part[at] for part in box)


def _unit_boxes(box: Ints, sampler: Sampler) -> Iterator[tuple[int, ...]]:
    """Limits, one after the other, of the boxes of one point in a box that are taken."""
    lengths = np.maximum(0, box[:, 1] - box[:, 0]).tolist()
    for number in sampler.of(range(prod(lengths))):
        at = [int(low + place) for low, place in zip(box[:, 0], np.unravel_index(number, lengths), strict=True)]
        yield tuple(limit for place in at for limit in (place, place + 1))


OWN = ("orion_part", "orion_sampled", "orion_elements", "orion_boxes", "orion_trace")
"""What a text calls of Orion's, and what it is called itself."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a loop, by these names."""

    nest: LoopNest
    names: PythonNames

    def of(self, params: Sequence[str]) -> str:
        """The loop as a function of what it is given, which runs some of the iterations of a tile; helpers first."""
        nest, indent, variable, own = self.nest, "    ", self.names.variable, self.names.own
        lines = [text for helper in nest.function.helpers for text, _ in self.names.helper(helper)]
        lines.append(f"def {own['orion_trace']}({', '.join(map(variable, params))}):")
        elements = nest.elements
        if isinstance(nest.form, OfBox):
            limits = ", ".join(variable(name) for pair in nest.limits for name in pair)
            lines.append(f"{indent}for {limits} in {own['orion_boxes']}():")
            indent += "    "
            for one in nest.buffers:
                lines.append(f"{indent}{variable(one.name)} = np.empty({one.length}, {variable(one.array)}.dtype)")
        elif elements is not None:
            keys = ", ".join(map(variable, (*elements.keys, *elements.values)))
            lines.append(f"{indent}for {keys}, in {own['orion_elements']}():")
            indent += "    "
        else:
            for dim, loop in enumerate(nest.loops):
                lines.append(f"{indent}for {self.header(loop, dim, dim == len(nest.loops) - 1)}:")
                indent += "    "
        body = (text for one in nest.body for text, _ in self.names.statement(one, indent))
        return "\n".join([*lines, *body, f"{indent}pass"])

    def header(self, loop: For, dim: int, is_innermost: bool) -> str:
        space = loop.space
        assert isinstance(space, Range)
        bounds = ", ".join(map(self.names.expr, (space.start, space.stop, space.step)))
        part = f"{self.names.own['orion_part']}(range({bounds}), {dim})"
        if is_innermost:
            part = f"{self.names.own['orion_sampled']}({part})"
        return f"{self.names.variable(space.var)} in {part}"
