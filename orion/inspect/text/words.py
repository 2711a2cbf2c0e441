"""The words in which plans are told: strategies, orders, places and amounts, each said in one way everywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from orion.analysis.rules import tiling_of
from orion.analysis.strategies.inspected import INSPECTED
from orion.analysis.strategies.serial import SERIAL
from orion.cost.placement import Placement, PlacementKind
from orion.dataclass import replace
from orion.dependence.access import Choice
from orion.ir.function import Function, written_names
from orion.ir.nodes import Elements, Node, Var, every
from orion.ir.program import LoopNest
from orion.plan.parallelism import LITTLE
from orion.plan.plan import Inspected, Listed, LoopPlan, Merged, Tiled, Weighed
from orion.plan.source_plans import in_formulas
from orion.reasons import CODES
from orion.source import Span, cell_of


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(1, "loop"), counted(1200, "worker")
    ('1 loop', '1,200 workers')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(items: Sequence[str]) -> str:
    """Items as an English list.

    >>> listed(["W"]), listed(["W", "H"]), listed(["A", "B", "C"])
    ('W', 'W and H', 'A, B and C')
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


MOST_LINES, FIRST_LINES = 12, 6
"""How many line numbers, or runs of them, are written out, and how many where there are more."""


def lines_in_words(lines: Iterable[int]) -> str:
    """Line numbers, runs of three or more shortened, and of very many the first ones.

    >>> lines_in_words([4]), lines_in_words([7, 4, 5, 6, 6, 9])
    ('line 4', 'lines 4–7, 9')
    >>> lines_in_words(range(10, 100, 2))
    'lines 10, 12, 14, 16, 18, 20 and 39 more'
    """
    numbers = sorted(set(lines))
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = runs if len(runs) <= MOST_LINES else runs[:FIRST_LINES]
    parts = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in shown]
    left = sum(map(len, runs[len(shown) :]))
    more = f" and {left} more" if left else ""
    return f"{'line' if len(numbers) == 1 else 'lines'} {', '.join(parts)}{more}"


def choice_in_words(choice: Choice) -> str:
    """What is taken from which iteration.

    >>> from orion.ir.spans import NOWHERE
    >>> for names, op in ((("best", "at"), ">"), (("low",), "<="), (("last",), "last")):
    ...     choice_in_words(Choice(names, op, NOWHERE))
    'argmax, of equal values the first'
    'min, of equal values the last'
    'last value'
    """
    if choice.op == "last":
        return "last value"
    if choice.op == "first":
        return "that of the iteration which ends the loop first"
    sign = choice.comparison or ""
    name = ("arg" if len(choice.names) > 1 else "") + ("max" if sign[0] == ">" else "min")
    return f"{name}, of equal values the {'last' if sign[1:] else 'first'}"


def bytes_in_words(size: int | None) -> str:
    """An amount of data, to three digits, in powers of 1000.

    >>> [bytes_in_words(size) for size in (None, 0, 1, 950, 948_736, 12_345_678)]
    ['unknown', 'nothing', '1 byte', '950 bytes', '949 kB', '12.3 MB']
    """
    if size is None:
        return "unknown"
    if size == 0:
        return "nothing"
    if size < 1000:
        return counted(size, "byte")
    amount, unit = size / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    digits = 2 if amount < 9.995 else 1 if amount < 99.95 else 0
    return f"{amount:.{digits}f} {unit}"


def time_in_words(nanoseconds: float | None) -> str:
    """A predicted time, to two digits: it is no more exact than that.

    >>> [time_in_words(time) for time in (None, 0.4, 950, 948_736, 12_345_678, 99_600_000_000)]
    ['unknown', '0.40 ns', '950 ns', '950 µs', '12 ms', '100 s']
    """
    if nanoseconds is None:
        return "unknown"
    amount, unit = float(f"{nanoseconds:.2g}"), "ns"
    for larger in ("µs", "ms", "s"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    digits = 0 if amount >= 10 else 1 if amount >= 1 else 2
    return f"{amount:,.{digits}f} {unit}"


def percent(part: float) -> str:
    """A part of the work, for a narrow column.

    >>> percent(1.0), percent(0.9951), percent(0.54), percent(0.002)
    ('100 %', '>99 %', '54 %', '<1 %')
    """
    if part < 0.01:
        return "<1 %"
    if 0.99 < part < 1 - LITTLE / 5:
        return ">99 %"
    return f"{round(100 * part)} %"


def names_quoted(words: str) -> frozenset[str]:
    """The names between backquotes.

    >>> sorted(names_quoted("`a` and `b.shape[0]`, not c"))
    ['a', 'b', 'shape']
    """
    return frozenset(name for piece in words.split("`")[1::2] for name in re.findall(r"[A-Za-z_]\w*", piece))


def in_written_names(message: str, code: str, function: Function) -> str:
    """Return the message of a reason, or the title of its code where it names what is in no source."""
    return message if names_quoted(message) <= written_names(function) else CODES[code].title


def _over_arrays(dims: int) -> Sequence[str]:
    """What the dimensions of an array statement go over."""
    return {1: ("elements",), 2: ("rows", "columns")}.get(dims) or [f"axis {dim}" for dim in range(dims)]


def _over_iterations(dims: int) -> Sequence[str]:
    """What the dimensions of loops go over whose variables nobody wrote."""
    return ("iterations",) if dims == 1 else [f"loop {1 + dim}" for dim in range(dims)]


def with_written_dims(loop: LoopPlan) -> LoopPlan:
    """Return a loop whose dimensions are called by names in the source, or by what they go over: the iterations of one
    that goes through blocks or stands for an array statement have none."""
    dims, written = loop.nest.dims, written_names(loop.nest.function)
    is_said = [written.issuperset(re.findall(r"[A-Za-z_]\w*", dim)) for dim in dims]
    if all(is_said):
        return loop
    fors = {one.span for one in loop.nest.function.fors}
    is_statement = loop.nest.elements is None and not any(one.span in fors for one in loop.nest.loops)
    names = _over_arrays(len(dims)) if is_statement else _over_iterations(len(dims))
    said = tuple(dim if own else name for dim, own, name in zip(dims, is_said, names, strict=True))
    return replace(loop, nest=replace(loop.nest, dims=said))


def shown_part(part: LoopPlan) -> LoopPlan:
    """Return a part of a loop in another order, its dimensions called by formulas in names of the source."""
    return with_written_dims(in_formulas(part))


def place(span: Span) -> str:
    """Where a span stands, as "file:line": relative to the working directory, and by its cell in a notebook.

    >>> place(Span("train.py", 3, 4, 3, 9)), place(Span("/tmp/ipykernel_71/1.py", 3, 4, 3, 9))
    ('train.py:3', 'this cell, line 3')
    """
    if cell_of(span.file):
        return str(span)
    relative = os.path.relpath(span.file) if os.path.isabs(span.file) else span.file
    return f"{span.file if relative.startswith(os.pardir) else relative}:{span.line}"


def dims_in_words(loop: LoopPlan, dims: Iterable[int]) -> str:
    """The names of loop dimensions.

    The dimensions 0 and 2 of a loop over (i, j, k) are "i and k".
    """
    return listed([loop.nest.dims[dim] for dim in dims])


def strategy_in_words(loop: LoopPlan) -> str:
    """What the strategy of a loop does, in one sentence."""
    if isinstance(loop.tiles, Inspected):
        return INSPECTED.words(loop.nest.dims[0], "")
    if not isinstance(loop.tiles, Tiled):
        return SERIAL.words("", "")
    tiling = tiling_of(loop.strategy, loop.ordered)
    return tiling.words(loop.nest.dims[loop.tiles.space], dims_in_words(loop, loop.tiles.time))


def iterations_in_words(loop: LoopPlan) -> str:
    """How many iterations there are, and into how many tiles they are cut."""
    if loop.iterations is None:
        count = "unknown (no sizes given)"
    else:
        count = f"{'at most ' if _is_upper_bound(loop.nest) else ''}{loop.iterations:,}"
    blocks = blocks_in_words(shown_part(loop.parts[0]) if len(loop.parts) == 1 else loop)
    return f"{count}, {blocks}" if blocks else count


def blocks_in_words(loop: LoopPlan) -> str:
    """Into how many blocks or tiles the iterations of a loop are cut; empty where they are not."""
    if isinstance(loop.tiles, Inspected):
        return f"in {counted(loop.tiles.inspection.tiles, 'tile')}: {loop.tiles.inspection.kind}"
    cut = [(blocks, factor(name)) for blocks, name in zip(loop.cuts, loop.nest.dims, strict=True) if blocks > 1]
    if len(cut) > 1:
        return f"in {' × '.join(str(b) for b, _ in cut)} tiles of {' × '.join(name for _, name in cut)}"
    by = [f"`{array}`" for array in loop.tiles.arrays] if isinstance(loop.tiles, Weighed) else []
    shared = f" with about as much work each, by the contents of {listed(by)}" if by else ""
    return f"in {cut[0][0]} blocks of {cut[0][1]}{shared}" if cut else ""


def factor(name: str) -> str:
    """The name of a loop dimension where others stand beside it: in parentheses if it is a formula.

    >>> factor("t"), factor("t + i")
    ('t', '(t + i)')
    """
    return name if name.isidentifier() else f"({name})"


def _is_upper_bound(nest: LoopNest) -> bool:
    """Whether the number of iterations is counted as if the nest were a box, which it is not."""
    bounds: list[Node] = [bound for space in nest.ranges for bound in (space.start, space.stop, space.step)]
    return any(part.name in nest.dims for part in every(Var, *bounds))


def placement_in_words(placement: Placement, loop: LoopPlan, is_sent: bool) -> str:
    """Where an array lives while the loop runs. `is_sent`: workers may share no memory."""
    dim = "" if placement.loop_dim is None else loop.nest.dims[placement.loop_dim]
    if isinstance(loop.form, Merged) or isinstance(loop.tiles, Inspected):
        return "in memory that all workers share" if loop.runs_on > 1 else "whole, on the worker"
    if placement.array in {one.buffered.array for one in loop.relaxed.arrays}:
        return _buffered_in_words(placement, loop) if loop.runs_on > 1 else "whole, on the worker"
    copies = next((one for one in loop.copies if one.array == placement.array), None)
    if copies is not None:
        size = f" of {bytes_in_words(prod(copies.shape) * np.dtype(copies.dtype).itemsize)}" if copies.shape else ""
        return f"in one place; each of the {counted(copies.count, 'block')} has a copy{size} to add to"
    if placement.array in {array.name for array in loop.private_arrays}:
        is_shared = loop.runs_on > 1
        return "each tile has one of its own; the last tile has the array" if is_shared else "whole, on the worker"
    match placement.kind:
        case PlacementKind.PARTITIONED if is_iterated(placement, loop):
            where = f"each worker has the elements of its blocks of {dim}" if dim else "whole, on the worker"
            return f"{where}; their values are written in place" if placement.is_written else where
        case PlacementKind.PARTITIONED:
            return f"each worker touches its own part, along axis {placement.dim}{_with(dim, loop)}{_halo(placement)}"
        case PlacementKind.ROTATED:
            return f"in blocks along axis {placement.dim}{_with(dim, loop)}, which go from worker to worker"
        case PlacementKind.REPLICATED | PlacementKind.SERVED if loop.runs_on > 1 and not is_sent:
            return "read and written by every worker" if placement.is_written else "read by every worker"
        case PlacementKind.REPLICATED:
            if by := _by(placement, loop.read_in_part):
                return f"each node has what its tiles read, as {by} say{'s' * (' and ' not in by)}"
            return "whole, on every worker" if loop.runs_on > 1 else "whole, on the worker"
        case PlacementKind.SERVED:
            return "kept in one place; workers fetch what they need and write it back"


def _with(dim: str, loop: LoopPlan) -> str:
    """With which variable the blocks of an array go, where that has a name."""
    return f" with {dim}" if written_names(loop.nest.function).issuperset(re.findall(r"[A-Za-z_]\w*", dim)) else ""


def _buffered_in_words(placement: Placement, loop: LoopPlan) -> str:
    by = _by(placement, loop.served)
    if not by:
        return "in memory that the workers of a node share, on each node"
    announced = f"rows that tiles announce by {by} are there before these"
    return f"in memory that the workers of a node share; on other nodes {announced}"


def _by(placement: Placement, arrays: Iterable[Listed]) -> str:
    """The arrays by which it was listed what tiles touch of one of some arrays; "" where it is none of these."""
    names = {one.array: one.announcer.lists.reads for one in arrays}.get(placement.array, ())
    return listed([f"`{name}`" for name in names]) if names else ""


def _halo(placement: Placement) -> str:
    before, after = max(0, -placement.halo[0]), max(0, placement.halo[1])
    if before == after:
        return f", and {before} past each end" if before else ""
    sides = [f"{size} {word}" for size, word in ((before, "before its start"), (after, "past its end")) if size]
    return f", and {listed(sides)}"


def is_iterated(placement: Placement, loop: LoopPlan) -> bool:
    """Whether the placement is that of the sparse array whose elements the loop goes over."""
    elements: Elements | None = loop.nest.elements
    return elements is not None and elements.array == placement.array
