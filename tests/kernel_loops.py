"""Kernels made from Python functions, and run tile by tile, for the tests of `orion.kernel`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from orion.arrays.dense import DenseArray
from orion.cost.candidate import Strategy
from orion.dependence.access import LoopDependences
from orion.dependence.bounds import Place
from orion.dependence.scalars import live_after, scalar_roles
from orion.frontend.parse import parse_function
from orion.ir.nodes import Const, Range
from orion.ir.program import Program
from orion.ir.types import ArgumentType, ArrayType, ScalarType, SparseType
from orion.kernel.build.compile import CompiledKernel, compile_kernel
from orion.kernel.calling import CONTROL_SIZE, FLAG_STRIDE, KernelSource, Walk
from orion.kernel.emit.kernel import emit_kernel
from orion.passes.split import split_program
from orion.pipeline import through_passes
from orion.plan.deal import Even
from orion.plan.plan import LoopPlan, Uncut, Written
from orion.plan.relaxed import NOT_RELAXED
from orion.typing.infer import infer_types


def assembly(kernel: CompiledKernel) -> str:
    """The assembly of a kernel."""
    return "\n".join(getattr(kernel.module, kernel.source.entry).inspect_asm().values())


@dataclass(frozen=True)
class Ratings:
    """A sparse array as the tests pass it: coordinates and values in the order in which they are to be visited."""

    keys: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.keys[0])

    def __iter__(self) -> Any:
        for row in zip(zip(*self.keys, strict=True), *self.values, strict=True):
            yield tuple(map(int, row[0])), (row[1] if len(self.values) == 1 else tuple(row[1:]))


def mf(ratings: Any, W: Any, H: Any, step: float, reg: float) -> None:
    """Stochastic gradient descent for a factorization of a matrix."""
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * (err * H[j] - reg * W[i])
        H[j] += step * (err * wi - reg * H[j])


def adagrad(ratings: Any, W: Any, H: Any, GW: Any, GH: Any, step: float, reg: float) -> None:
    """The same with steps that become smaller, as AdaGrad has them."""
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        gw = err * H[j] - reg * W[i]
        gh = err * W[i] - reg * H[j]
        GW[i] += gw * gw
        GH[j] += gh * gh
        W[i] += step * gw / np.sqrt(GW[i])
        H[j] += step * gh / np.sqrt(GH[j])


def type_of(value: object) -> ArgumentType:
    if isinstance(value, Ratings):
        dtypes = tuple(v.dtype.name for v in value.values)
        return SparseType(len(value.keys), value.keys[0].dtype.name, dtypes, single=len(dtypes) == 1)
    if isinstance(value, DenseArray):
        return ArrayType(value.dtype.name, len(value.shape), aligned=True, padded=True)
    if isinstance(value, np.ndarray):
        return ArrayType(value.dtype.name, value.ndim, bool(value.flags.c_contiguous), writeable=value.flags.writeable)
    if isinstance(value, np.generic):
        return ScalarType(value.dtype.name)
    return ScalarType({bool: "bool", int: "int64", float: "float64"}[type(value)], weak=True)


def shape_of(value: object) -> tuple[int, ...]:
    return tuple(int(key.max(initial=-1)) + 1 for key in value.keys) if isinstance(value, Ratings) else value.shape


@dataclass(frozen=True)
class Loop:
    """One loop of a function with its arguments."""

    source: KernelSource
    plan: LoopPlan
    values: dict[str, Any]


def make_loop(
    function: Callable[..., Any],
    *arguments: Any,
    number: int = 0,
    fastmath: bool = True,
    proved: str | frozenset[Place] | None = "affine",
    cuts: tuple[int, ...] | None = None,
) -> Loop:
    """The kernel of loop `number` of the function for these arguments.

    `cuts` are the blocks per dimension, 2 if not given. `proved="affine"`: what the bounds check proves.
    """
    parsed = parse_function(function)
    values = dict(zip(parsed.params, arguments, strict=True))
    types = {name: type_of(value) for name, value in values.items()}
    shapes = {name: shape_of(value) for name, value in values.items() if not np.isscalar(value)}
    program = split_program(through_passes(parsed, types), types)
    nest = program.nests[number]
    roles = scalar_roles(nest, types, live_after(program, number))
    analysis = LoopDependences("", (), (), roles, ())
    plan = LoopPlan(
        nest=nest,
        form=Written(),
        strategy=Strategy.SERIAL,
        tiles=Uncut(),
        cuts=cuts or (2,) * len(nest.dims),
        is_parallel=False,
        ordered=nest.ordered,
        analysis=analysis,
        placements=(),
        reasons=(),
        runs_on=1,
        iterations=None,
        rewrites=(),
        rounds_overlap=True,
        copies=(),
        works=(),
        is_dynamic=False,
        deal=Even(follows_times=False),
        relaxed=NOT_RELAXED,
        served=(),
        read_in_part=(),
        known=(),
    )
    if proved == "affine":
        proved = prove(program, number, types, shapes, values)
    source = emit_kernel(plan, types, shapes, infer_types(program.function, types), fastmath, proved)
    return Loop(source, plan, values)


def prove(program: Program, number: int, types: Any, shapes: Any, values: dict[str, Any]) -> frozenset[Place]:
    from orion.dependence.bounds import bounds_checks, prove_bounds
    from orion.sets.names import extent_name

    known = {extent_name(name, axis): extent for name, shape in shapes.items() for axis, extent in enumerate(shape)}
    known |= {name: int(value) for name, value in values.items() if isinstance(value, int | np.integer)}
    return prove_bounds(bounds_checks(program, number, types), known, program.nests[number])


def run_loop(loop: Loop, walk: Walk, extents: Any = None, tiles: Any = None, **scalars: Any) -> dict[str, Any]:
    """Run the loop on one worker; the partial results and carried values by name, and "control".

    `extents` are the offsets or boxes of the tiles (default: one tile with everything). `scalars` are values of scalars
    that are not arguments of the function.
    """
    values = {**loop.values, **scalars}
    if extents is None:
        elements = loop.plan.nest.elements
        if elements is not None:
            extents = [0, len(values[elements.array])]
        else:
            extents = [[whole_range(space) for space in loop.plan.nest.ranges]]
    extents = np.array(extents, np.int64)
    count = len(extents) - 1 if extents.ndim == 1 else len(extents)
    tiles = np.arange(count) if tiles is None else np.asarray(tiles)
    control = np.zeros(CONTROL_SIZE, np.int64)
    done = np.zeros(FLAG_STRIDE * count, np.int64)
    none = np.zeros(0, np.int64)
    results: dict[str, Any] = {"control": control, "done": done[::FLAG_STRIDE]}
    arguments = [argument_value(a, values, results, count) for a in loop.source.arguments]
    block = walk.block(extents, control, arguments)
    walk(block, tiles.astype(np.int64), 0, np.zeros(count + 1, np.int64), none, none, done, control)
    return results


def whole_range(space: Range) -> list[int]:
    """A block that holds all coordinates: values of the variable where the step is 1, trip numbers where it is not."""
    return [-(2**40) if isinstance(space.step, Const) and space.step.value == 1 else 0, 2**40]


def argument_value(argument: Any, values: dict[str, Any], results: dict[str, Any], tiles: int) -> Any:
    match argument.kind:
        case "partial" | "chosen":
            results[argument.name] = np.zeros(tiles, argument.dtype)
            return results[argument.name]
        case "place":
            results[f"place of {argument.name}"] = np.zeros(tiles, argument.dtype)
            return results[f"place of {argument.name}"]
        case "carried":
            results[argument.name] = np.array([values[argument.name]], argument.dtype)
            return results[argument.name]
        case "key":
            return np.ascontiguousarray(values[argument.name].keys[argument.position])
        case "value":
            return np.ascontiguousarray(values[argument.name].values[argument.position])
        case "count":
            return len(values[argument.name])
        case "scalar":
            return np.dtype(argument.dtype).type(values[argument.name]).item()
        case _:
            value = values[argument.name]
            return value.storage if isinstance(value, DenseArray) else value


@pytest.fixture(scope="module", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A cache folder of a file's own, for tests that look at machine code, which kernels from disk do not show, or that
    must not find any. Test files import this fixture by name; all others share the user's folder, from run to run.

    Kernels that this process has taken from the user's folder are set aside, too: canonical source is the same for
    loops of other tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORION_CACHE", str(tmp_path_factory.mktemp("kernels")))
        for name in [name for name in sys.modules if name.startswith("orion_kernel_")]:
            patch.delitem(sys.modules, name)
        yield


def compiled(loop: Loop) -> Callable[..., None]:
    return compile_kernel(loop.source).walk
