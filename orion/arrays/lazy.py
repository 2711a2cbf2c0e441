"""Sparse arrays whose elements are computed from those of another when they are first used.

All steps from the array that holds elements to the one that is used are done in one pass, on some elements at a time.
Compiled they are run at once (`orion.kernel.build.elementwise`); where a function is not compiled, or raises an error,
Python runs them, and what it does is what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from threading import RLock
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from orion.arrays.check import extents_of, largest_extent
from orion.arrays.collected import Column, WrongResultError
from orion.arrays.sparse import SparseArray, adopt
from orion.arrays.steps import Calling, MapKeys, MapValues, MixedTypesError, Part, Shuffle, Step, name_of
from orion.arrays.storage import IN_MEMORY, KeyPieces, Pieces, Storage, current_storage
from orion.aside import aside
from orion.errors import ArgumentError, DataFormatError, StorageError, describe
from orion.tracebacks import ends_in_users_line

AT_ONCE = 1 << 16
"""Elements that are Python's objects at the same time."""

COMPILED_FROM = 1 << 21
"""Fewer calls of functions than that Python has done before they would be compiled."""

STATE = frozenset(vars(SparseArray((), (), (), (), False)))
"""What an array of elements has, and one whose elements are not computed yet has not."""


Pending = tuple[SparseArray, int, tuple[Step, ...]]
"""The array that another is computed from, how often that had stored values then, and the steps."""


class LazySparseArray(SparseArray):
    """A sparse array that computes its elements when they are first used. Then it is a SparseArray."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        self._lock = RLock()

    def __getattr__(self, name: str) -> Any:
        if name in STATE:
            try:
                self.materialize()
            except AttributeError as error:  # Python would ask for the property again, and say that there is none
                self._failed = error
                raise
            return vars(self)[name]
        failed = vars(self).pop("_failed", None)
        raise failed or AttributeError(f"'SparseArray' object has no attribute {name!r}")

    @ends_in_users_line
    def materialize(self) -> Self:
        lock = vars(self).get("_lock")
        if lock is not None:
            with lock:
                pending = pending_of(self)
                if pending is not None:  # no other thread has been quicker
                    vars(self).update(vars(_run(*pending)))
                    for name in ("_pending", "_lock", "_failed"):
                        vars(self).pop(name, None)
                    self.__class__ = SparseArray  # type: ignore[assignment]
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return super(SparseArray, self.materialize()).__reduce_ex__(protocol)

    def __repr__(self) -> str:
        source, _, steps = self._pending
        return f"SparseArray(not computed yet: {', '.join(step.method for step in steps)} of {source!r})"

    def _repr_html_(self) -> str:
        return f"<pre>{self!r}</pre>"


def pending_of(array: SparseArray) -> Pending | None:
    """What an array is yet to be computed from, None where it holds its elements."""
    return vars(array).get("_pending")


def after(array: SparseArray, step: Step) -> SparseArray:
    """The array with one more step."""
    pending = pending_of(array)
    if pending is None or (isinstance(step, Shuffle) and _shape(*pending) is None):
        return LazySparseArray((array, vars(array).get("version", 0), (step,)))
    source, version, steps = pending
    return LazySparseArray((source, version, (*steps, step)))


def form(array: SparseArray) -> tuple[int | None, int | None]:
    """The numbers of keys and of values of an element, None where they are not known before they are computed."""
    pending = pending_of(array)
    if pending is None:
        return array.ndim, len(array.value_dtypes)
    source, _, steps = pending
    keys, values = form(source)
    for step in steps:
        if isinstance(step, MapKeys):
            keys = None if step.limits is None else len(step.limits)
        values = None if isinstance(step, MapValues) else values
    return keys, values


def _shape(source: SparseArray, version: int, steps: tuple[Step, ...]) -> tuple[int, ...] | None:
    """The shape after some steps, None where it is not known before they run."""
    is_pending = pending_of(source) is not None
    shape = None if is_pending else source.shape
    for step in steps:
        shape = step.shape(shape)
    return shape


# ---------------------------------------------------------------- the pass


def _run(source: SparseArray, version: int, steps: tuple[Step, ...]) -> SparseArray:
    """The array after all steps."""
    if source.version != version:
        what = f"the values of an array, or their order, have been changed since `{steps[0].method}` was called"
        raise ArgumentError(describe(what, hint="call `.materialize()` on what it returned before that"))
    values, storage = source.values, current_storage()
    whole = Part(source.coords, values if isinstance(values, tuple) else (values,), isinstance(values, tuple))
    try:
        found, shape = _together(whole, steps, source.shape, storage)
    except MixedTypesError:
        found, shape = _one_by_one(whole, steps, source.shape, storage)
    return adopt(found.keys, found.values, shape, found.is_tuple)


class _Made:
    """The elements that come out, part by part."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._keys: KeyPieces | None = None
        self._values: list[Pieces] = []
        self._is_tuple = False

    def add(self, part: Part) -> None:
        """Add some elements."""
        if self._keys is None:
            self._keys, self._is_tuple = KeyPieces(self._storage, len(part.keys)), part.is_tuple
            self._values = [Pieces(self._storage) for _ in part.values]
        self._keys.add(part.keys)
        for pieces, column in zip(self._values, part.values, strict=True):
            pieces.add(column)

    def whole(self, empty: Part) -> Part:
        """All of them, in memory of their own; `empty` where there are none."""
        if self._keys is None or not len(self._values[0]):
            return empty
        values = tuple(pieces.whole(next(iter(pieces.dtypes))) for pieces in self._values)
        return Part(self._keys.whole(), values, self._is_tuple)


def _chunks(whole: Part) -> Iterator[Part]:
    for start in range(0, len(whole), AT_ONCE):
        yield whole.where(slice(start, start + AT_ONCE))


def _together(
    whole: Part, steps: tuple[Step, ...], shape: tuple[int, ...], storage: Storage
) -> tuple[Part, tuple[int, ...]]:
    """What all steps make of some elements in one pass, and the shape. MixedTypesError where values of some elements
    have another dtype than those of others."""
    known = _shapes(steps, shape)
    reaches = [_Reach(step) for step in steps if isinstance(step, MapKeys)]
    found = _compiled(steps, known, whole, storage)
    if found is not None:
        part, extents, count = found
        end = known[-1]
        if end is None:
            reaches[-1].take(extents, count)
            end = reaches[-1].shape(len(part.keys))
        return part, end
    applies = [step.begin(before, len(whole)) for step, before in zip(steps, known, strict=False)]
    forms: list[Part | None] = [None for _ in steps]
    made = _Made(storage)
    for part in _chunks(whole):
        for at, apply in enumerate(applies):
            if len(part):
                part = apply(part, forms[at])
                forms[at] = _same_form(part, forms[at])
                for reach in reaches:
                    reach.see(steps[at], part)
        if len(part):
            made.add(part)
    last = next((one for one in reversed(forms) if one is not None), whole.where(slice(0, 0)))
    end = known[-1] if known[-1] is not None else reaches[-1].shape(len(last.keys))
    return made.whole(Part(tuple(np.empty(0, np.int32) for _ in end), last.values, last.is_tuple)), end


def _compiled(
    steps: tuple[Step, ...], known: list[tuple[int, ...] | None], whole: Part, storage: Storage
) -> tuple[Part, tuple[int, ...] | None, int] | None:
    """What compiled steps make of some elements (`run_compiled`). None where they are few, where a step is not
    compiled, where an error was raised, or where nothing is left: then Python does it, and its errors and types count.
    """
    if not len(whole) or len(whole) * sum(isinstance(step, Calling) for step in steps) < COMPILED_FROM:
        return None
    maps = [step.maps(shape, len(whole)) for step, shape in zip(steps, known, strict=False)]
    try:
        run = import_module("orion.kernel.build.elementwise").run_compiled
        made = _Made(storage)
        extents, count = aside(lambda: run(steps, maps, whole, made.add))
    except StorageError:
        raise
    except Exception:
        return None
    found = made.whole(whole.where(slice(0, 0)))
    return (found, extents, count) if len(found) else None


def _shapes(steps: tuple[Step, ...], shape: tuple[int, ...]) -> list[tuple[int, ...] | None]:
    """The shapes before all steps, and after them, None where it is not known."""
    found: list[tuple[int, ...] | None] = [shape]
    for step in steps:
        found.append(step.shape(found[-1]))
    return found


class _Reach:
    """How far the keys reach that `map_keys` gives."""

    def __init__(self, step: MapKeys) -> None:
        self._step = step
        self._extents: tuple[int, ...] | None = None
        self._count = 0

    def see(self, step: Step, part: Part) -> None:
        """Look at what a step has given, if it is this one."""
        if step is self._step and len(part):
            found = extents_of(part.keys)
            self._extents = tuple(map(max, found, self._extents or found))
            self._count += len(part)

    def take(self, extents: tuple[int, ...] | None, count: int) -> None:
        """Take over what compiled code has seen."""
        self._extents, self._count = extents, count

    def shape(self, dims: int) -> tuple[int, ...]:
        """The smallest shape that holds all of them. DataFormatError where it is far longer than there are elements."""
        extents = self._extents or (0,) * dims
        for dim, length in enumerate(extents):
            if length > largest_extent(self._count):
                what = f"`map_keys`: {name_of(self._step.function)} returns {length - 1} in dimension {dim}"
                why = f"dimension {dim} would have {length:,} indices for {self._count:,} elements"
                raise DataFormatError(describe(what, why=why, hint=f"say shape={extents} if that is meant"))
        return extents


def _same_form(part: Part, before: Part | None) -> Part:
    """What a part is, without its elements. MixedTypesError where that is not what parts were before."""
    found = part.where(slice(0, 0))
    if before is not None and [v.dtype for v in found.values] != [v.dtype for v in before.values]:
        raise MixedTypesError
    return found


def _one_by_one(
    whole: Part, steps: tuple[Step, ...], shape: tuple[int, ...], storage: Storage
) -> tuple[Part, tuple[int, ...]]:
    """One step after another for all elements, so that each sees values of one dtype."""
    source = whole
    for step in steps:
        if isinstance(step, MapValues) and len(whole):
            whole = _mapped(whole, step, storage)
        else:
            whole, shape = _together(whole, (step,), shape, storage)
    if any(np.may_share_memory(axis, own) for axis in whole.keys for own in source.keys):
        whole = Part(tuple(map(storage.copied, whole.keys)), whole.values, whole.is_tuple)
    return whole, shape


def _mapped(whole: Part, step: MapValues, storage: Storage) -> Part:
    """Other values, of the dtypes that all of them have in common."""
    found: list[Column] = []
    before: Part | None = None
    for part in _chunks(whole):
        results = step.results(part)
        with step.told_of(part, results):
            columns, is_tuple = step.columns(results, before)
            found = found or [Column(storage) for _ in columns]
            for column, more in zip(found, columns, strict=True):
                column.add(more)
        if before is None:
            before = Part((), tuple(np.empty(0) for _ in columns), is_tuple)
    try:
        values = tuple(column.whole() for column in found)
    except WrongResultError as error:
        what = f"`{step.method}`: a value that {name_of(step.function)} returns for {whole.element(error.place)}"
        raise ArgumentError(describe(f"{what} has no place among the others", why=str(error))) from None
    return Part(whole.keys, values, is_tuple)


def mapped(values: NDArray[Any], function: Callable[[Any], Any]) -> NDArray[Any]:
    """What a function returns for each element of an array, as an array of the same shape (`DenseArray.map`)."""
    step, flat = MapValues(function), values.reshape(-1)
    step.check(0, 1)
    if not flat.size:
        return values
    found = _compiled((step,), [None], Part((), (flat,), False), IN_MEMORY)
    places = np.unravel_index(np.arange(flat.size), values.shape) if found is None and values.ndim else ()
    part = _mapped(Part(places, (flat,), False), step, IN_MEMORY) if found is None else found[0]
    if part.is_tuple:
        what = f"`map` of a dense array: {name_of(function)} returns tuples, and there is one value for each element"
        raise ArgumentError(describe(what, hint="call it once for each of the values"))
    return part.values[0].reshape(values.shape)
