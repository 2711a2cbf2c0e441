"""Twenty shapes of loops, and what Orion does with each: `python docs/shapes.py` rewrites `docs/will-it-work.md`.

Of the page, the table and the sections below it are written from `SHAPES` and from the plans of the functions.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import orion
from docs import shape_loops as loops

PAGE = Path(__file__).with_name("will-it-work.md")

COLUMNS = 140
"""The longest lines of the page's text."""

WORKERS = 2
"""How many workers the loops are planned for."""


# ---------------------------------------------------------------- what they are called with


def _reals(n):
    return np.random.default_rng(n).normal(size=n)


def _codes(n):
    return np.random.default_rng(n).integers(0, 256, n)


def _permutation(n):
    return np.random.default_rng(n).permutation(n)


def _sparse(n):
    rng = np.random.default_rng(n)
    return np.zeros(n), np.arange(n + 1) * 8, rng.integers(0, n, 8 * n), rng.random(8 * n), rng.random(n)


def _trees(n):
    """Binary trees in two arrays of children, each with its children behind it."""
    children = 2 * np.arange(n) + 1
    left, right = (np.where(children + k < n, children + k, -1) for k in (0, 1))
    return np.zeros(n, np.int64), left, right, np.arange(n)


def _words(n):
    return np.zeros(n, np.int64), ["banana", "cherry", "date"] * (n // 3)


def _bytes(n):
    words = [word.encode() for word in _words(n)[1]]
    starts = np.cumsum([0, *map(len, words)])
    return np.zeros(len(words), np.int64), np.frombuffer(b"".join(words), np.uint8), starts


def _grid(n):
    return np.random.default_rng(n).random((n, n))


# ---------------------------------------------------------------- the rows


@dataclass(frozen=True)
class Loop:
    """A function as a user writes it, the arguments of a size, a size that pays to share out, and a small one."""

    function: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    large: int = 8_000_000
    small: int = 300
    helpers: tuple[Any, ...] = ()  # what the function calls or takes, shown before it


@dataclass(frozen=True)
class Shape:
    """A row of the table: what users call this shape, its loop, what to know of it, and what to write instead."""

    name: str
    how: str  # how it is shared out, or why not, in a clause
    loop: Loop
    note: str
    instead: Loop | None = None

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def _two_arrays(n):
    return np.zeros(n), _reals(n)


SHAPES = (
    Shape(
        "Elementwise", "blocks of `i`", Loop(loops.elementwise, _two_arrays), "Each worker has its own block of `i`."
    ),
    Shape(
        "Reduction",
        "a sum of each block, added up in one order",
        Loop(loops.sum_of_squares, lambda n: (_reals(n),)),
        "Orion finds sums, products, minima and maxima by itself. It sums fixed blocks, so the bits are the same on up "
        "to 32 workers ([more](guides/reproducible.md#use-more-than-eight-workers)).",
    ),
    Shape(
        "Shift in place",
        "a copy would cost more than it gains",
        Loop(loops.smooth, lambda n: (_reals(n),)),
        "Each iteration reads a value that the next one overwrites. A copy of the array would make the loop parallel, "
        "but takes longer than it saves here. Write into a second array.",
        Loop(loops.smooth_into, _two_arrays),
    ),
    Shape(
        "Prefix sum",
        "a scan, in two passes over blocks",
        Loop(loops.running_sum, _two_arrays),
        "Orion runs it as a scan in two passes over blocks. Shorter arrays run on one worker; the plan names the "
        "length from which the passes pay.",
    ),
    Shape(
        "Histogram",
        "a copy of `counts` for each block, added up",
        Loop(loops.histogram, lambda n: (np.zeros(256, np.int64), _codes(n))),
        "Each block counts into its own copy of `counts`, and the copies are added. That pays where the counts are "
        "few and the values many; else the loop is serial, [ORN122](../orion/reasons.md#orn122).",
    ),
    Shape(
        "Scatter by a permutation",
        "if no two elements of `place` are equal",
        Loop(loops.scatter, lambda n: (np.zeros(n), _permutation(n), _reals(n))),
        "Orion looks at `place` before the loop: parallel if no two of its elements are equal and none is negative. "
        "Otherwise one worker keeps the written order ([ORN102](../orion/reasons.md#orn102) has what to write then).",
    ),
    Shape(
        "Sparse matrix times vector",
        "blocks of rows",
        Loop(loops.multiply, _sparse, large=400_000, small=50),
        "Only row `i` writes `y[i]`. Iterations may read any element of `x`, as nothing writes it. See [the "
        "tutorial](tutorials/sparse-matrices.md).",
    ),
    Shape(
        "Gauss-Seidel",
        "tiles of sweeps, rows and columns",
        Loop(loops.gauss_seidel, lambda n: (_grid(n), 4), large=2_000, small=20),
        "Tiles of rows, columns and sweeps start when the tiles before them are done. The result is the serial one. "
        "See [the tutorial](tutorials/stencil.md).",
    ),
    Shape(
        "Dynamic programming",
        "tiles on an anti-diagonal",
        Loop(
            loops.common_subsequence,
            lambda n: (np.zeros((n + 1, n + 1), np.int64), _codes(n) % 4, _codes(n + 1)[:n] % 4),
            large=3_000,
            small=30,
        ),
        "Cells of an anti-diagonal do not need each other, so tiles on one run at once.",
    ),
    Shape(
        "`while` until convergence",
        "the loops inside of the `while`",
        Loop(loops.jacobi, lambda n: (_reals(n), np.zeros(n), np.zeros(n), 0.5)),
        "The `while` stays serial, and the `for` loops in it are shared out, without going back to Python.",
    ),
    Shape(
        "`break`",
        "blocks searched at once, the first find wins",
        Loop(loops.first_negative, lambda n: (np.abs(_reals(n)) - (np.arange(n) == 2 * n // 3) * 9.0,)),
        "Workers search their blocks at once. Of the iterations that reach the `break`, the first in the order of the "
        "loop counts. A loop that also stores into arrays before it leaves is serial: `orion explain ORN110` has what "
        "to write.",
    ),
    Shape(
        "Appending to a list",
        "the place of an item depends on those before",
        Loop(loops.positives, lambda n: (_reals(n),)),
        "The place of an item depends on how many came before it. An `append` in every iteration, without an `if`, is "
        "shared out. Here, mark the items in a loop, and take them with `x[keep]`.",
        Loop(loops.are_positive, lambda n: (np.zeros(n, np.bool_), _reals(n))),
    ),
    Shape(
        "Dict",
        "Numba compiles the whole function",
        Loop(loops.count_by_name, lambda n: (_codes(n),)),
        "Numba compiles some dicts, and no loop over them is shared out. Turn the keys into numbers from 0, for "
        "example with `np.unique(keys, "
        "return_inverse=True)`, and use an array.",
        Loop(loops.count_by_number, lambda n: (np.zeros(256, np.int64), _codes(n))),
    ),
    Shape(
        "Recursion",
        "no fixed number of steps",
        Loop(loops.depths, _trees, large=100_000, small=40, helpers=(loops.depth,)),
        "A loop cannot hold a call of unknown depth. Keep what is still to do in an array that the iteration makes. "
        "The 64 places of this one suffice for trees of up to 63 levels; a deeper one raises `OutOfBoundsError`. "
        "`out` has to hold zeros before the call.",
        Loop(loops.depths_by_stack, _trees, large=100_000, small=40),
    ),
    Shape(
        "Strings",
        "compiled loops hold numbers and arrays",
        Loop(loops.count_letter, _words, large=300_000, small=30),
        "Give the loop the bytes of all words, and where each word starts.",
        Loop(loops.count_byte, _bytes, large=300_000, small=30),
    ),
    Shape(
        "Nested function calls",
        "functions become part of the loop",
        Loop(loops.values, lambda n: (np.zeros(n), _reals(n), 0.5, 0.03), helpers=(loops.payoff, loops.discounted)),
        "Orion puts the functions of your module into the loop and analyses them there.",
    ),
    Shape(
        "Attributes of an object",
        "compiled loops hold numbers and arrays",
        Loop(loops.move, lambda n: (loops.Particles(_reals(n), _reals(n)), 0.1), helpers=(loops.Particles,)),
        "Pass the arrays: `move_arrays(particles.x, particles.v, 0.1)`. In a class, write the loop as a "
        "`@staticmethod`.",
        Loop(loops.move_arrays, lambda n: (_reals(n), _reals(n + 1)[:n], 0.1)),
    ),
    Shape(
        "Random numbers",
        "each draw depends on the draw before",
        Loop(loops.pi, lambda n: (n,)),
        "A generator's state makes each draw depend on the one before. `orion.random(seed, i)` draws by key: the same "
        "number on any number of workers.",
        Loop(loops.pi_by_key, lambda n: (n, 1)),
    ),
    Shape(
        "Argmin",
        "the least of each block, then of all",
        Loop(loops.nearest, lambda n: (np.random.default_rng(n).random((n, 2)), 0.5, 0.5), large=4_000_000),
        "Of equal values the first one wins, as in the serial loop.",
    ),
    Shape(
        "Pointer chasing",
        "each step needs the step before",
        Loop(loops.chase, lambda n: (_permutation(n), 0, n)),
        "Each step needs the one before, so nobody can share out one chain. Many chains are shared out.",
        Loop(loops.chase_many, lambda n: (np.arange(n // 80), _permutation(n), 100)),
    ),
)


# ---------------------------------------------------------------- what becomes of them


def outcome(loop: Loop) -> str:
    """What becomes of a loop at its large size, as the table says it."""
    function = orion.parallel_for(loop.function)
    with orion.session(workers=WORKERS):
        try:
            plan = function.plan(*loop.arguments(loop.large))
        except orion.UnsupportedLoopError:
            return "as it is, on one worker" if _runs(function, loop) else "refused"
    strategies = dict.fromkeys(one.strategy for one in plan.loops)
    codes = dict.fromkeys(
        r.code for one in plan.loops if not one.is_parallel for r in one.reasons if r.kind == "blocks"
    )
    if codes:
        return f"serial: {', '.join(codes)}"
    return f"parallel: {', '.join(strategies)}"


def _runs(function: Callable[..., Any], loop: Loop) -> bool:
    """Whether a call runs a function that Orion cannot analyse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        try:
            function(*loop.arguments(loop.small))
        except orion.UnsupportedLoopError:
            return False
    return True


# ---------------------------------------------------------------- the page


def table() -> str:
    lines = ["| shape | what happens | how, or why not | what to write |", "|---|---|---|---|"]
    lines += [f"| [{one.name}](#{one.anchor}) | {outcome(one.loop)} | {one.how} | {_advice(one)} |" for one in SHAPES]
    return "\n".join(lines)


def _advice(shape: Shape) -> str:
    if shape.instead is None:
        return "as you have it"
    return f"[`{shape.instead.function.__name__}`](#{shape.anchor}): {outcome(shape.instead)}"


def sections() -> str:
    return "\n\n".join(
        "\n\n".join([f"### {shape.name}", _code(shape.loop), _wrapped(shape.note), *_instead(shape)])
        for shape in SHAPES
    )


def _wrapped(note: str) -> str:
    return fill(note, COLUMNS, break_long_words=False, break_on_hyphens=False)


def _instead(shape: Shape) -> list[str]:
    return [] if shape.instead is None else [_code(shape.instead)]


def _code(loop: Loop) -> str:
    parts = [*(inspect.getsource(one) for one in loop.helpers)]
    parts.append(f"@orion.parallel_for\n{inspect.getsource(loop.function)}")
    return "```python\n" + "\n\n".join(parts) + "```"


def written(page: str) -> str:
    """The page with the table and the sections as they are to be."""
    for name, text in (("table", table()), ("loops", sections())):
        page = re.sub(
            rf"(?s)(<!-- {name}: [^\n]* -->\n).*?(\n<!-- end of {name} -->)",
            lambda found, text=text: f"{found.group(1)}\n{text}\n{found.group(2)}",
            page,
        )
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
