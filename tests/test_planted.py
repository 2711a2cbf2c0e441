"""Faults planted in plans, and in the analysis that they are made by, are found by the checker (`tests.planted`)."""

from __future__ import annotations

import warnings

import pytest

from tests.oracles.nest_strategy import random_nest
from tests.planted import SPECIAL_SOURCES, Counts, plant, special

RANDOM = [random_nest(11, number) for number in (1, 2, 3)]


def planted(nest):
    counts = Counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plant(nest, counts)
    return counts


@pytest.mark.parametrize("nest", RANDOM, ids=range(len(RANDOM)))
def test_no_fault_in_a_random_nest_that_changes_results_is_missed(nest):
    assert not planted(nest).missed


@pytest.mark.parametrize("nest", special(), ids=[*SPECIAL_SOURCES])
def test_no_fault_that_changes_results_is_missed(nest):
    counts = planted(nest)
    assert not counts.missed
    assert sum(number for (_, outcome), number in counts.outcomes.items() if outcome == "killed") > 5
