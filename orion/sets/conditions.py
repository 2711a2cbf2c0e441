"""Conditions on parameters, of which a nest with many statements over slices has one for each, as one."""

from __future__ import annotations

from functools import lru_cache

from orion.sets.coalesced import coalesced
from orion.sets.names import parameter_list

MAX_OPERATIONS = 100_000
"""isl operations that making conditions simpler may cost. Past it they stay as they are."""

Condition = tuple[str, tuple[str, ...]]
"""The text of a constraint, and the parameters in it."""


@lru_cache(maxsize=64)
def all_of(conditions: tuple[Condition, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Constraints that hold where all these conditions do, and the parameters in them: a single one is as it is.

    >>> all_of((("(n >= 2)", ("n",)), ("(n >= 1 and m = n)", ("n", "m"))))[0]
    ('(n = m and m >= 2)',)
    """
    names = frozenset(name for _, used in conditions for name in used)
    texts = tuple(text for text, _ in conditions)
    found = _simplest(texts, names) if len(texts) > 1 else None
    return (texts if found is None else (found,)), names


def _simplest(texts: tuple[str, ...], names: frozenset[str]) -> str | None:
    """The constraints as one text, with as few cases as isl finds; None where that takes too long."""
    import islpy as isl

    context = isl.Context()
    head = parameter_list(names)
    parts = [isl.Set(f"{head}{{ : {text} }}", context) for text in texts]
    context.set_max_operations(MAX_OPERATIONS)
    try:
        found = parts[0]
        for part in parts[1:]:
            found = coalesced(found.intersect(part))
        text = str(found)
    except isl.Error:
        return None
    finally:
        context.set_max_operations(0)
    inside = text.partition("{")[2].rpartition("}")[0].strip().removeprefix(":").strip()
    return f"({inside or 'true'})"
