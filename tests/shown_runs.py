"""What a call runs, recorded as it runs, and what its plan shows of it: both as values to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import orion
from orion.inspect.text.parts import lines_of
from orion.ir.program import OfNewOrder
from orion.ir.types import ArrayType, ScalarType, SparseType
from orion.kernel.calling import FLAG_STRIDE
from orion.runtime import backend
from orion.runtime.threads.backend import LoadedProgram, run_locally
from orion.runtime.threads.elastic import ElasticRun
from orion.source import SourceText


@dataclass(frozen=True)
class Loop:
    """A loop: the lines it is told by, how many blocks each dimension is cut into (without the last ones that are not),
    the dimension that is shared out (None where one worker has all), the number of workers, and how many copies of
    which arrays it adds to."""

    lines: tuple[int, ...]
    blocks: tuple[int, ...]
    space: int | None
    workers: int
    copies: tuple[tuple[str, int], ...] = ()


# ---------------------------------------------------------------- what runs


def ran(monkeypatch, function: orion.api.ParallelFunction, arguments: Sequence[Any]) -> list[Loop]:
    """The loops that the first call of a function has loaded, from the tiles that each worker had and the memory that
    it used. Fails where a loop that began did not run all of its tiles."""
    found: list[list[Loop]] = []

    class Recorded(ElasticRun):
        def on(self, *members: Any) -> Any:
            try:
                return super().on(*members)
            finally:
                found.append([_ran(number, self.loaded) for number in range(len(self.prepared.loops))])

    def recorded(prepared: Any, loaded: LoadedProgram, *others: Any) -> Any:
        try:
            return run_locally(prepared, loaded, *others)
        finally:
            found.append([_ran(number, loaded) for number in range(len(prepared.loops))])

    with monkeypatch.context() as patch:
        patch.setattr(backend, "run_locally", recorded)
        patch.setattr(backend, "ElasticRun", Recorded)
        function(*arguments)
    return found[0]


def _ran(number: int, loaded: LoadedProgram) -> Loop:
    parts = [worker[number] for worker in loaded.parts]
    loop = parts[0].loop
    tiles = [set(part.tiles.tolist()) for part in parts]
    finished = loaded.memory.done[number][: FLAG_STRIDE * loop.schedule.tiles : FLAG_STRIDE]
    assert not finished.any() or finished.all(), "some tiles of a loop did not run"
    nest = loop.plan.nest
    lines = (nest.span.line,)
    if isinstance(nest.form, OfNewOrder):
        lines = _without_fors(lines_of(nest), nest.function.source)
    workers = [tile for tile in tiles if tile]
    copies = [(c.array, pair.shape[1]) for c, pair in zip(loop.plan.copies, loaded.memory.copies[number], strict=True)]
    grid = loop.schedule.grid
    return Loop(lines, _cut(grid), _shared(workers, grid), max(1, len(workers)), tuple(copies))


def _cut(blocks: Sequence[int]) -> tuple[int, ...]:
    cut = [dim for dim, count in enumerate(blocks) if count > 1]
    return tuple(blocks[: cut[-1] + 1]) if cut else ()


def _without_fors(lines: tuple[int, ...], source: SourceText) -> tuple[int, ...]:
    """The lines without those of a `for`, whose bounds the text of a new order may use anywhere."""
    return tuple(line for line in lines if not source.line(line).strip().startswith("for "))


def _shared(tiles: Sequence[set[int]], grid: tuple[int, ...]) -> int | None:
    """The dimension in whose blocks the tiles of workers differ."""
    if len(tiles) < 2:
        return None
    blocks = [np.unravel_index(sorted(own), grid) for own in tiles]
    for dim in range(len(grid)):
        own = [set(one[dim].tolist()) for one in blocks]
        if sum(map(len, own)) == len(set().union(*own)):
            return dim
    raise AssertionError("no dimension is shared out")


# ---------------------------------------------------------------- what is shown


def shown(data: Mapping[str, Any], source: SourceText) -> list[Loop]:
    """The loops that a plan as data says are run."""
    found: list[Loop] = []
    fused: set[int] = set()
    for loop in data["loops"]:
        if loop["is_inside"]:
            continue
        others = set(loop["fused_with"]["lines"]) if loop["fused_with"] else set()
        if loop["parts"]:
            found += [_part(part, source) for part in loop["parts"]]
        elif not others or fused != others | {loop["line"]}:
            found.append(_loop(loop))
        fused = others | {loop["line"]} if others else set()
    return found


def _loop(loop: Mapping[str, Any]) -> Loop:
    space = loop["dimensions"].index(loop["space"]) if loop["runs_on"] > 1 else None
    copies = tuple((one["array"], one["copies"]) for one in loop["element_sums"])
    return Loop((loop["line"],), _cut(loop["blocks"]), space, loop["runs_on"], copies)


def _part(part: Mapping[str, Any], source: SourceText) -> Loop:
    space = part["coordinates"].index(part["space"]) if part["runs_on"] > 1 else None
    return Loop(_without_fors(tuple(part["lines"]), source), _cut(part["blocks"]), space, part["runs_on"])


def told_workers(text: str) -> Iterator[int]:
    """The number of workers that a plan as text gives for each loop of the source, in turn."""
    for line in text.splitlines():
        if line.startswith("  runs on  "):
            yield int(line.split()[2])


def told_strategies(text: str) -> Iterator[str]:
    """The strategies that a plan as text gives for the loops of the source, in turn."""
    for line in text.splitlines():
        if line.startswith("  strategy  "):
            yield line.split()[1].removesuffix(":")


# ---------------------------------------------------------------- arguments


def arguments_of(types: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> list[Any]:
    """Arguments of these types and shapes. Integers, also those in arrays, are valid subscripts of every axis."""
    least = min((extent for shape in shapes.values() for extent in shape), default=8)
    return [_argument(kind, shapes.get(name, ()), least) for name, kind in types.items()]


def _argument(kind: Any, shape: tuple[int, ...], least: int) -> Any:
    rng = np.random.default_rng(0)
    match kind:
        case ScalarType(dtype):
            return 2 if np.dtype(dtype).kind in "iu" else 0.01
        case ArrayType(dtype) if np.dtype(dtype).kind in "iu":
            return (np.arange(np.prod(shape)) % least).reshape(shape).astype(dtype)
        case ArrayType(dtype):
            return rng.random(shape).astype(dtype)
        case SparseType(_, key, values):
            coordinates = tuple(rng.integers(0, extent, 5000).astype(key) for extent in shape)
            return orion.sparse(coordinates, rng.random(5000).astype(values[0]), shape=shape)
    raise AssertionError(f"no argument of type {kind}")
