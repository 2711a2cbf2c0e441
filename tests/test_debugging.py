"""`f.debug(...)`: the tiles of a plan as plain Python, in the user's own file and lines."""

import ast
import contextlib
import inspect
import io
import pdb
import sys
import textwrap
import warnings

import numpy as np
import pytest

import orion
from orion.debugging.source import read_outside
from orion.errors import ArgumentError, SerialLoopWarning, UnsupportedLoopError
from tests.loop_text import defined
from tests.oracles.nest_strategy import random_nest
from tests.trials import TIMES

RNG = np.random.default_rng
SEEN: list[tuple[int, ...]] = []


@orion.parallel_for
def scale(a, factor):
    for i in range(a.shape[0]):
        a[i] *= factor
    return a.shape[0]


@orion.parallel_for
def sweep(A, times):
    for _ in range(times):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


@orion.parallel_for
def sgd(ratings, W, H, epochs):
    for _ in range(epochs):
        for (i, j), r in ratings:
            e = r - W[i] @ H[j]
            w = W[i].copy()
            W[i] += 0.1 * e * H[j]
            H[j] += 0.1 * e * w


@orion.parallel_for
def printing(a):
    for i in range(a.shape[0]):
        a[i] += 1.0
        print("element", i)


@orion.parallel_for
def total(a):
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i]
    return s


@orion.parallel_for
def count(group, late):
    for i in range(group.shape[0]):
        late[group[i]] += 1.0


@orion.parallel_for
def add_all(x, acc):
    for i in range(x.shape[0]):
        acc.add(x[i])


@orion.parallel_for
def pulled(x, w):
    for i in range(x.shape[0]):
        w[0] += x[i]


@orion.parallel_for
def last(A):
    for i in range(1, A.shape[0]):
        for j in range(1, A.shape[1]):
            v = A[i - 1, j] + A[i, j - 1]
            A[i, j] = 0.5 * v
    return i, j, v


def ratings(count=300):
    rng = RNG(1)
    return orion.sparse((rng.integers(0, 40, count), rng.integers(0, 30, count)), rng.random(count), shape=(40, 30))


def both(function, make, workers=2, **options):
    """The arguments after a call, and after `debug`, with what these return."""
    first, second = make(), make()
    with orion.session("threads", workers, force_parallel=True):
        returned = function(*first)
        debugged = function.debug(*second, workers=workers, **options)
    return (*first, returned), (*second, debugged)


def same(first, second):
    for one, other in zip(first, second, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
        elif isinstance(one, float | int | tuple):
            assert other == pytest.approx(one)


def test_results_are_those_of_a_call():
    same(*both(scale, lambda: (np.arange(100.0), 3.0)))
    same(*both(total, lambda: (RNG(0).random(1000),)))
    same(*both(sweep, lambda: (RNG(0).random((24, 30)), 3)))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_sparse_loops_take_the_order_of_the_plan(workers):
    def make():
        return ratings(), RNG(2).random((40, 3)), RNG(3).random((30, 3)), 2

    same(*both(sgd, make, workers))
    _, serial = both(sgd, make, workers)
    own = make()
    sgd.serial(*own)
    if workers > 1:
        assert not np.array_equal(own[1], serial[1])


def test_tiles_of_a_wavefront_run_one_after_the_other():
    def stencil(A, seen):
        for i in range(1, A.shape[0]):
            for j in range(1, A.shape[1]):
                A[i, j] = 0.5 * (A[i - 1, j] + A[i, j - 1])
                print(i, j)

    function = orion.parallel_for(defined(textwrap.dedent(inspect.getsource(stencil)).replace("stencil", "f")))
    out = io.StringIO()
    given, plain = RNG(0).random((40, 40)), None
    plain = given.copy()
    with contextlib.redirect_stdout(out):
        function.debug(given, 0, workers=2)
    found = [tuple(map(int, line.split())) for line in out.getvalue().splitlines()]
    with contextlib.redirect_stdout(io.StringIO()):
        function.serial(plain, 0)
    np.testing.assert_array_equal(given, plain)
    assert found != sorted(found)
    assert sorted(found) == [(i, j) for i in range(1, 40) for j in range(1, 40)]
    at = {point: k for k, point in enumerate(found)}
    assert all(at[i - 1, j] < at[i, j] for i, j in found if i > 1)
    assert all(at[i, j - 1] < at[i, j] for i, j in found if j > 1)


def test_print_is_run_and_the_loop_planned_all_the_same(capsys):
    a = np.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        printing.debug(a)
    assert capsys.readouterr().out == "element 0\nelement 1\nelement 2\n"
    np.testing.assert_array_equal(a, [1.0, 1.0, 1.0])


PRINTING = """def f(a):
    for i in range(a.shape[0]):
        a[i] += 1.0
        if {i: "three"}.get(3):
            print(
                "here",
                i,
            )
        a[i] += 1.0; print("both")
        if i == 4: breakpoint()
"""


def test_what_only_asks_whether_to_print_does_not_keep_it_from_being_planned(capsys):
    a = np.zeros(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        orion.parallel_for(defined(PRINTING)).debug(a)
    assert capsys.readouterr().out == "both\nboth\nboth\nhere 3\nboth\n"
    np.testing.assert_array_equal(a, 2.0)


def test_breakpoints_of_pdb_stop_in_the_users_line(tmp_path):
    line = inspect.getsourcelines(scale.__wrapped__)[1] + 3
    out = io.StringIO()
    commands = io.StringIO(f"break {__file__}:{line}\ncontinue\np i, a[i], factor\nwhere\nclear 1\ncontinue\n")
    debugger = pdb.Pdb(stdin=commands, stdout=out, nosigint=True, readrc=False)
    a = np.arange(4.0)
    before = sys.gettrace()
    try:
        debugger.runcall(scale.debug, a, 2.0)
    finally:
        sys.settrace(before)
    text = out.getvalue()
    assert "a[i] *= factor" in text
    assert f"{__file__}({line})scale()" in text
    assert "(0, " in text
    assert "2.0)" in text
    np.testing.assert_array_equal(a, [0.0, 2.0, 4.0, 6.0])


def test_an_error_is_told_with_the_users_line():
    def f(a):
        for i in range(a.shape[0]):
            a[i] = 1.0
            print(a[i + 1])

    function = orion.parallel_for(f)
    with pytest.raises(IndexError) as caught, contextlib.redirect_stdout(io.StringIO()):
        function.debug(np.zeros(3))
    trace = caught.tb
    while trace.tb_next is not None:
        trace = trace.tb_next
    assert trace.tb_frame.f_code.co_filename == __file__
    assert trace.tb_lineno == inspect.getsourcelines(f)[1] + 3


def test_closures_defaults_and_globals_are_those_of_the_function():
    factor = 3.0

    @orion.parallel_for
    def f(a, k=2):
        for i in range(a.shape[0]):
            a[i] = k * factor

    a = np.zeros(4)
    f.debug(a)
    np.testing.assert_array_equal(a, 6.0)
    f.debug(a, k=1)
    np.testing.assert_array_equal(a, 3.0)


def test_values_after_a_loop_are_those_of_its_last_iteration():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(*both(last, lambda: (RNG(0).random((30, 30)),)))


def test_names_that_other_loops_set_first_are_not_read_after_a_loop():
    text = "def f(a):\n    for i in a:\n        v = i\n    for i in a:\n        v = i\n        w = v\n    return w"
    (definition,) = ast.parse(text).body
    first, second = definition.body[:2]
    assert read_outside(definition, first, lambda _: False) == ""
    assert read_outside(definition, second, lambda _: False) == "w"


def test_buffers_get_their_updates_at_once():
    totals = np.zeros(4)
    count.debug(np.arange(100) % 4, orion.buffer(totals, max_delay=10))
    np.testing.assert_array_equal(totals, 25.0)


def test_accumulators_are_added_to():
    acc = orion.accumulator(0.0, combine=lambda a, b: a + b)
    add_all.debug(np.arange(10.0), acc)
    assert acc.value == 45.0


def test_replicas_are_refused_with_what_to_do():
    w = np.zeros(3)
    with pytest.raises(ArgumentError, match=r"pulled\.serial"):
        pulled.debug(np.ones(4), orion.replicate(w, policy=orion.local_sgd(sync_every=2)))


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
def test_workers_are_a_number(workers):
    with pytest.raises(ArgumentError, match="workers"):
        scale.debug(np.zeros(3), 1.0, workers=workers)


def test_a_parameter_of_that_name_is_the_functions():
    @orion.parallel_for
    def f(a, workers):
        for i in range(a.shape[0]):
            a[i] = workers

    a = np.zeros(3)
    f.debug(a, workers=7)
    np.testing.assert_array_equal(a, 7.0)


def test_what_a_call_refuses_is_refused():
    a = np.zeros(5)

    @orion.parallel_for
    def f(a, b):
        for i in range(a.shape[0]):
            b[i] = a[i]

    with pytest.raises(orion.AliasError):
        f.debug(a, a[::-1])


def test_what_is_not_planned_runs_as_written():
    @orion.parallel_for
    def grows(n):
        found = {}
        for i in range(n):
            found[i] = i * 2
        return len(found)

    with pytest.warns(SerialLoopWarning, match="written order"):
        assert grows.debug(4) == 4


def test_what_cannot_be_compiled_is_refused_as_by_a_call():
    @orion.parallel_for
    def f(a):
        for i in range(a.shape[0]):
            a[i] = compile(str(i))

    with pytest.raises(UnsupportedLoopError):
        f.debug(np.zeros(3))


def test_last_run_stays_as_it_is():
    scale(np.ones(3), 2.0)
    before = scale.last_run.plan
    scale.debug(np.ones(3), 2.0)
    assert scale.last_run.plan is before


LOOPS = {
    "triangle": "for i in range(n):\n    for j in range(i, n):\n        A[i, j] += i * j",
    "steps": "for i in range(n - 1, 0, -2):\n    for j in range(0, n, 3):\n        A[i, j] = A[i, j] * 0.5 + j",
    "wavefront with steps": "for i in range(2, n, 2):\n    for j in range(1, n):\n"
    "        A[i, j] = 0.5 * (A[i - 2, j] + A[i, j - 1])",
    "rounds": "for t in range(3):\n    for i in range(1, n):\n        for j in range(1, n):\n"
    "            A[i, j] += 0.3 * A[i - 1, j] + 0.1 * A[i, j - 1]",
    "array": "s = 0.0\nfor v in x:\n    s += v\nreturn s",
    "enumerate": "for k, v in enumerate(x):\n    A[k, 0] = v",
    "zip": "s = 0.0\nfor v, u in zip(x, x):\n    s += v * u\nreturn s",
    "largest": "best, at = -1.0, 0\nfor i in range(n):\n    if x[i] > best:\n        best, at = x[i], i\n"
    "return best, at",
    "early exit": "found = -1\nfor i in range(n):\n    if x[i] > 0.9:\n        found = i\n        break\nreturn found",
    "return inside": "for i in range(n):\n    if x[i] > 0.9:\n        return i\nreturn -1",
    "private row": "w = np.zeros(n)\nfor i in range(n):\n    for j in range(n):\n        w[j] = A[i, j] * x[j]\n"
    "    for j in range(n):\n        A[i, j] = w[n - 1 - j]",
    "sums by keys": "c = np.zeros(5)\nfor i in range(n):\n    c[p[i]] += x[i]\nreturn c",
    "inspected": "for i in range(n):\n    x[p[i]] = 0.5 * x[p[i]] + 1.0",
    "scan": "s = 0.0\nfor i in range(n):\n    s += x[i]\n    A[0, i] = s",
    "continue": "for i in range(n):\n    if x[i] < 0.5:\n        continue\n"
    "    for j in range(n):\n        A[i, j] = x[i]",
    "neighbours": "for i in range(n):\n    x[i] += 1.0\nfor i in range(n):\n    A[i, 0] = x[i] * 2.0",
    "two statements": "for i in range(1, n):\n    for j in range(1, n):\n        A[i, j] = A[i - 1, j] + 1.0\n"
    "        B[i, j] = B[i, j - 1] + A[i, j]",
    "while around": "t = 0\nwhile t < 3:\n    for i in range(1, n):\n        for j in range(1, n):\n"
    "            A[i, j] = 0.5 * (A[i - 1, j] + A[i, j - 1])\n    t += 1",
    "helper": "for i in range(n):\n    x[i] = half(x[i])",
    "else": "for i in range(1, n):\n    for j in range(1, n):\n        A[i, j] = 0.5 * (A[i - 1, j] + A[i, j - 1])\n"
    "else:\n    x[0] = 9.0",
}


def arguments():
    rng = RNG(5)
    return {
        "A": rng.random((21, 21)), "B": rng.random((21, 21)), "x": rng.random(21), "p": rng.integers(0, 5, 21), "n": 21,
    }  # fmt: skip


def half(v):
    return 0.5 * v


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("name", LOOPS)
def test_many_kinds_of_loops(name, workers):
    text = f"def f(A, B, x, p, n):\n{textwrap.indent(LOOPS[name], '    ')}\n"
    function = orion.parallel_for(defined(text, np=np, half=half))
    first, second = arguments(), arguments()
    with warnings.catch_warnings(), orion.session("threads", workers, force_parallel=True):
        warnings.simplefilter("ignore")
        want, found = function(**first), function.debug(**second, workers=workers)
    same((*first.values(), want), (*second.values(), found))


@pytest.mark.parametrize("number", range(8 * TIMES))
def test_random_nests(number):
    nest = random_nest(7, number)
    function = orion.parallel_for(nest.function())
    first, second = nest.arguments(), nest.arguments()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = function.serial(**first)
            found = function.debug(**second, workers=2 + number % 3)
        except (orion.OrionError, IndexError, ValueError, ArithmeticError):
            return
    for one, other in zip((*first.values(), want), (*second.values(), found), strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6)
