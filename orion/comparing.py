"""`f.verify(...)`: a call in parallel, on one worker, and by the Python interpreter, on copies; and what differs.

The run on one worker has the plan, the tiles and the kernels of the parallel one: it is the serial run that Orion
promises to equal, bit for bit. Python has the written order; where a loop over a sparse array takes its elements in
another one, Python is given them in that.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.accumulator import taken
from orion.arrays.copied import Changeable, copied, leaves, reordered, room_for_copy, value_bytes
from orion.arrays.dense import DenseArray
from orion.arrays.sparse import SparseArray
from orion.compared import EACH, ONE, PYTHON, RETURNED, Content, Expected, Outcome, Verification, compare, scale_of
from orion.dataclass import dataclass
from orion.errors import OrionError, RescaledError
from orion.inspect.text.words import counted, listed
from orion.ir.function import Buffered
from orion.ir.replicas import Replica
from orion.plan.source_plans import main_part
from orion.planned import Plan
from orion.preparations import Numbers, Preparations
from orion.prepare import Preparation
from orion.prepared_call import Prepared, memory_of
from orion.runtime.session import Session
from orion.schedule.schedule import Ints
from orion.unanalysed import Unanalysed

NO_ORDERS: Mapping[str, Ints] = {}

OF_PYTHON = (LookupError, ArithmeticError, ValueError)
"""Errors of Orion's that are also of these kinds are results of a run, which Python has too; others refuse the call."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call to be verified: `arguments` by name, and the `numbers` that it leaves to their defaults. `as_it_is` gives
    what runs a function that is not planned, or raises why there is none; `check` what is said of a serial plan."""

    function: FunctionType
    signature: inspect.Signature
    numbers: Numbers
    arguments: dict[str, Any]
    preparations: Preparations
    as_it_is: Callable[[Mapping[str, Any], OrionError], Unanalysed]
    check: Callable[[Prepared], None]

    def stages(self, arguments: Mapping[str, Any]) -> tuple[Preparation, dict[str, Any]]:
        """Return the stages for such arguments, and the arguments as these take them."""
        return self.preparations.of(self.numbers, dict(arguments))

    def in_python(self, arguments: Mapping[str, Any]) -> Any:
        """Run the undecorated function."""
        bound = inspect.BoundArguments(self.signature, OrderedDict(arguments))
        with np.errstate(all="ignore"):
            return self.function(*bound.args, **bound.kwargs)

    def in_parallel(self, session: Session, arguments: Mapping[str, Any]) -> Any:
        """Run the plan on the session's workers, with every worker used."""
        preparation, given = self.stages(arguments)
        while True:
            found = preparation.with_outside(given)
            prepared = preparation.prepare(found, session.workers, True).dealt(session)
            with suppress(RescaledError):
                return taken(prepared.run(found, session), given)

    def on_one_worker(self, session: Session, arguments: Mapping[str, Any]) -> Any:
        """Run the tiles and kernels of the same plan on one worker, in the serial order of the plan."""
        preparation, given = self.stages(arguments)
        found = preparation.with_outside(given)
        prepared = preparation.prepare(found, session.workers, True)
        return taken(session.with_threads(1, lambda threads: prepared.run(found, threads)), given)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs of a call, each on copies of its own of what is `changeable`. The values of sparse arrays, and the arrays
    from `outside` of the function, by name, are given back after each run: plans are for these objects."""

    call: Call
    changeable: Changeable
    outside: Mapping[str, NDArray[Any]]

    def outcome(self, run: Callable[[dict[str, Any]], Any], orders: Mapping[str, Ints] = NO_ORDERS) -> Outcome:
        """Run it, and return what it has left, or the error that it raised. An error by which Orion refuses a call, or
        loses a worker, passes. `orders` are those in which Python goes through sparse arrays."""
        copies = copied(self.call.arguments, self.changeable)
        for name, order in orders.items():
            with room_for_copy([name], value_bytes(copies[name])):
                copies[name] = reordered(copies[name], order)
        with self._given_back():
            try:
                returned = run(copies)
            except Exception as error:
                if isinstance(error, OrionError) and not isinstance(error, OF_PYTHON):
                    raise
                return Outcome({}, error)
            contents = self._contents(copies) | dict(_returned(RETURNED, returned))
            return Outcome(contents, scale=scale_of([*_arrays_of(self.call.arguments), *_arrays_of(copies)]))

    @contextmanager
    def _given_back(self) -> Iterator[None]:
        undo: list[Callable[[], None]] = []
        for name, one in leaves(self.call.arguments):
            if isinstance(one, SparseArray) and self.changeable.has(one):
                with room_for_copy([name], value_bytes(one)):
                    undo.append(one.before_image())
        before: list[tuple[NDArray[Any], NDArray[Any]]] = []
        for name, array in self.outside.items():
            with room_for_copy([name], array.nbytes):
                before.append((array, array.copy()))
        try:
            yield
        finally:
            for action in undo:
                action()
            for array, values in before:
                array[...] = values

    def _contents(self, copies: Mapping[str, Any]) -> dict[str, Content]:
        pairs = zip(leaves(self.call.arguments), leaves(copies), strict=True)
        found = {name: leaf for (name, before), (_, leaf) in pairs if self.changeable.has(before)}
        contents = dict(item for name, leaf in found.items() for item in _content(name, leaf))
        return contents | {name: Content(array.copy()) for name, array in self.outside.items()}


def _arrays_of(arguments: Mapping[str, Any]) -> Iterator[NDArray[Any]]:
    return (content.array for name, leaf in leaves(arguments) for _, content in _content(name, leaf))


def _content(name: str, leaf: Any) -> Iterator[tuple[str, Content]]:
    """Yield the arrays of a leaf of the arguments, or of what was returned."""
    match leaf:
        case DenseArray():
            yield name, Content(leaf.view)
        case SparseArray(values_are_tuple=True):
            yield from ((f"{name}{EACH}[{k}]", Content(one.copy(), leaf.coords)) for k, one in enumerate(leaf.values))
        case SparseArray():
            yield name, Content(np.array(leaf.values), leaf.coords)
        case _:
            yield name, Content(np.asarray(leaf))


def _returned(name: str, value: Any) -> Iterator[tuple[str, Content]]:
    """Yield what a function returned, tuples and lists by their items; nothing for None."""
    if isinstance(value, tuple | list) and value:
        for k, item in enumerate(value):
            yield from _returned(f"{name}[{k}]", item)
    elif value is not None:
        yield from _content(name, value)


def verify(call: Call, session: Session) -> Verification:
    """Run a call in all three ways, and compare."""
    preparation, given = call.stages(call.arguments)
    try:
        arguments = preparation.with_outside(given)
        prepared = preparation.prepare(arguments, session.workers, True)
    except OrionError as error:
        if isinstance(error, OF_PYTHON):
            return _refused(call, session)
        return _as_it_is(call, call.as_it_is(given, error).run)
    call.check(prepared)
    return _planned(call, session, prepared, arguments)


def _refused(call: Call, session: Session) -> Verification:
    """A call that ends before any loop runs, by an error that Python may raise too."""
    runs = Runs(call, Changeable(None), {})
    found = runs.outcome(lambda copies: call.in_parallel(session, copies))
    python = compare(_named(PYTHON, session.workers), runs.outcome(call.in_python), found, "rounding")
    return Verification(call.function.__name__, None, session.workers, None, python)


def _as_it_is(call: Call, run: Callable[..., Any]) -> Verification:
    """A function that is not planned."""
    runs = Runs(call, Changeable(None), {})
    found = runs.outcome(lambda copies: run(*copies.values()))
    note = "no loop is planned: the function is compiled by Numba as it is"
    python = compare(_named(PYTHON, 1), runs.outcome(call.in_python), found, "rounding", note)
    return Verification(call.function.__name__, None, 1, None, python)


def _planned(call: Call, session: Session, prepared: Prepared, arguments: Mapping[str, Any]) -> Verification:
    plan, late, workers = prepared.plan, prepared.program.program.function.late, prepared.plan.runs_on
    runs, parallel = _runs(call, prepared, arguments), None
    found = runs.outcome(lambda copies: call.in_parallel(session, copies))
    if workers > 1 and not late:
        alone = runs.outcome(lambda copies: call.on_one_worker(session, copies))
        parallel = compare(_named(ONE, workers), alone, found, "bits")
    order = order_for_python(plan, call.arguments)
    by_python = runs.outcome(call.in_python, order.of)
    notes = [*map(_late_in_words, late), *order.notes]
    expected: Expected = "rounding" if order.is_same and not late else "nothing"
    python = compare(_named(PYTHON, workers), by_python, found, expected, "; ".join(notes))
    return Verification(call.function.__name__, plan, workers, parallel, python)


def _runs(call: Call, prepared: Prepared, arguments: Mapping[str, Any]) -> Runs:
    """Runs of a call on copies of what it writes; `arguments` are those of its loops."""
    function = prepared.program.program.function
    late = (name for one in function.late for name in one.changed)
    written = [arguments[name] for name in prepared.written.union(prepared.program.stored, late) if name in arguments]
    dense = [memory_of(value) for value in written if isinstance(value, np.ndarray | DenseArray)]
    changeable = Changeable(dense, [value for value in written if isinstance(value, SparseArray)])
    outside = {name: arguments[name] for name in function.outside if changeable.has(arguments[name])}
    return Runs(call, changeable, outside)


def _late_in_words(late: Buffered | Replica) -> str:
    if isinstance(late, Replica):
        return f"each worker has a copy of `{late.name}`, and Python has one"
    return f"updates of `{late.source}` may be late, and in Python none is"


@dataclass(frozen=True, slots=True, eq=False)
class OrderForPython:
    """The orders `of` sparse arrays in which Python is to go through their elements, as the loops of a plan do; whether
    its order is then the `is_same`; and what is said of that."""

    of: Mapping[str, Ints]
    is_same: bool
    notes: tuple[str, ...]


def order_for_python(plan: Plan, arguments: Mapping[str, Any]) -> OrderForPython:
    """Find the order in which Python has to take the iterations of loops that may run in any order. It can be had where
    these are the elements of a sparse array of the call, and all such loops over it have one order."""
    orders: dict[str, Ints] = {}
    for number, loop in enumerate(plan.loops):
        part = main_part(loop)
        if part.ordered or part.strategy == "independent":
            continue
        array = "" if part.nest.elements is None else part.nest.elements.array
        order = plan.serial_order(part.runs_on, number) if array in arguments else None
        if order is None or not np.array_equal(orders.setdefault(array, order), order):
            line = part.nest.span.line
            note = f"the loop in line {line} may run in any order, and Python takes that in which it is written"
            return OrderForPython(NO_ORDERS, False, (note,))
    names = listed([f"`{name}`" for name in orders])
    note = f"Python takes the elements of {names} in the order of plan.serial_order()"
    return OrderForPython(orders, True, (note,) if orders else ())


def _named(expected: str, workers: int) -> tuple[str, str]:
    return expected, ONE if workers == 1 else counted(workers, "worker")
