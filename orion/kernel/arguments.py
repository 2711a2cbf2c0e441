"""Which arguments a kernel takes, in which order."""

from __future__ import annotations

from orion.kernel.calling import Argument
from orion.kernel.facts import LoopFacts
from orion.loop.ir import Count, Dim, Var


def kernel_arguments(facts: LoopFacts) -> tuple[Argument, ...]:
    """Partial results, carried scalars, keys and values, arrays, counts, scalars; within each kind by name."""
    partials = [
        Argument("partial", reduction.name, facts.declared(reduction.name), op=reduction.op)
        for reduction in sorted(facts.roles.reductions, key=lambda reduction: reduction.name)
    ]
    carried = [Argument("carried", name, facts.declared(name)) for name in sorted(dict(facts.roles.carried))]
    mentioned = {part.name for part in facts.parts() if isinstance(part, Var)}
    scalars = [Argument("scalar", name, facts.typing.name(name).dtype) for name in sorted(facts.scalar_inputs())]
    return (*partials, *carried, *_elements(facts, mentioned), *_arrays(facts, mentioned), *_counts(facts), *scalars)


def _elements(facts: LoopFacts, mentioned: set[str]) -> list[Argument]:
    """The keys and values that the body uses."""
    elements = facts.nest.elements
    if elements is None:
        return []
    kind = facts.sparse(elements.array)
    assert kind is not None
    keys = [
        Argument("key", elements.array, kind.key_dtype, position)
        for position, name in enumerate(elements.keys)
        if name in mentioned
    ]
    values = [
        Argument("value", elements.array, dtype, position)
        for position, (name, dtype) in enumerate(zip(elements.values, kind.value_dtypes, strict=True))
        if name in mentioned
    ]
    return keys + values


def _arrays(facts: LoopFacts, mentioned: set[str]) -> list[Argument]:
    extents = {part.array for part in facts.parts() if isinstance(part, Dim | Count)}
    found = []
    for name in sorted(mentioned | extents):
        kind = facts.array(name)
        if kind is not None:
            found.append(
                Argument(
                    "array", name, kind.dtype, contiguous=kind.c_contiguous, ndim=kind.ndim, writeable=kind.writeable
                )
            )
    return found


def _counts(facts: LoopFacts) -> list[Argument]:
    counted = {part.array for part in facts.parts() if isinstance(part, Count)}
    return [Argument("count", name, "int64") for name in sorted(counted) if facts.sparse(name) is not None]
