"""Messages show names and files that the user knows: that this is looked at in all tests, and what Numba says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba.core.errors import NumbaError

import orion
from orion.errors import SerialLoopWarning, UnsupportedLoopError
from orion.kernel.build.canonical import canonical
from orion.kernel.build.compile import compile_kernel
from orion.kernel.build.numba_words import in_one_line, of_kernel
from tests.conftest import MADE
from tests.kernel_loops import kernel_cache, make_loop
from tests.messages import wrong_in

__all__ = ["kernel_cache"]

WRONG = [
    ("`k` is given `k_2`", "`k_2`"),
    ("for 'k.2'", "`k.2`"),
    ("of '$12load.3'", "`$12load`"),
    ("in /home/me/.cache/orion/orion_kernel_f_0_12ab.py", "cache"),
    ("`a_before[i]` is read", "`a_before`"),
    ("`turn` passes a value from one iteration to the next", "`turn`"),
    ("`b.shape[0]` is 5, and the loop reaches once = 0", "`once`"),
    ("`last_i` (written in line 11) meets itself", "`last_i`"),
    ("`x0` has only 1 block", "`x0`"),
    ("blocks of i__trip", "`i__trip`"),
    ("different iterations meet, such as k=0, x1=-3 and k=1, x1=0", "`x1`"),
]
RIGHT = [
    "`k` and `W[i].shape[0]` of `np.zeros`", "train.py:3: `k`", "`W_array = np.array(W)`; `W_array` is one",
    '`f.last_run` of `orion.init(spill="a_folder")`', "1.5 of 2.0 at /usr/lib/python3.11/x",
]  # fmt: skip


@pytest.mark.parametrize(("text", "shown"), WRONG)
def test_what_is_wrong_in_a_message(text, shown):
    (found,) = wrong_in(text, {"k", "W"})
    assert shown in found


@pytest.mark.parametrize("text", RIGHT)
def test_what_is_right_in_a_message(text):
    assert not [*wrong_in(text, {"k", "W", "f"})]


@pytest.mark.parametrize("make", [UnsupportedLoopError, orion.ArgumentError, orion.StorageError, SerialLoopWarning])
def test_a_message_with_a_name_that_was_made_fails_a_test(make):
    shown = "a message shows a name that nobody has written, `turn_2`"
    with pytest.raises(AssertionError, match=shown), MADE.looked_at(frozenset()):
        make("`turn_2` is not supported")


def test_notes_are_looked_at():
    with pytest.raises(AssertionError, match="a name of Numba's"), MADE.looked_at(frozenset()):
        UnsupportedLoopError("this is not").add_note("Numba: 'k.2'")


def read_once(a, b):
    a[0] = b[7]
    for i in range(len(a)):
        a[i] += 1


def every_other(a, b):
    for i in range(0, 20, 2):
        b[i + 5] = 0


@pytest.mark.parametrize(("function", "why"), [(read_once, "5"), (every_other, "5, and the loop reaches i = 0")])
def test_the_iteration_that_leaves_an_array_is_told_by_names_of_the_user(function, why):
    with pytest.raises(orion.OutOfBoundsError, match=rf"`b.shape\[0\]` is {why}\n"):
        orion.parallel_for(function).plan(np.zeros(9), np.zeros(5))


def one_round(a, T):
    for _t in range(T):
        for i in range(1, a.shape[0] - 1):
            a[i] = a[i - 1] + a[i + 1]


def test_blocks_of_a_coordinate_without_a_name_are_those_of_the_loop():
    with orion.session(workers=2, force_parallel=True):
        text = str(orion.parallel_for(one_round).plan(np.zeros(50), 1))
    assert "the loop has only 1 block for 2 workers [ORN121]" in text


def read_after(a, x):
    for i in range(0, len(a), 3):
        a[i % 5] += x
        if a[i] == x:
            break
    a[i] = 1.0


def test_a_loop_variable_that_is_kept_has_its_own_name_in_a_plan():
    assert "last_i" not in str(orion.parallel_for(read_after).plan(np.zeros(50), 1.0))


# ------------------------------------------------------------ what Numba says


def counts(a, b, control, n):
    for i in range(n):
        k = control
        a[i] += b[i] * k


def refused(line, other):
    """What is said of a kernel with another line, which Numba does not compile."""
    source = make_loop(counts, np.ones(4), np.ones(4), 3, 4).source
    assert line in source.text
    with pytest.raises(UnsupportedLoopError) as caught:
        compile_kernel(replace(source, text=source.text.replace(line, other)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("k = control_2 if control_2 > 1 else (1,)", "why:  Cannot unify"),
        ("k = control_2; control_2 = (1, 2)", "for `control`, defined at {file}:"),
        ("made = control_2 if control_2 > 1 else (1,); k = 1", "for a value"),
    ],
)
def test_numba_is_quoted_with_the_users_names_and_lines(other, said):
    text = refused("k = control_2", other)
    assert said.format(file=__file__) in text
    assert f"{__file__}:" in text.splitlines()[0]
    assert "counts" not in text


def test_functions_of_orion_are_not_named():
    source = make_loop(counts, np.ones(4), np.ones(4), 3, 4).source
    said = "No implementation of function Function(<function dot at 0x7f00>) found for signature:\n >>> dot(int64)"
    found = "No implementation of this operation found for signature: this operation(int64)"
    assert of_kernel(NumbaError(said), source, canonical(source.text, frozenset())) == found


def test_values_that_have_no_name_are_not_named():
    assert in_one_line("Cannot unify int64 and none for '$phi12.3'") == "Cannot unify int64 and none for a value"
