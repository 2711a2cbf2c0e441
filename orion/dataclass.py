"""Dataclasses whose methods are generated when they are first called.

The standard library generates the source of five methods for each class that is defined, and compiles it: more than
half of the time that the import of the compiler took. Most processes make instances of a third of the classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields, replace
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "fields", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """Make a class a dataclass. The options are those of the standard library."""
        return _made(cls, **options) if cls is not None else lambda found: _made(found, **options)


def _made(
    cls: type, frozen: bool = False, eq: bool = True, order: bool = False, repr: bool = True, **options: Any
) -> type:
    if order:
        return dataclasses.dataclass(frozen=frozen, eq=eq, order=order, repr=repr, **options)(cls)
    own, is_undocumented = {*vars(cls)}, cls.__doc__ is None
    if is_undocumented:
        cls.__doc__ = cls.__name__  # else the standard library looks for its signature
    has_hash = "__hash__" in own and not (vars(cls)["__hash__"] is None and "__eq__" in own)
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
    wanted: dict[str, Any] = {"__init__": _on_first_call(made, "__init__", _init)}
    if repr:
        wanted["__repr__"] = _repr
    if eq:
        wanted["__eq__"] = _on_first_call(made, "__eq__", _eq)
        if not has_hash:
            made.__hash__ = _on_first_call(made, "__hash__", _hash) if frozen else None  # type: ignore[assignment]
    if frozen:
        wanted |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
        if options.get("slots"):
            wanted |= {"__getstate__": _state, "__setstate__": _restore}
    for name, method in wanted.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _on_first_call(cls: type, name: str, generate: Callable[[type], Any]) -> Any:
    """A method that calls the one that is generated, and puts it in its place unless another is there."""
    found: Any = None

    def method(self: Any, *args: Any, **named: Any) -> Any:
        nonlocal found
        if found is None:
            found = generate(cls)
            found.__name__, found.__qualname__, found.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
            if vars(cls)[name] is method:
                setattr(cls, name, found)
        return found(self, *args, **named)

    return method


# ---------------------------------------------------------------- generated


def _compiled(parameters: list[str], lines: list[str], known: dict[str, Any]) -> Any:
    exec(f"def method({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines or ["pass"]), known)
    return known["method"]


def _init(cls: Any) -> Any:
    known: dict[str, Any] = {"MISSING": MISSING, "any__set": object.__setattr__}
    is_frozen = cls.__setattr__ is _refuse_set
    every = fields(cls)
    lines = []
    for one in every:
        made = f"{one.name}__made()" if one.default_factory is not MISSING else f"{one.name}__default"
        known |= {f"{one.name}__made": one.default_factory, f"{one.name}__default": one.default}
        if one.init:
            value = f"{made} if {one.name} is MISSING else {one.name}" if made.endswith(")") else one.name
        elif one.default_factory is MISSING and one.default is MISSING:
            continue
        else:
            value = made
        lines.append(_assigned(cls, one, value, known, is_frozen))
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    by_place = [_parameter(one) for one in every if one.init and not one.kw_only]
    by_name = [_parameter(one) for one in every if one.init and one.kw_only]
    return _compiled(["self", *by_place, *(["*", *by_name] if by_name else [])], lines, known)


def _assigned(cls: type, one: Field[Any], value: str, known: dict[str, Any], is_frozen: bool) -> str:
    if not is_frozen:
        return f"self.{one.name} = {value}"
    place = getattr(cls, one.name, None)
    if isinstance(place, MemberDescriptorType):
        known[f"{one.name}__set"] = place.__set__
        return f"{one.name}__set(self, {value})"
    return f"any__set(self, {one.name!r}, {value})"


def _parameter(one: Field[Any]) -> str:
    if one.default_factory is not MISSING:
        return f"{one.name}=MISSING"
    return one.name if one.default is MISSING else f"{one.name}={one.name}__default"


def _eq(cls: Any) -> Any:
    own, others = (_tuple(of, [one.name for one in fields(cls) if one.compare]) for of in ("self", "other"))
    line = f"return {own} == {others} if other.__class__ is self.__class__ else NotImplemented"
    return _compiled(["self", "other"], [line], {})


def _hash(cls: Any) -> Any:
    names = [one.name for one in fields(cls) if (one.compare if one.hash is None else one.hash)]
    return _compiled(["self"], [f"return hash({_tuple('self', names)})"], {})


def _tuple(of: str, names: list[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


# ---------------------------------------------------------------- the same for all classes


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=False):
        object.__setattr__(self, one.name, value)
