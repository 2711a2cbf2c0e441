"""The 25 indirect loops: what decides whether each is parallel, whether it is right, what looking costs, how fast it
is.

    python -m benchmarks.indirect.run                    # from the project's folder; `make indirect` does the same
    python -m benchmarks.indirect.run --only solve_lower sweep --repeats 15

Right: with 1, 2 and 4 workers, all of them used, the arrays are the same to the bit as after the undecorated function,
or, of a loop in any order, after the iterations in `plan.serial_order()`; "rounded" where sums of floats are added up
in blocks (docs/reference/differences.md). Times are medians of interleaved runs, of `numba.njit` of the same text and
of Orion on one worker and on two: with arrays of subscripts that anybody may change, which are looked at in each call,
and frozen.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import sys
import textwrap
import warnings
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.indirect.loops import LOOPS, Indirect
from benchmarks.measure import interleaved, machine, seconds
from benchmarks.process import ROOT
from orion.plan.plan import Inspected
from orion.planned import Plan

RESULTS = ROOT / "benchmarks" / "results" / "indirect.json"
WIDTH = 190
LARGE = 1_000_000
SMALLER = {"update_rows": 5, "histograms": 10, "forces": 3, "edge_updates": 2, "two_tables": 3, "assemble": 2}
"""Loops whose iterations have more to do: they have so many times fewer."""

FEW = 400
"""Iterations where results are compared."""


@dataclass(frozen=True)
class Row:
    """What was found of a loop: milliseconds by contender, the inspection's too."""

    one: Indirect
    n: int
    by: str
    right: str
    times: dict[str, float] = field(default_factory=dict)
    inspection: float | None = None

    def in_runs(self, milliseconds: float | None) -> str:
        return "" if milliseconds is None else f"{milliseconds / self.times['njit']:.2f}"

    @property
    def gain(self) -> float:
        """How many times as fast as `njit` two workers are, with frozen arrays of subscripts."""
        return self.times["njit"] / self.times["x2 frozen"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Loops whose subscripts are read from arrays.")
    names = [one.name for one in LOOPS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="these loops only")
    parser.add_argument("--repeats", type=int, default=9, help="measurements of each contender")
    options = parser.parse_args()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    rows = []
    for one in LOOPS:
        if one.name in options.only:
            with console.status(one.name):
                rows.append(row_of(one, options.repeats))
    console.print(table(rows))
    parallel = [row for row in rows if not row.by.startswith("serial")]
    console.print(f"parallel {len(parallel)} of {len(rows)}, right {sum(bool(row.right) for row in rows)}")
    RESULTS.parent.mkdir(exist_ok=True)
    found = {row.one.name: {"by": row.by, "right": row.right, "ms": row.times} for row in rows}
    RESULTS.write_text(json.dumps({"machine": machine(), "loops": found}))


def row_of(one: Indirect, repeats: int) -> Row:
    n = LARGE // SMALLER.get(one.name, 1)
    decorated, arguments = decorate(one), one.arguments(n)
    frozen = frozen_arguments(one, n)
    compiled = numba.njit(one.function)
    sessions = {workers: orion.session(workers=workers) for workers in (1, 2)}
    with sessions[2]:
        plan = decorated.plan(*frozen, inspect=True)
        decorated.plan(*arguments, inspect=True)
        calls = {
            "njit": lambda: seconds(lambda: compiled(*arguments)),
            "x2": lambda: seconds(lambda: decorated(*arguments)),
            "x2 frozen": lambda: seconds(lambda: decorated(*frozen)),
        }
        for call in calls.values():
            call(), call()
        values = interleaved(calls, repeats)
    with sessions[1]:
        decorated(*frozen)
        values |= interleaved({"x1": lambda: seconds(lambda: decorated(*frozen))}, repeats)
    times = {name: 1e3 * median(found) for name, found in values.items()}
    (loop, *_) = plan.loops
    spent = loop.tiles.inspection.inspection_ns / 1e6 if isinstance(loop.tiles, Inspected) else None
    return Row(one, n, decided_by(plan), rightness(one), times, spent)


def decorate(one: Indirect) -> Any:
    return orion.parallel_for(one.function) if one.ordered else orion.parallel_for(ordered=False)(one.function)


def frozen_arguments(one: Indirect, n: int) -> tuple[Any, ...]:
    """The arguments with arrays of subscripts, which the loop does not write, that nobody may change."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(one.function)))
    stores = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)]
    written = {node.value.id for node in stores if isinstance(node.value, ast.Name)}
    pairs = zip(inspect.signature(one.function).parameters, one.arguments(n), strict=True)
    return tuple(
        orion.freeze(value)
        if name not in written and isinstance(value, np.ndarray) and value.dtype.kind in "iu"
        else value
        for name, value in pairs
    )


def decided_by(plan: Plan) -> str:
    """What makes a loop parallel at these sizes."""
    (loop, *_) = plan.loops
    if isinstance(loop.tiles, Inspected):
        found = loop.tiles.inspection
        return f"inspected: {found.tiles:,} tiles ({found.kind.name.lower()}), depth {found.depth:,}"
    if loop.runs_on == 1:
        looked = next((reason for reason in loop.reasons if reason.code == "ORN128"), None)
        return "serial" + ("" if looked is None else " (tiles would gain too little)")
    held = [one for one in plan.conditions if "element" in one or "goes down" in one]
    return "; ".join(held) or (f"copies of {loop.copies[0].array}" if loop.copies else str(loop.strategy))


# ---------------------------------------------------------------- whether it is right


def rightness(one: Indirect) -> str:
    """Whether results are the same on 1, 2 and 4 workers: "to the bit", "rounded", or nothing where they are wrong."""
    decorated, found = decorate(one), "to the bit"
    for workers in (1, 2, 4):
        with orion.session(workers=workers, force_parallel=True):
            mine, theirs = one.arguments(FEW), one.arguments(FEW)
            plan = decorated.plan(*mine, inspect=True)
            decorated(*mine)
            (loop, *more) = plan.loops
            order = None if one.ordered or more or loop.copies else plan.serial_order(workers)[:, 0].tolist()
            in_order(one, plan.loops[0].nest.dims[0], order)(*theirs)
        pairs = [pair for pair in zip(mine, theirs, strict=True) if isinstance(pair[0], np.ndarray)]
        if all(np.array_equal(a, b, equal_nan=True) for a, b in pairs):
            continue
        if not all(np.allclose(a, b, rtol=1e-9, equal_nan=True) for a, b in pairs):
            return ""
        found = "rounded"
    return found


def in_order(one: Indirect, variable: str, order: list[int] | None) -> Any:
    """The function, with the iterations of its outermost loop in another order; where the planned loop has another
    variable, that of a loop directly inside of it, the iterations of both."""
    if order is None:
        return one.function
    tree = ast.parse(textwrap.dedent(inspect.getsource(one.function)))
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    loop = next(node for node in definition.body if isinstance(node, ast.For))
    if ast.unparse(loop.target) != variable:
        (inner,) = loop.body
        assert isinstance(inner, ast.For)
        definition.body[definition.body.index(loop)] = loop = inner
    loop.iter = ast.Name("ORDER", ast.Load())
    space: dict[str, Any] = {"np": np, "ORDER": list(dict.fromkeys(order))}
    exec(compile(ast.fix_missing_locations(tree), one.name, "exec"), space)
    return space[one.name]


# ---------------------------------------------------------------- what is printed


def table(rows: list[Row]) -> Table:
    found = Table(
        "loop", "n", "order", "runs by", "right", "njit ms", "×1 ms", "×2 ms", "frozen ×2 ms", "check, runs",
        "inspection, runs", "gain on 2",
    )  # fmt: skip
    for row in rows:
        times = row.times
        found.add_row(
            row.one.name,
            f"{row.n:,}",
            "as written" if row.one.ordered else "any",
            row.by,
            row.right or "NO",
            *(f"{times[name]:.2f}" for name in ("njit", "x1", "x2", "x2 frozen")),
            row.in_runs(max(0.0, times["x2"] - times["x2 frozen"])),
            row.in_runs(row.inspection),
            f"{row.gain:.2f}",
        )
    return found


if __name__ == "__main__":
    main()
