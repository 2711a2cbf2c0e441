"""What runs inside planned bands is made where a kernel is wanted; until then its outline stands for it."""

import pytest

import orion
from orion.dependence.scalars import scalar_roles
from orion.frontend.parse import parse_function
from orion.ir.nodes import Subscript, walk
from orion.ir.program import OfNewOrder
from orion.ir.signature import argument_types
from orion.passes.split import split_program
from orion.pipeline import REWRITES, through_passes
from orion.plan.deferred_bodies import with_deferred_bodies
from orion.plan.rewriting import Seen, variants_of
from orion.rewrites.reorder import apply
from tests import reorder_loops

LOOPS = reorder_loops.arguments(12)


def planned(function, values):
    types, _ = argument_types(dict(zip(function.__code__.co_varnames, values, strict=False)))
    parsed = through_passes(parse_function(function), types)
    return variants_of(split_program(parsed, types, None), types, Seen(parsed, REWRITES))[0], types


def accessed(nest) -> set[str]:
    return {node.base.name for part in nest.body for node in walk(part) if isinstance(node, Subscript)}


@pytest.mark.parametrize("function", LOOPS, ids=lambda function: function.__name__)
def test_outlines_say_what_the_bodies_do(function):
    analysed, types = planned(function, LOOPS[function])
    made = with_deferred_bodies(analysed.program, analysed.deferred, types)
    buffers = {buffer.name for nest in made.program.nests for buffer in nest.buffers}
    for one in analysed.deferred:
        for number, live in enumerate(one.live, one.first):
            outline, body = analysed.program.nests[number], made.program.nests[number]
            assert accessed(outline) == accessed(body) - buffers
            roles = scalar_roles(outline, types, live)
            assert (roles.carried, roles.reductions) == (made.scalars[number].carried, made.scalars[number].reductions)
    others = set(range(len(analysed.program.nests))) - made.scalars.keys()
    assert all(made.program.nests[number] is analysed.program.nests[number] for number in others)


@pytest.mark.parametrize("function", LOOPS, ids=lambda function: function.__name__)
def test_a_plan_needs_no_bodies(function, monkeypatch):
    deferred = planned(function, LOOPS[function])[0].deferred
    decorated = orion.parallel_for(function)
    if deferred:
        monkeypatch.setattr(apply, "generate", lambda *_: pytest.fail("the body was made"))
    with orion.session(force_parallel=True):
        plan = decorated.plan(*LOOPS[function])
        assert str(plan)
        assert plan.to_dict()
        if any(isinstance(part.nest.form, OfNewOrder) for part in plan.function.loops) and deferred:
            with pytest.raises(pytest.fail.Exception):
                decorated.kernel_source(*LOOPS[function])


def test_most_new_orders_have_outlines():
    deferred = [bool(planned(function, LOOPS[function])[0].deferred) for function in LOOPS]
    assert sum(deferred) > len(LOOPS) / 2
