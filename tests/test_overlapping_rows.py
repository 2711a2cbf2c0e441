"""Parts of arrays assigned from parts of the same array: NumPy's numbers, on any number of workers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from tests.overlapping_rows import LOOPS, boxes_of_three
from tests.trials import ALL

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

LENGTH = 12
EXAMPLES = 15 if ALL else 8
"""Per loop: each is planned anew, a second on a slow core."""


def compare(function, compiled, array, *bounds):
    """The function leaves the array as the undecorated one does."""
    expected = array.copy(order="K")
    function(expected, *bounds)
    for workers in (1, 2):
        given = array.copy(order="K")
        with orion.session(workers=workers, force_parallel=True):
            compiled(given, *bounds)
        np.testing.assert_array_equal(given, expected, err_msg=f"{function.__name__}{bounds} on {workers} workers")


@st.composite
def slices(draw, count):
    """The bounds of a slice of `count` of LENGTH elements, counted from the start or the end, or past the ends."""
    step = draw(st.sampled_from([s for s in (1, 1, 2, 3, -1, -2) if (count - 1) * abs(s) < LENGTH]))
    reach = (count - 1) * abs(step)
    first = draw(st.integers(0, LENGTH - 1 - reach)) + (reach if step < 0 else 0)
    stop = first + count * step
    if stop < 0:
        return first, -LENGTH - 1, step
    if draw(st.booleans()) and first > 0:
        first -= LENGTH
    if draw(st.booleans()) and 0 < stop < LENGTH:
        stop -= LENGTH
    return first, stop, step


@st.composite
def pairs(draw):
    """Two slices of one length."""
    count = draw(st.integers(1, LENGTH))
    return *draw(slices(count)), *draw(slices(count))


@pytest.mark.parametrize("function", [*LOOPS, boxes_of_three], ids=lambda f: f.__name__)
def test_slices_that_overlap(function):
    compiled = orion.parallel_for(function)
    shape = (3, LENGTH, 5) if function is boxes_of_three else (LENGTH, LENGTH)
    dtype = ("float64", "float32", "int32")[len(function.__name__) % 3]

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
    @given(bounds=pairs(), order=st.sampled_from("CF"))
    def check(bounds, order):
        values = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
        compare(function, compiled, np.array(values, order=order), *bounds)

    check()
