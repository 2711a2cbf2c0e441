"""Names that stand for one array here and for another there: swaps, new arrays, states; nothing is copied, and results,
arguments and what is returned are those of Python."""

import random
import re
import warnings
from itertools import pairwise

import numpy as np
import pytest

import orion
from orion.frontend.check import check_function
from orion.frontend.parse import parse_function
from orion.ir.printer import print_function
from orion.ir.signature import argument_types
from orion.ir.types import ArrayType, ScalarType
from orion.passes.array_names import with_one_array_a_name
from tests.loop_text import defined
from tests.trials import TIMES

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def swapped(u, v, T):
    for _t in range(T):
        for i in range(1, u.shape[0] - 1):
            v[i] = 0.5 * (u[i - 1] + u[i + 1])
        u, v = v, u
    return u


def swapped_with_time(u, v, T):
    for t in range(1, T, 2):
        for i in range(u.shape[0]):
            v[i] = u[i] + t
        u, v = v, u


def three_in_turn(u, v, T):
    w = np.zeros_like(u)
    last = np.zeros(T)
    for t in range(T):
        for i in range(1, len(u) - 1):
            w[i] = u[i - 1] - v[i] + 0.5 * u[i + 1]
        v, u, w = u, w, v
        last[t] = u[2]
    return u, v, last


def given_anew(u, v, T):
    for _ in range(T):
        new = u.copy()
        for i in range(1, len(u) - 1):
            new[i] += 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u = new
    return u


def with_tolerance(u, v, T):
    change = 1.0
    rounds = 0
    while change > 1e-3 and rounds < T:
        change = 0.0
        for i in range(1, len(u) - 1):
            v[i] = 0.25 * (u[i - 1] + 2.0 * u[i] + u[i + 1])
            change = max(change, abs(v[i] - u[i]))
        u, v = v, u
        rounds += 1
    return u, rounds, change


def left_early(u, v, T):
    for _t in range(T):
        total = 0.0
        for i in range(len(u)):
            v[i] = 0.5 * u[i] + 1.0
            total += v[i]
        u, v = v, u
        if total > 60.0:
            break
    return u, total


def skipped_rounds(u, v, T):
    for t in range(T):
        if t % 3 == 1:
            continue
        for i in range(len(u)):
            v[i] = u[i] + t
        u, v = v, u
    return u, v


def swapped_sometimes(u, v, T):
    for t in range(T):
        for i in range(len(u)):
            v[i] = 0.5 * u[i] + t
        if t % 3 != 0:
            u, v = v, u
    return u


def returned_from_within(u, v, T):
    while True:
        for i in range(len(u)):
            v[i] = u[i] + 1.0
        change = np.abs(u - v).sum()
        u, v = v, u
        T -= 1
        if change < 1.0 or T < 0:
            return u, v[0]


def argument_scaled(u, v, T):
    u = u / 2.0
    v = v - u.sum()
    for i in range(len(u)):
        u[i] += v[i]
    return u, v


def power(u, v, T):
    A = np.outer(v, v) + 1.0
    size = 1.0
    for _ in range(T):
        y = np.zeros(len(u))
        for i in range(len(u)):
            y[i] = np.dot(A[i], u)
        size = np.max(np.abs(y))
        u = y / size
    return u, size


def chosen(u, v, T):
    longer = u if T % 2 == 0 else v
    for i in range(len(longer)):
        longer[i] += 1.0
    longer = v if T % 2 == 0 else u
    longer[0] = -1.0
    return longer


def rows_in_turn(u, v, T):
    table = np.zeros((2, len(u)))
    old, new = table[0], table[1]
    old[:] = u
    for _ in range(T):
        for i in range(1, len(u)):
            new[i] = max(old[i], old[i - 1] + v[i])
        old, new = new, old
    return table


def pairs_apart(u, v, T):
    result = np.zeros(T)
    for p in range(T):
        old, new = np.zeros(len(u)), np.zeros(len(u))
        for i in range(1, len(u)):
            for j in range(1, len(v)):
                new[j] = max(new[j - 1], old[j - 1] + abs(u[i] - v[j]) + p)
            old, new = new, old
        result[p] = old[-1]
    return result


def two_loops(u, v, T):
    for _ in range(T):
        for i in range(len(u)):
            v[i] = u[i] * 0.5
        u, v = v, u
    for _ in range(T // 2):
        for i in range(len(u)):
            v[i] = u[i] + 1.0
        u, v = v, u
    return v


def epochs(u, v, T):
    for e in range(T):
        for _ in range(e):
            for i in range(len(u)):
                v[i] = u[i] * 0.5 + e
            u, v = v, u
    return u


def other_lengths(u, v, T):
    short = u[1:] - u[:-1]
    u = short
    for i in range(len(u)):
        u[i] += v[i]
    return u


def goes_through(u, v, T):
    total = 0.0
    for t in range(T):
        for x in u:
            total += x * t
        u = v * 2.0
    return total


def two_names_for_one(u, v, T):
    b = np.zeros(T + 3)
    c = b
    b = np.ones(T + 3)
    c[0] = 2.0
    for i in range(len(b)):
        b[i] += c[i] + u[0]
    return b, c


def rows_exchanged(u, v, T):
    W = np.outer(u, v)
    for i in range(len(u)):
        w, h = W[i], v
        w, h = h, w
        h[0] = w[1] + T
        x = h * 2.0
        y = x
        x = h * 3.0
        y[1] = x[2]
        W[i, 3] = y.sum()
    return W


def only_changes_names(u, v, T):
    w = u.copy()
    z = w
    for t in range(T):
        u, w = w, u
        z[t] += 1.0
        if t == 1:
            z = u
        for i in range(len(u)):
            u[i] += z[i] * 0.25
    return u, w, z


def returned_in_the_loop(u, v, T):
    for t in range(T):
        for i in range(len(u)):
            v[i] = u[i] + 1.0
        u, v = v, u
        if t == 3:
            return v, u[2]
    return u, 0.0


def until_near(u, v, T):
    w = np.zeros(len(u))
    while True:
        new = np.zeros(len(u))
        for i in range(len(u)):
            new[i] = w[i] + 0.25 * (u[i] + T - w[i])
        if np.abs(new - w).max() < 0.1:
            break
        w = new
    return new


def until_near_from_an_argument(u, v, T):
    while True:
        new = 0.5 * (u + v * T)
        if np.abs(new - u).max() < 0.1:
            break
        u = new
    return new


FUNCTIONS = [
    swapped, swapped_with_time, three_in_turn, given_anew, with_tolerance, left_early, skipped_rounds,
    swapped_sometimes, returned_from_within, argument_scaled, power, chosen, rows_in_turn, pairs_apart, two_loops,
    epochs, other_lengths, goes_through, two_names_for_one,
    rows_exchanged, only_changes_names, returned_in_the_loop, until_near, until_near_from_an_argument,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_is_what_python_does(function, workers):
    compiled = orion.parallel_for(function)
    with orion.session(workers=workers, force_parallel=True):
        for T in (0, 1, 2, 3, 4, 5, 7) if function is not left_early else (1, 2, 3, 7):
            assert outcome(compiled, T) == outcome(function, T)


@pytest.mark.parametrize("T", [np.uint8(0), np.uint8(3), np.int8(-128), np.uint64(0), np.uint64(4), np.int16(5)])
def test_numbers_of_rounds_of_any_dtype(T):
    for function in (swapped, given_anew):
        assert outcome(orion.parallel_for(function), T) == outcome(function, T)


@pytest.mark.ray
@pytest.mark.parametrize("function", [swapped, three_in_turn, given_anew, with_tolerance], ids=lambda one: one.__name__)
def test_is_what_python_does_on_ray(function, ray_workers):
    compiled = orion.parallel_for(function)
    for T in (0, 3, 4):
        assert outcome(compiled, T) == outcome(function, T)


@pytest.fixture(scope="module")
def ray_workers():
    with orion.session("ray", workers=2, force_parallel=True):
        yield


def outcome(function, T):
    """What a call returns, which of that are the arguments themselves, and the arguments after it."""
    u, v = np.linspace(0.0, 2.0, 9) ** 2, np.cos(np.arange(9.0))
    returned = function(u, v, T)
    parts = returned if isinstance(returned, tuple) else (returned,)
    which = [next((name for name, array in (("u", u), ("v", v)) if part is array), "") for part in parts]
    return (
        [np.asarray(part).round(9).tolist() for part in parts if part is not None],
        which,
        u.round(9).tolist(),
        v.round(9).tolist(),
    )


@pytest.mark.parametrize("function", [swapped, three_in_turn, given_anew, pairs_apart], ids=lambda one: one.__name__)
def test_loops_around_swaps_are_shared_out(function):
    u, v = np.zeros(200_000), np.ones(200_000)
    if function is pairs_apart:
        u, v = np.zeros(300), np.ones(300)
    with orion.session(workers=2):
        plan = orion.parallel_for(function).plan(u, v, 20)
    assert all(loop.is_parallel for loop in plan.loops)


def test_two_rounds_are_written_out_for_two_arrays():
    text = print_function(with_one_array_a_name(parse_function(swapped), TYPES))
    assert "for _t in range(0, T - 1, 2):" in text
    assert "v[i] = 0.5 * (u[i - 1] + u[i + 1])" in text
    assert "u[i] = 0.5 * (v[i - 1] + v[i + 1])" in text
    assert "u, v = v, u" not in text


def test_the_plan_says_which_arrays_names_are():
    with orion.session(workers=2):
        plan = orion.parallel_for(swapped).plan(np.zeros(200_000), np.zeros(200_000), 5)
    found = [loop["names"] for loop in plan.to_dict()["loops"]]
    assert found == [[], [{"name": "u", "array": "v"}, {"name": "v", "array": "u"}], []]


def rod(u, steps):
    for _ in range(steps):
        new = u.copy()
        for i in range(1, len(u) - 1):
            new[i] = u[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u = new
    return u


def by_turns(u, v, steps):
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            v[i] = u[i - 1] + u[i + 1]
        u, v = v, u
    return u


@pytest.mark.parametrize(
    ("function", "written", "given"),
    [(rod, "new", (np.zeros(350_000), 50)), (by_turns, "v", (np.zeros(350_000), np.zeros(350_000), 50))],
    ids=["rod", "by_turns"],
)
def test_sections_of_a_plan_call_arrays_by_their_names_in_its_loops(function, written, given):
    """Each round reads `u` past the ends of blocks, whichever array that is."""
    with orion.session(workers=2):
        plan = orion.parallel_for(function).plan(*given)
    sections = [one for one in str(plan).split("\n\n") if one.startswith("  data ")]
    assert len(sections) > 1
    for section in sections:
        rows = dict(re.findall(r"(\w+) {2,}each worker touches its own part, along axis 0 with i(.*)", section))
        assert rows == {"u": ", and 1 past each end", written: ""}
    for view in (str(plan), plan._repr_html_()):
        assert "<td><code>new</code></td><td><code>u</code></td>" not in view  # it reads `u`, and writes `new`
        assert "of the source" not in view
        assert "new_1" not in view


def last_row(a, b):
    prev = np.arange(len(b) + 1)
    for i in range(len(a)):
        cur = np.empty_like(prev)
        cur[0] = i + 1
        for j in range(len(b)):
            cur[j + 1] = min(prev[j + 1] + 1, cur[j] + 1, prev[j] + (a[i] != b[j]))
        prev = cur
    return prev[-1]


def test_rounds_as_many_as_an_array_is_long_are_counted():
    with orion.session(workers=2):
        plan = orion.parallel_for(last_row).plan(np.arange(20_000), np.arange(20_000))
    assert [loop.strategy for loop in plan.loops if loop.runs_on == 2] == ["wavefront"]
    assert "tiles of (i // 2, 2 * (i // 2) + j + 1)" in str(plan)


def swapped_at_times(x, y, r):
    for t in range(len(r)):
        x[0] += y[1]
        for i in range(1, len(x) - 1):
            y[i] = 0.5 * (x[i - 1] + y[i - 1])
        if r[t] < 0.5:
            x, y = y, x


def test_the_number_of_a_state_is_told_of_as_the_arrays_that_names_stand_for():
    plan = orion.parallel_for(swapped_at_times).plan(np.zeros(9), np.zeros(9), np.zeros(9))
    (reason,) = [one for one in plan.loops[0].reasons if one.code == "ORN104"]
    assert (reason.message, reason.hint) == ("which arrays x and y stand for depends on the iteration before", "")
    assert not re.search(r"\bturn\b", str(plan))


def test_a_name_that_stands_for_one_array_stays():
    def plain(u, v, T):
        w = u
        for i in range(T):
            w[i] = v[i]

    function = parse_function(plain)
    assert with_one_array_a_name(function, TYPES) is function


TYPES = {"u": ArrayType("float64", 1), "v": ArrayType("float64", 1), "T": ScalarType("int64", True)}


def test_too_many_states_are_refused():
    names = [f"a{k}" for k in range(6)]
    swaps = "".join(
        f"        if T % {k + 2} == 0:\n            {a}, {b} = {b}, {a}\n" for k, (a, b) in enumerate(pairwise(names))
    )
    source = f"def f({', '.join(names)}, T):\n    for t in range(T):\n{swaps}        a0[t] = a1[t]\n"
    with pytest.raises(orion.UnsupportedLoopError, match="too many arrays in turn"):
        orion.parallel_for(defined(source)).plan(*(np.zeros(5) for _ in names), 5)


def test_arrays_of_other_shapes_may_change_places():
    def f(u, v, T):
        u, v = v, u
        for i in range(len(u)):
            u[i] += 1.0
        return len(u)

    u, v = np.zeros(3), np.zeros(5)
    assert orion.parallel_for(f)(u, v, 0) == 5
    assert v.tolist() == [1.0] * 5
    assert not u.any()


# ---------------------------------------------------------------- programs at random

COUNTS = [0, 1, 2, 3, 4, 5, np.uint8(0), np.uint8(3), np.int8(-128), np.int8(2), np.uint64(0), np.uint64(5)]


def program(seed):
    """A function with names that are given other arrays, in loops and branches that are left in many ways."""
    rng = random.Random(seed)
    names = ["u", "v", "w", "x"]

    def value(a, b):
        made = ["np.zeros(6)", f"np.zeros_like({b})", f"{b} + 1.0", f"{a} * 0.5", f"{b}[::-1] + {a}", f"{b}.copy()"]
        return rng.choice(made)

    def statements(depth, loops):
        found = []
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(["swap", "new", "both", "name", "step", "step", "if", "for", "leave"])
            a, b, c = rng.sample(names, 3)
            if kind == "swap":
                found.append(rng.choice([f"{a}, {b} = {b}, {a}", f"{a}, {b}, {c} = {b}, {c}, {a}"]))
            elif kind == "new":
                found.append(f"{a} = {value(a, b)}")
            elif kind == "both":
                found.append(f"{a}, {b}, k = {value(a, c)}, {rng.choice([a, c, value(b, a)])}, k + 1")
            elif kind == "name":
                found.append(f"{a} = {b}")
            elif kind == "step":
                far = rng.choice(["i - 1", "i", "i + 1"])
                found += [f"for i in range(1, len({a}) - 1):", f"    {a}[i] = 0.5 * {b}[i] + {c}[{far}] + {loops or 7}"]
            elif kind == "if" and depth < 3:
                found.append(f"if {rng.choice(['T % 2 == 0', 'u[1] > v[2]', 'k > 2', 'w[0] < 1.0'])}:")
                found += ["    " + line for line in statements(depth + 1, loops)]
                if rng.random() < 0.5:
                    found += ["else:", *("    " + line for line in statements(depth + 1, loops))]
            elif kind == "for" and depth < 2:
                heads = ["range(T)", "range(2, T, 2)", "range(3)", "range(T, 9)"]
                head = rng.choice([*(f"for t{depth} in {one}:" for one in heads), "while k < T:"])
                own = f"t{depth}" if head.startswith("for") else loops
                found += [head, "    k += 1", *("    " + line for line in statements(depth + 1, own or "k"))]
            elif kind == "leave" and loops and depth > 1:
                found.append(rng.choice(["break", "continue", f"return {a}, k"]))
                break
        return found or ["k += 1"]

    body = [*statements(0, ""), *statements(0, ""), *statements(0, "")]
    result = rng.choice(["return u", "return u, v, w", "return w, k", "return v[1:], k"])
    return "def f(u, v, w, T):\n    k = 0\n    x = u * 2.0\n" + "".join(f"    {line}\n" for line in [*body, result])


def run(function, T):
    u, v, w = np.arange(6.0), np.cos(np.arange(6.0)), np.linspace(-1.0, 1.0, 6)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        returned = function(u, v, w, T)
    parts = returned if isinstance(returned, tuple) else (returned,)
    return [np.asarray(part).tolist() for part in parts], u.tolist(), v.tolist(), w.tolist()


def in_one_memory(function):
    """The function as it is run: an array that it makes is written to the memory that its name has in all of a call."""
    lines = []
    for line in print_function(function).splitlines():
        found = re.fullmatch(r"( +)(\w+) = (.*)", line)
        is_made = found is not None and found[2] in function.sure
        lines.append(f"{found[1]}{found[2]} = again(memory, {found[2]!r}, {found[3]})" if is_made else line)
    lines.insert(1, "    memory = {}")

    def again(memory, name, value):
        if name not in memory or memory[name].shape != value.shape:
            memory[name] = np.empty_like(value)
        memory[name][:] = value
        return memory[name]

    return defined("\n".join(lines) + "\n", np=np, again=again)


@pytest.mark.parametrize("seed", range(45 * TIMES))
def test_random_programs_read_as_they_are_written(seed):
    source = program(seed)
    function = defined(source, np=np)
    for times in COUNTS[:6], COUNTS[6:8], COUNTS[8:10], COUNTS[10:]:
        kinds, _ = argument_types({**dict.fromkeys("uvw", np.zeros(6)), "T": times[0]})
        try:
            parsed = check_function(with_one_array_a_name(parse_function(function), kinds))
        except orion.UnsupportedLoopError as error:
            if "too many arrays" not in str(error):
                raise
            return
        read = in_one_memory(parsed)
        for T in times:
            assert run(read, T) == run(function, T), f"T = {T!r}\n{source}\n{print_function(parsed)}"


def doubled_with_count(x, n):
    for t in range(n):
        x = x * 2
        last = t
    return x, last


def normalised(A, x, n):
    for _ in range(n):
        y = A @ x
        length = np.sqrt((y * y).sum())
        x = y / length
    return x, length


def test_scalars_that_rounds_alone_give_values():
    x, last = orion.parallel_for(doubled_with_count)(np.ones(3), 2)
    assert (x.tolist(), last) == ([4.0, 4.0, 4.0], 1)
    A, x = np.array([[2.0, 1.0], [1.0, 3.0]]), np.ones(2)
    got, want = orion.parallel_for(normalised)(A, x, 7), normalised(A, x, 7)
    np.testing.assert_allclose(got[0], want[0])
    assert got[1] == pytest.approx(want[1])
