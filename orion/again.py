"""What a function keeps of a call, so that calls like it take little more than their loops.

A call is like the one before under four conditions. The function, what it takes from outside, and the session are the
same. Scalars have the same types, and the same values where these matter. Arrays have the same types, shapes and
strides. None overlaps another, or each lies where it lay. Nothing of such a call need be found again but where the
arrays lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orion.errors import OutOfBoundsError
from orion.ir.recent import Recent
from orion.ir.signature import is_wide
from orion.prepared_call import Prepared
from orion.runtime.backend import ProgramCall, RunsAgain
from orion.runtime.failures import with_place
from orion.runtime.returned import resolved
from orion.runtime.session import Session, current_session
from orion.runtime.threads.again import MISSED

__all__ = ["MISSED", "OFTEN", "Again", "again_for"]

OFTEN = 2
"""How many calls that are alike come before the one that keeps something: that takes up to a millisecond, which
twenty calls gain, and most functions that are called twice are not called so often."""


class Again:
    """Runs calls like one that `prepared` was made for, whose arguments were `recent`."""

    def __init__(
        self,
        prepared: Prepared,
        recent: Recent,
        is_current: Sequence[Callable[[], bool]],
        session: Session,
        names: Sequence[str],
        run: RunsAgain,
    ) -> None:
        self._prepared, self._session, self._names, self._run = prepared, session, tuple(names), run
        self._settings = session.workers, session.force_parallel
        self._is_current = tuple(is_current)
        places = {name: at for at, name in enumerate(names)}
        self._fixed = tuple((places[name], kind, value) for name, kind, value in recent.fixed)
        self._others = tuple((places[name], kind) for name, kind in recent.others)

    def run(self, arguments: Sequence[Any]) -> Any:
        """Run a call with these arguments, and return what the function returns; MISSED, with nothing done, where it is
        no such call. Raises what the call raises."""
        session = self._session
        if len(arguments) != len(self._names) or session is not current_session() or session.profiles:
            return MISSED
        if (session.workers, session.force_parallel) != self._settings:
            return MISSED
        for is_current in self._is_current:
            if not is_current():
                return MISSED
        for at, kind, before in self._fixed:
            if type(arguments[at]) is not kind or arguments[at] != before:
                return MISSED
        for at, kind in self._others:
            if type(arguments[at]) is not kind or (kind is int and is_wide(arguments[at])):
                return MISSED
        own = self._prepared.local.take()
        try:
            returned = self._run(arguments, own)
        except OutOfBoundsError as error:
            named, program = dict(zip(self._names, arguments, strict=True)), self._prepared.program
            session.failed(error, program, named)
            error.__traceback__ = None  # its frames hold arrays, until Python looks for cycles
            raise with_place(error, named, program.program.function) from None
        except BaseException as error:
            session.failed(error, self._prepared.program, dict(zip(self._names, arguments, strict=True)))
            raise
        finally:
            self._prepared.local.give_back(own)
        if returned is not MISSED:
            if returned is not None:
                named = {**dict(zip(self._names, arguments, strict=True)), **own}
                returned = resolved(returned, named, self._prepared.program.program.function)
            session.after_call()
        return returned


def again_for(
    prepared: Prepared,
    recent: Recent,
    is_current: Sequence[Callable[[], bool]],
    session: Session,
    arguments: Mapping[str, Any],
) -> Again | None:
    """What runs calls like one with these arguments, in the order of the parameters; None where more than arrays and
    scalars is new in each."""
    if prepared.rows or prepared.watched:
        return None
    run = session.again(ProgramCall(prepared.program, arguments), recent, prepared.local.alike())
    return None if run is None else Again(prepared, recent, is_current, session, [*arguments], run)
