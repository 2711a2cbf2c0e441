"""Loops of which it is certain, without looking for one, that no other order is faster."""

import numpy as np
import pytest

from orion.cost.caches import USUAL
from orion.cost.strides import cannot_gain
from orion.dependence.study import study_loop
from orion.frontend.parse import parse_function
from orion.ir.signature import argument_types
from orion.passes.split import split_program
from orion.pipeline import through_passes
from orion.rewrites.reorder.apply import rewrite_loop
from orion.rewrites.reorder.take import _is_faster
from orion.sets.maps import Maps
from tests import reorder_loops, trap_loops


def add(A, B):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = B[i, j] + 1.0


def add_across(A, B):
    for j in range(A.shape[1]):
        for i in range(A.shape[0]):
            A[i, j] = B[i, j] + 1.0


def scale_rows(A, x):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = A[i, j] * x[i]


def twice(x, y):
    for i in range(x.size):
        x[i] = 2.0 * y[2 * i]


def row_sums(A, x):
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(A.shape[1]):
            total += A[j, i]
        x[i] = total


def five_points(A, B):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            A[i, j] = B[i, j] + B[i - 1, j] + B[i + 1, j] + B[i, j - 1] + B[i, j + 1]


SQUARE = np.ones((8, 8))
TABLE = [
    (add, (SQUARE, SQUARE.copy()), True),
    (add_across, (SQUARE, SQUARE.copy()), False),  # jumps from row to row
    (scale_rows, (SQUARE, np.ones(8)), False),  # x[i] stays
    (twice, (np.ones(8), np.ones(16)), True),
    (row_sums, (SQUARE, np.ones(8)), False),  # the loop over j is part of the statement
    (five_points, (SQUARE, SQUARE.copy()), True),
]


def studies(function, values):
    types, _ = argument_types(dict(zip(function.__code__.co_varnames, values, strict=False)))
    program = split_program(through_passes(parse_function(function), types), types, None)
    found = ((number, study_loop(program, number, types)) for number in range(len(program.nests)))
    return program, types, [study for _, study in found if study is not None]


@pytest.mark.parametrize(("function", "values", "expected"), TABLE, ids=lambda item: getattr(item, "__name__", None))
def test_what_cannot_gain(function, values, expected):
    _, _, (study,) = studies(function, values)
    assert cannot_gain(study.region) == expected


KNOWN = {**{f: v for f, v, _ in TABLE}, **reorder_loops.arguments(12)}
KNOWN |= {function: make() for function, (make, _) in trap_loops.TRAPS.items()}


@pytest.mark.parametrize("function", KNOWN, ids=lambda function: function.__name__)
def test_the_order_of_what_cannot_gain_is_not_faster(function):
    program, types, found = studies(function, KNOWN[function])
    for study in found:
        if cannot_gain(study.region):
            new = rewrite_loop(program, study, types, Maps(), USUAL)
            assert new is None or not _is_faster(new)
