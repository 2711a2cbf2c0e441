"""How long planning takes: `python -m benchmarks.planning`, for every example loop and for whole programs.

`plan` is `f.plan(*arguments)` of a function that was never planned: from its source to strategies, parsing included.
`parse` is the part of it up to types and loops without any analysis. `prove` is what a first call adds before
anything is compiled: the schedules and their proofs, and subscripts proved within shapes. `together` is plan and
prove, and `sizes` the same for other sizes of a function that was planned before. Milliseconds, the least of several
tries, each with a function of its own; modules are imported before. A program that Orion refuses is said to be.
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
from orion.known import Typed
from orion.passes.split import split_program
from orion.pipeline import checks_of, make_plan, through_passes
from orion.plan.plan import source_nest
from orion.planned import Plan
from orion.prepare import Preparation
from orion.prepared_call import Options
from orion.typing.infer import infer_types, with_local_arrays

from .polybench.kernels import KERNELS
from .programs.all import PROGRAMS

ROOT = Path(__file__).parent.parent
WORKERS = 2

Given = dict[str, Any]
"""Arguments by their names."""


@dataclass(frozen=True, slots=True)
class Example:
    """A function and arguments for it: `other` have other sizes, where the example has two."""

    group: str
    name: str
    function: FunctionType
    arguments: Callable[[], tuple[Any, ...]]
    ordered: bool | None = None
    other: Callable[[], tuple[Any, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of one example, and the assignments in its loops; `sizes` is None where it has no other sizes."""

    statements: int
    parse: float
    plan: float
    prove: float
    sizes: float | None

    @property
    def together(self) -> float:
        return self.plan + self.prove


@dataclass(frozen=True, slots=True)
class Measured:
    """An example with its times, or the first words of what it is refused for."""

    example: Example
    times: Times | None
    refusal: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long planning takes.")
    parser.add_argument("--only", default="", help="examples whose group or name has this text")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    chosen = [one for one in examples() if options.only in one.group or options.only in one.name]
    if not chosen:
        sys.exit(f"no example has {options.only!r} in its name")
    with orion.session(workers=WORKERS):
        least(chosen[0], 1)  # imports everything
        show([least(one, options.repeats) for one in chosen])


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
    larger = reorder_loops.arguments(17)
    for function, arguments in reorder_loops.arguments(12).items():
        other = larger[function]
        name = function.__name__
        yield Example("orders", name, function, lambda one=arguments: one, other=lambda one=other: one)
    for kernel in KERNELS:
        tiny, small = (lambda k=kernel, s=size: tuple(k.inputs(s).values()) for size in ("tiny", "small"))
        yield Example("polybench", kernel.name, kernel.function, tiny, other=small)
    for one in PROGRAMS:
        tiny, large = (lambda p=one, s=size: p.arguments(s) for size in ("tiny", "large"))
        yield Example("programs", one.name, one.function.__wrapped__, tiny, other=large)


# ---------------------------------------------------------------- measuring


def least(example: Example, repeats: int) -> Measured:
    """The least times of several tries, each column by itself."""
    try:
        tries = [measured(example) for _ in range(repeats)]
    except orion.UnsupportedLoopError as error:
        return Measured(example, None, str(error).splitlines()[0].partition(": ")[2])
    changes = [one.sizes for one in tries if one.sizes is not None]
    columns = (min(one.parse for one in tries), min(one.plan for one in tries), min(one.prove for one in tries))
    return Measured(example, Times(tries[0].statements, *columns, min(changes, default=None)))


def measured(example: Example) -> Times:
    """One try."""
    arguments = _named(example, example.arguments())
    start = perf_counter()
    types, shapes = argument_types(arguments)
    function = through_passes(parse_function(example.function), types)
    known = with_local_arrays(types, function)
    infer_types(function, known)
    split_program(function, known, example.ordered)
    parse = perf_counter() - start
    decorated = orion.parallel_for(example.function, ordered=example.ordered)
    start = perf_counter()
    decorated.plan(**arguments)
    planned = perf_counter() - start
    preparation = Preparation(example.function, Options(example.ordered))
    typed, shapes = preparation.typed_for(types, shapes, arguments)
    plan = make_plan(typed, arguments, shapes, WORKERS, True)
    start = perf_counter()
    prove(plan, typed)
    proved = perf_counter() - start
    changed = None if example.other is None else after_change(preparation, _named(example, example.other()))
    statements = sum(isinstance(node, Assign | Update) for part in function.body for node in walk(part))
    return Times(statements, 1e3 * parse, 1e3 * planned, 1e3 * proved, changed)


def prove(plan: Plan, typed: Typed) -> None:
    """Prove the schedules of a plan, and subscripts within shapes."""
    values = parameter_values(plan.sizes.shapes, plan.sizes.integers)
    for loop, checks in zip(plan.function.loops, checks_of(typed, plan.function), strict=True):
        plan.proved_schedule(loop)
        prove_bounds(checks, values, source_nest(loop))


def after_change(preparation: Preparation, arguments: Given) -> float:
    """Milliseconds of a plan and its proofs for arguments of other sizes."""
    start = perf_counter()
    types, shapes = argument_types(arguments)
    typed, shapes = preparation.typed_for(types, shapes, arguments)
    prove(make_plan(typed, arguments, shapes, WORKERS, True), typed)
    return 1e3 * (perf_counter() - start)


def _named(example: Example, arguments: tuple[Any, ...]) -> Given:
    return dict(zip(example.function.__code__.co_varnames, arguments, strict=False))


# ---------------------------------------------------------------- the table


def show(found: list[Measured]) -> None:
    """A row per example, then the median and the worst of each group and of all."""
    table = Table(title="milliseconds of planning", title_justify="left")
    for name in ("group", "loops of", "statements", "parse", "plan", "prove", "together", "sizes"):
        table.add_column(name, justify="left" if name in ("group", "loops of") else "right")
    for one in found:
        if one.times is None:
            table.add_row(one.example.group, one.example.name, "refused")
        else:
            table.add_row(one.example.group, one.example.name, str(one.times.statements), *_row(one.times))
    groups = dict.fromkeys(one.example.group for one in found)
    for group in (*groups, "all"):
        here = [one.times for one in found if one.times is not None and group in (one.example.group, "all")]
        if here:
            table.add_section()
            for word, choose in (("median", median), ("worst", max)):
                changes = [one.sizes for one in here if one.sizes is not None]
                columns = ([getattr(one, name) for one in here] for name in ("parse", "plan", "prove", "together"))
                numbers = [*map(choose, columns), choose(changes) if changes else None]
                table.add_row(group, word, "", *map(_number, numbers))
    console = Console(width=110)
    console.print(table)
    for one in found:
        if one.times is None:
            console.print(f"{one.example.name} is refused: {one.refusal}")


def _row(times: Times) -> tuple[str, ...]:
    return tuple(map(_number, (times.parse, times.plan, times.prove, times.together, times.sizes)))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    main()
