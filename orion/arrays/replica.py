"""Arrays of which each worker has a copy: `orion.replicate`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from orion.arrays.buffer import Dense, check_array
from orion.arrays.dense import DenseArray
from orion.arrays.policies import Elastic, LocalSgd, Policy
from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line


class Replicated(NDArrayOperatorsMixin):
    """`array`, the centre, with a copy of it for each worker, made by `orion.replicate`.

    `copies[k]` is that of worker k, `velocities[k]` its momentum (no elements where there is none), both in the layout
    of the memory of the array; `outer` is the momentum of the outer step. They live from call to call. A copy that is
    not there yet begins as the centre; so does one that a call with fewer workers left out. `posted` is memory for
    pulls that overlap the steps of workers, and has nothing between calls.

    Python itself, as in `f.serial(…)`, has one copy, the array itself: nothing is to be pulled.
    """

    def __init__(self, array: Dense, policy: Policy) -> None:
        self.array, self.policy = array, policy
        like = self._centre
        self.copies = np.zeros((0, *like.shape), like.dtype)
        self.velocities = np.zeros((0, *(like.shape if self.has_velocities else (0,) * like.ndim)), like.dtype)
        self.posted = np.zeros((1, *(like.shape if policy.overlaps else (0,) * like.ndim)), like.dtype)
        self.outer = np.zeros(like.shape if self.has_outer else (0,) * like.ndim, like.dtype)

    @property
    def _centre(self) -> NDArray[Any]:
        return self.array.storage if isinstance(self.array, DenseArray) else self.array

    @property
    def has_velocities(self) -> bool:
        """Whether the copies of workers have momentum."""
        return isinstance(self.policy, Elastic) and self.policy.momentum > 0

    @property
    def has_outer(self) -> bool:
        """Whether the steps of the centre have momentum."""
        return isinstance(self.policy, LocalSgd) and self.policy.step > 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<orion.replicate of {self.dtype}{list(self.shape)}, {self.policy!r}>"

    def reset(self) -> None:
        """Have all copies begin as the centre is now, without momentum: for a centre that was given other values."""
        self.copies[...] = self._centre
        self.velocities[...] = 0
        self.outer[...] = 0

    def begin(self, workers: int) -> None:
        """Have copies for so many workers."""
        have = len(self.copies)
        if have < workers:
            self.copies = np.concatenate([self.copies, np.repeat(self._centre[None], workers - have, axis=0)])
            more = np.zeros((workers - have, *self.velocities.shape[1:]), self.dtype)
            self.velocities = np.concatenate([self.velocities, more])
            self.posted = np.zeros((2 * workers + 1, *self.posted.shape[1:]), self.dtype)
        elif have > workers:  # who is not there has no part in it, and begins anew
            self.copies[workers:] = self._centre
            self.velocities[workers:] = 0

    # ------------------------------------------------------------ in Python

    def _memory(self) -> NDArray[Any]:
        return self.array.view if isinstance(self.array, DenseArray) else self.array

    def __getitem__(self, key: Any) -> Any:
        return self._memory()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._memory()[key] = value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._memory(), dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        given = [one._memory() if isinstance(one, Replicated) else one for one in inputs]
        out = kwargs.get("out", ())
        kwargs |= {"out": tuple(one._memory() if isinstance(one, Replicated) else one for one in out)} if out else {}
        found = getattr(ufunc, method)(*given, **kwargs)
        return out[0] if len(out) == 1 else found

    def __reduce__(self) -> Any:
        raise TypeError("a replicated array stays in its process; make it again from its array")


@ends_in_users_line
def replicate(w: Dense, policy: Policy) -> Replicated:
    """Make a replica of a dense array: the array itself is the centre, and each worker has a copy of it.

    A loop reads and writes `x[…]`, where `x` is the replica. Each worker then works on its own copy, so these accesses
    do not prevent a parallel run. Evaluate the result with `w`.

    - `w`: a writeable dense array, NumPy's or Orion's, C-contiguous, of float32 or float64. The loop must not read it.
    - `policy`: `orion.elastic(…)` or `orion.local_sgd(…)`; it pulls the copies and the centre together.

    A worker pulls after each `sync_every` iterations of the loop that is shared out: in `for s …: for k …: x[k] -= …`,
    of the loop over `s`. It pulls once more at the end of the loop if iterations are left. Each run of the loop counts
    anew. A worker without further iterations takes no part in later pulls, and nobody waits for it.

    Copies live on from call to call. `x.reset()` makes them copies of `w` again, and so does `orion.restore(path,
    x=x)`. Checkpoints hold the centre and the momentum of all workers, not the copies.

    Each loop with `x` must update it. Several replicas in one loop need policies with the same mode and `sync_every`.
    Several nodes give the bits of as many workers on one node, except that "async" and "hogwild" give other bits each
    time.

    Errors: `ArgumentError` for another kind of array or policy. Where copies become NaN or infinite, the call raises
    `UpdateError`, and all is as before the call.

    >>> import numpy as np, orion
    >>> @orion.parallel_for
    ... def fit(samples, x, step):
    ...     for s in range(samples.shape[0]):
    ...         x[0] -= step * (x[0] - samples[s])
    >>> w = np.zeros(1)
    >>> x = orion.replicate(w, policy=orion.elastic(mode="sync", sync_every=5))
    >>> fit(np.full(1000, 3.0), x, 0.1)
    >>> w.round(3)
    array([3.])
    """
    check_array("the array of a replica", w)
    if w.dtype.kind != "f":
        hint = "use an array of real floats: copies are averaged"
        raise ArgumentError(describe(f"the array of a replica has the dtype {w.dtype}", hint=hint))
    if isinstance(w, np.ndarray) and not w.flags.c_contiguous:
        hint = "give an array that is, such as `np.ascontiguousarray(w)`"
        raise ArgumentError(describe("the array of a replica is not in the order of C, without gaps", hint=hint))
    if not isinstance(policy, Elastic | LocalSgd):
        hint = "write `policy=orion.elastic(…)` or `policy=orion.local_sgd(…)`"
        raise ArgumentError(describe(f"`policy={policy!r}` of a replica", hint=hint))
    return Replicated(w, policy)
