"""When each strategy is legal: difference sets in, candidates out."""

import islpy as isl
import pytest

from orion.analysis.rules import STRATEGIES, legal_candidates, strength
from orion.analysis.strategies.tiling import Question
from orion.cost.candidate import Candidate, Strategy

# difference sets, dims, ordered -> the strategy and the (space, time) pairs that are legal
TABLE = [
    ([], 1, True, "independent", {(0, ())}),
    ([], 2, False, "independent", {(0, ()), (1, ())}),
    (["{ [0, j] : j != 0 }"], 2, False, "1d", {(0, ())}),
    (["{ [i, 0] : i > 0 }"], 2, True, "1d", {(1, ())}),
    (["{ [0, 0] }"], 2, False, "1d", {(0, ()), (1, ())}),
    (["{ [0, j] : j != 0 }", "{ [i, 0] : i != 0 }"], 2, False, "2d", {(0, (1,)), (1, (0,))}),
    (["{ [0, j] : j > 0 }", "{ [i, 0] : i > 0 }"], 2, True, "2d", {(0, (1,)), (1, (0,))}),
    (["{ [1, 0] }", "{ [0, 1] }"], 2, True, "2d", {(0, (1,)), (1, (0,))}),
    (["{ [1, 1] }"], 2, True, "2d", {(0, (1,)), (1, (0,))}),
    (["{ [1, -1] }"], 2, True, None, set()),
    (["{ [1, -1] }"], 2, False, None, set()),
    (["{ [1] }"], 1, True, None, set()),
    (["{ [0, j, k] }", "{ [i, 0, k] }", "{ [i, j, 0] }"], 3, False, "nd",
     {(0, (1, 2)), (1, (0, 2)), (2, (0, 1))}),
    (["{ [0, j, k] }", "{ [i, 0, k] }"], 3, False, "2d", {(0, (1,)), (1, (0,))}),
    # the loop of Wolf & Lam: (0, 1) and (1, -1) permit no two dimensions, a leading "any" must not hide the sign
    (["{ [0, 1] }", "{ [i, 1] : i > 0 }", "{ [i, -1] : i > 0 }"], 2, True, None, set()),
    # Gauss-Seidel in time and space: not permutable without skewing
    (["{ [1, 0, 0] }", "{ [0, 1, 0] }", "{ [0, 0, 1] }", "{ [1, -1, 0] }", "{ [1, 0, -1] }"], 3, True, None, set()),
]  # fmt: skip


@pytest.mark.parametrize(("deltas", "dims", "ordered", "strategy", "cuts"), TABLE)
def test_strongest_rule_that_is_legal(deltas, dims, ordered, strategy, cuts):
    question = Question(tuple(isl.Set(text) for text in deltas), dims, tuple(range(dims)), ordered, False)
    candidates = legal_candidates(question)
    assert {(c.space, c.time) for c in candidates} == cuts
    assert {c.strategy for c in candidates} == ({strategy} if strategy else set())


def test_a_dimension_that_cannot_be_cut_is_never_chosen():
    question = Question((isl.Set("{ [0, j] : j != 0 }"),), 2, (1,), False, False)
    assert legal_candidates(question) == []


def test_a_symbolic_distance_is_not_taken_for_zero():
    """δ = c for an unknown parameter c may be anything but 0 only when isl can prove it."""
    question = Question((isl.Set("[c] -> { [c] : c != 0 }"),), 1, (0,), True, False)
    assert legal_candidates(question) == []
    assert legal_candidates(Question((isl.Set("[c] -> { [0, c] : c != 0 }"),), 2, (0, 1), True, False)) == [
        Candidate("1d", 0)
    ]


def test_every_name_has_a_strength():
    assert {name for one in STRATEGIES for name in one.names} == set(Strategy)
    weakest_first = sorted(Strategy, key=strength)
    assert (weakest_first[0], weakest_first[-1]) == ("serial", "independent")
    assert strength(Strategy.WAVEFRONT) < strength(Strategy.TWO_D) < strength(Strategy.ONE_D)


def test_a_name_is_that_of_one_strategy_for_each_order():
    for ordered in (True, False):
        names = [name for one in STRATEGIES if one.ordered in (None, ordered) for name in one.names]
        assert len(names) == len(set(names))
