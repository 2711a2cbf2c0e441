"""The kinds of calls of a decorated function, each with stages of its own (`orion.prepare`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from types import FunctionType
from typing import Any

from numpy import ndarray

from orion.arrays.accumulator import Accumulator
from orion.arrays.buffer import Buffer
from orion.arrays.compressed import is_matrix
from orion.arrays.dense import DenseArray
from orion.arrays.replica import Replicated
from orion.arrays.sending import AT_THE_BOUND
from orion.arrays.sparse import SparseArray
from orion.errors import ArgumentError, describe
from orion.frontend.accumulators import NO_ACCUMULATORS, AccumulatorOf
from orion.frontend.buffers import NO_BUFFERS, BufferOf, LateOf, SameCode
from orion.frontend.locate import FileLines
from orion.frontend.matrices import Matrix
from orion.frontend.parse import sparse_uses
from orion.frontend.replicas import ReplicaOf
from orion.ir.function import Rekeyed
from orion.prepare import Preparation, is_late
from orion.prepared_call import Options
from orion.runtime.rekeyings import Rekeyings

Numbers = tuple[tuple[str, Any], ...]
"""Names and values of parameters that a call leaves to their defaults."""

MOST = 64
"""How many kinds of calls are kept."""


class Preparations:
    """The stages of one decorated function: those for calls that leave numbers to their defaults, and have sparse
    matrices, maps of keys, buffers or accumulators among their arguments."""

    def __init__(self, function: FunctionType, options: Options, lines: FileLines) -> None:
        self._function, self._options, self.lines = function, options, lines
        self.plain = Preparation(function, options, lines=lines)
        self._others: dict[tuple[object, ...], Preparation] = {}
        self._rekeyings = Rekeyings()

    def __iter__(self) -> Iterator[Preparation]:
        return iter((self.plain, *self._others.values()))

    def of(self, numbers: Numbers, arguments: dict[str, Any]) -> tuple[Preparation, dict[str, Any]]:
        """The stages for calls that leave these numbers to their defaults, and have such arguments; the arguments with
        the sparse arrays that have maps of keys as keys."""
        matrices: tuple[tuple[str, Matrix], ...] = ()
        may_be_matrices, may_be_mapped = self._sparse_uses
        if may_be_matrices:
            given = [(name, arguments[name]) for name in may_be_matrices]
            found = [(name, value) for name, value in given if type(value) is not ndarray and is_matrix(value)]
            matrices = tuple((name, Matrix(not isinstance(one, SparseArray), one.ndim)) for name, one in found)
        rekeyed = self._rekeyings.of(may_be_mapped, arguments) if may_be_mapped else None
        buffers = NO_BUFFERS
        if self._options.relax or any(map(is_late, arguments.values())):
            buffers = buffers_among(arguments, self._options.relax)
        accumulators = NO_ACCUMULATORS
        if Accumulator in map(type, arguments.values()):
            accumulators = accumulators_among(arguments)
        if not numbers and not matrices and rekeyed is None and not buffers and not accumulators:
            return self.plain, arguments
        key = numbers, matrices, rekeyed is not None, buffers, accumulators
        if key not in self._others:
            if len(self._others) >= MOST:
                self._others.clear()
            self._others[key] = Preparation(
                self._function, self._options, None, dict(numbers), dict(matrices),
                with_maps=rekeyed is not None, lines=self.lines, buffers=buffers,
                accumulators=accumulators,
            )  # fmt: skip
        return self._others[key], arguments | (rekeyed or {})

    @cached_property
    def _sparse_uses(self) -> tuple[tuple[str, ...], tuple[Rekeyed, ...]]:
        """The arguments that may be sparse matrices, by what the function does with them, and the sparse arrays of
        which maps of keys may be made keys: where any order of their elements will do."""
        found = sparse_uses(self._function, self.lines)
        if found.located is not None:
            self.plain.located[self._function] = found.located
        return tuple(sorted(found.matrices)), () if self._options.ordered else found.mapped


def buffers_among(arguments: Mapping[str, Any], relaxed: tuple[str, ...]) -> tuple[LateOf, ...]:
    """The buffers and replicas among the arguments of a call, and the arguments that are `relaxed` themselves.
    ArgumentError where one of these is no dense array, or an array has two buffers, or a buffer and a replica."""
    name_of = {id(value): name for name, value in arguments.items()}
    found: list[LateOf] = []
    for name, value in arguments.items():
        if isinstance(value, Buffer):
            found.append(_buffer_of(name, value, name_of))
        elif isinstance(value, Replicated):
            found.append(ReplicaOf(name, name_of.get(id(value.array)), value.policy))
    found += [_relaxed_array(name, arguments) for name in relaxed]
    taken: dict[int, str] = {}
    for one in found:
        given = arguments[one.name]
        for array in _arrays_of(given):
            other = taken.setdefault(id(array), one.name)
            if other != one.name:
                what = f"`{other}` and `{one.name}` have an array or a helper in common"
                raise ArgumentError(describe(what, hint="write all its updates to one buffer or replica"))
    return tuple(found)


def _arrays_of(given: object) -> tuple[object, ...]:
    match given:
        case Buffer():
            return (given.array, *given.helpers)
        case Replicated():
            return (given.array,)
        case _:
            return (given,)


def _buffer_of(name: str, given: Buffer, name_of: Mapping[int, str]) -> BufferOf:
    helpers = tuple(name_of.get(id(one)) for one in given.helpers)
    apply = None if given.apply is None else SameCode(given.apply)
    return BufferOf(
        name, name_of.get(id(given.array)), helpers, given.snapshot, apply, given.max_delay, given.deterministic,
        given.send, len(given.shape),
    )  # fmt: skip


def _relaxed_array(name: str, arguments: Mapping[str, Any]) -> BufferOf:
    value = arguments.get(name)
    if not isinstance(value, DenseArray) and type(value) is not ndarray:
        what = f"`relax` names `{name}`, which is a {type(value).__name__}" if name in arguments else (
            f"`relax` names `{name}`, which is no parameter"
        )  # fmt: skip
        raise ArgumentError(describe(what, hint="name parameters that are dense arrays"))
    from orion.arrays.buffer import MAX_DELAY, buffer

    buffer(value)  # refuses what it cannot be
    return BufferOf(name, name, (), (), None, MAX_DELAY, False, AT_THE_BOUND, value.ndim, is_array=True)


def accumulators_among(arguments: Mapping[str, Any]) -> tuple[AccumulatorOf, ...]:
    """The accumulators among the arguments of a call. ArgumentError where one is given twice."""
    found = {name: value for name, value in arguments.items() if type(value) is Accumulator}
    names: dict[int, str] = {}
    for name, one in found.items():
        other = names.setdefault(id(one), name)
        if other != name:
            what = f"`{other}` and `{name}` are one accumulator"
            raise ArgumentError(describe(what, hint="give it once, and add all values to it by one name"))
    return tuple(
        AccumulatorOf(
            name,
            SameCode(one.combine),
            one.dtypes,
            one.is_tuple,
            one.is_commutative,
            repr(one.init),
            one.numbers_of(one.init),
        )
        for name, one in found.items()
    )
