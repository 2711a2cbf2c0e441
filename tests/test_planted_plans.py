"""Plans that are wrong in one place each, planted by hand where `tests/oracles/faults.py` would not think of it: the
checker refuses them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.cost.candidate import Strategy
from orion.dependence.access import Choice, PrivateArray, Reduction
from orion.errors import PlanError
from orion.ir.nodes import Assign, Binary, Const, Var
from orion.ir.program import SYNTHETIC, Repeat, Scalars
from orion.plan.plan import Copies, Fused, FusedWith, Member, Tiled
from orion.rewrites.fuse.apply import Group, fuse_loops
from orion.verify.check import check
from tests.oracles.nests import ArraySpec, Nest
from tests.planted import honest


def floats(*shape):
    return ArraySpec("float64", "value", shape, tuple(extent + 2 for extent in shape))


ARRAYS = {
    "A": floats(9, 6), "B": floats(9, 6), "C": floats(9, 6), "t": floats(9), "x": floats(9), "y": floats(9),
    "idx": ArraySpec("int64", "index", (9,), (12,)), "p": ArraySpec("int64", "count", (9,), (12,)),
}  # fmt: skip
INTEGERS = {"n": (9, 12), "m": (6, 8)}


def given(source):
    names = source[source.index("(") + 1 : source.index(")")].replace(" ", "").split(",")
    arrays = {name: ARRAYS[name] for name in names if name in ARRAYS}
    nest = Nest(source, arrays, {name: INTEGERS[name] for name in names if name in INTEGERS}, 1)
    return honest(nest, nest.function())


def with_loop(made, number, loop):
    return replace(made, loops=(*made.loops[:number], loop, *made.loops[number + 1 :]))


def with_program(made, **fields):
    return replace(made, program=replace(made.program, **fields))


def with_nest(loop, **fields):
    return replace(loop, nest=replace(loop.nest, **fields))


def with_scalars(loop, **fields):
    return replace(loop, analysis=replace(loop.analysis, scalars=replace(loop.analysis.scalars, **fields)))


def number(value, at):
    return Const(value, at.span)


def plus(expr, by):
    return Binary("+", expr, number(by, expr), expr.span)


def moved(loop, **by):
    """A loop whose outermost range has other bounds."""
    first = loop.nest.loops[0]
    space = replace(first.space, **{which: plus(getattr(first.space, which), one) for which, one in by.items()})
    return with_nest(loop, loops=(replace(first, space=space), *loop.nest.loops[1:]))


def shared(loop):
    cuts = (3,) + (1,) * (len(loop.nest.dims) - 1)
    return replace(loop, strategy=Strategy.INDEPENDENT, tiles=Tiled(0, ()), cuts=cuts, runs_on=3)


def fused(source, change=lambda loop: loop):
    one = given(source)
    first, second = one.made.loops
    program, why = fuse_loops(one.made.program, (Group(0, 2, 1),)), FusedWith((1,), ("t",), None)
    members = tuple(with_nest(replace(loop, form=Member(loop.form, why)), number=0) for loop in (first, second))
    placed = {place.array: replace(place, is_written=True) for place in (*first.placements, *second.placements)}
    loop = change(replace(first, nest=program.nests[0], form=Fused(members), placements=tuple(placed.values())))
    program = replace(program, nests=(loop.nest,))
    return one, replace(one.made, loops=(loop,), program=program, unfused=one.made.program)


ELEMENTWISE = "def nest(t, x, n):\n    for i in range(n):\n        t[i] = t[i] + x[i]\n"
SCALED = """\
def nest(t, n, m):
    for i in range(n):
        t[i] = t[i] * m
"""
SHRINKING = """\
def nest(A, n, m):
    for i in range(n):
        for j in range(m):
            A[i, j] = 1.0
            m = 3
"""
SEIDEL = """def nest(A, n, m):
    for i in range(1, n):
        for j in range(1, m):
            A[i, j] = A[i - 1, j] + A[i, j - 1]
"""
PARTS = """def nest(A, t, x, y, m):
    c = 2.0
    for i in range(m):
        x[i] = x[i] + c
        for j in range(m):
            x[i] = x[i] + A[i, j] * y[j]
            t[j] = t[j] + A[i, j] * c
    c = 7.0
    for i in range(m):
        y[i] = c
"""
PRODUCT = """def nest(A, B, C, m):
    for i in range(m):
        for j in range(m):
            s = 0.0
            for k in range(m):
                s += A[i, k] * B[k, j]
            C[i, j] = s
"""
NEIGHBOURS = """def nest(t, x, y, n):
    for i in range(n):
        t[i] = 2.0 * x[i]
    for i in range(n):
        x[i] = t[i] + 1.0
    for i in range(n):
        y[i] = t[n - 1 - i] + x[n - 1 - i]
"""
SHIFTED = "def nest(t, n):\n    for i in range(n - 1, 0, -1):\n        t[i] = 0.5 * t[i - 1]\n"
SUMS = "def nest(t, x, idx, n):\n    for i in range(n):\n        t[idx[i]] += x[i]\n"
LAST = """def nest(t, x, n):
    s = 0.0
    for i in range(n):
        s = x[i]
        t[i] = s + 1.0
    for i in range(n):
        x[i] = s + t[i]
"""
OF_DATA = """def nest(t, x, p, n):
    for i in range(p[0] + 3):
        t[i] = t[i] + 1.0
    for i in range(p[0] + 3):
        x[i] = t[i] * 2.0
"""
TWO = """def nest(t, x, n):
    for i in range({0}, {1}):
        t[i] = 2.0 * x[i]
    for i in range({2}, {3}):
        x[i] = {4} + 1.0
"""
INNER = """def nest(A, x, n, m):
    j = 0
    for i in range(n):
        x[i] = j
        for j in range(m):
            A[i, j] = A[i, j] + 1.0
"""
CHOSEN = """def nest(t, n):
    best = 3.0
    for i in range(n):
        v = t[i]
        if v < best:
            v = v + 1.0
            best = v
    return best
"""
LEAST = "def nest(t, n):\n    s = 9.0\n    for i in range(n):\n        s = min(t[i], s)\n    return s\n"
ONCE = "def nest(t, x, n):\n    t[0] = 5.0\n    for i in range(1, n):\n        x[i] = x[i] + t[0]\n"
ROWS = (
    "def nest(A, t, n, m):\n    for i in range(n):\n        for j in range(m):\n            A[i, j] = A[i, j] + t[i]\n"
)
ENDED = """def nest(t, x, n):
    for i in range(n):
        if x[i] < 0.0:
            break
        t[i] = t[i] + 1.0
"""
BEHIND = "def nest(t, x, n):\n    for i in range(n):\n        t[i] = 2.0 * x[i - 1]\n"
ADDED = "def nest(t, x, n):\n    c = 1.0\n    for i in range(n):\n        t[i] = t[i] + x[i] + c\n"


def of_steps(source, change):
    one = given(source)
    return one, with_program(one.made, steps=change(one.made.program.steps))


def of_loop(source, change, number=0):
    one = given(source)
    return one, with_loop(one.made, number, change(one.made.loops[number]))


def never_outside(source):
    """No subscript is found to leave its array, or to count from its end."""
    one = given(source)
    none = {"outside": "{ [x] : false }", "wraps": "{ [x] : false }"}
    checks = [replace(part, checks=tuple(replace(each, **none) for each in part.checks)) for part in one.plan.checks]
    return replace(one, plan=replace(one.plan, checks=tuple(checks))), one.made


def in_rounds(count):
    def change(steps):
        first = given(ELEMENTWISE).made.loops[0].nest.loops[0]
        space = replace(first.space, var="r", stop=number(count, first))
        return (Repeat(replace(first, index=SYNTHETIC, space=space), steps),)

    return change


def no_trip(loop):
    (once,) = loop.nest.loops
    return with_nest(loop, loops=(replace(once, space=replace(once.space, stop=number(0, once))),))


def other_body(loop):
    (statement,) = loop.nest.body
    return with_nest(loop, body=(replace(statement, value=replace(statement.value, op="-")),))


def shorter_inside(loop):
    outer, inner = loop.nest.loops
    space = replace(inner.space, stop=plus(inner.space.stop, -1))
    return with_nest(loop, loops=(outer, replace(inner, space=space)))


def own_array(loop):
    return replace(loop, analysis=replace(loop.analysis, private=(PrivateArray("x", loop.nest.span, ()),)))


def own_copies(loop):
    return replace(loop, copies=(Copies("C", "+", "float64", (9, 6), loop.cuts[loop.space]),))


def twice_as_much(loop):
    (statement,) = loop.nest.body
    body = (replace(statement, value=Binary("*", statement.value, number(2.0, statement), statement.span)),)
    return with_nest(loop, body=body, loops=(replace(loop.nest.loops[0], body=body),))


def late_copy():
    one = given(SHIFTED)
    late = moved(one.made.loops[0], start=1)
    nests = (late.nest, *one.made.program.nests[1:])
    return one, with_program(with_loop(one.made, 0, late), nests=nests)


def short_copy():
    one = given(SHIFTED)
    less, function = moved(one.made.loops[0], stop=-2), one.made.program.function
    (array,) = function.local_arrays
    array = replace(array, lengths=tuple(plus(length, -2) for length in array.lengths))
    nests = (less.nest, *one.made.program.nests[1:])
    made = with_loop(one.made, 0, less)
    return one, with_program(made, function=replace(function, local_arrays=(array,)), nests=nests)


def named_beside():
    one = given(ADDED)
    span = one.made.loops[0].nest.span
    extra = Scalars((Assign(Var("n", span), Const(3, span), span),))
    return one, with_program(one.made, steps=(extra, *one.made.program.steps), variables=("n",))


def of_copies(**fields):
    return lambda loop: replace(loop, copies=tuple(replace(one, **fields) for one in loop.copies))


def carried_alone(loop):
    return with_scalars(shared(loop), carried=(), private=("j",))


def nothing_given(loop):
    return with_scalars(loop, inputs=())


def own_bound(loop):
    return with_scalars(shared(loop), carried=(), private=("m",))


def as_choice(loop):
    return with_scalars(shared(loop), carried=(), choices=(Choice(("best",), "<", loop.nest.span),))


def as_reduction(loop):
    return with_scalars(loop, choices=(), reductions=(Reduction("s", "min", loop.nest.span),))


PLANS: dict[str, Callable] = {
    "fused, steps swapped": lambda: of_steps(NEIGHBOURS, lambda steps: steps[::-1]),
    "fused, a step twice": lambda: of_steps(NEIGHBOURS, lambda steps: (*steps, steps[0])),
    "fused, a step left out": lambda: of_steps(NEIGHBOURS, lambda steps: steps[:1]),
    "two rounds of all": lambda: of_steps(ELEMENTWISE, in_rounds(2)),
    "no round of all": lambda: of_steps(ELEMENTWISE, in_rounds(0)),
    "no trip of a single": lambda: of_loop(ONCE, no_trip),
    "another body": lambda: of_loop(ELEMENTWISE, other_body),
    "another inner loop": lambda: of_loop(ROWS, shorter_inside),
    "scalars between parts": lambda: of_steps(PARTS, lambda s: (s[0], s[1], s[3], s[2], s[4])),
    "a loop between parts": lambda: of_steps(PARTS, lambda s: (s[0], s[1], s[3], s[4], s[2])),
    "a part with an array of its own": lambda: of_loop(PARTS, own_array),
    "a part with copies": lambda: of_loop(PRODUCT, own_copies),
    "in any order": lambda: of_loop(SEIDEL, lambda loop: replace(loop, ordered=False)),
    "a copy of something else": lambda: of_loop(SHIFTED, twice_as_much),
    "a copy that begins late": late_copy,
    "a short copy": short_copy,
    "fused, another start, as many trips": lambda: fused(
        TWO.format(0, "n - 1, 2", 0, "n - 1, 2", "t[i]"), lambda loop: moved(loop, start=1, stop=1)
    ),
    "fused members with other starts": lambda: fused(TWO.format(0, "n - 1, 2", 1, "n, 2", "x[i]")),
    "fused over a last value": lambda: fused(LAST),
    "fused, bounds of data": lambda: fused(OF_DATA, lambda loop: moved(loop, stop=-1)),
    "an inner variable for the next iteration": lambda: of_loop(INNER, carried_alone),
    "a choice that changes after its test": lambda: of_loop(CHOSEN, as_choice),
    "a minimum in which NaN counts by its place": lambda: of_loop(LEAST, as_reduction),
    "too few copies": lambda: of_loop(SUMS, of_copies(count=1)),
    "copies that are too small": lambda: of_loop(SUMS, of_copies(shape=(3,))),
    "a name of the function beside it": named_beside,
    "an integer that is not given": lambda: of_loop(SCALED, nothing_given),
    "a bound that the loop changes": lambda: of_loop(SHRINKING, own_bound),
    "a loop that ends early, shared out": lambda: of_loop(ENDED, shared),
    "a subscript that counts from the end": lambda: never_outside(BEHIND),
}


def checked(one, made, schedules):
    return check(made, one.plan._values(), lambda loop, _: schedules[made.loops.index(loop)], [0], one.plan.inside)


@pytest.mark.parametrize("name", PLANS)
def test_a_wrong_plan_is_refused(name):
    one, made = PLANS[name]()
    schedules = [one.plan.schedule_of(loop, 3) for loop in made.loops]
    with pytest.raises(PlanError):
        checked(one, made, schedules)


def fewer_tiles(schedule):
    count = schedule.tiles - 1
    order = tuple(tiles[tiles < count] for tiles in schedule.order)
    parts = {"owner": schedule.owner[:count], "step": schedule.step[:count], "order": order}
    return replace(schedule, **parts, wait_offsets=schedule.wait_offsets[: count + 1])


SCHEDULES = {
    "steps the other way round": (SEIDEL, lambda one: replace(one, step=one.step.max() - one.step)),
    "a smaller grid": (ELEMENTWISE, lambda one: replace(fewer_tiles(one), grid=(one.grid[0] - 1,))),
    "fewer tiles": (ELEMENTWISE, fewer_tiles),
    "fewer workers": (ELEMENTWISE, lambda one: replace(one, workers=one.workers - 1)),
    "waits from 1": (SEIDEL, lambda one: replace(one, wait_offsets=one.wait_offsets + 1)),
    "orders of other workers": (ELEMENTWISE, lambda one: replace(one, order=one.order[::-1])),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("workers", [2, 3])
def test_a_wrong_schedule_is_refused(name, workers):
    source, change = SCHEDULES[name]
    one = given(source)
    schedules = [one.plan.schedule_of(loop, workers) for loop in one.made.loops]
    assert checked(one, one.made, schedules) == ()
    with pytest.raises(PlanError):
        checked(one, one.made, [change(schedules[0]), *schedules[1:]])


def rounds_that_wrap(A, m, c):
    for i in range(2 * c):
        for j in range(i, m, 2):
            A[j] *= 0.5


@pytest.mark.parametrize("c", [np.int16(3), np.int16(32766)])
def test_what_is_not_known_of_a_loop_around_is_not_taken_for_all_that_there_is(c):
    with orion.session("threads", 2, force_parallel=True):
        orion.parallel_for(rounds_that_wrap).plan(np.ones(9), 8, c).check()


def direct_beside_a_band(A, m, n):
    u = 0.0
    for i in range(5):
        u = u + A[i + 2, i + 9]
        for j in range(m):
            for k in range(n // 2):
                if k <= i - 1:
                    A[j + 1, k + 10] = 0.3 * (A[j + 1, k + 9] + A[j, k + 8])


def moved_by_nothing(a, x, n):
    low = 50.0
    for i in range(n):
        i += 0
        for _ in range(i):
            for k in range(i, 2):
                if low >= a[i + 3] - x[k + 1]:
                    low = a[i + 3] - x[k + 1]
    return low


def remainders(P, idx, n):
    """Two accesses meet in no iteration, but by fractions: isl's `coalesce` ended the process."""
    d = 1
    g = 0
    for i in range(-2, n - 2):
        P[11 - i, g + 4] = (P[(i + 3) % P.shape[0], (2 - i) % 3 + 4] * 3 - P[i + 4, i + 2]) % 97
        for j in range(i, 0, -1):
            d = (P[i + 3, (j + 4) * (j + 4) % P.shape[1]] + P[n - 1 - i + 3, (2 * (i + 4) + 1) % P.shape[1]]) % 97
            P[i + 2, (2 * (j + 4) + 1) % P.shape[1]] = d % 97 + P[(idx[i + 2] + i + 3) % P.shape[0], j + 3]
            P[i + 6, 2 * j + 3] ^= (P[i + 2, j - i + 3] + P[i + 3, j + 5]) % 97
        g += 1  # noqa: SIM113
    return d


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (direct_beside_a_band, (np.ones((14, 29)), 8, 10)),
        (moved_by_nothing, (np.ones(10), np.ones(9), 2)),
        (remainders, (np.ones((14, 9), np.int64), np.zeros(4, np.int64), 4)),
    ],
)
@pytest.mark.filterwarnings("ignore::orion.errors.UnprovedWarning")
def test_a_plan_is_not_refused_for_what_is_not_known(function, arguments):
    with orion.session("threads", 3, force_parallel=True):
        orion.parallel_for(function).plan(*arguments).check()
