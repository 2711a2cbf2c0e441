"""Loops as users write them (`benchmarks/everyday/`): which are taken, which are wholly parallel, and that results are
right. `make everyday` runs and times all of them."""

import warnings

import pytest

import orion
from benchmarks.everyday.case import Nature
from benchmarks.everyday.cases import CASES, DOMAINS
from benchmarks.everyday.one import agree, run
from benchmarks.everyday.planning import Planned, Refused, planned
from tests.trials import ALL

AS_IT_IS = {
    "skipgram_pairs", "longest_common_subsequence", "lennard_jones",
    "degree_counts", "dag_levels", "price_bars",
}  # fmt: skip
"""Those that are not analysed yet: Numba compiles them as they are."""

WHOLLY = 0.85
"""The least part of the loops that are parallel by their nature, and taken, which are wholly parallel."""

ANALYSED = [case for case in CASES if case.name not in AS_IT_IS]


def test_there_are_many_of_many_kinds():
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({case.kind for case in CASES}) >= 30
    assert len(DOMAINS) >= 9


SOME = [*ANALYSED[::4], *(case for case in CASES if case.name in AS_IT_IS)]


@pytest.fixture(scope="module")
def found():
    """What is made of each loop, or of one in four, planned for two workers at its large size."""
    with warnings.catch_warnings(), orion.session(workers=2):
        warnings.simplefilter("ignore")
        return {case.name: planned(case, case.arguments(case.large)) for case in (CASES if ALL else SOME)}


def test_those_that_are_not_analysed_are_known(found):
    others = {name: one for name, one in found.items() if isinstance(one, Refused)}
    assert {*others} == AS_IT_IS
    assert all(one.as_it_is for one in others.values())


def test_most_that_are_parallel_are_wholly_so(found):
    natures = (Nature.PARALLEL, Nature.WAVEFRONT)
    able = [one for case in ANALYSED if case.nature in natures and isinstance(one := found.get(case.name), Planned)]
    assert sum(one.is_wholly_parallel for one in able) >= WHOLLY * len(able)


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_results_are_those_of_plain_python(case):
    with orion.session(workers=2, force_parallel=True):
        mine = run(orion.parallel_for(case.function), case, case.small)
    assert agree(mine, run(case.function, case, case.small))
