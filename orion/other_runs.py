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
    """Part of `orion.ParallelFunction` that runs a function in other ways than a call."""

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
        """True if a call has run the function without a plan, as Numba compiles it."""
        return bool(self._unanalysed)

    @property
    @abstractmethod
    def last_run(self) -> LastRun | None:
        """Record of the last call."""

    @property
    @abstractmethod
    def py_func(self) -> FunctionType:
        """Undecorated function, under the name that other packages use."""

    @abstractmethod
    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Numbers, dict[str, Any]]:
        """Return the arguments of a call by parameter, and the numbers among the defaults."""

    @abstractmethod
    def _compiled_as_it_is(self, arguments: Mapping[str, Any], why: OrionError) -> Unanalysed:
        """Return the function as Numba compiles it, without a plan; raise `why` where Numba does not compile it."""

    @abstractmethod
    def _warn_if_serial(self, prepared: Prepared) -> None:
        """Warn once of each serial loop of a prepared call."""

    @ends_in_users_line
    def verify(self, *args: P.args, **kwargs: P.kwargs) -> Verification:
        """Compare a parallel run of a call with serial ones, and return an `orion.Verification` of their differences.

        A call with these arguments runs on copies: on all workers of the session, on one worker, and in the Python
        interpreter. Compared are the arrays that it writes, what it returns, and the errors that it raises. The
        arguments do not change. `verify` takes as long as Python does.

        Workers against one worker must give equal bits. Against Python, floats may differ by rounding. Larger
        differences count, except in `range` loops with `ordered=False` and where updates may be late: there they are
        only printed. Of an unordered loop over a sparse array, Python runs the order of `plan.serial_order()`.

        Errors: those by which a call refuses its arguments or its loop (`plan` lists them).

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
        """Run a call as plain Python on one thread, tile after tile of its plan, and return the function's result.

        Breakpoints of `pdb` stop in the function's own lines, and `print` prints. Calls of `print`, `breakpoint` and
        `pdb.set_trace` do not prevent a plan here. Arrays change in place.

        - `workers`: the number of workers that the plan is made for. If the function has a parameter of that name, the
          keyword sets that parameter instead.

        The order of the iterations is one that the plan allows, so the results are those of a call, up to rounding.
        Updates of buffers (`orion.buffer`) are applied at once. Some loops run in their written order, and a
        `SerialLoopWarning` says so where the plan has another:

        - loops with one tile.
        - loops that may end early.
        - loops that the plan splits into several, so that no tile has whole iterations.

        Errors: `ArgumentError` for `workers` below 1, and for replicas (`orion.replicate`), which only `f.serial` runs
        as Python. A call's refusals are raised too (`plan` lists them).

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
