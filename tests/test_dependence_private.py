"""Arrays of which every iteration has its own: when that is legal, that plans and proofs use it, and what comes out."""

import linecache
import re
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import orion
from benchmarks.everyday.factors import word2vec
from orion.cost.candidate import Strategy
from orion.dependence.access import PrivateArray
from orion.errors import PlanError
from orion.frontend.parse import parse_function
from orion.ir.signature import argument_types
from orion.passes.split import split_program
from orion.pipeline import through_passes
from orion.plan.plan import Tiled
from orion.rewrites.privatize.find import private_arrays
from tests.oracles.brute_force import record

N, M = 9, 5


def arguments():
    rng = np.random.default_rng(3)
    arrays = {name: rng.random(N + M) for name in "abt"}
    arrays |= {"A": rng.random((N, M)), "B": rng.random((N, M)), "T": rng.random((N, M))}
    return arrays | {"idx": rng.integers(0, N, N), "n": N, "m": M}


def function_of(body):
    """`def loop(…)` around the lines of a body, as if it stood in a file."""
    source = "def loop(A, B, T, a, b, t, idx, n, m):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    file = f"<private {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = {"np": np, "fill": fill, "fill_some": fill_some}
    exec(compile(source, file, "exec"), scope)
    return scope["loop"]


def fill(row, value):
    row[0] = value


def fill_some(row, value):
    if value < 0.5:
        return
    row[0] = value


def analysed(function):
    """The only planned loop of a function, and the types of its arguments."""
    types, _ = argument_types(arguments())
    program = split_program(through_passes(parse_function(function), types), types, None)
    return program.nests[0], types


# The body of a loop, and the arrays of `a b t T` that are private to the iterations of its planned dimensions.
TABLE = [
    # (a) every read is covered by an earlier write of the same iteration
    ("for i in range(n):\n  t[0] = a[i]\n  b[i] = t[0]", "t"),
    ("for i in range(n):\n  b[i] = t[0]\n  t[0] = a[i]", ""),
    ("for i in range(n):\n  t[0] += a[i]\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  t[0] = a[i]\n  b[i] = t[1]", ""),
    ("for i in range(n):\n  t[0] = a[i]\n  b[i] = t[idx[i]]", ""),
    ("for i in range(n):\n  t[:] = a[i]\n  b[i] = t[idx[i]]", "t"),
    ("for i in range(n):\n  t[0:3] = a[i]\n  b[i] = t[2]", "t"),
    ("for i in range(n):\n  t[0:3] = a[i]\n  b[i] = t[3]", ""),
    ("for i in range(n):\n  t[-1] = a[i]\n  b[i] = t[t.shape[0] - 1]", "t"),
    ("for i in range(n):\n  t[0], t[1] = a[i], 1.0\n  b[i] = t[0] + t[1]", "t"),
    ("for i in range(n):\n  T[1] = A[i]\n  B[i] = T[1]", "T"),
    ("for i in range(n):\n  T[1] = A[i]\n  B[i] = T[2]", ""),
    # inner loops: the order of their trips counts
    ("for i in range(n):\n  for k in range(m):\n    t[k] = A[i, k]\n  for k in range(m):\n    B[i, k] = t[k]", "t"),
    ("for i in range(n):\n  for k in range(m):\n    t[k] = A[i, k]\n  for k in range(m + 1):\n    b[i] = t[k]", ""),
    ("for i in range(n):\n  for k in range(m):\n    t[k] = A[i, k]\n    B[i, k] = t[m - 1 - k]", ""),
    ("for i in range(n):\n  t[0] = 1.0\n  for k in range(1, m):\n    t[k] = t[k - 1] + A[i, k]\n  b[i] = t[0]", "t"),
    ("for i in range(n):\n  for k in range(1, m):\n    t[k] = t[k - 1] + A[i, k]", ""),
    ("for i in range(n):\n  t[m] = 1.0\n  for k in range(m - 1, -1, -1):\n    t[k] = t[k + 1] + A[i, k]", "t"),
    ("for i in range(n):\n  t[m] = 1.0\n  for k in range(m):\n    t[k] = t[k + 1] + A[i, k]", ""),
    ("for i in range(n):\n  for k in range(0, m, 2):\n    t[k] = A[i, k]\n  for k in range(0, m, 2):\n    b[i] = t[k]",
     "t"),
    ("for i in range(n):\n  for k in range(0, m, 2):\n    t[k] = A[i, k]\n  for k in range(m):\n    b[i] = t[k]", ""),
    ("for i in range(n):\n  for j in range(m):\n    t[j] = 0.0\n    for k in range(m):\n      t[j] += A[i, k]\n"
     "  for j in range(m):\n    B[i, j] = t[j]", "t"),
    ("for i in range(n):\n  s = 0.0\n  for k in range(m):\n    t[k] = A[i, k]\n    s += t[k]\n  for k in range(m):\n"
     "    B[i, k] = t[k] / s", "t"),
    # writes that are not sure to happen
    ("for i in range(n):\n  if a[i] > 0.5:\n    t[0] = 1.0\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  if a[i] > 0.5:\n    t[0] = 1.0\n  else:\n    t[0] = 2.0\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  t[0] = 2.0\n  if a[i] > 0.5:\n    t[0] = 1.0\n  b[i] = t[0]", "t"),
    ("for i in range(n):\n  if i >= 0:\n    t[0] = a[i]\n  b[i] = t[0]", "t"),
    ("for i in range(n):\n  if i > 2:\n    t[0] = a[i]\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  if i > 2:\n    t[0] = a[i]\n    b[i] = t[0]", "t"),
    ("for i in range(n):\n  if i < 2:\n    t[0] = a[i]\n    b[i] = t[0]", ""),
    ("for i in range(n):\n  t[idx[i]] = a[i]\n  b[i] = t[idx[i]]", ""),
    ("for i in range(n):\n  for k in range(m):\n    if A[i, k] > 0.5:\n      break\n    t[k] = 1.0\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  for k in range(m):\n    t[k] = 1.0\n    if A[i, k] > 0.5:\n      break\n  b[i] = t[1]", ""),
    ("for i in range(n):\n  if a[i] > 0.5:\n    continue\n  t[0] = a[i]\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  k = 0\n  while k < 3:\n    t[k] = a[i]\n    k += 1\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  for k in range(idx[i]):\n    t[k] = a[i]\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  fill(t, a[i])\n  b[i] = t[0]", "t"),
    ("for i in range(n):\n  fill_some(t, a[i])\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  t[:] = 1.0\n  fill_some(t, a[i])\n  b[i] = t[0]", "t"),
    # (b) the last iteration writes all that any iteration writes
    ("for i in range(n):\n  t[i // 2] = a[i]\n  b[i] = t[i // 2]", ""),
    ("for i in range(n):\n  for k in range(i + 1):\n    t[k] = a[i]\n  b[i] = t[0]", "t"),
    ("for i in range(n):\n  for k in range(n - i):\n    t[k] = a[i]\n  b[i] = t[0]", ""),
    ("for i in range(n):\n  t[0] = a[i]\n  if i == 0:\n    t[1] = 5.0\n  b[i] = t[0]", ""),
    ("for i in range(n - 1, -1, -1):\n  for k in range(n - i):\n    t[k] = a[i]\n  b[i] = t[0]", "t"),
    # (c) the last iteration is in the last block of every dimension
    ("for i in range(n):\n  for j in range(m):\n    t[0] = A[i, j]\n    B[i, j] = t[0]", "t"),
    ("for i in range(n):\n  for j in range(i, n):\n    t[0] = a[j]\n    T[i, 0] = t[0] + a[i]", "t"),
    ("for i in range(n):\n  for j in range(n - i):\n    t[0] = a[j]\n    b[i + j] = t[0]", ""),
    ("for i in range(n):\n  for j in range(m):\n    t[j] = A[i, j]\n    B[i, j] = t[j]", ""),
    # bounds that read the array
    ("for i in range(n):\n  t[0] = a[i]\n  for k in range(idx[0]):\n    b[i] = t[0]", "t"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "private"), TABLE, ids=range(len(TABLE)))
def test_arrays_that_are_private_to_iterations(body, private):
    function = function_of(body)
    nest, types = analysed(function)
    found = set(private_arrays(nest, types, "atT"))
    assert found == set(private)
    recorded = record(function, arguments(), len(nest.dims))
    assert found <= recorded.private()


def test_an_array_with_gaps_or_in_the_bounds_of_the_loop_is_not_private():
    nest, types = analysed(function_of("for i in range(n):\n  t[0] = a[i]\n  b[i] = t[0]"))
    assert private_arrays(nest, types, "t") == ("t",)
    assert private_arrays(nest, types | {"t": replace(types["t"], c_contiguous=False)}, "t") == ()
    assert private_arrays(replace(nest, ordered=False), types, "t") == ()
    nest, types = analysed(function_of("for i in range(idx[0]):\n  idx[0] = i\n  b[i] = idx[0]"))
    assert private_arrays(nest, types, ["idx"]) == ()


def test_a_condition_that_holds_only_for_some_sizes_is_proved_for_those():
    nest, types = analysed(function_of("for i in range(n):\n  for k in range(m):\n    t[k] = a[i]\n  b[i] = t[2]"))
    assert private_arrays(nest, types, "t") == ()
    shapes = {f"{name}__0": N + M for name in "abt"}
    assert private_arrays(nest, types, "t", shapes | {"n": 4, "m": 3}) == ("t",)
    assert private_arrays(nest, types, "t", shapes | {"n": 4, "m": 2}) == ()


# ---------------------------------------------------------------- random iterations against brute force

SUBSCRIPTS = ("0", "1", "k", "k + 1", "m - k", "i", "i // 2", "0 * i + 2")
STEPS = st.sampled_from(["range(m)", "range(m - 1, -1, -1)", "range(1, m)", "range(i + 1)", "range(m - 2)"])


@st.composite
def bodies(draw):
    lines = ["for i in range(n):"]
    for _ in range(draw(st.integers(1, 4))):
        subscript = draw(st.sampled_from(SUBSCRIPTS))
        other = draw(st.sampled_from(SUBSCRIPTS))
        kind = draw(st.sampled_from(["write", "read", "update", "chain"]))
        text = {
            "write": f"t[{subscript}] = a[i]",
            "read": f"b[i] = b[i] + t[{subscript}]",
            "update": f"t[{subscript}] += a[i]",
            "chain": f"t[{subscript}] = t[{other}] + 1.0",
        }[kind]
        guard = draw(st.sampled_from(["", "", "if i > 1:", "if a[i] > 0.5:"]))
        indent = "  "
        if "k" in text:
            lines.append(f"{indent}for k in {draw(STEPS)}:")
            indent += "  "
        if guard:
            lines.append(indent + guard)
            indent += "  "
        lines.append(indent + text)
    return "\n".join(lines)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(bodies())
def test_what_is_called_private_is_so_by_brute_force(body):
    note(body)
    function = function_of(body)
    nest, types = analysed(function)
    assert set(private_arrays(nest, types, "t")) <= record(function, arguments(), 1).private()


# ---------------------------------------------------------------- plans, proofs and results


def rows(A, C, row):
    for r in range(A.shape[0]):
        for q in range(A.shape[1]):
            for p in range(A.shape[2]):
                row[p] = 0.0
                for s in range(A.shape[2]):
                    row[p] += A[r, q, s] * C[s, p]
            for p in range(A.shape[2]):
                A[r, q, p] = row[p]


def shares(A, row):
    for i in range(A.shape[0]):
        top = A[i, 0]
        for k in range(A.shape[1]):
            top = max(top, A[i, k])
        total = 0.0
        for k in range(A.shape[1]):
            row[k] = 1.0 / (1.5 + top - A[i, k])
            total += row[k]
        for k in range(A.shape[1]):
            A[i, k] = row[k] / total


def counted(x, t, out):
    total = 0
    for i in range(x.size):
        for k in range(i + 1):
            t[k] = x[i] + k
        out[i] = t[i // 2]
        total += t[0]
    return total


def over_time(A, t, steps):
    for s in range(steps):
        for i in range(1, A.shape[0]):
            for k in range(A.shape[1]):
                t[k] = A[i, k] * 2 + s
            for k in range(A.shape[1]):
                A[i, k] = t[A.shape[1] - 1 - k] - A[0, k]


def cases():
    rng = np.random.default_rng(5)
    return [
        (rows, (rng.random((9, 4, 6)), rng.random((6, 6)), rng.random(6))),
        (rows, (rng.random((1, 1, 3)), rng.random((3, 3)), rng.random(7))),
        (rows, (rng.random((0, 4, 6)), rng.random((6, 6)), rng.random(6))),
        (shares, (rng.random((40, 8)), rng.random(8))),
        (counted, (rng.integers(0, 9, 33), np.zeros(40, np.int64), np.zeros(33, np.int64))),
        (over_time, (rng.random((20, 6)), rng.random(6), 3)),
    ]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("number", range(len(cases())))
def test_results_are_those_of_the_undecorated_function(number, workers):
    function, given_arguments = cases()[number]
    _, expected = cases()[number]
    wanted = function(*expected)
    with orion.session(workers=workers, force_parallel=True):
        decorated = orion.parallel_for(fastmath=False)(function)
        plan = decorated.plan(*given_arguments)
        assert any(loop.private_arrays for loop in plan.loops)
        assert plan.is_parallel
        plan.check()
        for _ in range(2):  # the second run overwrites what the first left
            again = cases()[number][1]
            assert decorated(*again) == wanted
        for mine, theirs in zip(again, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_threads_do_not_meet_in_the_array():
    """Many tiles, often: a shared `row` would show in the result."""
    rng = np.random.default_rng(1)
    A = rng.random((64, 16, 32))
    C, row = rng.random((32, 32)), rng.random(32)
    one, many, last = A.copy(), A.copy(), row.copy()
    with orion.session(workers=1):
        orion.parallel_for(rows)(one, C, last)
    with orion.session(workers=4, force_parallel=True):
        for _ in range(20):
            many[:] = A
            own = row.copy()
            orion.parallel_for(rows)(many, C, own)
            np.testing.assert_array_equal(many, one)
            np.testing.assert_array_equal(own, last)


def plan_of(function, *arguments):
    return orion.parallel_for(function).plan(*arguments)


def test_the_plan_says_so_and_every_view_has_it():
    with orion.session(workers=2, force_parallel=True):
        plan = plan_of(*[rows, *cases()[0][1]])
    (loop,) = plan.loops
    assert (loop.strategy, loop.nest.dims) == ("independent", ("r", "q"))
    assert [array.name for array in loop.private_arrays] == ["row"]
    assert {d.array for d in loop.private_arrays[0].dependences} == {"row"}
    assert [verdict.is_parallel for verdict in plan.verdicts] == [True, True, True, False, True]
    text = " ".join(str(plan).split())
    assert f"private row, written in line {loop.private_arrays[0].span.line} before it is read" in text
    assert "each iteration has its own, and that of the last one is kept" in text
    assert "row each tile has one of its own; the last tile has the array" in text
    assert plan.to_dict()["loops"][0]["private_arrays"] == ["row"]
    assert "each iteration has its own" in plan._repr_html_()


def test_a_loop_that_is_parallel_without_it_keeps_its_arrays():
    def columns(A, t):
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                t[i, j] = A[i, j]
                A[i, j] = t[i, j] + 1.0

    (loop,) = plan_of(columns, np.zeros((5, 5)), np.zeros((5, 5))).loops
    assert loop.strategy == "independent"
    assert not loop.private_arrays


def test_other_dependences_stay():
    def prefix(A, t):
        for i in range(1, A.shape[0]):
            for k in range(A.shape[1]):
                t[k] = A[i, k]
            for k in range(A.shape[1]):
                A[i, k] = t[k] + A[i - 1, 0]

    plan = plan_of(prefix, np.zeros((9, 4)), np.zeros(4))
    outer = plan.verdicts[0]
    assert {dependence.array for dependence in outer.carried} == {"A"}
    assert all(not loop.private_arrays for loop in plan.loops)


def handed_on(A, t):
    for i in range(1, A.shape[0]):
        for k in range(A.shape[1]):
            t[k] = A[i, k] + A[i, 0]
        for k in range(A.shape[1]):
            A[i, k] = np.sin(t[k]) * A[i - 1, 0]


def smoothed(A, t):
    """Nothing but `t` is in the way, which is needed after the loop and is not written whole by its last iteration."""
    for i in range(A.shape[0]):
        for k in range(i, A.shape[1]):
            t[k] = A[i, k]
        for k in range(i, A.shape[1]):
            A[i, k] = 0.5 * t[k]


def embeddings(function):
    words = np.zeros((100, 7), np.int64)
    return function, words[:, 0], words[:, 1], words[:, 2:], np.ones((50, 16)), np.ones((50, 16))


@pytest.mark.parametrize(
    ("call", "private", "blocking"),
    [
        (embeddings(word2vec), "change", {"V", "U"}),
        ((handed_on, np.zeros((900, 30)), np.zeros(30)), "t", {"A"}),
        ((smoothed, np.zeros((30, 30)), np.zeros(30)), "", {"t"}),
    ],
)
def test_what_could_be_private_is_not_called_what_blocks(call, private, blocking):
    plan = plan_of(*call)
    (loop,) = plan.loops
    assert {one.array for one in loop.blocking} == blocking
    blocks = [one for one in loop.reasons if one.kind == "blocks"]
    named = set(re.findall(r"`(\w+)", " ".join(one.message for one in blocks)))
    assert blocking <= named
    text = " ".join(str(plan).split())
    headline = plan.tree().verdict
    assert any(f"meet in `{name}`" in headline for name in blocking)
    if private:
        assert private not in named
        assert f" {private}: " not in text.partition("blocked by")[2]
        assert f"private {private}, written in line" in text
        assert "each iteration could have its own, so that it is not in the way" in text
        assert "each iteration could have its own" in plan._repr_html_()
        assert {d.array for d in plan.dependences} == {*blocking, private}
    else:
        assert "each iteration could have its own" not in text


def with_private(plan, names, dropped):
    """The plan with other private arrays, and without the dependences on `dropped`."""
    (loop,) = plan.function.loops
    span = loop.nest.span
    rest = tuple(d for d in loop.analysis.dependences if d.array not in dropped)
    analysis = replace(loop.analysis, dependences=rest, private=tuple(PrivateArray(n, span, ()) for n in names))
    cuts = (4,) * len(loop.cuts)
    parallel = replace(loop, analysis=analysis, strategy=Strategy.INDEPENDENT, tiles=Tiled(0, ()), cuts=cuts)
    return replace(plan, function=replace(plan.function, loops=(parallel,)))


def test_a_plan_with_an_array_that_is_not_private_is_not_proved():
    def running(a, t):
        for i in range(a.shape[0]):
            t[0] = t[0] + a[i]
            a[i] = t[0]

    plan = plan_of(running, np.zeros(9), np.zeros(1))
    assert plan.strategy == "serial"
    with pytest.raises(PlanError, match="iterations cannot each have their own t"):
        with_private(plan, ["t"], {"t"}).check()


def test_a_plan_with_another_array_private_is_not_proved():
    with orion.session(workers=2, force_parallel=True):
        plan = plan_of(*[shares, *cases()[3][1]])
    plan.check()
    (loop,) = plan.function.loops
    (array,) = loop.private_arrays
    analysis = replace(loop.analysis, private=(replace(array, name="A"),))
    broken = replace(plan, function=replace(plan.function, loops=(replace(loop, analysis=analysis),)))
    with pytest.raises(PlanError, match="iterations cannot each have their own A"):
        broken.check()


def last_trip_may_do_nothing(a, z, m):
    """The nest is over (i, j), whose last iteration writes all of a; the last trip of i may have no j."""
    for i in range(m):
        for j in range(i, z.shape[0]):
            for k in range(m):
                a[k] = i
            j += 0


def test_what_is_private_to_iterations_of_a_nest_may_not_be_to_trips_of_its_first_loop():
    a, z = np.full(9, 5.0), np.zeros((3, 6))
    expected = a.copy()
    function = orion.parallel_for(last_trip_may_do_nothing)
    with orion.session("threads", 3, force_parallel=True):
        plan = function.plan(a, z, 6)
        function(a, z, 6)
    function.serial(expected, z, 6)
    assert a.tolist() == expected.tolist()
    assert [private.name for loop in plan.loops for private in loop.analysis.private] == ["a"]
    assert [verdict.is_parallel for verdict in plan.verdicts] == [False, True, True]
