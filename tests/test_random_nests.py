"""Random loop nests through all three oracles: brute-force dependences, schedule proof, undecorated function."""

import warnings

import islpy as isl
import numpy as np
from hypothesis import HealthCheck, given, note, settings

import orion
from orion.dependence.bounds import fix_parameters
from orion.errors import SerialLoopWarning
from orion.plan.extents import parameter_values
from tests.oracles.brute_force import record
from tests.oracles.random_nests import RandomNest, random_nests

EXAMPLES = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def reported(loop, arguments):
    values = parameter_values({n: a.shape for n, a in arguments.items() if isinstance(a, np.ndarray)}, {"c": 2})
    pairs = set()
    for text in {dependence.relation for dependence in loop.dependences}:
        relation = fix_parameters(isl.Map(text).wrap(), values)
        relation.foreach_point(lambda point: pairs.add(_coordinates(point)))
    half = len(loop.nest.dims)
    return {(p[:half], p[half:]) for p in pairs} | {(p[half:], p[:half]) for p in pairs}


def _coordinates(point):
    count = point.get_space().dim(isl.dim_type.set)
    return tuple(int(point.get_coordinate_val(isl.dim_type.set, d).to_python()) for d in range(count))


@EXAMPLES
@given(random_nests())
def test_brute_force_finds_no_conflict_that_the_analysis_misses(nest: RandomNest):
    note(str(nest))
    function, arguments = nest.function(), nest.arguments()
    plan = orion.parallel_for(ordered=nest.ordered)(function).plan(**arguments)
    if len(plan.loops) != 1 or plan.loops[0].nest.loops[0].index != 0:
        return  # an outer loop was opened: its rounds are not iterations of the planned loop
    (loop,) = plan.loops
    conflicts = record(function, arguments, len(loop.nest.dims)).conflicts()
    assert conflicts <= reported(loop, arguments)
    if loop.strategy == "independent" and loop.origin is None:
        assert not conflicts


@EXAMPLES
@given(random_nests())
def test_every_plan_is_proved_by_isl(nest: RandomNest):
    note(str(nest))
    plan = orion.parallel_for(ordered=nest.ordered)(nest.function()).plan(**nest.arguments())
    plan.check()


@EXAMPLES
@given(random_nests())
def test_results_equal_those_of_the_undecorated_function(nest: RandomNest):
    note(str(nest))
    function = nest.function()
    compiled = orion.parallel_for(ordered=True)(function)
    expected = nest.arguments()
    function(**expected)
    for workers in (1, 2, 3):
        given_arrays = nest.arguments()
        with warnings.catch_warnings(), orion.session(workers=workers, force_parallel=True):
            warnings.simplefilter("ignore", SerialLoopWarning)
            compiled(**given_arrays)
        for name in ("a", "b", "M"):
            np.testing.assert_array_equal(given_arrays[name], expected[name], err_msg=f"{name}, {workers} workers")
