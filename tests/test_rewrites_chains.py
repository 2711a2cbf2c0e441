"""How long trips wait for the trip before, and what follows from it for rows that could run in lockstep."""

import textwrap

import numpy as np
import pytest

import orion
from orion.dependence.region import find_region
from orion.dependence.scalars import live_after
from orion.frontend.parse import parse_function
from orion.ir.signature import argument_types
from orion.passes.split import split_program
from orion.pipeline import through_passes
from orion.rewrites.lockstep.apply import LAG, ROWS
from orion.rewrites.lockstep.chains import chain_cycles
from tests.loop_text import defined

FLOATS, INTEGERS = {"L": "float64", "a": "float64"}, {"L": "int32", "a": "int32"}
GIVEN = "if a[i] == a[j]:\n    L[i, j] = L[i - 1, j - 1] + 1\nelse:\n    L[i, j] = max(L[i - 1, j], L[i, j - 1])"
STORED_LATER = "s = L[i, j - 1]\nt = s * a[j]\nL[i, j] = t + a[i]"

CYCLES = [
    ("L[i, j] = a[i] * a[j]", FLOATS, 0),  # nothing is read that is written
    ("L[i, j] = L[i, j - 1]", FLOATS, 0),
    ("L[i, j] = L[i, j - 1] + L[i - 1, j]", INTEGERS, 1),
    ("L[i, j] = L[i, j - 1] + L[i - 1, j]", FLOATS, 4),
    ("L[i, j] += L[i, j - 1] * a[j]", INTEGERS, 4),
    ("L[i, j] += L[i, j - 1] * a[j]", FLOATS, 8),
    ("L[i, j] = L[i, j - 1] + a[i] / a[j]", FLOATS, 4),  # the quotient waits for nothing
    ("L[i, j] = (L[i, j - 1] + a[j]) / a[i]", FLOATS, 19),
    ("L[i, j] = 0.2 * (L[i, j] + L[i - 1, j] + L[i + 1, j] + L[i, j - 1])", FLOATS, 16),
    ("L[i, j] = max(L[i - 1, j], L[i, j - 1])", INTEGERS, 2),
    ("L[i, j] = max(L[i - 1, j], L[i, j - 1], a[j])", FLOATS, 8),
    ("L[i, j] = np.sqrt(L[i, j - 1])", FLOATS, 20),
    (STORED_LATER, FLOATS, 8),
    (GIVEN, INTEGERS, 2),
]


@pytest.mark.parametrize(("body", "dtypes", "cycles"), CYCLES, ids=[row[0] + row[1]["L"] for row in CYCLES])
def test_cycles_of_a_chain(body, dtypes, cycles):
    function = table(body)
    types, _ = argument_types({"L": np.zeros((5, 5), dtypes["L"]), "a": np.ones(5, dtypes["a"])})
    program = split_program(through_passes(parse_function(function), types), types)
    region = find_region(program.nests[0], types, live_after(program, 0))
    assert chain_cycles(region.statements, types) == cycles


def table(body):
    """A function that goes over the inside of `L` with statements over `L`, `a`, `i`, `j`."""
    inside = textwrap.indent(body, " " * 12)
    loops = "    for i in range(1, L.shape[0] - 1):\n        for j in range(1, L.shape[1] - 1):\n"
    return defined(f"def table(L, a):\n{loops}{inside}")


@pytest.mark.parametrize(("dtypes", "in_lockstep"), [(INTEGERS, False), (FLOATS, True)])
@pytest.mark.parametrize("workers", [1, 2])
def test_short_chains_run_row_by_row(dtypes, in_lockstep, workers):
    function = table("L[i, j] = max(L[i - 1, j], L[i, j - 1]) + a[j]")
    rng = np.random.default_rng(workers)
    L, a = rng.integers(-9, 9, (70, 90)).astype(dtypes["L"]), rng.integers(-9, 9, 90).astype(dtypes["a"])
    expected = L.copy()
    function(expected, a)
    compiled = orion.parallel_for(function)
    with orion.session(workers=workers, force_parallel=True):
        compiled(L, a)
        source = compiled.kernel_source(L, a)
    assert np.array_equal(L, expected)
    assert (source.count("max(") >= ROWS) == in_lockstep


def test_rows_in_lockstep_are_not_pages_apart_in_tables_of_two_words():
    """Rows p and p + 1 are at the columns s and s - LAG: their distance is no multiple of 4096 bytes."""
    for itemsize in (4, 8):
        for halo in (0, 1, 2, 3):
            assert all(((2**k + halo) - LAG) * itemsize % 4096 for k in range(10, 15))
