"""What a variant of a function takes to hold of the sizes and integers of a call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assumed:
    """A condition on extents and integer arguments under which a `for` of the source is parallel.

    `index` is that of the `for`. `constraint` is the text of isl over `names`, such as `(lo >= 0 or hi <= 0)`. The
    iteration space of a nest with the `for` lies within it, and so does all that is found of it. It is looked at in
    each call before the function is run so.
    """

    index: int
    constraint: str
    names: tuple[str, ...]
