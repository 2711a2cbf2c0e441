"""Names of planned loops where their times are shown: the code of the source that they stand for."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

from orion.dataclass import dataclass
from orion.ir.function import Function, SourceFor
from orion.ir.nodes import Assign, Subscript, every
from orion.plan.iterations import NAME
from orion.plan.plan import Fused, LoopPlan, is_of_source, source_nest
from orion.source import SourceText, Span, without_comment

PASSES = "first pass of the scan", "between the passes of the scan", "second pass of the scan"
"""The loops that stand for one whose iterations hand scalars on (`orion.rewrites.scans`), in their order."""


@dataclass(frozen=True, slots=True)
class Called:
    """Name of a planned loop in times: the `code` of the source that it stands for. Several loops for the same code
    differ by `part`."""

    code: str
    part: str = ""


def loops_called(function: Function, loops: Sequence[LoopPlan]) -> tuple[Called, ...]:
    """Return the names of a function's planned loops, all different."""
    codes = [code_of_loop(function, source_nest(loop).span) for loop in loops]
    alike: dict[Hashable, list[int]] = {}
    for at, (loop, code) in enumerate(zip(loops, codes, strict=True)):
        span = source_nest(loop).span
        alike.setdefault((span.file, span.line, span.inlined, code), []).append(at)
    parts = [""] * len(loops)
    for group in alike.values():
        for at, part in zip(group, _told_apart([loops[at] for at in group], codes[group[0]]), strict=True):
            parts[at] = part
    return tuple(map(Called, codes, parts))


def code_of_loop(function: Function, span: Span) -> str:
    """Return the header of a `for` of the source, or the first line of the statement at a span."""
    header = next((one for one in function.fors if one.span == span), None)
    return code_of(function.source, span.line) if header is None else header_of(header, function.source)


def header_of(one: SourceFor, source: SourceText) -> str:
    """Return the header of a `for` in one line, without comments and the colon at its end."""
    return code_of(source, *range(one.span.line, one.span.end_line + 1))


def code_of(source: SourceText, *lines: int) -> str:
    """Return lines of the source as one, without comments and a colon at its end."""
    text = " ".join(filter(None, (without_comment(source.line(line)).strip() for line in lines)))
    return text.removesuffix(":").rstrip()


def _told_apart(loops: Sequence[LoopPlan], code: str) -> list[str]:
    """Return the part of the same code that each loop is; an empty text for one alone."""
    if len(loops) == 1:
        return [""]
    parts = _passes(loops) or _arrays(loops, code) or [""] * len(loops)
    found = []
    for at, part in enumerate(parts):
        which = f"{1 + parts[:at].count(part)} of {parts.count(part)}" if parts.count(part) > 1 else ""
        found.append(", ".join(filter(None, [part, which])))
    return found


def _passes(loops: Sequence[LoopPlan]) -> list[str]:
    """The passes of scans; empty where the loops are not these."""
    scanned = {one.loop for loop in loops for one in loop.nest.function.in_blocks if one.is_twice}
    is_last = [loop.nest.loops[0].index in scanned for loop in loops]
    is_scan = any(is_last) and is_last == [False, False, True] * (len(loops) // 3)
    return list(PASSES) * (len(loops) // 3) if is_scan else []


def _arrays(loops: Sequence[LoopPlan], code: str) -> list[str]:
    """Return the arrays that the loops of an assignment fill, as it calls them; empty where they do not tell the loops
    apart."""
    targets = {*re.findall(NAME, code.partition("=")[0])}
    filled = [_filled(loop) for loop in loops]
    return [f"`{name}`" for name in filled] if targets.issuperset(filled) and len({*filled}) > 1 else []


def _filled(loop: LoopPlan) -> str:
    """Return the name of the array that a loop fills; empty where it does something else."""
    first = loop.form.members[0] if isinstance(loop.form, Fused) else loop
    if is_of_source(first):
        return ""
    targets = (one.target for one in every(Assign, *first.nest.body))
    names = {target.base.name for target in targets if isinstance(target, Subscript)}
    return next(iter(names)) if len(names) == 1 else ""
