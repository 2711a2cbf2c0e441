"""Ways to run a decorated function beside calling it: compared with serial runs, and as plain Python for debuggers."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Mapping
from itertools import count
from operator import itemgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload
from weakref import WeakValueDictionary

from orion.arrays.foreign import with_owners
from orion.errors import ArgumentError, OrionError, describe
from orion.preparations import Numbers, Preparations
from orion.prepared_call import Options, Prepared
from orion.runtime.session import current_session
from orion.tracebacks import ends_in_users_line
from orion.unanalysed import Unanalysed

if TYPE_CHECKING:
    from orion.compared import Verification
    from orion.last_run import LastRun

P = ParamSpec("P")
R = TypeVar("R")


_decorated: WeakValueDictionary[int, OtherRuns[..., Any]] = WeakValueDictionary()
_numbers = count()


def decorated() -> list[OtherRuns[..., Any]]:
    """Return the decorated functions of this process that somebody holds, in the order of their definition."""
    return [function for _, function in sorted(_decorated.items(), key=itemgetter(0))]


class OtherRuns(Generic[P, R]):
    """The part of `orion.ParallelFunction` that runs a function otherwise than a call does."""

    _unanalysed: dict[tuple[object, ...], Unanalysed]

    def _note(self) -> None:
        """Have `orion.report` know of the function."""
        _decorated[next(_numbers)] = self

    options: Options
    _preparations: Preparations
    _signature: inspect.Signature
    _names: tuple[str, ...]

    def _plain(self) -> FunctionType:
        """The undecorated function."""
        return cast(FunctionType, vars(self)["__wrapped__"])

    @property
    def runs_as_it_is(self) -> bool:
        """Whether a call has run the function without a plan, as Numba compiles it."""
        return bool(self._unanalysed)

    @property
    @abstractmethod
    def last_run(self) -> LastRun | None:
        """What the last call has run."""

    @property
    @abstractmethod
    def py_func(self) -> FunctionType:
        """The undecorated function, as other packages ask for it."""

    @abstractmethod
    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Numbers, dict[str, Any]]:
        """The arguments of a call by the names of the parameters."""

    @abstractmethod
    def _compiled_as_it_is(self, arguments: Mapping[str, Any], why: OrionError) -> Unanalysed:
        """The function compiled by Numba without a plan; raises `why` where Numba does not compile it."""

    @abstractmethod
    def _warn_if_serial(self, prepared: Prepared) -> None:
        """Warn once of each serial loop of a prepared call."""

    @ends_in_users_line
    def verify(self, *args: P.args, **kwargs: P.kwargs) -> Verification:
        """Run a call with these arguments on copies, in parallel, on one worker and by the Python interpreter, compare
        what comes out, and say what differs: the arrays that it writes and what it returns, or the errors that it
        raises. All workers of the session are used, also where fewer would be faster. Arguments stay as they are: dense
        arrays that are written are copied, and sparse ones get their values back. It takes as long as Python does.

        The run on one worker, by the same plan, has to give the same bits. Python's results may be rounded otherwise.
        Of a loop in any order over a sparse array, Python takes the order of `plan.serial_order()`. Differences from
        Python are printed, and do not count, in a range loop with `ordered=False` and where updates may be late. They
        count in all other loops, among them range loops by default.

        Errors: those by which a call refuses its arguments or its loop.

        >>> import numpy as np, orion
        >>> @orion.parallel_for
        ... def smooth(a, b):
        ...     for i in range(1, a.shape[0] - 1):
        ...         b[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1]
        >>> with orion.session("threads", 2):
        ...     print(smooth.verify(np.linspace(0.0, 1.0, 50), np.zeros(50)))
        smooth: the results are the same.
        2 workers against one worker, which must have the same bits: no difference in `b`.
        2 workers against Python, which may round otherwise: no difference in `b`.
        """
        from orion.comparing import Call, verify

        given, checks = self._named(args, kwargs), (self._compiled_as_it_is, self._warn_if_serial)
        return verify(Call(self._plain(), self._signature, *given, self._preparations, *checks), current_session())

    @overload
    def debug(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def debug(self, *args: Any, workers: int, **kwargs: Any) -> R: ...
    @ends_in_users_line
    def debug(self, *args: Any, workers: Any = 2, **kwargs: Any) -> R:
        """Run it as plain Python on one thread, the planned loops tile after tile as the plan for `workers` workers has
        them. Breakpoints of `pdb` stop in the function's own lines, and `print` prints; calls of `print`, `breakpoint`
        and `pdb.set_trace` do not keep the loop from being planned here. Arrays change in place.

        Iterations run in an order that the plan allows, so the results are those of a call, up to rounding. A loop with
        one tile, or whose tiles are no whole iterations (statements of one iteration in several loops), and one that
        may end early, run in their written order; a `SerialLoopWarning` says so where the plan has another. Updates of
        buffers (`orion.buffer`) are applied at once. Where a parameter is called `workers`, the keyword is its value.

        Errors: those by which a call refuses its arguments or its loop, and `ArgumentError` for a number of workers
        below 1 and for replicas (`orion.replicate`), of which each worker has a copy: `f.serial` runs these.

        >>> import numpy as np, orion
        >>> @orion.parallel_for
        ... def double(a):
        ...     for i in range(a.shape[0]):
        ...         print("element", i)
        ...         a[i] = 2.0 * a[i]
        >>> double.debug(np.ones(2))
        element 0
        element 1
        """
        from orion.debugging.run import debug

        if "workers" in self._names and workers != 2:  # it is an argument of the function
            kwargs, workers = {**kwargs, "workers": workers}, 2
        if type(workers) is not int or workers < 1:
            hint = "give the number of workers that the plan is for, 1 or more"
            raise ArgumentError(describe(f"{self._plain().__name__}.debug(): `workers={workers!r}`", hint=hint))
        numbers, arguments = self._named(args, kwargs)  # first: that may look at the function anew
        own = self._plain(), self._signature, self.options, self._preparations
        returned = debug(*own, numbers, arguments, workers, self._compiled_as_it_is)
        return cast(R, with_owners(returned))
