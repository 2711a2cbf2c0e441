"""The benchmark of planning: what it measures of programs that Orion takes, and what it says of others."""

import numpy as np
import pytest

from benchmarks.planning import Example, least, show
from benchmarks.programs.all import PROGRAMS

BY_NAME = {one.name: one for one in PROGRAMS}


def example(name: str) -> Example:
    program = BY_NAME[name]
    tiny, large = (lambda size=size: program.arguments(size) for size in ("tiny", "large"))
    return Example("programs", name, program.function.__wrapped__, tiny, other=large)


def test_there_are_twenty_programs_of_two_sizes():
    assert len(BY_NAME) == len(PROGRAMS) == 20
    for one in PROGRAMS:
        tiny, large = (
            [part.shape for part in one.arguments(size) if hasattr(part, "shape")] for size in ("tiny", "large")
        )
        assert len(tiny) == len(large)
        assert tiny != large


def test_times_are_measured_together_and_after_a_change_of_sizes():
    times = least(example("azimuthal_mean"), 2).times
    assert times is not None
    assert times.together == pytest.approx(times.plan + times.prove)
    assert min(times.parse, times.plan, times.prove, times.sizes or 0.0) > 0.0


def of_two_dtypes(a, b, out):
    for i in range(len(a)):
        out[i] = np.linalg.solve(a[i], b[i])[0]


def test_what_is_refused_is_said_to_be(capsys):
    refused = Example(
        "programs", "of_two_dtypes", of_two_dtypes, lambda: (np.ones((2, 3, 3)) + 0j, np.ones((2, 3)), np.zeros(2))
    )
    found = [least(refused, 1), least(example("shortest_paths"), 1)]
    show(found)
    printed = capsys.readouterr().out
    assert found[0].times is None
    assert "of_two_dtypes is refused: `np.linalg.solve` of arrays of complex128 and float64" in printed
    assert printed.count("median") == 2


def test_systems_of_complex_numbers_are_planned():
    assert least(example("contour_integral"), 1).times is not None
