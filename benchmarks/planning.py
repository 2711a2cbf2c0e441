"""How long a first plan takes: `python -m benchmarks.planning`, for every example loop.

`plan` is `f.plan(*arguments)` of a function that was never planned: from its source to strategies, parsing included.
`parse` is the part of it up to types and loops without any analysis. `prove` is what a first call adds before
anything is compiled: the schedules and their proofs, and subscripts proved within shapes. Milliseconds, the least of
several tries, each with a function of its own; modules are imported before.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from types import FunctionType
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import orion
from orion.cost.extents import parameter_values
from orion.dependence.bounds import prove_bounds
from orion.frontend.parse import parse_function
from orion.ir.nodes import Assign, Update, walk
from orion.ir.signature import argument_types
from orion.passes.split import split_program
from orion.pipeline import checks_of, make_plan, through_passes
from orion.plan.plan import source_nest
from orion.prepare import Preparation
from orion.prepared_call import Options
from orion.typing.infer import infer_types

from .polybench.kernels import KERNELS

ROOT = Path(__file__).parent.parent
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Example:
    """A function and arguments for it."""

    group: str
    name: str
    function: FunctionType
    arguments: Callable[[], tuple[Any, ...]]
    ordered: bool | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of one example, and the assignments in its loops."""

    example: Example
    statements: int
    parse: float
    plan: float
    prove: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long a first plan takes.")
    parser.add_argument("--only", default="", help="examples whose group or name has this text")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    chosen = [one for one in examples() if options.only in one.group or options.only in one.name]
    if not chosen:
        sys.exit(f"no example has {options.only!r} in its name")
    measured(chosen[0])  # imports everything
    show([min((measured(one) for _ in range(options.repeats)), key=lambda t: t.plan) for one in chosen])


# ---------------------------------------------------------------- examples


def examples() -> Iterator[Example]:
    """All of them, by group."""
    sys.path.insert(0, str(ROOT / "examples"))
    import sgd_mf

    from tests import reorder_loops, trap_loops

    elements = orion.sparse((np.arange(30) % 6, np.arange(30) % 5), np.ones(30))
    factors = (np.ones((6, 4)), np.ones((5, 4)))
    sums = (np.ones(6), np.ones(5))
    yield Example("sgd_mf", "sgd", sgd_mf.sgd.__wrapped__, lambda: (elements, *factors, 0.1, 0.1, 2))
    yield Example("sgd_mf", "adagrad", sgd_mf.adagrad.__wrapped__, lambda: (elements, *factors, *sums, 0.1, 0.1, 2))
    yield Example("sgd_mf", "rmse", sgd_mf.rmse.__wrapped__, lambda: (elements, *factors))
    for function, (make, _) in trap_loops.TRAPS.items():
        yield Example("traps", function.__name__, function, make)
    for function, arguments in reorder_loops.arguments(12).items():
        yield Example("orders", function.__name__, function, lambda given=arguments: given)
    for kernel in KERNELS:
        yield Example("polybench", kernel.name, kernel.function, lambda k=kernel: tuple(k.inputs("tiny").values()))


# ---------------------------------------------------------------- measuring


def measured(example: Example) -> Times:
    """One try."""
    names = example.function.__code__.co_varnames
    arguments = dict(zip(names, example.arguments(), strict=False))
    start = perf_counter()
    types, shapes = argument_types(arguments)
    function = through_passes(parse_function(example.function), types)
    infer_types(function, types)
    split_program(function, types, example.ordered)
    parse = perf_counter() - start
    preparation = Preparation(example.function, Options(example.ordered))
    start = perf_counter()
    plan = preparation.plan(arguments, WORKERS, False)
    planned = perf_counter() - start
    start = perf_counter()
    typed, shapes = preparation.typed_for(types, shapes, arguments)
    plan = make_plan(typed, arguments, shapes, WORKERS, True)
    values = parameter_values(plan.sizes.shapes, plan.sizes.integers)
    for loop, checks in zip(plan.function.loops, checks_of(typed, plan.function), strict=True):
        plan.proved_schedule(loop)
        prove_bounds(checks, values, source_nest(loop))
    prove = perf_counter() - start
    statements = sum(isinstance(node, Assign | Update) for part in function.body for node in walk(part))
    return Times(example, statements, 1e3 * parse, 1e3 * planned, 1e3 * prove)


def show(times: list[Times]) -> None:
    """A row per example, then the median and the worst of each group and of all."""
    table = Table(title="milliseconds of a first plan", title_justify="left")
    for name in ("group", "loops of", "statements", "parse", "plan", "prove"):
        table.add_column(name, justify="left" if name in ("group", "loops of") else "right")
    for one in times:
        numbers = _numbers(one.parse, one.plan, one.prove)
        table.add_row(one.example.group, one.example.name, str(one.statements), *numbers)
    groups = dict.fromkeys(one.example.group for one in times)
    for group in (*groups, "all"):
        here = [one for one in times if group in (one.example.group, "all")]
        columns = [[one.parse for one in here], [one.plan for one in here], [one.prove for one in here]]
        table.add_section()
        table.add_row(group, "median", "", *_numbers(*map(median, columns)))
        table.add_row(group, "worst", "", *_numbers(*map(max, columns)))
    Console(width=100).print(table)


def _numbers(*values: float) -> tuple[str, ...]:
    return tuple(f"{value:.1f}" for value in values)


if __name__ == "__main__":
    main()
