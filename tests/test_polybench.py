"""The kernels of PolyBench in `benchmarks/polybench/`: by hand with `prange` and by Orion, as plain Python has them."""

from __future__ import annotations

import argparse
import inspect
import re

import numpy as np
import pytest

import orion
from benchmarks.polybench.kernel import SIZES, Kernel
from benchmarks.polybench.kernels import KERNELS
from benchmarks.polybench.outcome import Agreement, Outcome, agreement
from benchmarks.polybench.run import run_kernel
from benchmarks.polybench.table import kernel_table, mean_rows, summary, verdict
from tests.trials import one_in

NOT_YET: dict[str, str] = {}
"""Kernels that Orion refuses, and the first words of the refusal. Whoever makes one work takes it out."""

CLOSE = {
    "atax": "one sum per thread",
    "bicg": "one sum per thread",
    "deriche": "NumPy's exp and Numba's may differ in the last bit",
    "durbin": "one sum per thread",
}
"""Kernels whose `prange` version need not give the bits of plain Python, and why."""

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


def result(kernel: Kernel, function) -> dict[str, np.ndarray]:
    """All array arguments after a run at the tiny size."""
    arguments = kernel.inputs("tiny")
    function(*arguments.values())
    return {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}


def test_there_are_thirty_in_alphabetical_order():
    names = [kernel.name for kernel in KERNELS]
    assert len(names) == len(set(names)) == 30
    assert names == sorted(names)


@every_kernel
def test_inputs_are_the_parameters_and_the_tiny_ones_are_tiny(kernel):
    for size in SIZES[:2]:
        assert list(kernel.inputs(size)) == list(inspect.signature(kernel.function).parameters)
    assert inspect.signature(kernel.function) == inspect.signature(kernel.prange)
    tiny = kernel.inputs("tiny").values()
    assert all(max(value.shape) < 20 for value in tiny if isinstance(value, np.ndarray))


@every_kernel
def test_outputs_are_the_arrays_that_are_written(kernel):
    before = kernel.inputs("tiny")
    after = result(kernel, kernel.function)
    changed = {name for name, array in after.items() if not np.array_equal(array, before[name])}
    assert changed == set(kernel.outputs)
    assert all(np.isfinite(array).all() for array in after.values())


# ---------------------------------------------------------------- by hand


def assert_as_plain_python(kernel: Kernel, found: dict[str, np.ndarray]) -> None:
    for name, expected in result(kernel, kernel.function).items():
        if kernel.name in CLOSE:
            np.testing.assert_allclose(found[name], expected, rtol=1e-13)
        else:
            np.testing.assert_array_equal(found[name], expected)


@pytest.mark.parametrize("kernel", one_in(12, KERNELS), ids=lambda kernel: kernel.name)
def test_prange_gives_the_result_of_plain_python(kernel):
    """As machine code; without that they are tried below, and `make polybench` compares what all of them give."""
    assert_as_plain_python(kernel, result(kernel, kernel.prange))


@every_kernel
@pytest.mark.parametrize("order", ["backwards", "inside out"])
def test_prange_is_legal(kernel, order, monkeypatch):
    """Its trips give the same result in another order (a race may go unseen in a small run)."""

    def another(*bounds):
        trips = list(range(*bounds))
        return trips[::-1] if order == "backwards" else trips[1::2] + trips[::2]

    plain = kernel.prange.py_func
    monkeypatch.setitem(plain.__globals__, "prange", another)
    assert_as_plain_python(kernel, result(kernel, plain))


# ---------------------------------------------------------------- by Orion


@every_kernel
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_orion_gives_the_result_of_plain_python(kernel):
    function = orion.parallel_for(kernel.function)
    with orion.session(workers=2, force_parallel=True):
        if kernel.name in NOT_YET:
            with pytest.raises(orion.UnsupportedLoopError, match=re.escape(NOT_YET[kernel.name])):
                result(kernel, function)
            return
        found = result(kernel, function)
    for name, expected in result(kernel, kernel.function).items():
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found[name], expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(found[name], expected)


# ---------------------------------------------------------------- the table

SAME = Agreement(True, 0.0)
RAN = Outcome("ran", ("2d", "serial", "serial"), 2, "", "", SAME, SAME, 1.0, (4.0, 5.0, 6.0), (3.0,), (2.5,))
REFUSED = Outcome("refused", refused="no [list]", serial=(1.0,), prange=(0.25,))
WRONG = Outcome("wrong", ("1d",), 2, "", "", SAME, Agreement(False, 0.5), 1.0, (1.0,), (1.0,), (0.1,))
LATE = Outcome("late", ("1d",), 2, "", "", SAME, SAME, 1.0, (1.0,), (1.0,), (1.06,))


@pytest.mark.parametrize(
    ("found", "expected", "bitwise", "error"),
    [
        ([1.0, 5.0], [1.0, 5.0], True, 0.0),
        ([1.0, 4.0], [1.0, 5.0], False, 0.2),
        ([0.0, 5.0], [-0.0, 5.0], False, 0.0),
        ([1.0, np.nan], [1.0, 5.0], False, np.inf),
        ([1, 4], [1, 5], False, np.inf),
    ],
)
def test_agreement(found, expected, bitwise, error):
    assert agreement({"a": np.array(found)}, {"a": np.array(expected)}, ("a",)) == Agreement(bitwise, error)


def test_what_orion_does_not_run_right_counts_as_serial_numba():
    """RAN has ratios 2 and 1.2. The wrong one, though fast, counts as 1 and 1, the refused one as 1 and 1/4."""
    (_, right), (_, every) = mean_rows([RAN, REFUSED, WRONG])
    assert right == pytest.approx([2.0, 1.2, 5 / 3])
    assert every == pytest.approx([2 ** (1 / 3), (1.2 / 4) ** (1 / 3), (5 / 3 * 4) ** (1 / 3)])


def test_summary_and_table():
    outcomes = [RAN, REFUSED, WRONG, LATE]
    found = summary(outcomes)
    assert found["accepted"] == ["ran", "wrong", "late"]
    assert found["right"] == ["ran", "late"]
    assert found["slower"] == ["late"]
    assert verdict(RAN) == "2d, serial ×2"
    assert verdict(REFUSED) == "refused: no [list]"
    assert kernel_table(outcomes, "title").row_count == 4 + 2
    assert all(Outcome.from_dict(outcome.to_dict()) == outcome for outcome in outcomes)


@pytest.mark.parametrize(("limit", "failed"), [(100.0, ""), (0.001, "more than 0.001 s for planning")])
def test_one_kernel_in_a_process_of_its_own(limit, failed):
    outcome = run_kernel("trisolv", argparse.Namespace(size="tiny", repeats=2, limit=limit))
    assert outcome.failed == failed
    assert outcome.serial
    assert outcome.prange
    assert outcome.is_right == (not failed)
    assert len(outcome.orion) == (0 if failed else 2)
