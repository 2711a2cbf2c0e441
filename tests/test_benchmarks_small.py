"""The programs and the table of `benchmarks.small`; `make small` runs and times them."""

from inspect import signature

import numpy as np
import pytest
from rich.console import Console

from benchmarks.small.one import differences, results
from benchmarks.small.programs import PROGRAMS
from benchmarks.small.run import Row, summary, table

BY_NAME = {program.name: program for program in PROGRAMS}


def test_there_are_thirty_programs_of_different_names():
    assert len(BY_NAME) == len(PROGRAMS) >= 30


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_arguments_are_those_of_the_function_and_the_same_each_time(program):
    first, second = program.arguments(), program.arguments()
    parameters = [*signature(program.function).parameters]
    assert len(first) == len(parameters)
    assert {*program.outputs} <= {*parameters}
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one, other)
        assert one is not other or not isinstance(one, np.ndarray)


def test_distances_are_those_of_edges():
    program = BY_NAME["bfs_10_4"]
    indptr, indices, source = given = program.arguments()
    dist = results(program.function, program, given)["return 0"]
    ends = np.repeat(np.arange(len(dist)), np.diff(indptr))
    assert dist[source] == 0
    assert np.abs(dist[ends] - dist[indices]).max() <= 1
    nearer = np.zeros(len(dist), dtype=bool)
    nearer[ends[dist[indices] < dist[ends]]] = True
    assert np.flatnonzero(~nearer).tolist() == [source]


def test_results_that_differ_are_named():
    expected = {"x": np.array([1.0, 1e9]), "return 0": 3}
    assert differences({"x": np.array([1.0 + 1e-3, 1e9]), "return 0": 3}, expected) == []
    assert differences({"x": np.array([1.0, 1.1e9]), "return 0": 3}, expected) == ["x"]
    assert differences({"x": np.array([1.0, 1e9]), "return 0": 4}, expected) == ["return 0"]
    assert differences({"x": np.array([1.0, 1e9])}, expected) == ["return 0"]


def test_ratios_below_the_least_are_marked():
    slow = {"times x1": {"njit": [0.009], "orion": [0.010]}, "times x2": {"njit": [0.01], "orion": [0.005]}}
    rows = [Row("slow", {"plan": "serial ×2", **slow}), Row("wrong", {"plan": "2d", "wrong": ["x"]})]
    console = Console(width=130)
    with console.capture() as taken:
        console.print(table(rows))
    text = taken.get()
    assert "< 0.90" in text
    assert "< 2.00" not in text
    assert "wrong: x; 2d" in text
    assert [*summary(rows)] == [
        "on 1: 0.90 × njit (geometric mean of 1), least 0.90, 1 below 0.95: slow",
        "on 2: 2.00 × njit (geometric mean of 1), least 2.00, 0 below 0.95",
        "without times: wrong",
    ]
