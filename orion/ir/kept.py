"""Answers that a value keeps: what is found of a statement, or of a function, once and for all who ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

V = TypeVar("V")
T = TypeVar("T")
P = ParamSpec("P")


class Keeping:
    """A frozen value that keeps what was found of it. What it keeps is no part of it: not compared, not pickled."""

    __slots__ = ("answers",)
    answers: dict[Any, Any]


def kept(find: Callable[Concatenate[V, P], T]) -> Callable[Concatenate[V, P], T]:
    """A function whose first argument keeps the answers, where it is `Keeping`. The others are hashable.

    >>> class Number(Keeping):
    ...     pass
    >>> @kept
    ... def look(number):
    ...     print("looked at")
    ...     return 3
    >>> number = Number()
    >>> look(number), look(number)
    looked at
    (3, 3)
    """

    @wraps(find)
    def answer(value: V, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            answers: dict[Any, T] = value.answers  # type: ignore[attr-defined]
        except AttributeError:
            if not isinstance(value, Keeping):
                return find(value, *args, **kwargs)
            answers = {}
            object.__setattr__(value, "answers", answers)
        key = (find, *args, *kwargs.items()) if args or kwargs else find
        try:
            return answers[key]
        except KeyError:
            found = answers[key] = find(value, *args, **kwargs)
            return found

    return answer
