"""The dependences of a loop, told once: all pairs of accesses to one array that meet in the same iterations are one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from orion.dataclass import dataclass, replace
from orion.dependence.access import Access, Dependence
from orion.ir.function import written_names
from orion.ir.nodes import Assign, Subscript, Var, every
from orion.plan.explain import Told, happens, witness
from orion.plan.iterations import DIFFERENT, in_source_names, iterations_in_words
from orion.plan.plan import LoopPlan
from orion.plan.source_plans import has_values, in_formulas
from orion.reasons import Reason, ReasonKind
from orion.source import SourceText, Span


@dataclass(frozen=True, slots=True)
class Conflict:
    """What makes iterations of a loop conflict over one array, in one set of pairs of iterations.

    `array` is its name, or what it holds where nobody has written its name (`array_in_words`). `iterations` says in
    words which ones, and `example` names two of them (empty where there is no example).
    `reads` and `writes` have each access as the user wrote it, with the lines in which it stands. `distance` and
    `direction` are those of its dependences. `reason` has the code, and what would help.
    """

    array: str
    iterations: str
    example: str
    reads: tuple[tuple[str, tuple[int, ...]], ...]
    writes: tuple[tuple[str, tuple[int, ...]], ...]
    distance: tuple[int | None, ...]
    direction: tuple[str, ...]
    reason: Reason
    dependences: tuple[Dependence, ...]

    @property
    def is_scalar(self) -> bool:
        """Whether it is not about an array but about a scalar, which its reason names."""
        return self.reason.row.about_scalar

    @property
    def spans(self) -> tuple[Span, ...]:
        """The places of all its accesses, in source order."""
        return tuple(sorted({a.span for d in self.dependences for a in (d.source, d.sink)}))


def conflicts_of(loop: LoopPlan) -> tuple[Conflict, ...]:
    """The conflicts of a loop, in program order of their first accesses: of a parallel one those that there are at the
    sizes of the call."""
    groups: dict[object, list[Dependence]] = {}
    told = Told(loop.nest, dict(loop.known))
    for dependence in loop.blocking:
        if loop.is_parallel and not happens(dependence, told):
            continue
        why = dependence.reason
        words = iterations_in_words(dependence, loop.nest)
        groups.setdefault((dependence.array, words, why.code if why else ""), []).append(dependence)
    return tuple(_conflict(group, loop) for group in sorted(groups.values(), key=_first_place))


def told_conflicts(loop: LoopPlan) -> tuple[Conflict, ...]:
    """The conflicts of a loop; of one in another order that has none, those of its parts, whose iterations are others:
    of the loops further in, too."""
    if loop.dependences or not loop.parts:
        return conflicts_of(loop)
    return tuple(conflict for part in loop.parts for conflict in conflicts_of(in_formulas(part)))


def _first_place(group: Iterable[Dependence]) -> Span:
    return min(min(d.source.span, d.sink.span) for d in group)


def _conflict(group: list[Dependence], loop: LoopPlan) -> Conflict:
    every = dict.fromkeys(a for d in group for a in (d.source, d.sink))  # in an order that is always the same
    accesses = sorted(every, key=lambda a: (a.span, a.is_write))
    first, source = group[0], loop.nest.function.source
    given = Told(loop.nest, dict(loop.known), has_values=has_values(loop))
    array = array_in_words(first.array, loop, accesses)
    told = accesses if array == first.array else [replace(one, text=array) for one in accesses]
    return Conflict(
        array=array,
        iterations=_iterations(first, loop),
        example=next(filter(None, (witness(one, given) for one in group)), ""),
        reads=_by_text((a for a in told if not a.is_write), source),
        writes=_by_text((a for a in told if a.is_write), source),
        distance=first.distance,
        direction=first.direction,
        reason=in_source_names(first.reason, loop.nest.function) if first.reason else _reason(group, loop),
        dependences=tuple(group),
    )


def array_in_words(array: str, loop: LoopPlan, accesses: Iterable[Access]) -> str:
    """Return the name of an array or, where Orion has made it, what it holds: "new values of A" where its elements are
    computed for A before they are stored there, else "values of line 7", the first that writes it."""
    function = loop.nest.function
    written = written_names(function)
    if array in written:
        return array
    for one in every(Assign, *function.body):
        match one:
            case Assign(Var(name) | Subscript(Var(name)), Var(value) | Subscript(Var(value))):
                if value == array and name in written:
                    return f"new values of {name}"
    accesses = tuple(accesses)
    first = min((a.span for a in accesses if a.is_write), default=min(a.span for a in accesses))
    return f"values of line {first.line}"


def _iterations(dependence: Dependence, loop: LoopPlan) -> str:
    """Which iterations conflict: of those that agree in no variable of several, that they need not."""
    words, dims = iterations_in_words(dependence, loop.nest), loop.nest.dims
    is_said = written_names(loop.nest.function).issuperset(re.findall(r"[A-Za-z_]\w*", " ".join(dims)))
    if words != DIFFERENT or len(dims) == 1 or not is_said:
        return words
    return f"iterations that need not have the same {', '.join(dims[:-1])} or {dims[-1]}"


def _reason(group: list[Dependence], loop: LoopPlan) -> Reason:
    """The reason of a conflict between exact accesses, with the hint that the plan gives for one of its pairs."""
    spans = {frozenset((d.source.span, d.sink.span)) for d in group}
    hints = [reason.hint for reason in loop.reasons if reason.hint and frozenset(reason.spans) in spans]
    return Reason(ReasonKind.BLOCKS, "ORN101", "", (), next(iter(hints), ""))


def _by_text(accesses: Iterable[Access], source: SourceText) -> tuple[tuple[str, tuple[int, ...]], ...]:
    lines: dict[str, list[int]] = {}
    for access in accesses:
        lines.setdefault(_as_written(access, source), []).append(access.span.line)
    return tuple((text, tuple(dict.fromkeys(found))) for text, found in lines.items())


def _as_written(access: Access, source: SourceText) -> str:
    """The access, and the name of the view by which it is made, where there is one: "W[i] (as w)"."""
    span = access.span
    there = source.line(span.line)[span.column : span.end_column] if span.line == span.end_line else ""
    return f"{access.text} (as {there})" if there.isidentifier() and there != access.text else access.text


def sizing_reasons(loop: LoopPlan) -> tuple[Reason, ...]:
    """The reasons why the loop runs on fewer workers than there are."""
    return tuple(reason for reason in loop.reasons if reason.kind is ReasonKind.SIZES)


def ruled_out(loop: LoopPlan) -> tuple[tuple[str, Reason], ...]:
    """The strategies that a parallel loop cannot take, strongest first, each with the reason."""
    found = []
    for reason in loop.reasons:
        if reason.kind is ReasonKind.RULES_OUT:
            found.append((reason.message.partition(": ")[0].removeprefix("not "), reason))
    return tuple(found)
