"""Arrays whose updates may be late: `orion.buffer`.

Iterations that update a buffer in place of its array are no longer ordered by these updates. Each worker collects its
own, and applies their sums to the array every so often: often enough for what the user has said of how late they may be
(bounded staleness: Ho et al., NIPS 2013; buffered writes: Wei et al., EuroSys 2019, section 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dense import DenseArray
from orion.arrays.sending import AT_THE_BOUND, Sending
from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line

MOST_DELAY = 10**12
"""More than any loop has iterations."""

MAX_DELAY = 1000
"""How many iterations updates may be late where the user does not say."""

OTHERS = ("int8", "uint8", "float16", np.dtype(np.longdouble).name)
"""The dtypes of numbers that arrays with buffers have not: sums of two updates leave one byte soon."""

Dense = NDArray[Any] | DenseArray


class Buffer:
    """Updates of `array` that are applied later, made by `orion.buffer`.

    In a function of `parallel_for` only `buffer[…] += update` and `buffer[…] -= update` are written with it. Python
    itself, as in `f.serial(…)`, applies each update at once: what a `max_delay` of 0 gives.
    """

    __slots__ = ("apply", "array", "deterministic", "helpers", "max_delay", "send", "snapshot")

    def __init__(
        self,
        array: Dense,
        apply: FunctionType | None,
        max_delay: int,
        helpers: tuple[Dense, ...],
        snapshot: tuple[int, ...],
        deterministic: bool,
        send: Sending,
    ) -> None:
        self.array, self.apply, self.max_delay = array, apply, max_delay
        self.helpers, self.snapshot, self.deterministic, self.send = helpers, snapshot, deterministic, send

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def __repr__(self) -> str:
        name = "" if self.apply is None else f", apply={self.apply.__name__}"
        return f"<orion.buffer of {self.dtype}{list(self.shape)}{name}, max_delay={self.max_delay:,}>"

    def __getitem__(self, key: Any) -> Any:
        """Return zeros, to which `buffer[key] += update` adds."""
        return np.zeros_like(_memory(self.array)[key])[()]

    def __setitem__(self, key: Any, updates: Any) -> None:
        """Apply updates, element by element; what is 0 is none."""
        arrays = [_memory(one) for one in (self.array, *self.helpers)]
        places = np.arange(arrays[0].size).reshape(self.shape)[key]
        given = np.broadcast_to(np.asarray(updates), np.shape(places))
        for place, update in zip(np.ravel(places).tolist(), given.ravel(), strict=True):
            if update != 0:
                self._apply(arrays, np.unravel_index(place, self.shape), update)

    def _apply(self, arrays: Sequence[NDArray[Any]], at: tuple[Any, ...], update: Any) -> None:
        value, *helpers = (one[at] for one in arrays)
        if self.apply is None:
            arrays[0][at] = value + update
            return
        found = self.apply(value, update, *helpers, *(helpers[k] for k in self.snapshot))
        for one, new in zip(arrays, found if isinstance(found, tuple) else (found,), strict=False):
            one[at] = new

    def __reduce__(self) -> Any:
        raise TypeError("a buffer stays in its process; make it again from its array")


@ends_in_users_line
def buffer(
    w: Dense,
    apply: Callable[..., Any] | None = None,
    max_delay: int = MAX_DELAY,
    helpers: Sequence[Dense] = (),
    snapshot: Sequence[Dense] = (),
    deterministic: bool = False,
    send: Sending | None = None,
) -> Buffer:
    """Make a buffer for the updates of a dense array, so that they may be applied late.

    A loop writes `buffer[…] += update` in place of `w[…] += update`. Its accesses to `w` then do not prevent a parallel
    run.

    - `w`: a writeable dense array, NumPy's or Orion's, of float32, float64, or integers of 2 to 8 bytes.
    - `apply`: `apply(value, update)` returns the new value of an element, by default `value + update`. Each worker sums
      up its updates of an element and applies the sum as one update; a sum of 0 is none. One worker at a time applies
      updates to an element. A worker reads `apply(value, its own sum)`.
    - `max_delay`: the most iterations by which updates may be late, 1,000 by default. When a worker reads in its
      iteration k, all updates of other workers up to their iteration k - max_delay have been applied. A worker that is
      too far ahead waits. With 0, nothing is late, and all dependences are kept (docs/guides/late.md has an example).
    - `helpers`: further arrays of the shape of `w`. `apply(value, update, *helpers)` gets their elements. It may return
      a tuple of the new value and new values of the helpers.
    - `snapshot`: some of the helpers, whose earlier values `apply` gets as last arguments. These are from the worker's
      first use of the element since it last applied updates.
    - `deterministic`: True applies the updates of all workers after the same iterations, one worker after another. The
      bits are then equal for the same number of workers.
    - `send`: `orion.pacing(…)` sends updates to other nodes ahead of time. By default, only `max_delay` decides.

    Errors: `ArgumentError` for another kind of array, helpers of another shape, and an `apply` with other parameters. A
    loop that meets a NaN in an update raises `UpdateError`; the array and its helpers are then as before the call.

    >>> import numpy as np, orion
    >>> totals = np.zeros(4)
    >>> late = orion.buffer(totals, max_delay=100)
    >>> @orion.parallel_for
    ... def count(group, late):
    ...     for i in range(group.shape[0]):
    ...         late[group[i]] += 1.0
    >>> count(np.arange(1000) % 4, late)
    >>> totals
    array([250., 250., 250., 250.])
    >>> count.plan(np.arange(1000) % 4, late).strategy
    'relaxed'
    """
    helpers, snapshot = tuple(helpers), tuple(snapshot)
    check_array("the array of a buffer", w)
    for one in helpers:
        check_array("a helper", one)
        if one.shape != w.shape:
            what = f"a helper has the shape {one.shape}, and the array {w.shape}"
            raise ArgumentError(describe(what, hint="give helpers with an element for each element of the array"))
    if len({id(one) for one in (w, *helpers)}) <= len(helpers):
        raise ArgumentError(describe("the array and its helpers are not all different arrays", hint="give each once"))
    if (type(max_delay) is not int and not isinstance(max_delay, np.integer)) or not 0 <= max_delay <= MOST_DELAY:
        hint = f"give the most iterations that updates of others may be late, at most {MOST_DELAY:,}; 0 for none"
        raise ArgumentError(describe(f"`max_delay={max_delay!r}` of a buffer", hint=hint))
    if not isinstance(deterministic, bool):
        raise ArgumentError(describe(f"`deterministic={deterministic!r}` of a buffer", hint="write True or False"))
    if send is not None and not isinstance(send, Sending):
        raise ArgumentError(describe(f"`send={send!r}` of a buffer", hint="write `send=orion.pacing(…)`"))
    taken = tuple(next((k for k, helper in enumerate(helpers) if helper is one), -1) for one in snapshot)
    if -1 in taken:
        hint = "a snapshot is the value of a helper: give the same array in `helpers` too"
        raise ArgumentError(describe("an array of `snapshot` is none of the `helpers`", hint=hint))
    _check_apply(apply, len(helpers), len(taken))
    told = AT_THE_BOUND if send is None else send
    return Buffer(w, apply, int(max_delay), helpers, taken, deterministic, told)  # type: ignore[arg-type]


def _memory(array: Dense) -> NDArray[Any]:
    return array.view if isinstance(array, DenseArray) else array


def check_array(what: str, array: object) -> None:
    """Raise ArgumentError unless `array`, called `what`, may have late updates."""
    if not isinstance(array, DenseArray) and type(array) is not np.ndarray:
        hint = "give a NumPy array, or one of `orion.array`, `orion.zeros`, …"
        raise ArgumentError(describe(f"{what} is a {type(array).__name__}", hint=hint))
    if array.dtype.kind not in "iuf" or array.dtype.name in OTHERS or not array.dtype.isnative:
        hint = "use an array of float64 or float32, or of integers of 2 to 8 bytes"
        raise ArgumentError(describe(f"{what} has the dtype {array.dtype}", hint=hint))
    if not array.ndim:
        raise ArgumentError(describe(f"{what} has no dimensions", hint="use an array of one element"))
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        raise ArgumentError(describe(f"{what} cannot be written", hint="give one that can"))


def _check_apply(apply: object, helpers: int, snapshots: int) -> None:
    if apply is None:
        if helpers:
            hint = "give `apply=`, a function of the value, the update and the helpers"
            raise ArgumentError(describe("a buffer has helpers and no `apply`", hint=hint))
        return
    wanted = 2 + helpers + snapshots
    names = ", ".join(["value", "update", *["helper"] * helpers, *["snapshot"] * snapshots])
    hint = f"write a function `def apply({names}): …` or a lambda"
    if not isinstance(apply, FunctionType):
        raise ArgumentError(describe(f"`apply` of a buffer is a {type(apply).__name__}", hint=hint))
    code = apply.__code__
    own = f"`{apply.__name__}` ({code.co_filename}:{code.co_firstlineno}), the `apply` of a buffer,"
    if code.co_flags & 0x0C or code.co_kwonlyargcount:
        raise ArgumentError(describe(f"{own} has parameters with `*`, or after it", hint=hint))
    if code.co_argcount != wanted:
        raise ArgumentError(describe(f"{own} takes {code.co_argcount} arguments, and is given {wanted}", hint=hint))
