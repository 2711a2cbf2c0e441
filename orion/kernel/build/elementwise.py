"""Steps over the elements of a sparse array as one compiled loop (`orion.arrays.lazy`).

Each function of the user's is compiled for the types that it is given, so that it does what Python does (`as_python`),
and a loop is written that calls one after another for each element. Where any of that is not possible, the reason is a
NotCompiledError; where a function raises an error, or a number leaves 64 bits, the loop does: then Python does it all.
"""

from __future__ import annotations

import math
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.types import (  # type: ignore[attr-defined]
    BaseTuple,
    Boolean,
    Number,
    Tuple,
    UniTuple,
    boolean,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    unliteral,
)  # fmt: skip
from numba.np.numpy_support import as_dtype

from orion.arrays.at_once import AtOnce, threads_for
from orion.arrays.check import Arrays
from orion.arrays.dtypes import SUPPORTED
from orion.arrays.steps import Calling, Filter, MapKeys, MapValues, Part, Shuffle, Step
from orion.dataclass import dataclass
from orion.kernel.build import as_python
from orion.kernel.build.whole import NotCompiledError, compiled_copy, outside_of, with_helpers

CHUNK = 1 << 17
"""Elements that a thread goes through before it takes others."""

AHEAD = 4
"""So many chunks for each thread are done before they are taken."""

KEPT = 64
"""So many compiled loops are kept."""

INTEGERS = (int64, int32, int16, int8, uint32, uint16, uint8)

_loops: OrderedDict[Hashable, Loop] = OrderedDict()


@dataclass(frozen=True)
class Loop:
    """A compiled loop, how many keys come out, and values of which dtypes. `reach` is how many keys the last `map_keys`
    without a shape gives, 0 where all are within a shape."""

    run: Callable[..., Any]
    keys: int
    values: tuple[np.dtype, ...]
    is_tuple: bool
    reach: int


def run_compiled(
    steps: Sequence[Step], maps: Sequence[Arrays], whole: Part, take: Callable[[Part], object]
) -> tuple[tuple[int, ...] | None, int]:
    """Have `take` take what all steps make of some elements, part by part in their order. Returns, of the last
    `map_keys` without a shape, how far its keys reach and how many it gave; None where there is none. `maps` are what
    each step looks keys up in.

    Raises NotCompiledError where a step is not compiled, and errors of any kind where Python is to do it.
    """
    loop = _loop(steps, whole)
    chunks = [slice(start, start + CHUNK) for start in range(0, len(whole), CHUNK)]
    looked_up = [table for tables in maps for table in tables]

    def run(chunk: slice) -> tuple[Part, list[int], int]:
        part = whole.where(chunk)
        keys = [np.empty(len(part), np.int64) for _ in range(loop.keys)]
        values = [np.empty(len(part), dtype) for dtype in loop.values]
        reach = np.full(max(1, loop.reach), -1, np.int64)
        count, seen = loop.run(*part.keys, *part.values, *looked_up, *keys, *values, reach)
        made = Part(tuple(k[:count] for k in keys), tuple(v[:count] for v in values), loop.is_tuple)
        return made, reach.tolist(), seen

    found = [run(chunks[0])]  # it is compiled by this
    seen: list[tuple[list[int], int]] = []
    several = threads_for(len(chunks))
    with AtOnce(several) as threads:
        for start in range(1, len(chunks) + 1, AHEAD * several):
            found += threads.map(run, chunks[start : start + AHEAD * several])
            for part, reach, count in found:
                take(part)
                seen.append((reach, count))
            found = []
    extents = tuple(max(one) + 1 for one in zip(*(reach for reach, _ in seen), strict=True)) if loop.reach else None
    return extents, sum(count for _, count in seen)


def _loop(steps: Sequence[Step], whole: Part) -> Loop:
    """The loop for these steps and types, compiled unless that has been done before."""
    if numba.config.DISABLE_JIT:
        raise NotCompiledError("NUMBA_DISABLE_JIT is set")
    identities = [_identity(step) for step in steps]
    kinds = tuple(column.dtype for column in (*whole.keys, *whole.values))
    key = None if None in identities else (len(whole.keys), whole.is_tuple, kinds, *identities)
    found = None if key is None else _loops.get(key)
    if found is None:
        found = _Writer(whole).loop(steps)
        if key is not None:
            _loops[key] = found
            while len(_loops) > KEPT:
                _loops.popitem(last=False)
    return found


# ------------------------------------------------------------ what a loop depends on


def _identity(step: Step) -> Hashable:
    """What a compiled step depends on; None where that may change without being seen, such as elements of arrays."""
    if not isinstance(step, Calling):
        return step.method, step.dims if isinstance(step, Shuffle) else None
    if type(step.function) is not FunctionType:
        return None
    limits = step.limits if isinstance(step, MapKeys) else None
    found: list[Hashable] = [step.method, limits]
    for function in with_helpers(step.function):
        outside = [_settled(name, value) for name, value in sorted(outside_of(function).items())]
        defaults = [_settled("", value) for value in function.__defaults__ or ()]
        if None in outside or None in defaults or function.__kwdefaults__:
            return None
        found += [function.__code__, *outside, *defaults]
    return tuple(found)


def _settled(name: str, value: Any) -> Hashable:
    """What a name stands for, None where that is nothing that stays as it is."""
    if isinstance(value, ModuleType):
        return (name, value.__name__) if value in (np, math) else None
    plain = getattr(value, "py_func", value)
    if isinstance(plain, FunctionType):
        return name, plain.__code__
    if isinstance(value, bool | int | float | complex | np.generic | None):
        return name, type(value), repr(value)
    return (name, value) if isinstance(value, type | np.ufunc | BuiltinFunctionType) else None


# ------------------------------------------------------------ the loop


class _Writer:
    """Writes a loop over elements of these types, and compiles it."""

    def __init__(self, whole: Part) -> None:
        self._keys = [f"a{dim}" for dim in range(len(whole.keys))]
        self._values = [f"b{at}" for at in range(len(whole.values))]
        self._columns = [*self._keys, *self._values]
        self._types: list[Any] = [numba.from_dtype(column.dtype) for column in whole.values]
        self._is_tuple = whole.is_tuple
        self._tables: list[str] = []
        self._space: dict[str, Any] = {"int64": np.int64}
        self._reach = 0
        self._body: list[str] = []
        for dim in range(len(self._keys)):
            self._body.append(f"k{dim} = int64(a{dim}[s])")
        self._body += [f"v{at} = b{at}[s]" for at in range(len(self._values))]
        self._keys = [f"k{dim}" for dim in range(len(self._keys))]
        self._values = [f"v{at}" for at in range(len(self._values))]

    def loop(self, steps: Sequence[Step]) -> Loop:
        unbounded = [step for step in steps if isinstance(step, MapKeys) and step.limits is None]
        is_known = (
            any(isinstance(step, MapKeys) for step in steps[steps.index(unbounded[-1]) + 1 :]) if unbounded else 1
        )
        for at, step in enumerate(steps):
            match step:
                case MapValues():
                    self._map(at, step)
                case MapKeys():
                    self._map_keys(at, step, not is_known and step is unbounded[-1])
                case Filter():
                    self._filter(at, step)
                case Shuffle():
                    self._shuffle(at, step)
                case _:
                    raise NotCompiledError(f"`{step.method}`")
        dtypes = tuple(as_dtype(kind) for kind in self._types)
        return Loop(self._compiled(), len(self._keys), dtypes, self._is_tuple, self._reach)

    def _compiled(self) -> Any:
        keys, values = [f"p{at}" for at in range(len(self._keys))], [f"q{at}" for at in range(len(self._values))]
        stores = [f"{to}[n] = {name}" for to, name in zip((*keys, *values), (*self._keys, *self._values), strict=True)]
        head = f"def loop({', '.join([*self._columns, *self._tables, *keys, *values, 'reach'])}):"
        lines = [head, "    n = seen = 0", "    for s in range(len(b0)):"]
        lines += [f"        {line}" for line in (*self._body, *stores, "n += 1")]
        exec("\n".join([*lines, "    return n, seen"]), self._space)
        return numba.njit(self._space["loop"], nogil=True, error_model="python")

    def _called(self, at: int, function: Any, given: Sequence[Any]) -> Any:
        """The function as a name of the loop, and the type of what it returns."""
        if type(function) is not FunctionType:
            raise NotCompiledError("it is no function in Python")
        made: dict[FunctionType, Any] = {}
        found = compiled_copy(function, made, lambda _: as_python.AsPython)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.compile(tuple(given))
        except Exception as error:  # Numba raises many kinds, of which not all are its own
            raise NotCompiledError(str(error)) from error
        if what := next(filter(None, map(as_python.otherwise, made.values())), ""):
            raise NotCompiledError(what)
        self._space[f"f{at}"] = found
        return unliteral(found.nopython_signatures[-1].return_type)

    def _map(self, at: int, step: MapValues) -> None:
        kind = self._called(at, step.function, self._types)
        self._is_tuple = isinstance(kind, BaseTuple)
        self._types = [unliteral(one) for one in (kind.types if self._is_tuple else [kind])]
        if not self._types or not all(isinstance(one, Number | Boolean) for one in self._types):
            raise NotCompiledError(f"it returns {kind}")
        if not all(as_dtype(one) in SUPPORTED for one in self._types):
            raise NotCompiledError(f"it returns {kind}")
        given, self._values = ", ".join(self._values), [f"v{at}_{place}" for place in range(len(self._types))]
        self._body.append(f"{self._targets(self._values, self._is_tuple)} = f{at}({given})")

    def _map_keys(self, at: int, step: MapKeys, is_reach: bool) -> None:
        kind = self._called(at, step.function, [int64] * len(self._keys))
        is_tuple = isinstance(kind, BaseTuple)
        found = [unliteral(one) for one in (kind.types if is_tuple else [kind])]
        if not found or any(one not in INTEGERS for one in found):
            raise NotCompiledError(f"it returns {kind}")
        limits = step.limits if step.limits is not None else (2**63 - 1,) * len(found)
        if len(limits) != len(found):
            raise NotCompiledError("it returns another number of keys than the shape has")
        raw, given = [f"r{at}_{dim}" for dim in range(len(found))], ", ".join(self._keys)
        self._keys = [f"k{at}_{dim}" for dim in range(len(found))]
        self._body.append(f"{self._targets(raw, is_tuple)} = f{at}({given})")
        for dim, (key, one) in enumerate(zip(self._keys, raw, strict=True)):
            self._body += [f"{key} = int64({one})", f"if not 0 <= {key} < {limits[dim]}:", "    raise ValueError"]
            if is_reach:
                self._body.append(f"reach[{dim}] = max(reach[{dim}], {key})")
        if is_reach:
            self._reach = len(found)
            self._body.append("seen += 1")

    def _filter(self, at: int, step: Filter) -> None:
        value: Any = Tuple(self._types) if self._is_tuple else self._types[0]
        kind = self._called(at, step.function, [UniTuple(int64, len(self._keys)), value])
        if kind != boolean:
            raise NotCompiledError(f"it returns {kind}")
        key = self._targets(self._keys, True)
        self._body += [f"if not f{at}({key}, {self._targets(self._values, self._is_tuple)}):", "    continue"]

    def _shuffle(self, at: int, step: Shuffle) -> None:
        for dim in step.dims:
            table = f"t{at}_{dim}"
            self._tables.append(table)
            self._body.append(f"{table}_k = {table}[{self._keys[dim]}]")
            self._keys[dim] = f"{table}_k"

    def _targets(self, names: Sequence[str], is_tuple: bool) -> str:
        return f"({', '.join(names)},)" if is_tuple else names[0]
