"""A function ready to run on arguments of one kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.accumulator import Accumulator
from orion.arrays.dense import DenseArray
from orion.dataclass import dataclass, replace
from orion.errors import ArgumentError, OutOfBoundsError, describe
from orion.inspect.text.where import why_not_shared_out
from orion.inspecting import Watched
from orion.ir.function import Accumulated, Buffered, Function
from orion.ir.replicas import Replica
from orion.ir.types import Shapes
from orion.passes.delinearize import as_rows
from orion.plan.plan import Inspected
from orion.planned import Plan
from orion.runtime.backend import ProgramCall
from orion.runtime.failures import with_place
from orion.runtime.local_arrays import LocalArrays
from orion.runtime.prepared import PreparedProgram
from orion.runtime.returned import resolved
from orion.runtime.session import Session
from orion.source import Span

Signatures = Sequence[str | Sequence[str]]
"""Signatures of a function: of each the text, or those of its arguments."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `parallel_for`."""

    ordered: bool | None = None
    require_parallel: bool = False
    fastmath: bool = True
    dynamic: bool = False
    relax: tuple[str, ...] = ()
    signatures: tuple[str | tuple[str, ...], ...] = ()


def options_of(
    ordered: bool | None,
    relax: tuple[str, ...],
    require_parallel: bool,
    fastmath: bool,
    schedule: str,
    signatures: Signatures,
) -> Options:
    """Return the options that `parallel_for` is given. ArgumentError for one that it has not."""
    if isinstance(relax, str) or not all(isinstance(name, str) for name in relax):
        hint = 'write a tuple of names of parameters: `relax=("w",)`'
        raise ArgumentError(describe(f"`relax={relax!r}` of parallel_for", hint=hint))
    given = {"ordered": ordered, "require_parallel": require_parallel, "fastmath": fastmath}
    for name, value in given.items():
        if not isinstance(value, bool) and (value is not None or name != "ordered"):
            hint = "write True or False" + (", or None for what the kind of loop decides" if name == "ordered" else "")
            raise ArgumentError(describe(f"`{name}={value!r}` of parallel_for is no truth value", hint=hint))
    if schedule not in ("static", "dynamic"):
        raise ArgumentError(describe(f"`schedule={schedule!r}` of parallel_for", hint='write "static" or "dynamic"'))
    found = _signatures(signatures)
    return Options(ordered, require_parallel, fastmath, schedule == "dynamic", tuple(relax), found)


def _signatures(given: Signatures) -> tuple[str | tuple[str, ...], ...]:
    """Return signatures, which are read when they are built. ArgumentError for what is none."""
    if not isinstance(given, list | tuple) or not all(
        isinstance(one, str) or (isinstance(one, list | tuple) and all(isinstance(part, str) for part in one))
        for one in given
    ):
        hint = 'write a list of texts: `signatures=["float64[:, :], int64"]`'
        raise ArgumentError(describe(f"`signatures={given!r}` of parallel_for", hint=hint))
    return tuple(one if isinstance(one, str) else tuple(one) for one in given)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A function ready to run on arguments of one kind. `serial` are the places of loops of the source that are not
    parallel, or that of the function where it is not parallel as a whole though they are. `rows` has the shapes of
    flattened arrays as arrays of rows. `integers` are the arguments whose values it is for. `watched` are the loops
    that run otherwise for other contents of arrays of subscripts."""

    plan: Plan
    program: PreparedProgram
    written: frozenset[str]
    serial: tuple[Span, ...]
    rows: Shapes
    local: LocalArrays
    integers: tuple[str, ...]
    watched: tuple[Watched, ...]

    @property
    def is_large(self) -> bool:
        """Whether it has sparse arrays, copies of arrays, or tiles that are lists of iterations."""
        return bool(self.plan.arrays) or any(
            loop.copies or isinstance(loop.tiles, Inspected) for loop in self.plan.function.loops
        )

    def why_serial(self, span: Span) -> str:
        """What to say of one of the places in `serial`."""
        return why_not_shared_out(self.plan.function, span)

    def dealt(self, session: Session) -> Prepared:
        """The same, its tiles dealt out as they are now to the workers of a session."""
        program = session.dealt(self.program)
        if program is self.program:
            return self
        return replace(self, plan=self.plan.dealt_as(loop.plan.deal for loop in program.loops), program=program)

    def given(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments as the loops take them: flattened arrays as arrays of rows."""
        return in_rows(arguments, self.rows)

    def run(self, arguments: Mapping[str, Any], session: Session, *noting: Any) -> Any:
        """Run it in a session: arrays change in place, the function's result is returned. `noting` as `ProgramCall`."""
        own, function = self.local.take() if self.local.specs else {}, self.program.program.function
        try:
            with as_before(arguments, function.late):
                returned = session.run(ProgramCall(self.program, {**self.given(arguments), **own}, *noting))
            return resolved(returned, {**arguments, **own}, function)
        except OutOfBoundsError as error:
            error.__traceback__ = None  # its frames hold arrays, until Python looks for cycles
            raise with_place(error, arguments, function) from None
        finally:
            self.local.give_back(own)


@contextmanager
def as_before(arguments: Mapping[str, Any], late: Sequence[Buffered | Replica]) -> Iterator[None]:
    """Where an error ends what is inside, the arrays with buffers, their helpers, and replicas are as they were
    before."""
    names = dict.fromkeys(name for one in late for name in one.changed)
    kept = {name: memory_of(arguments[name]).copy() for name in names}
    try:
        yield
    except Exception:
        for name, before in kept.items():
            memory_of(arguments[name])[...] = before
        raise


def memory_of(value: Any) -> NDArray[np.generic]:
    """The memory of a dense array."""
    return value.storage if isinstance(value, DenseArray) else value


def with_numbers(arguments: Mapping[str, Any], accumulated: Sequence[Accumulated]) -> Mapping[str, Any]:
    """The arguments with the numbers of accumulators in place of these."""
    numbers: dict[str, Any] = {}
    for one in accumulated:
        given = arguments[one.source]
        numbers |= zip(one.names, given.numbers_of(given.value), strict=True)
    return {name: value for name, value in arguments.items() if type(value) is not Accumulator} | numbers


def rows_of(function: Function, shapes: Shapes) -> Shapes:
    """The shapes of the flattened arrays of a function as arrays of rows."""
    return {one.array: shapes[one.array] for one in function.rows}


def in_rows(arguments: Mapping[str, Any], rows: Shapes) -> Mapping[str, Any]:
    """Arguments with flattened arrays as arrays of rows of these shapes."""
    return (
        {**arguments, **{name: as_rows(arguments[name], shape) for name, shape in rows.items()}} if rows else arguments
    )
