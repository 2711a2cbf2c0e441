"""Dataclasses whose methods are generated at their first call are those of the standard library."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from orion import dataclass as own


def classes(decorator: Any) -> list[Any]:
    """The same classes, made by a decorator; each with arguments for two instances."""

    @decorator(frozen=True, slots=True)
    class Point:
        """A point."""

        kinds: ClassVar[int] = 3
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list, compare=False)

    @decorator(frozen=True, slots=True)
    class Named(Point):
        """A point with a name, by keyword."""

        name: str = field(default="a", kw_only=True)
        hidden: int = field(default=5, init=False, repr=False)

    @decorator(frozen=True, eq=False)
    class Open:
        """A class without slots."""

        x: Any

        def __repr__(self) -> str:
            return "open"

    @decorator
    class Changing:
        """One that may be changed."""

        x: int
        y: int = 1

        def __post_init__(self) -> None:
            self.y += self.x

    @decorator(frozen=True, slots=True)
    class Hashed:
        """One with a hash of its own."""

        x: int

        def __hash__(self) -> int:
            return 7

    @decorator(frozen=True, order=True)
    class Ordered:
        """One with an order."""

        x: int

    @decorator(slots=True)
    class Empty:
        """One without fields."""

    return [
        (Point, (1,), {"y": 2}), (Point, (1, 3), {}), (Named, (1,), {"name": "b"}), (Open, (1,), {}),
        (Changing, (1,), {}), (Hashed, (1,), {}), (Ordered, (4,), {}), (Empty, (), {}),
    ]  # fmt: skip


def outcome(work: Any) -> Any:
    try:
        return work()
    except Exception as error:
        return type(error), str(error).replace("classes.<locals>.", "")


def test_instances_are_those_of_the_standard_library():
    def facts(cls, given, named):
        one, other = (cls(*given, **named) for _ in range(2))
        values = {one_field.name: getattr(one, one_field.name) for one_field in dataclasses.fields(cls)}
        name = next(iter(values), "x")
        return (
            values,
            repr(one) == repr(other) or cls.__eq__ is object.__eq__,
            one == other,
            one != other,
            one == 3,
            outcome(lambda: hash(one)) if cls.__eq__ is not object.__eq__ else None,
            cls.__match_args__,
            outcome(lambda: cls(1, 2, 3, 4, 5)),
            outcome(lambda: cls(unknown=1)),
            outcome(lambda: setattr(one, name, 8)),
            outcome(lambda: delattr(one, name)),
            outcome(lambda: one < other),
            outcome(lambda: dataclasses.replace(one, **dict.fromkeys(named, "z"))),
        )

    found, wanted = ([[str(one) for one in facts(*case)] for case in classes(of)] for of in DECORATORS)
    assert found == wanted


DECORATORS = own.dataclass, dataclasses.dataclass


@own.dataclass(frozen=True, slots=True)
class Kept:
    """A class that can be found by its name."""

    x: int
    y: tuple[int, ...] = ()


def test_instances_can_be_pickled_and_not_changed():
    found = pickle.loads(pickle.dumps(Kept(1, (2,))))
    assert found == Kept(1, (2,))
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        found.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del found.x


def test_methods_are_generated_when_they_are_called():
    @own.dataclass(frozen=True, slots=True)
    class Late:
        """A class of which no instance was made."""

        x: int

    before = Late.__init__
    assert Late(1) == Late(1)
    assert Late.__init__ is not before
    assert Late.__init__.__qualname__.endswith("Late.__init__")


def test_methods_that_were_put_in_place_of_others_stay():
    @own.dataclass
    class Watched:
        """A class whose instances are counted."""

        x: int

    before, made = Watched.__init__, []

    def counted(self, x):
        before(self, x)
        made.append(x)

    Watched.__init__ = counted
    assert [Watched(1).x, Watched(2).x, *made] == [1, 2, 1, 2]
