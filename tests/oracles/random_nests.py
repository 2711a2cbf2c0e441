"""Random loop nests: source text of a function, and arguments for it, drawn by hypothesis.

Arrays hold small whole numbers, so that every order of additions gives the same bits and results compare exactly.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from itertools import count
from types import FunctionType

import numpy as np
from hypothesis import strategies as st

VARIABLES = ("i", "j", "k")
ARRAYS = {"a": 1, "b": 1, "M": 2}
EXTENT = 40
TRIPS = 5
_number = count()


@dataclass(frozen=True)
class RandomNest:
    """A generated function, by its source, and the options it is decorated with."""

    source: str
    ordered: bool | None

    def function(self) -> FunctionType:
        """The function object; its source can be found by `inspect`."""
        name = f"<random nest {next(_number)}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[name] = (len(self.source), None, lines, name)
        scope: dict[str, object] = {"np": np}
        exec(compile(self.source, name, "exec"), scope)  # the text is ours
        function = scope["nest"]
        assert isinstance(function, FunctionType)
        return function

    def arguments(self) -> dict[str, object]:
        rng = np.random.default_rng(7)
        found: dict[str, object] = {
            name: rng.integers(-3, 4, (EXTENT,) if ndim == 1 else (EXTENT, EXTENT)).astype(np.float64)
            for name, ndim in ARRAYS.items()
        }
        return found | {"c": 2}

    def __str__(self) -> str:
        return f"# ordered={self.ordered}\n{self.source}"


def affine_subscripts(depth: int) -> st.SearchStrategy[str]:
    """Subscripts that stay within 0 … EXTENT - 1 for variables of 0 … TRIPS."""
    variables = st.sampled_from(VARIABLES[:depth])
    offsets = st.integers(0, 4)
    shifted = st.builds(lambda v, c: f"{v} + {c}" if c else v, variables, offsets)
    mirrored = st.builds(lambda v, c: f"{c + TRIPS} - {v}", variables, offsets)
    scaled = st.builds(lambda s, v, c: f"{s} * {v} + {c}", st.integers(2, 3), variables, offsets)
    summed = st.builds(lambda u, v: f"{u} + {v}", variables, variables)
    wrapped = st.builds(lambda v, c: f"{v} - {c}", variables, st.integers(1, 3))
    named = st.builds(lambda v: f"{v} + c", variables)
    divided = st.builds(lambda v, d: f"{v} {d}", variables, st.sampled_from(["// 2", "% 3"]))
    return st.one_of(shifted, shifted, shifted, mirrored, scaled, summed, wrapped, named, divided)


@st.composite
def accesses(draw: st.DrawFn, depth: int) -> str:
    array = draw(st.sampled_from(sorted(ARRAYS)))
    subscripts = [draw(affine_subscripts(depth)) for _ in range(ARRAYS[array])]
    return f"{array}[{', '.join(subscripts)}]"


@st.composite
def statements(draw: st.DrawFn, depth: int) -> list[str]:
    target = draw(accesses(depth))
    kind = draw(st.sampled_from(["assign", "assign", "update", "guarded", "private"]))
    value = " + ".join(draw(st.lists(accesses(depth), min_size=1, max_size=2)))
    if kind == "update":
        return [f"{target} {draw(st.sampled_from(['+=', '-=']))} {value}"]
    if kind == "guarded":
        return [f"if {draw(accesses(depth))} > 0:", f"    {target} = {value}"]
    if kind == "private":
        return [f"t = {value}", f"{target} = t - 1"]
    return [f"{target} = {value} - 1"]


@st.composite
def random_nests(draw: st.DrawFn) -> RandomNest:
    depth = draw(st.integers(1, 3))
    lines = ["def nest(a, b, M, c):"]
    for level in range(depth):
        outer = VARIABLES[level - 1] if level else None
        bounds = [f"range({TRIPS})", f"range(1, {TRIPS})", f"range({TRIPS - 1}, -1, -1)", f"range(0, {TRIPS}, 2)"]
        if outer:
            bounds += [f"range({outer}, {TRIPS})", f"range({outer} + 1)"]
        lines.append("    " * (level + 1) + f"for {VARIABLES[level]} in {draw(st.sampled_from(bounds))}:")
    for statement in draw(st.lists(statements(depth), min_size=1, max_size=3)):
        lines += ["    " * (depth + 1) + line for line in statement]
    return RandomNest("\n".join(lines) + "\n", draw(st.sampled_from([None, None, False])))
