"""`parallel_for`: the whole way of a loop, from the decorated function to its result. Reading this file is reading
the stages.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar, cast, overload

from orion.again import MISSED, OFTEN, Again
from orion.arrays.accumulator import taken
from orion.arrays.foreign import views_of, with_owners, with_views
from orion.dataclass import replace
from orion.errors import (
    AS_IT_IS,
    ArgumentError,
    NotParallelError,
    OrionError,
    RescaledError,
    SerialLoopWarning,
    describe,
    did_you_mean,
)  # fmt: skip
from orion.frontend.locate import lines_now
from orion.frontend.outside import version_of
from orion.last_run import LastRun, Ran, alike_before
from orion.measured import Measurement
from orion.methods import imported, is_method, method_refusal
from orion.other_runs import OtherRuns
from orion.planned import Plan
from orion.preparations import Numbers, Preparations
from orion.prepare import Preparation
from orion.prepared_call import Options, Prepared, Signatures, options_of
from orion.printable import printable
from orion.replayed import check_function, check_plan, ran_in
from orion.runtime.profile.recorder import Recording
from orion.runtime.profile.records import Noted
from orion.runtime.session import current_session
from orion.source import Span
from orion.tracebacks import ends_in_users_line, shorten, warn_in_users_line
from orion.unanalysed import Unanalysed, compiled_as_it_is, kinds_of

if TYPE_CHECKING:
    from orion.kernel.calling import KernelSource
    from orion.kinds.measured import MeasuredKinds

P = ParamSpec("P")
R = TypeVar("R")


class ParallelFunction(OtherRuns[P, R]):
    """Decorated function, whose loops Orion plans and runs. Made by `orion.parallel_for`.

    Call it as the function that it wraps. A call runs the loops on the workers of the session (`orion.init`), changes
    arrays in place, and returns the function's result.
    """

    __module__: str
    __qualname__: str

    def __init__(self, function: Callable[P, R], options: Options) -> None:
        functools.update_wrapper(self, function)
        assert isinstance(function, FunctionType)
        self.__wrapped__: FunctionType = function
        self.options = options
        self._look()
        self._note()

    def _look(self) -> None:
        """Look at the function as it is now: a reload gives it other code."""
        function = self.__wrapped__
        self._version = version_of(function)
        self._preparations = Preparations(function, self.options, lines_now(function))
        self._signature = inspect.signature(function)
        self._names = tuple(self._signature.parameters)
        kinds = {parameter.kind for parameter in self._signature.parameters.values()}
        self._is_plain = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        self._is_method = is_method(function)
        self._warned: set[Span] = set()
        self._unanalysed: dict[tuple[object, ...], Unanalysed] = {}
        self._by_types: set[tuple[object, ...]] = set()  # those of them whose sizes do not matter
        self._ran: Ran | None = None
        self._again: Again | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        recording: Recording | None = None
        try:
            again = self._again  # another thread may take it away meanwhile
            if again is not None and not kwargs:
                found = again.run(args)
                if found is MISSED and (views := views_of(args)) is not None:
                    found = with_owners(again.run(views))
                if found is not MISSED:
                    return cast(R, found)
            session, self._again = current_session(), None
            if session.profiles:
                recording = session.recording(self.__wrapped__.__name__)
            preparation, given = self._bind(args, kwargs)
            if self._unanalysed and (found := self._compiled_before(given)) is not None:
                self._ran = None
                return cast(R, with_owners(found.run(*given.values())))
            while True:
                refused: OrionError | None = None
                try:
                    arguments = preparation.with_outside(given)
                    workers, force = session.workers, session.force_parallel
                    prepared = preparation.prepare(arguments, workers, force).dealt(session)
                except OrionError as error:
                    refused = error
                if refused is not None:  # not in the `except`: an error of the function has nothing to do with it
                    try:
                        run, self._ran = self._compiled_as_it_is(given, refused).run, None
                    finally:
                        refused = None  # its traceback has this frame
                    return cast(R, with_owners(run(*given.values())))
                if recording is not None:
                    recording.planned()
                self._warn_if_serial(prepared)
                with suppress(RescaledError):  # workers are gone for good: prepared anew for those that are left
                    noted = Noted()
                    returned = prepared.run(arguments, session, recording, noted)
                    alike = alike_before(self._ran, prepared)
                    self._ran = Ran(preparation, prepared, workers, force, recording, noted, alike)
                    if alike >= OFTEN and preparation is self._preparations.plain:
                        self._again = preparation.again(self._version, session, given)
                    returned = with_owners(taken(returned, given))
                    session.after_call()
                    return cast(R, returned)
        except BaseException as error:  # what `ends_in_users_line` does, without a call more
            if recording is not None:
                recording.finish(error)
            shorten(error)
            raise
        finally:
            if recording is not None:
                recording.finish()

    @overload
    def plan(self, *args: P.args, **kwargs: P.kwargs) -> Plan: ...
    @overload
    def plan(self, *args: Any, inspect: Any, **kwargs: Any) -> Plan: ...
    @ends_in_users_line
    def plan(self, *args: Any, inspect: Any = False, **kwargs: Any) -> Plan:
        """Return the plan of a call with these arguments, an `orion.Plan`. No loop runs and no worker starts.

        The plan depends on dtypes, shapes, integers and the keys of sparse arrays. Of index arrays it reads whether
        elements repeat or are negative.

        - `inspect`: True also lists the elements that each iteration accesses through index arrays, and forms tiles
          from them. A call does so by itself once the loop has run for a while, or at once under `force_parallel`.

        A plan raises what a call raises before it runs:

        - `AliasError`: two arguments share memory, and the loops write one of them.
        - `ArgumentError`: arguments are missing, shapes do not match, or a number does not fit its dtype.
        - `OutOfBoundsError`: a subscript is certain to leave its array.
        - `UnsupportedLoopError`: code is not supported. Functions that run as they are have no plan, and raise it too.

        >>> import numpy as np, orion
        >>> @orion.parallel_for
        ... def running(a):
        ...     for i in range(1, a.shape[0]):
        ...         a[i] += a[i - 1] ** 2
        >>> plan = running.plan(np.ones(1000))
        >>> plan.strategy, plan.reasons[0].code
        ('serial', 'ORN101')
        """
        session = current_session()
        if "inspect" in self._names and inspect is not False:  # it is an argument of the function
            kwargs, inspect = {**kwargs, "inspect": inspect}, False
        try:
            preparation, given = self._bind(args, kwargs)
            plan = preparation.plan(given, session.workers, session.force_parallel, session.dealt, inspects=inspect)
            is_apart = session.settings.backend == "ray"
            return replace(plan, function=replace(plan.function, is_apart=True)) if is_apart else plan
        except OrionError as error:
            if error.is_for_numba and not self.options.require_parallel:
                error.add_note(AS_IT_IS)
            raise

    @overload
    def explain(self, *args: P.args, **kwargs: P.kwargs) -> str: ...
    @overload
    def explain(self, *args: Any, inspect: Any, **kwargs: Any) -> str: ...
    @ends_in_users_line
    def explain(self, *args: Any, inspect: Any = False, **kwargs: Any) -> str:
        """Return the plan of a call as text. `inspect` and the errors are those of `plan`.

        A function without a plan runs as Numba compiles it; the text then gives the reason.
        """
        try:
            return str(self.plan(*args, inspect=inspect, **kwargs))
        except OrionError as error:
            if not error.is_for_numba or self.options.require_parallel:
                raise
            return printable(f"{self.__wrapped__.__name__}: no loop is planned; {AS_IT_IS}\n\n{error}")

    @overload
    def measure(self, *args: Any, kinds: Mapping[str, Any], **kwargs: Any) -> MeasuredKinds: ...
    @overload
    def measure(self, *args: Any, seconds: float | None = None, kinds: None = None, **kwargs: Any) -> Measurement: ...
    @ends_in_users_line
    def measure(
        self, *args: Any, seconds: Any = None, kinds: Any = None, every: Any = None, **kwargs: Any
    ) -> Measurement | MeasuredKinds:
        """Measure the times of a call's tiles, for `plan.estimate` and `plan.scaling`, and return them.

        The call runs a few times on copies of the arguments, on as many threads of this process as the session has
        workers. The result holds for all calls with arguments of the same types.

        - `seconds`: about how long each run may take, 1 by default. Later rounds of serial loops are then left out; the
          first round of each loop always runs.
        - `kinds`: memory tiers by name, for `plan.estimate(placement=…)`: `{"dram": None, "file": "/a/folder"}`. The
          first is None, the process's own memory. A folder gets memory-mapped files, which are removed at the end.
        - `every`: with `kinds`, one in `every` iterations also runs as Python, to trace the blocks of memory that it
          accesses. The default traces about 20,000 iterations of a loop.

        Errors: `ArgumentError` for `seconds` of 0 or less, a tier that is no folder, and a loop whose accesses cannot
        be traced. A run raises what a call raises.

        >>> import numpy as np, orion
        >>> @orion.parallel_for
        ... def halve(a):
        ...     for i in range(a.shape[0]):
        ...         a[i] = 0.5 * a[i]
        >>> a = np.ones(100_000)
        >>> halve.measure(a).loops[0].rounds
        1
        >>> float(a.sum()), halve.plan(a).estimate().seconds > 0
        (100000.0, True)
        """
        from orion.kinds.measure import measure_kinds
        from orion.measuring import measure

        session, own = current_session(), {"seconds": seconds, "kinds": kinds, "every": every}
        kwargs |= {name: value for name, value in own.items() if name in self._names and value is not None}
        seconds, kinds, every = (None if name in self._names else value for name, value in own.items())
        preparation, given = self._bind(args, kwargs)
        limit = 1.0 if seconds is None else seconds
        call = preparation, given, session.workers, session.force_parallel, limit
        return measure(*call) if kinds is None and every is None else measure_kinds(*call, kinds, every)

    @property
    def last_run(self) -> LastRun | None:
        """Record of the last finished call in this process: its plan, and the serial order that its result equals.

        It has the times of loops and workers if the call was inside of `with orion.profile():`. The record is None
        before the first call, and after a call without a plan.
        """
        ran = self._ran
        if ran is None:
            return None
        return LastRun(ran.prepared.plan, None if ran.recording is None else ran.recording.record, ran)

    @ends_in_users_line
    def replay(self, run: LastRun, *args: P.args, **kwargs: P.kwargs) -> R:
        """Repeat an earlier run, tile by tile, and return its result. Equal arguments give equal bits.

        - `run`: an earlier value of `last_run`.
        - `args`: the arguments as they were before that run; Orion keeps no copy of them.

        The replay uses as many threads of this process as the run had workers, on any backend. Loops of the session
        wait meanwhile. `last_run` and profiles do not change.

        Errors: `ArgumentError` if `run` is no run. `PlanError` if it is of another function, or of other code.
        `PlanError`, too, if the arguments have another plan; it names the shapes, dtypes, integers, keys or index
        arrays that differ.

        >>> import numpy as np, orion
        >>> @orion.parallel_for
        ... def total(a):
        ...     s = 0.0
        ...     for i in range(a.shape[0]):
        ...         s += a[i]
        ...     return s
        >>> a = np.random.default_rng(1).random(100_000)
        >>> with orion.session("threads", 3, force_parallel=True):
        ...     first = total(a)
        >>> with orion.session("threads", 2):
        ...     bool(total.replay(total.last_run, a) == first)
        True
        """
        session, name = current_session(), self.__wrapped__.__name__
        ran = ran_in(run, name)
        preparation, given = self._bind(args, kwargs)
        check_function(ran, [*self._preparations], name)
        arguments = preparation.with_outside(given)
        found = preparation.prepare(arguments, ran.workers, ran.force_parallel)
        check_plan(found, ran, name)
        returned = taken(session.with_threads(ran.workers, lambda threads: found.run(arguments, threads)), given)
        session.after_call()
        return cast(R, with_owners(returned))

    @property
    def serial(self) -> Callable[P, R]:
        """Undecorated function, for the Python interpreter: `f.serial(*args)`."""
        return cast(Callable[P, R], self.__wrapped__)

    @ends_in_users_line
    def kernel_source(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Return the Python source of the kernels that Orion generates for these arguments. The errors are those of
        `plan`."""
        session = current_session()
        return "\n\n".join(one.text for one in self._kernels(args, kwargs, session.workers, session.force_parallel))

    def _kernels(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], workers: int, force_parallel: bool = False
    ) -> tuple[KernelSource, ...]:
        """Return the kernels that Orion generates for these arguments."""
        preparation, given = self._bind(args, kwargs)
        return preparation.kernels(given, workers, force_parallel)

    @property
    def py_func(self) -> FunctionType:
        """Undecorated function, under the name that Numba's dispatchers use. A loop that calls this function compiles
        it."""
        return self.__wrapped__

    def __repr__(self) -> str:
        return f"<orion.parallel_for {self.__wrapped__.__qualname__}{self._signature}>"

    # ------------------------------------------------------------ as an attribute of a class, and in other processes

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., R]: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Self | Callable[..., R]:
        """A method, as of any function in a class: calling it says how loops of a class are written."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by name where other processes can import the function; else by value, with its source."""
        if self.__module__ != "__main__" and imported(self.__module__, self.__qualname__) is self:
            return self.__qualname__
        from orion.kernel.build.pickled import to_bytes

        return _from_value, (to_bytes(self.__wrapped__), self.options)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Preparation, dict[str, Any]]:
        """The arguments by name, and the stages for calls that leave the same numbers to their defaults."""
        numbers, arguments = self._named(args, kwargs)  # first: that may look at the function anew
        return self._preparations.of(numbers, arguments)

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Numbers, dict[str, Any]]:
        """The numbers that a call leaves to their defaults, and its arguments by name, with these. Arrays of others are
        NumPy's from here on, of the same memory."""
        if not self._version.is_current():
            self._look()
        if self._is_method:
            raise method_refusal(self.__wrapped__)
        if self._is_plain and not kwargs and len(args) == len(self._names):
            return (), with_views(dict(zip(self._names, args, strict=True)))
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = [name for name in kwargs if name not in self._names]
            hint = did_you_mean(unknown[0], self._names) if unknown else ""
            raise ArgumentError(describe(f"{self.__wrapped__.__name__}(): {error}", hint=hint)) from None
        left = [(name, one.default) for name, one in self._signature.parameters.items() if name not in bound.arguments]
        bound.apply_defaults()
        numbers = tuple((name, value) for name, value in left if type(value) in (int, float, bool))
        return numbers, with_views(dict(bound.arguments))

    def _compiled_before(self, arguments: Mapping[str, object]) -> Unanalysed | None:
        """The function as Numba has compiled it for such arguments, if what it takes from outside is still the same."""
        kinds = kinds_of(arguments)
        found = self._unanalysed.get(kinds) if kinds in self._by_types and kinds is not None else None
        return found if found is not None and found.outside.is_current() else None

    def _compiled_as_it_is(self, arguments: Mapping[str, Any], why: OrionError) -> Unanalysed:
        """The function compiled by Numba, as it cannot be analysed; raises `why` where that is not to be, or cannot."""
        kinds = kinds_of(arguments)
        if not why.is_for_numba or self.options.require_parallel or kinds is None:
            raise why
        known = self._unanalysed.get(kinds)
        found = known if known and known.outside.is_current() else compiled_as_it_is(self.__wrapped__, arguments, why)
        if known is None:
            first = str(why).splitlines()[0]
            text = f"`{self.__wrapped__.__name__}` runs on one worker, compiled by Numba as it is: {first}"
            warn_in_users_line(SerialLoopWarning(f"{text} (see .explain())"))
        self._unanalysed[kinds] = found
        if not why.is_of_sizes:
            self._by_types.add(kinds)
        return found

    def _warn_if_serial(self, prepared: Prepared) -> None:
        for span in prepared.serial:
            if span in self._warned and not self.options.require_parallel:
                continue  # no text is made at every call
            text = prepared.why_serial(span)
            if self.options.require_parallel:
                raise NotParallelError(f"{text}\n\n{prepared.plan}")
            self._warned.add(span)
            warn_in_users_line(SerialLoopWarning(f"{text} (see .explain())"))


@functools.lru_cache(maxsize=64)
def _from_value(data: bytes, options: Options) -> ParallelFunction[..., Any]:
    """The function that was sent; the same one where the same is sent again, so that it is planned only once."""
    from orion.kernel.build.pickled import from_bytes

    return ParallelFunction(from_bytes(data), options)


class Decorator(Protocol):
    """Decorator that `parallel_for` with options returns."""

    def __call__(self, function: Callable[P, R], /) -> ParallelFunction[P, R]: ...


@overload
def parallel_for(function: Callable[P, R], /) -> ParallelFunction[P, R]: ...
@overload
def parallel_for(
    *,
    ordered: bool | None = None,
    relax: tuple[str, ...] = (),
    require_parallel: bool = False,
    fastmath: bool = True,
    schedule: str = "static",
    signatures: Signatures = (),
) -> Decorator: ...


@ends_in_users_line
def parallel_for(
    function: Callable[P, R] | None = None,
    /,
    *,
    ordered: bool | None = None,
    relax: tuple[str, ...] = (),
    require_parallel: bool = False,
    fastmath: bool = True,
    schedule: str = "static",
    signatures: Signatures = (),
) -> ParallelFunction[P, R] | Decorator:
    """Compile a function's loops, and run them in parallel where a dependence analysis proves that this is right.

    A loop without a proof runs compiled on one worker, with a `SerialLoopWarning`. Code that Orion cannot analyse, such
    as a dict, runs on one worker as Numba compiles it, with the same warning.

    - `function`: a plain Python function of arrays and scalars (docs/reference/language.md lists what it may hold).
    - `ordered`: True keeps the result of the written order, False that of any serial order. None is True for `range`
      loops and False for loops over a sparse array.
    - `relax`: names of dense arrays whose updates (`w[…] += …`, `w[…] -= …`) may be late, as with `orion.buffer`.
    - `require_parallel`: raise `NotParallelError` for a serial loop, rather than warn.
    - `fastmath`: reassociate sums inside one iteration, and contract them to fused multiply-adds. These are dot
      products, sums of rows, and `row += …`. Running sums of long loops (`s += x[i]; out[i] = s`) may be summed in
      blocks. The bits are the same for all layouts and numbers of workers. All other operations round as NumPy's do.
    - `schedule`: with "dynamic", a worker that would wait takes tiles that no other has begun. Tiles are smaller, so
      sums of floats may have other bits than with "static". The order of unordered loops depends on timing; `last_run`
      records it. `plan.loops[k].is_dynamic` says which loops take part. On several nodes, shares follow measured times
      (`plan.loops[k].deal`).
    - `signatures`: the arguments for which `orion build` compiles the loops into a package, as Numba writes them:
      `["float64[:, :], int64"]` (docs/guides/packages.md). Calls may have others.

    Returns an `orion.ParallelFunction`, or a decorator where options are given.

    Errors: `ArgumentError` for an option or a function that is none; `UnsupportedLoopError`, at the first call or plan,
    for code that cannot be compiled. Ctrl-C raises `KeyboardInterrupt` within a second (docs/guides/stopping.md):
    arrays may then hold old and new elements, and the next call works.

    >>> import numpy as np, orion
    >>> @orion.parallel_for
    ... def double(a):
    ...     for i in range(a.shape[0]):
    ...         a[i] = 2.0 * a[i]
    >>> a = np.arange(4.0)
    >>> double(a)
    >>> a
    array([0., 2., 4., 6.])
    >>> double.plan(a).strategy
    'independent'
    """
    options = options_of(ordered, relax, require_parallel, fastmath, schedule, signatures)
    return functools.partial(_decorate, options) if function is None else _decorate(options, function)


@ends_in_users_line
def _decorate(options: Options, function: Callable[P, R]) -> ParallelFunction[P, R]:
    if not isinstance(function, FunctionType):
        kind = type(function).__name__
        hint = f"write `@{kind}` above `@orion.parallel_for`" if kind in ("staticmethod", "classmethod") else ""
        raise ArgumentError(describe(f"parallel_for decorates a plain function, not {kind}", hint=hint))
    return ParallelFunction(function, options)
