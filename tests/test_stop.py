"""Ctrl-C: from SIGINT to KeyboardInterrupt in a second, wherever a call is, and the next call is right."""

import ast
import signal
import threading
import time

import numpy as np
import pytest

import orion
from benchmarks.interrupts import child
from orion.aside import aside
from orion.kernel.emit.stop_bounds import Bounds
from orion.runtime.threads.pool import Pool
from tests.kernel_loops import make_loop

LIMIT = 1.0
"""Seconds, of which a busy machine may take some more."""

BUSY = 4.0


def decay(a, rounds):
    for _ in range(rounds):
        for i in range(a.shape[0]):
            a[i] = a[i] * 0.999 + 0.001


def halved(starts, steps):
    for i in range(starts.shape[0]):
        n = starts[i]
        while n != 1:
            n = n // 2 if n % 2 == 0 else n + 2
        steps[i] = n


def first_above(a, bounds, found):
    for i in range(bounds.shape[0]):
        for j in range(bounds[i]):
            if a[j % 4] > 0.5:
                found[i] = j
                break


def rows(A, x, rounds):
    for _ in range(rounds):
        for i in range(A.shape[0]):
            A[i] = A[i] * 0.5 + x


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["decay", "remainders", "gauss_seidel", "training"])
def test_long_loops_on_threads(name, workers):
    with child(name, "threads", workers) as process:
        for delay in (0.05, 0.4, 0.9):
            moment = process.interrupted(delay)
            assert moment is not None
            assert moment.seconds is not None
            assert moment.seconds < LIMIT + BUSY
            assert moment.is_right


@pytest.mark.parametrize("workers", [1, 2])
def test_a_long_loop_on_ray(workers):
    with child("gauss_seidel", "ray", workers) as process:
        for delay in (0.1, 0.7):
            moment = process.interrupted(delay)
            assert moment is not None
            assert moment.seconds is not None
            assert moment.seconds < LIMIT + BUSY
            assert moment.is_right


@pytest.mark.parametrize("name", ["compile", "plan"])
def test_what_looks_at_no_signals_is_left(name):
    with child(name, "threads", 2) as process:
        whole = min(process.uninterrupted() for _ in range(2))  # signals come within it, however fast the machine is
        for share in (0.1, 0.5):
            moment = process.interrupted(share * whole)
            assert moment is not None
            assert moment.seconds is not None
            assert moment.seconds < LIMIT + BUSY
            assert moment.is_right


def interrupted_in(call, delay=0.3):
    """How long it takes until a call is left after a signal that this process sends itself."""
    sent = []

    def send():
        sent.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(delay, send)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    return time.monotonic() - sent[0]


ENDLESS = {
    "while": (halved, lambda n: (np.full(4, n), np.zeros(4, np.int64)), 3, 4),
    "break": (first_above, lambda n: (np.zeros(4), np.full(4, n), np.zeros(4, np.int64)), 10**14, 3),
    "rows": (rows, lambda n: (np.ones((50, 300)), np.ones(300), n), 10**9, 2),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_every_kind_of_loop_is_left(name, workers):
    function, arguments, endless, short = ENDLESS[name]
    loop = orion.parallel_for(function)
    with orion.session("threads", workers, force_parallel=True):
        loop(*arguments(short))
        assert interrupted_in(lambda: loop(*arguments(endless))) < LIMIT + BUSY
        given, expected = arguments(short), arguments(short)
        loop(*given)
        function(*expected)
        for one, other in zip(given, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_handler_that_raises_nothing_changes_nothing():
    """The loop goes on after it."""
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(time.monotonic()))
    try:
        with orion.session("threads", 1):
            loop, a, b = orion.parallel_for(decay), np.ones(500) * 3, np.ones(500) * 3
            loop(a.copy(), 10)
            timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
            timer.start()
            start, rounds = time.monotonic(), 0
            while not seen or rounds < 2:
                loop(a, 200_000)
                rounds += 1
            end = time.monotonic()
            for _ in range(rounds):
                loop(b, 200_000)
        assert start < seen[0] < end
        np.testing.assert_array_equal(a, b)
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_a_handler_raises_is_what_is_raised():
    class TimeoutGivenError(Exception):
        pass

    def handler(*_):
        raise TimeoutGivenError("too long")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with orion.session("threads", 2, force_parallel=True):
            loop = orion.parallel_for(decay)
            loop(np.ones(1000), 10)
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(TimeoutGivenError, match="too long"):
                loop(np.ones(1000), 10**8)
            a = np.ones(4)
            loop(a, 1)
            np.testing.assert_array_equal(a, np.ones(4) * 0.999 + 0.001)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_loop_in_another_thread_goes_on():
    with orion.session("threads", 1):
        loop, a, b = orion.parallel_for(decay), np.ones(1000) * 2, np.ones(1000) * 2
        loop(b, 100_000)
        caller = threading.Thread(target=loop, args=(a, 100_000))
        caller.start()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        caller.join()
    np.testing.assert_array_equal(a, b)


def waits_aside(work, stop):
    aside(work)


def waits_for_a_pool(work, stop):
    Pool().run(lambda member: member and work(), 2, stop.set)


@pytest.mark.parametrize("wait", [waits_aside, waits_for_a_pool])
def test_a_signal_right_before_the_main_thread_begins_to_wait_is_not_lost(wait):
    """Another thread sends it as soon as it runs, while the main one is about to wait for it and not waiting yet."""
    main = threading.main_thread().ident
    for _ in range(20):
        stop, sent = threading.Event(), []

        def work(stop=stop, sent=sent):
            sent.append(time.monotonic())
            signal.pthread_kill(main, signal.SIGINT)
            while not stop.is_set() and time.monotonic() < sent[0] + 10:
                pass

        with pytest.raises(KeyboardInterrupt):
            wait(work, stop)
        assert time.monotonic() - sent[0] < LIMIT + BUSY
        stop.set()


# ------------------------------------------------------------ the text


def triangle(A, s):
    for i in range(A.shape[0]):
        for j in range(16):
            for k in range(j, j + 8):
                A[i] += s * k


def test_loops_of_few_trips_are_left_as_they_are():
    text = make_loop(triangle, np.zeros(9), 2.0).source.text
    assert text.count("is_alarmed(control) and") == 1
    assert "j_from" not in text
    assert "k_from" not in text


@pytest.mark.parametrize(
    ("text", "trips"),
    [
        ("for i in range(5):\n  pass", 5),
        ("for i in range(n, n + 7):\n  pass", 7),
        ("for i in range(max(a, b), min(b + 9, c)):\n  pass", 9),
        ("for i in range(max(a, b), max(b + 9, c)):\n  pass", None),
        ("end = min(t + 64, n)\nfor i in range(max(t, 0), end):\n  pass", 64),
        ("for i in range(a, a + floor_divided(b - a, 8) * 8, 8):\n  pass", None),
        ("b = min(a + 32, n)\nfor i in range(a, a + floor_divided(b - a, 8) * 8, 8):\n  pass", 4),
        ("for i in range(a + floor_divided(b - a, 8) * 8, b):\n  pass", 7),
        ("for i in range(n):\n  pass", None),
        ("b = max(0, a)\nk = b + t\nc = max(k, t)\nfor i in range(min(k + 8, n) - c):\n  pass", 8),
    ],
)
def test_the_most_trips_at_any_sizes(text, trips):
    body = "\n".join(f"  {line}" for line in text.splitlines())
    (function,) = ast.parse(f"def tile(a, b, c, n, t):\n{body}").body
    loop = next(node for node in ast.walk(function) if isinstance(node, ast.For))
    assert Bounds(function, {}).fixed_trips(loop) == trips


def test_the_numbers_of_a_call_say_how_long_inner_loops_are():
    (function,) = ast.parse("def tile(A, n):\n for i in range(n):\n  for j in range(i, A.shape[0], 2):\n   pass").body
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For)]
    bounds = Bounds(function, {"A.shape[0]": (100, 100), "n": (10, 10)})
    assert [bounds.trips(loop) for loop in loops] == [10, 50]
    assert [Bounds(function, {}).trips(loop) for loop in loops] == [None, None]
