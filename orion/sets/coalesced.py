"""isl's sets and maps in fewer pieces."""

from __future__ import annotations

from typing import TypeVar

R = TypeVar("R")


def coalesced(relation: R) -> R:
    """The same in fewer pieces, where isl finds them; as it is where isl fails at that: for some maps with divisions it
    ends in an error of its own ("original tableau does not correspond to original basic map", isl_coalesce.c). A limit
    of operations that is reached goes on.

    Pieces without integers are taken out first, which `detect_equalities` does: isl's wrapping of one piece around
    another ends the process where a facet turns out to have none (isl_set_wrap_facet).

    >>> import islpy as isl
    >>> coalesced(isl.Set("{ [i] : 0 <= i < 4; [i] : 4 <= i < 9 }")).n_basic_set()
    1
    """
    import islpy as isl

    try:
        found: R = relation.detect_equalities().coalesce()  # type: ignore[attr-defined]
    except isl.Error as error:
        if "operations" in str(error):
            raise
        return relation
    return found
