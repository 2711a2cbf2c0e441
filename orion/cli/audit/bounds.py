"""Iterations in which subscripts leave their arrays, or the rows of flattened arrays, as isl text."""

from __future__ import annotations

from collections.abc import Iterator

from orion.dependence.model import Space, inner_constraints
from orion.dependence.references import Interval, Reference
from orion.sets.affine import Affine, integer
from orion.sets.names import extent_name, parameter_list


def outside(reference: Reference, space: Space) -> Iterator[str]:
    """Return the iterations in which a subscript leaves its array, axis by axis; none where that is not known."""
    for axis, subscript in enumerate(reference.axes):
        form = subscript.lower or integer(0) if isinstance(subscript, Interval) else subscript
        if isinstance(form, Affine):
            extent = extent_name(reference.array, axis)
            yield from _where(reference, space, form, f"({form.text} >= {extent} or {form.text} < -{extent})", extent)


def outside_rows(reference: Reference, space: Space) -> Iterator[str | None]:
    """Return the iterations in which a subscript of a flattened array leaves its row, or is negative, axis by axis.

    None stands for what is not known.
    """
    for axis, form in enumerate(reference.axes):
        if not isinstance(form, Affine):
            yield None
            continue
        extent = extent_name(reference.array, axis)
        leaves = f"({form.text} >= {extent} or {form.text} < 0)" if axis else f"{form.text} < 0"
        yield next(_where(reference, space, form, leaves, extent), None)


def _where(reference: Reference, space: Space, form: Affine, condition: str, extent: str) -> Iterator[str]:
    """The iterations that make an access, where a condition on a form holds."""
    forms = [form for loop in reference.inner for form in (loop.start, loop.stop, loop.step)]
    bounds = [one for one in forms if isinstance(one, Affine)]
    if len(bounds) < len(forms):
        return
    constraints = [*space.constraints, *space.equations]
    constraints += [text for loop in reference.inner for text in inner_constraints(loop)]
    constraints += [guard.text for guard in reference.guards]
    hidden = [*space.values, *(loop.var for loop in reference.inner)]
    names = {name for one in (*bounds, form) for name in one.names} | space.names | {extent}
    names |= {name for guard in reference.guards for name in guard.names}
    exists = f"exists {', '.join(hidden)}: " if hidden else ""
    head = f"{parameter_list(names - {*hidden, *space.dims})}{{ [{', '.join(space.dims)}]"
    yield f"{head} : {exists}{' and '.join((*constraints, condition))} }}"
