"""Analyses that do not see something, or find legal what is not: to plan with, and see whether the checker minds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import islpy as isl

from orion.analysis.strategies import tiling
from orion.dependence import analyse, conditions, references, relations, scalars
from orion.dependence import early_exits as exits
from orion.ir.program import LoopNest
from orion.ir.types import Types
from orion.planned import Plan
from orion.rewrites.array_sums import find as sums
from orion.rewrites.copy_in import find as copy_in
from orion.rewrites.early_exits import find as early_exits
from orion.rewrites.fuse import find as fuse
from orion.rewrites.privatize import find as privatize
from orion.rewrites.reorder import apply as reorder
from orion.rewrites.skewed_buffers import find as skew
from orion.rewrites.time_tiles import find as time_tiles
from orion.sets.affine import Affine

SOME = range(3)
"""Which of the first things of a kind are left out, one at a time."""


@contextmanager
def everywhere(given: Callable[..., Any], other: Callable[..., Any]) -> Iterator[None]:
    """Another function in place of one, wherever it has been imported."""
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("orion"):
                for attribute, value in list(vars(module).items()):
                    if value is given:
                        stack.enter_context(patch.object(module, attribute, other))
        yield


@contextmanager
def unchecked() -> Iterator[None]:
    """Planning without the checks that it makes itself."""
    with (
        everywhere(reorder.prove_order, lambda *_: None),
        patch.object(Plan, "proved_schedule", lambda self, loop: self.schedule_of(loop, loop.runs_on)),
    ):
        yield


def _dependences_without(number: int) -> Callable[..., Any]:
    given = analyse.analyse_loop

    def found(*arguments: Any, **named: Any) -> Any:
        result = given(*arguments, **named)
        kept = tuple(one for at, one in enumerate(result.dependences) if at != number)
        return replace(result, dependences=kept)

    return found


def _relations_without(number: int) -> Callable[..., Any]:
    given = relations.relations_of

    def found(*arguments: Any) -> Any:
        result = given(*arguments)
        kept = tuple(one for at, one in enumerate(result.pairs) if at != number)
        context = result.dependences.get_ctx()
        every = relations.united((pair.instances for pair in kept), context)
        flow = relations.united((pair.instances for pair in kept if pair.is_flow), context)
        return replace(result, pairs=kept, dependences=every.coalesce(), flow=flow)

    return found


def _references_changed(number: int, change: Callable[[Any], Any]) -> Callable[..., Any]:
    given = references.collect_references

    def found(*arguments: Any, **named: Any) -> Any:
        result = given(*arguments, **named)
        return tuple(new for at, one in enumerate(result) for new in (change(one) if at == number else (one,)))

    return found


def _off_by_one(reference: Any) -> tuple[Any, ...]:
    for at, axis in enumerate(reference.axes):
        if isinstance(axis, Affine):
            wrong = Affine(f"({axis.text}) + 1", axis.names)
            return (replace(reference, axes=(*reference.axes[:at], wrong, *reference.axes[at + 1 :])),)
    return (reference,)


def _read_only(reference: Any) -> tuple[Any, ...]:
    return (replace(reference, is_write=False),)


def _private_scalars(nest: LoopNest, types: Types, live_after: Any) -> Any:
    given = SCALAR_ROLES(nest, types, live_after)
    return replace(given, carried=(), private=(*given.private, *(name for name, _ in given.carried)))


SCALAR_ROLES = scalars.scalar_roles


def _nothing_live(program: Any) -> dict[int, frozenset[str]]:
    return {nest.number: frozenset() for nest in program.nests}


def _all_private(nest: LoopNest, types: Types, among: Any, *_: Any, **__: Any) -> tuple[str, ...]:
    return tuple(name for name in among if privatize._can_be_copied(types.get(name)))


def _always_sums(name: str, nest: LoopNest, types: Types) -> Any:
    return SUM_INTO(name, nest, types) or ("+", nest.span)


SUM_INTO = sums.sum_into


def _any_depth(first: Any, second: Any, most: int, maps: Any) -> Any:
    found = SHARED_DEPTH(first, second, most, maps)
    return replace(found, depth=most) if hasattr(found, "depth") else found


SHARED_DEPTH = fuse.shared_depth


def _free(*_: Any, **__: Any) -> Any:
    return isl.Set("{ : }")


def _named() -> Iterator[tuple[str, Callable[[], Any]]]:
    for number in SOME:
        yield f"dependence {number} unseen", partial(everywhere, analyse.analyse_loop, _dependences_without(number))
        yield (
            f"pair of accesses {number} unseen",
            partial(everywhere, relations.relations_of, _relations_without(number)),
        )
        for kind, change in (("unseen", lambda _: ()), ("off by one", _off_by_one), ("taken for a read", _read_only)):
            changed = _references_changed(number, change)
            yield f"reference {number} {kind}", partial(everywhere, references.collect_references, changed)
    yield "carried scalars private", partial(everywhere, scalars.scalar_roles, _private_scalars)
    yield "no scalar live after a loop", partial(everywhere, scalars.live_after_each, _nothing_live)
    yield "all arrays private", partial(everywhere, privatize.private_arrays, _all_private)
    yield "all arrays summed", partial(everywhere, sums.sum_into, _always_sums)
    yield "all reads may see copies", partial(everywhere, copy_in.may_see_copy, lambda *_: True)
    yield "all neighbours fused", partial(everywhere, fuse.shared_depth, _any_depth)
    yield "all differences allowed", partial(everywhere, tiling.is_within, lambda *_, **__: True)
    yield "all loops skewed", partial(everywhere, skew.is_skewable, lambda *_: True)
    yield "all sweeps in tiles", partial(everywhere, time_tiles.is_permutable, lambda *_: True)
    yield "no condition needed", partial(everywhere, conditions.free_of, _free)
    yield "no condition on subscripts needed", partial(everywhere, conditions.free_of_all, _free)
    yield "all iterations harmless", partial(everywhere, early_exits.is_harmless, lambda *_: True)
    yield "all scalars set at the exit", partial(everywhere, exits.set_at_exit, lambda *_: True)


UNSEEN: dict[str, Callable[[], Any]] = dict(_named())
"""What is broken → the context in which it is."""
