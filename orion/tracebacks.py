"""Errors end in the user's line: what they passed through inside Orion is left out of their tracebacks.

`ORION_FULL_TRACEBACK=1` brings all of it back; it is looked at when an error is raised.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable
from functools import update_wrapper
from types import FrameType, FunctionType
from typing import ParamSpec, TypeVar, cast

from orion.errors import OrionError, did_you_mean, is_of_user, traceback_of_user

SWITCH = "ORION_FULL_TRACEBACK"

P = ParamSpec("P")
T = TypeVar("T")


def is_whole() -> bool:
    """Whether tracebacks are wanted with Orion's own part."""
    return os.environ.get(SWITCH, "").strip().lower() not in ("", "0", "false", "no", "off")


def shorten(error: BaseException) -> None:
    """Take Orion's part out of the traceback of an error that says by itself what is wrong and where: one of Orion's,
    one that code of the user's raised inside a loop, Ctrl-C. Others are faults of Orion and keep all.

    To be called by a public function that lets the error pass, right before a `raise` with nothing behind it: that adds
    no entry for the function itself, so that the entry of its caller is the last.
    """
    if isinstance(error, OrionError | KeyboardInterrupt) or is_of_user(error):
        cut(error)


def cut(error: BaseException) -> None:
    """Take all that there is of the traceback out, and what caused the error; debuggers find that as `__context__`."""
    if not is_whole():
        error.__traceback__ = traceback_of_user(error)
        error.__context__, error.__cause__ = error.__cause__ or error.__context__, None


def warn_in_users_line(warning: Warning) -> None:
    """Warn in the line that Orion was called from, however far up it is."""
    own = f"{os.path.dirname(__file__)}{os.sep}"
    frame: FrameType | None = sys._getframe(1)
    levels = 2
    while frame is not None and frame.f_code.co_filename.startswith(own):
        frame, levels = frame.f_back, levels + 1
    warnings.warn(warning, stacklevel=levels)


def ends_in_users_line(function: Callable[P, T]) -> Callable[P, T]:
    """A public function whose errors end in the line that calls it.

    >>> import traceback
    >>> from orion.errors import ArgumentError
    >>> @ends_in_users_line
    ... def refuse():
    ...     raise ArgumentError("too large")
    >>> try:
    ...     refuse()
    ... except ArgumentError as error:
    ...     len(traceback.extract_tb(error.__traceback__))
    1
    """
    passed = _passed

    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            passed(error, function)
            raise

    assert isinstance(function, FunctionType)
    # doctest runs the examples of a function whose globals are those of its module.
    same = FunctionType(guarded.__code__, function.__globals__, function.__name__, None, guarded.__closure__)
    return cast(Callable[P, T], update_wrapper(same, function))


def _passed(error: BaseException, function: Callable[..., object]) -> None:
    """What is done to an error that a public function lets pass."""
    own = error.__traceback__
    if isinstance(error, TypeError) and own is not None and own.tb_next is None:  # the function was not even entered
        wrong = re.search(r"unexpected keyword argument '(\w+)'$", str(error))
        hint = did_you_mean(wrong[1], inspect.signature(function).parameters) if wrong else ""
        error.args = (f"{error}{hint and f': {hint}'}",)
        cut(error)
    else:
        shorten(error)
