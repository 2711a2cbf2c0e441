"""Followed steps: which are followed, where their workers meet, what they give, and what is left to Python."""

import functools
import gc
import linecache
import re
import signal
import threading
import time

import numpy as np
import pytest

import orion
from orion.api import ParallelFunction
from orion.kernel.instructions import MEET
from orion.runtime.followed.steps import followed_steps
from orion.runtime.followed.writer import instructions_of
from tests.test_followed_random import Seen


@orion.parallel_for
def smooth(A, B, rounds):
    for _ in range(rounds):
        for i in range(1, len(A) - 1):
            B[i] = A[i - 1] + A[i] + A[i + 1]
        for i in range(1, len(A) - 1):
            A[i] = (B[i - 1] + B[i] + B[i + 1]) % 1009


@orion.parallel_for
def eliminate(A):
    n = A.shape[0]
    for k in range(n - 1):
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]


@orion.parallel_for
def downwards(A, B):
    for t in range(len(A) - 1, 0, -3):
        for u in range(t // 2, t + 2):
            for i in range(A.shape[1]):
                B[t % 2, i] = (B[t % 2, i] * 3 + A[t, i] + u) % 997
            for i in range(1, A.shape[1]):
                A[t - 1, i] = (A[t - 1, i] + B[(t + 1) % 2, i - 1] * 5) % 991


@orion.parallel_for
def grown(A, rounds):
    step = 1
    for _ in range(rounds):
        for i in range(len(A)):
            A[i] = A[i] * 3 + step
        step = step * 2
    return step


@orion.parallel_for
def norms(A, rounds):
    total = 0
    for t in range(rounds):
        for i in range(len(A)):
            total += A[i] % (t + 2)
    return total


@orion.parallel_for
def gathered(A, B, where, rounds):
    for _ in range(rounds):
        for i in range(len(A)):
            A[i] = A[i] + 1
        for i in range(len(B)):
            B[i] += A[where[i]]


@orion.parallel_for
def divided(A, rounds):
    for t in range(rounds):
        for i in range(len(A)):
            A[i] = A[i] + 100 // (5 - t)


def integers(*shape):
    return np.random.default_rng(sum(shape)).integers(1, 1000, shape)


CASES = {
    "smooth": (smooth, lambda: (integers(400), integers(400), 30), ["B", "A"]),
    "eliminate": (eliminate, lambda: (integers(40, 40) + 40_000.0 * np.eye(40),), ["A"]),
    "downwards": (downwards, lambda: (integers(20, 50), integers(2, 50)), ["B", "A"]),
    "grown": (grown, lambda: (integers(300), 7), []),
    "norms": (norms, lambda: (integers(300), 7), []),
}


def prepared(function: ParallelFunction, arguments, workers=2):
    preparation, given = function._bind(arguments, {})
    return preparation.prepare(preparation.with_outside(given), workers, True).program


@pytest.mark.parametrize("name", CASES)
def test_serial_loops_around_planned_ones_are_followed(name):
    function, arguments, _ = CASES[name]
    program = prepared(function, arguments())
    found = followed_steps(program.program, program.loops)
    assert [list(one.loops) for one in found] == [[*range(len(program.loops))]] * (name != "norms")  # it is one nest


def test_loops_that_take_long_are_started_from_python():
    program = prepared(smooth, (np.zeros(4_000_000, int), np.zeros(4_000_000, int), 3))
    assert followed_steps(program.program, program.loops) == ()


def test_workers_meet_only_where_a_loop_needs_what_another_wrote():
    program = prepared(smooth, CASES["smooth"][1]())
    (found,) = followed_steps(program.program, program.loops)
    operations = [operation for operation, *_ in instructions_of(found, program.loops, [int] * len(found.reads)).rows]
    assert operations.count(MEET) == 2  # before the second loop, and before the first one of the next round
    assert found.open == {1}


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_of_the_serial_loop(name, workers):
    function, make, _ = CASES[name]
    expected, found = make(), make()
    result = function.serial(*expected)
    with orion.session("threads", workers, force_parallel=True):
        assert function(*found) == result
        function(*found)
    function.serial(*expected)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.ray
def test_the_result_on_ray_is_that_of_the_serial_loop():
    for name in ("smooth", "downwards"):
        function, make, _ = CASES[name]
        expected, found = make(), make()
        function.serial(*expected)
        with orion.session("ray", 2, force_parallel=True):
            function(*found)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_subscript_out_of_bounds_in_a_late_round_is_told_and_the_session_goes_on(workers):
    A, B, where = integers(50), integers(50), np.arange(50)
    where[20] = 50
    with orion.session("threads", workers, force_parallel=True):
        with pytest.raises(orion.OutOfBoundsError, match=r"subscript 50 leaves `A`"):
            gathered(A, B, where, 5)
        where[20] = 3
        gathered(A, B, where, 5)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_division_by_zero_is_told_with_its_line(workers):
    A = integers(50)
    with orion.session("threads", workers, force_parallel=True):
        with pytest.raises(ZeroDivisionError, match=r"100 // \(5 - t\)"):
            divided(A, 9)
        divided(A, 4)


@pytest.mark.parametrize("workers", [1, 2])
def test_control_c_ends_many_short_rounds(workers):
    A, B = integers(1000), integers(1000)
    with orion.session("threads", workers, force_parallel=True):
        smooth(A, B, 1)
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            smooth(A, B, 10**8)
        assert time.perf_counter() - start < 10
        smooth(A, B, 1)


def test_what_is_loaded_goes_with_its_program():
    @orion.parallel_for
    def own(A, rounds):
        for t in range(rounds):
            for i in range(len(A)):
                A[i] = A[i] * 3 + t
            for i in range(1, len(A)):
                A[i] = A[i] % 1009

    with orion.session("threads", 2, force_parallel=True) as session:
        for _ in range(4):
            own(integers(50), 5)
        loaded = session._backend._loaded
        assert len(loaded) == 1
        del own
        gc.collect()
        assert not len(loaded)


# ---------------------------------------------------------------- errors between loops


def grown_past(A, factor):
    h = 1
    for t in range(80):
        for i in range(len(A)):
            A[i] = A[i] + t
        for i in range(1, len(A)):
            A[i] = A[i] % 1009
        h = h * factor
    return h


def shared_by(A, count):
    """The second half of the elements takes three times as long as the first: another worker is still at it."""
    share = 0.0
    while count > -3:
        for i in range(len(A)):
            for j in range(100 * i):
                A[i] = (A[i] * 3 + j) % 1009
        share = share + 1 / count
        for i in range(1, len(A)):
            A[i] = A[i] * 2 % 1009
        count -= 1
    return share


def shifted_past(A, p):
    """What is shifted is no instruction: Python does it, and the loop is given what it came to."""
    for _ in range(3):
        for i in range(len(A)):
            A[i] = p % 7
        p = p << 1
    return p


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("function", "argument", "error", "line"),
    [
        (grown_past, 3, OverflowError, "h = h * factor"),
        (shared_by, 2, ZeroDivisionError, "share + 1 / count"),
        (shifted_past, 2**61, OverflowError, "for i in range(len(A))"),
    ],
)
def test_an_error_between_loops_has_its_line_and_the_loops_before_it_are_done(function, argument, error, line, workers):
    A, expected = integers(50), integers(50)
    with orion.session("threads", workers, force_parallel=True):
        for _ in range(4):
            with pytest.raises(error, match=re.escape(line)) as raised:
                orion_of(function)(A, argument)
            assert [one.name for one in raised.traceback][1:] == []  # it ends in the line of the call
            if error is ZeroDivisionError:
                with pytest.raises(error):
                    function(expected, argument)
                np.testing.assert_array_equal(A, expected)
        assert orion_of(grown_past)(A, 1) == 1


@functools.cache
def orion_of(function):
    return orion.parallel_for(function)


# ---------------------------------------------------------------- Python's numbers and NumPy's

KEEPS = {
    "an int that nothing is less than": ("s = 0", "for i in range(len(x)):\n    s = min(s, x[i])"),
    "a float that nothing is greater than": ("s = 1e9", "for i in range(len(x)):\n    s = max(s, x[i])"),
    "an int that becomes a float in each round": ("s = 1", "s = s * 0.5"),
    "a float that becomes NumPy's": ("s = 4.0", "s = np.sqrt(s)"),
    "an int that becomes NumPy's": ("s = 3", "for i in range(len(n)):\n    s += n[i]"),
    "either after a branch": ("s = 0", "if t > 1:\n    s = np.sqrt(s)\nelse:\n    s = 2.5"),
    "two that change places": ("s, u = 0, 1.5", "for i in range(len(x)):\n    u = max(u, x[i])\ns, u = u, s"),
    "the one that is chosen": ("s = 100", "for i in range(len(n)):\n    if n[i] > s:\n        s = n[i]"),
    "none of which is chosen": ("s = 1000", "for i in range(len(n)):\n    if n[i] > s:\n        s = n[i]"),
}
"""What stands before rounds, and in them."""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("rounds", [0, 1, 4])
@pytest.mark.parametrize("name", KEEPS)
def test_classes_are_those_that_python_has_between_loops(name, rounds, workers, monkeypatch):
    first, body = KEEPS[name]
    lines = [first, *([] if "u" in first else ["u = 0"]), "for t in range(rounds):"]
    lines += [f"    {line}" for line in ["for i in range(len(x)):", "    x[i] = x[i] + 1.0", *body.splitlines()]]
    lines += ["    for i in range(1, len(x)):", "        x[i] = x[i] * 0.5", "return s, u"]
    text = "def kept(x, n, rounds):\n" + "\n".join(f"    {line}" for line in lines) + "\n"
    file = f"<kept {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), space := {"np": np})
    kept, found = orion.parallel_for(space["kept"]), []
    seen = Seen(monkeypatch)
    with orion.session("threads", workers, force_parallel=True):
        for seen.is_off in (False, True):
            s, u = kept(np.arange(1.0, 9.0), np.arange(-3, 5), rounds)
            found.append((s, type(s), u, type(u)))
    assert not rounds or seen.answers[0]  # without rounds its loops have no iterations, and it is Python's
    assert found[0] == found[1]
