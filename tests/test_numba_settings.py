"""Settings of Numba under which no loop can be compiled."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import orion
from tests.kernel_loops import kernel_cache

__all__ = ["kernel_cache"]

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import numba, numpy as np, orion
{before}

@orion.parallel_for
def doubled(a):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i]

@orion.parallel_for
def swept(a, sweeps):
    total = 0.0
    for t in range(sweeps):
        for i in range(1, a.shape[0]):
            a[i] += a[i - 1]
        for i in range(a.shape[0]):
            total += a[i]
    return total

for function, others in ((doubled, ()), (swept, (3,))):
    function.plan(np.ones(4), *others)
    function.kernel_source(np.ones(4), *others)
    try:
        function(np.ones(4), *others)
    except orion.UnsupportedLoopError as error:
        print(error)
    a = np.ones(4)
    function.serial(a, *others)
{after}
a = np.ones(4)
doubled(a)
print(a.sum())
"""
SET = "numba.config.DISABLE_JIT = True"
UNSET = "numba.config.DISABLE_JIT = False"
IMPORTED = f"{SET}\nimport orion.kernel.support.intrinsics"
REFUSED = "NUMBA_DISABLE_JIT is set: no loop can be compiled"


def ran(program, variables):
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=100,
        env={**os.environ, **variables, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    ("variables", "before", "after", "runs_then"),
    [
        ({"NUMBA_DISABLE_JIT": "1"}, "", "", False),
        ({"NUMBA_DISABLE_JIT": "1"}, "", UNSET, True),  # nothing was made with plain functions meanwhile
        ({}, SET, UNSET, True),
        ({}, IMPORTED, UNSET, False),
        ({"ORION_BACKEND": "serial"}, SET, "", False),
    ],
)
def test_without_a_compiler_each_call_says_which_variable_is_in_the_way(tmp_path, variables, before, after, runs_then):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(before=before, after=after))
    shown, errors = ran(program, variables)
    assert shown.count(REFUSED) == 2
    assert shown.count("unset NUMBA_DISABLE_JIT") == 2
    assert shown.endswith("8.0\n") == runs_then
    assert "AttributeError" not in errors
    if not runs_then:
        assert f"orion.errors.UnsupportedLoopError: {REFUSED}" in errors
        assert f"{ROOT}/orion/" not in errors  # it ends in the user's line


def test_what_is_compiled_runs_though_the_compiler_is_switched_off_later(kernel_cache, monkeypatch):
    def tripled(a):
        for i in range(a.shape[0]):
            a[i] = 3.0 * a[i]

    function, a = orion.parallel_for(tripled), np.ones(5)
    function(a)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    function(a)
    assert a.tolist() == [9.0] * 5
    with pytest.raises(orion.UnsupportedLoopError, match="NUMBA_DISABLE_JIT"):
        function(a.astype(np.float32))
    monkeypatch.undo()
    function(a.astype(np.float32))
