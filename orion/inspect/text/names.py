"""A planned loop as it is shown: its arrays and dimensions by the names that the source has where the loop stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from orion.dataclass import replace
from orion.dependence.access import Access, Dependence
from orion.inspect.text.telling import stands_of
from orion.inspect.text.words import with_written_dims
from orion.ir.function import written_names
from orion.plan.plan import LoopPlan, Merged, is_of_source
from orion.reasons import Reason

Said = Callable[[str], str]
"""The name of an array, or a piece of code, in names of the source."""


def as_shown(loop: LoopPlan) -> LoopPlan:
    """Return a loop by names of the source."""
    return with_written_dims(in_names_here(loop))


def in_names_here(loop: LoopPlan) -> LoopPlan:
    """Return a loop whose arrays are called by the names that stand for them there, where names stand for several
    arrays in turn."""
    names = _names_here(loop)
    return _renamed(loop, _said_by(names)) if names else loop


def is_sure_name(array: str, loop: LoopPlan) -> bool:
    """Whether the source calls an array so where a loop stands: of statements it is not known which names stand for
    arrays that take turns."""
    function = loop.nest.function
    turning = {name for one in function.stands for name in (one.name, one.array)}
    return array in written_names(function) and (is_of_source(loop) or array not in turning)


def _names_here(loop: LoopPlan) -> dict[str, str]:
    """The names that stand for arrays of other names: those of a local of a helper for arrays without a name alone."""
    function = loop.nest.function
    helpers, written = {one.name for one in function.helper_locals}, written_names(function)
    return {one.array: one.name for one in stands_of(loop) if one.name not in helpers or one.array not in written}


def _said_by(names: Mapping[str, str]) -> Said:
    found = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return lambda text: found.sub(lambda one: names[one[0]], text)


def _renamed(loop: LoopPlan, said: Said) -> LoopPlan:
    analysis, form = loop.analysis, loop.form
    if isinstance(form, Merged):
        form = replace(form, parts=tuple(_renamed(part, said) for part in form.parts))
    analysis = replace(
        analysis,
        accesses=tuple(_access(one, said) for one in analysis.accesses),
        dependences=tuple(_dependence(one, said) for one in analysis.dependences),
        reasons=tuple(_reason(one, said) for one in analysis.reasons),
        private=tuple(replace(one, name=said(one.name)) for one in analysis.private),
        sums=tuple(replace(one, name=said(one.name)) for one in analysis.sums),
    )
    return replace(
        loop,
        form=form,
        analysis=analysis,
        placements=tuple(replace(one, array=said(one.array)) for one in loop.placements),
        copies=tuple(replace(one, array=said(one.array)) for one in loop.copies),
        reasons=tuple(_reason(one, said) for one in loop.reasons),
        may_be_private=tuple(map(said, loop.may_be_private)),
    )


def _dependence(one: Dependence, said: Said) -> Dependence:
    source, sink = _access(one.source, said), _access(one.sink, said)
    return replace(one, array=said(one.array), source=source, sink=sink, cap=one.cap and _reason(one.cap, said))


def _access(one: Access, said: Said) -> Access:
    return replace(one, array=said(one.array), text=said(one.text), reason=one.reason and _reason(one.reason, said))


def _reason(one: Reason, said: Said) -> Reason:
    message, hint = (re.sub("`[^`]*`", lambda code: said(code[0]), text) for text in (one.message, one.hint))
    return replace(one, message=message, hint=hint)
