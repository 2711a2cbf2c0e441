"""isl's sets and maps from text, comparison by comparison.

isl takes 60 µs for each comparison that it reads, and 5 µs to make one of the factors of its names. It reads `a and b`
as the intersection of what it reads of `a` and of `b`, `a or b` as their union, and `exists x: a` as the projection of
what it reads of `a` with `x` as one more dimension, so that both ways give the same set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from orion.dataclass import dataclass
from orion.sets.linear import Linear, comparisons
from orion.sets.names import isl_value

if TYPE_CHECKING:
    import islpy as isl

R = TypeVar("R")

NAME = re.compile(r"[A-Za-z_]\w*")
TUPLES = re.compile(r"(\w*)\[([\w, ]*)\](?: -> (\w*)\[([\w, ]*)\])?")
"""`S[i]` or `S[i] -> A[x]`, with nothing in the brackets but names."""
BETWEEN = re.compile(r"\W+")
EXISTS = re.compile(r"exists ([\w, ]+): (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What a text says before its conditions: its parameters, and the `tuples` without their names. `whole` is the
    basic set, or map, without conditions; `places` are those of names in `space`."""

    tuples: str
    params: tuple[str, ...]
    is_set: bool
    whole: Any
    space: isl.LocalSpace
    places: Mapping[str, tuple[isl.dim_type, int]]


class Reader:
    """Reads texts in one context, and keeps what it has read of conditions."""

    def __init__(self, context: isl.Context) -> None:
        self._context = context
        self._parts: dict[str, Any] = {}
        self._frames: dict[tuple[str, str], _Frame] = {}

    def read(self, text: str, kind: type[R]) -> R:
        """The set or map of a text."""
        import islpy as isl

        head, _, rest = text.partition("{ ")
        members, _, inside = rest.removesuffix(" }").partition(" : ")
        exists = EXISTS.fullmatch(inside)
        hidden, inside = exists.groups() if exists else ("", inside)
        tuples = TUPLES.fullmatch(members)
        conditions = conjuncts(inside)
        is_shadowing = not {*NAME.findall(hidden)}.isdisjoint(NAME.findall(head + members))
        if tuples is None or not conditions or is_shadowing:
            return kind(text, self._context)  # type: ignore[call-arg]
        source, dims, target, others = tuples.groups()
        inner = ", ".join(filter(None, (dims if target is None else others, hidden)))
        frame = self._frame(head, f"[{inner}]" if target is None else f"[{dims}] -> [{inner}]")
        found = self._all(conditions, frame, kind)
        if hidden:
            side = isl.dim_type.set if target is None else isl.dim_type.out
            count = hidden.count(",") + 1
            found = found.project_out(side, found.dim(side) - count, count)
        return self._named(found, source, target)  # type: ignore[no-any-return]

    def _frame(self, head: str, tuples: str) -> _Frame:
        key = head, tuples
        if key not in self._frames:
            self._frames[key] = self._made(head, tuples)
        return self._frames[key]

    def _made(self, head: str, tuples: str) -> _Frame:
        import islpy as isl

        params, *sides = [[*filter(None, BETWEEN.split(side))] for side in (head, *tuples.split(" -> "))]
        is_set = len(sides) == 1
        kinds = (isl.dim_type.set,) if is_set else (isl.dim_type.in_, isl.dim_type.out)
        names = [*params, *(name for side in sides for name in side)]
        if len({*names}) == len(names) and all(map(str.isidentifier, names)):
            counts = len(params), *map(len, sides)
            space = isl.Space.set_alloc(self._context, *counts) if is_set else isl.Space.alloc(self._context, *counts)
            for kind, own in zip((isl.dim_type.param, *kinds), (params, *sides), strict=True):
                for position, name in enumerate(own):
                    space = space.set_dim_name(kind, position, name)
            whole = isl.BasicSet.universe(space) if is_set else isl.BasicMap.universe(space)
        else:  # `[i] -> [i, 0]`
            whole = (isl.BasicSet if is_set else isl.BasicMap)(f"{head}{{ {tuples} }}", self._context)
            space = whole.get_space()
        places = {
            space.get_dim_name(kind, position): (kind, position)
            for kind in (isl.dim_type.param, *kinds[::-1])
            for position in range(space.dim(kind))
        }
        return _Frame(tuples, tuple(params), is_set, whole, isl.LocalSpace.from_space(space), places)

    def _all(self, conditions: Iterable[str], frame: _Frame, kind: type[R]) -> Any:
        """Where all conditions hold."""
        import islpy as isl

        found, others = frame.whole, []
        for one in conditions:
            linear = comparisons(one)
            if linear is None:
                others.append(one)
                continue
            for comparison in linear:
                found = found.add_constraint(self._constraint(comparison, frame))
        found = isl.Set.from_basic_set(found) if frame.is_set else isl.Map.from_basic_map(found)
        for one in others:
            found = found.intersect(self._where(one, frame, kind))
        return found

    def _where(self, condition: str, frame: _Frame, kind: type[R]) -> Any:
        """Where a condition holds that is no comparison of sums."""
        cases = disjuncts(condition)
        if len(cases) > 1:
            found, *rest = (self._all(conjuncts(one) or (one,), frame, kind) for one in cases)
            for one in rest:
                found = found.union(one)
            return found
        opposite = condition.removeprefix("not ")
        inner = conjuncts(opposite[1:-1]) if _is_enclosed(opposite) else []
        if inner:
            found = self._all(inner, frame, kind)
            return found if opposite == condition else found.complement()
        used = {*NAME.findall(condition)}
        own = ", ".join([name for name in frame.params if name in used])
        part = self._part(f"[{own}] -> {{ {frame.tuples} : {condition} }}", kind)
        return part.align_params(frame.whole.get_space())

    def _part(self, text: str, kind: type[R]) -> Any:
        found = self._parts.get(text)
        if found is None:
            found = self._parts[text] = kind(text, self._context)  # type: ignore[call-arg]
        return found

    def _constraint(self, comparison: Linear, frame: _Frame) -> isl.Constraint:
        import islpy as isl

        make = isl.Constraint.alloc_equality if comparison.is_equality else isl.Constraint.alloc_inequality
        found = make(frame.space)
        for name, factor in comparison.factors:
            value = isl_value(factor, self._context)
            found = found.set_coefficient_val(*frame.places[name], value) if name else found.set_constant_val(value)
        return found

    @staticmethod
    def _named(found: Any, source: str, target: str | None) -> Any:
        import islpy as isl

        if target is None:
            return found.set_tuple_name(source) if source else found
        found = found.set_tuple_name(isl.dim_type.in_, source) if source else found
        return found.set_tuple_name(isl.dim_type.out, target) if target else found


def conjuncts(text: str) -> list[str]:
    """The conditions that a text joins by `and`; none where it is more than that.

    >>> conjuncts("0 <= i and (i < n or n = 3 and i < 2) and m > 0")
    ['0 <= i', '(i < n or n = 3 and i < 2)', 'm > 0']
    >>> conjuncts("i < n or i > m and m > 0"), conjuncts("exists e: i = 2e and i > 0")
    ([], [])
    """
    if ";" in text or "exists" in text:
        return []
    found = _split(text, " and ")
    return [] if any(" or " in one and not _is_enclosed(one) for one in found) else found


def disjuncts(text: str) -> list[str]:
    """The cases of a condition in parentheses that has several, else itself.

    >>> disjuncts("(i < n or (n = 3 or m = 2) and i < 2)"), disjuncts("(i < n)")
    (['i < n', '(n = 3 or m = 2) and i < 2'], ['(i < n)'])
    """
    found = _split(text[1:-1], " or ") if " or " in text and _is_enclosed(text) else []
    return found if len(found) > 1 else [text]


def _split(text: str, word: str) -> list[str]:
    """The parts of a text between words that are in no parentheses."""
    if "(" not in text:
        return text.split(word)
    found: list[str] = []
    depth, left = 0, ""
    for part in text.split(word):
        left = f"{left}{word}{part}" if depth else part
        depth += part.count("(") - part.count(")")
        if not depth:
            found.append(left)
    return found


def _is_enclosed(text: str) -> bool:
    """Whether all of a text is in one pair of parentheses.

    >>> _is_enclosed("(a or (b))"), _is_enclosed("(a) or (b)")
    (True, False)
    """
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return place == len(text) - 1
    return False
