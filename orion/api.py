"""`parallel_for`: the whole way of a loop, from the decorated function to its result. Reading this file is reading
the stages.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, overload

from orion.errors import ArgumentError, NotParallelError, SerialLoopWarning, UnsupportedLoopError
from orion.planned import Plan
from orion.prepare import Options, Preparation, Prepared

RELAX = "`relax` is not supported yet: every dependence of the loop is kept"


class ParallelFunction:
    """A function whose loops Orion plans and runs. Made by `parallel_for`.

    Calling it runs the loops on the session's workers; arrays change in place and the function's result is returned.
    """

    def __init__(self, function: FunctionType, options: Options) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__: FunctionType = function
        self.options = options
        self._signature = inspect.signature(function)
        self._names = tuple(self._signature.parameters)
        kinds = {parameter.kind for parameter in self._signature.parameters.values()}
        self._is_plain = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        self._preparation = Preparation(function, options)
        self._warned: set[int] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from orion.runtime.session import current_session

        session = current_session()
        arguments = self._bind(args, kwargs)
        prepared = self._preparation.prepare(arguments, session.workers, session.force_parallel)
        self._warn_if_serial(prepared)
        return prepared.run(arguments, session)

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """The plan for these arguments, made from their types and shapes alone: nothing runs, no worker starts."""
        from orion.runtime.session import current_session

        session = current_session()
        return self._preparation.plan(self._bind(args, kwargs), session.workers, session.force_parallel)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """The plan as text."""
        return str(self.plan(*args, **kwargs))

    def serial(self, *args: Any, **kwargs: Any) -> Any:
        """Run the undecorated function in the Python interpreter."""
        return self.__wrapped__(*args, **kwargs)

    def kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """The Python source of the kernels generated for these arguments."""
        from orion.runtime.session import current_session

        session = current_session()
        return self._preparation.kernel_source(self._bind(args, kwargs), session.workers, session.force_parallel)

    @property
    def py_func(self) -> FunctionType:
        """The undecorated function, by the name that Numba's have for it: a loop that calls this one looks into it."""
        return self.__wrapped__

    def __repr__(self) -> str:
        return f"<orion.parallel_for {self.__wrapped__.__qualname__}{self._signature}>"

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if self._is_plain and not kwargs and len(args) == len(self._names):
            return dict(zip(self._names, args, strict=True))
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self.__wrapped__.__name__}(): {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _warn_if_serial(self, prepared: Prepared) -> None:
        for loop in prepared.serial:
            if loop.nest.number in self._warned and not self.options.require_parallel:
                continue  # no text is made at every call
            from orion.inspect.words import place

            reasons = "; ".join(f"{reason.code}: {reason.message}" for reason in loop.reasons[:1])
            text = f"{place(loop.nest.span)}: the loop over ({', '.join(loop.nest.dims)}) is serial. {reasons}"
            if self.options.require_parallel:
                raise NotParallelError(f"{text}\n\n{prepared.plan}")
            self._warned.add(loop.nest.number)
            warnings.warn(f"{text} (see .explain())", SerialLoopWarning, stacklevel=3)


@overload
def parallel_for(function: Callable[..., Any], /) -> ParallelFunction: ...
@overload
def parallel_for(
    *,
    ordered: bool | None = None,
    relax: tuple[str, ...] = (),
    require_parallel: bool = False,
    fastmath: bool = True,
) -> Callable[[Callable[..., Any]], ParallelFunction]: ...


def parallel_for(
    function: Callable[..., Any] | None = None,
    /,
    *,
    ordered: bool | None = None,
    relax: tuple[str, ...] = (),
    require_parallel: bool = False,
    fastmath: bool = True,
) -> ParallelFunction | Callable[[Callable[..., Any]], ParallelFunction]:
    """Run the loops of a function in parallel where that is proved to be right, and compiled on one worker where not.

    `ordered`: True for the result of the written order, False for that of any serial order, None for True in
    `range` loops and False in loops over a sparse array's elements. `require_parallel`: raise `NotParallelError`
    for a loop whose plan is serial instead of warning. `fastmath`: sums inside one iteration may be reassociated.

    Errors: `UnsupportedLoopError` at the first call or plan, for code that cannot be compiled.

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
    if relax:
        raise UnsupportedLoopError(RELAX)
    options = Options(ordered, require_parallel, fastmath)

    def decorate(function: Callable[..., Any]) -> ParallelFunction:
        if not isinstance(function, FunctionType):
            raise ArgumentError(f"parallel_for decorates a plain function, not {type(function).__name__}")
        return ParallelFunction(function, options)

    return decorate if function is None else decorate(function)
