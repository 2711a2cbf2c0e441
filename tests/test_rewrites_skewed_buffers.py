"""Boxes in skewed buffers: when they may be, that they compute the same bits, and that nothing else is written."""

from itertools import product

import numpy as np
import pytest
from numba import njit

import orion
from orion.cost.caches import Caches
from orion.dependence.access import Dependence
from orion.ir.nodes import Const, Var
from orion.rewrites.band import Layout
from orion.rewrites.skewed_buffers.find import ROUNDS, box_of, in_box, is_skewable
from orion.rewrites.skewed_buffers.halfspaces import InexactError, Scanner, between, simplified, without
from orion.rewrites.tile.sizes import Memory
from orion.source import Span
from tests.reorder_loops import gs, lcs, seidel9
from tests.trials import combined, one_in

# ---------------------------------------------------------------- loops


def transposed(A, T):
    for _t in range(T):
        for j in range(1, A.shape[1] - 1):
            for i in range(1, A.shape[0] - 1):
                A[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def with_source(A, F, w, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = (A[i - 1, j] + A[i, j - 1] + A[i, j + 1] + F[i, j]) * w[j]


def conditional(A, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                if A[i, j - 1] > A[i - 1, j]:
                    A[i, j] = 0.5 * (A[i, j] + A[i + 1, j])


def from_below(A, T):
    for _t in range(T):
        for i in range(A.shape[0] - 2, 0, -1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def given_size(A, n, T):
    for _t in range(T):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def integers(A, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = max(A[i - 1, j], A[i, j - 1]) - A[i + 1, j + 1] // 2


def in_space(A, T):
    for _t in range(T):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                for k in range(1, A.shape[2] - 1):
                    A[i, j, k] = 0.5 * (A[i - 1, j, k] + A[i, j - 1, k]) + A[i, j, k - 1] - A[i, j, k + 1]


def a_row_at_a_time(A, T):
    for t in range(1, T):
        for i in range(1, A.shape[1]):
            A[t, i] = 0.5 * (A[t - 1, i] + A[t, i - 1])


def random(*shape, dtype=np.float64):
    return (np.random.default_rng(7).random(shape) * 100).astype(dtype)


def arguments(function, n, m, rounds):
    """What a function is called with: fresh arrays each time."""
    match function.__name__:
        case "with_source":
            return random(n, m), random(n, m), random(m) / 300, rounds
        case "given_size":
            return random(n, m), min(n, m), rounds
        case "integers":
            return random(n, m, dtype=np.int32), rounds
        case "in_space":
            return random(n // 3, n // 3, m // 3), rounds
        case "a_row_at_a_time":
            return random(n, m), n
        case "lcs":
            rng = np.random.default_rng(3)
            return rng.integers(0, 4, n), rng.integers(0, 4, m), np.zeros((n, m), np.int64)
        case _:
            return random(n, m), rounds


SKEWED = [gs, seidel9, transposed, with_source, conditional, from_below, given_size, integers]
OTHERS = [in_space, a_row_at_a_time, lcs]


@pytest.mark.parametrize("function", [*SKEWED, *OTHERS], ids=lambda f: f.__name__)
def test_which_loops_have_buffers(function):
    with orion.session(workers=2, force_parallel=True):
        source = orion.parallel_for(function).kernel_source(*arguments(function, 30, 30, 9))
    assert ("A_skewed = np.empty(" in source) == (function in SKEWED)


SIZES = [(3, 3), (4, 9), (17, 66), (130, 67)]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("function", one_in(2, SKEWED), ids=lambda f: f.__name__)
def test_the_bits_are_those_of_the_written_order(function, workers):
    compiled = orion.parallel_for(function)
    plain = njit(error_model="numpy")(function)  # the interpreter would take minutes
    for (n, m), rounds in combined(SIZES, (1, 4, ROUNDS + 1)):
        expected, found = arguments(function, n, m, rounds), arguments(function, n, m, rounds)
        plain(*expected)
        with orion.session(workers=workers, force_parallel=True):
            compiled(*found)
        assert np.array_equal(expected[0], found[0]), (n, m, rounds)


class Recorder:
    """An array that notes where it is written."""

    def __init__(self, *shape):
        self.shape, self.written = shape, set()

    def __getitem__(self, index):
        assert all(0 <= k < extent for k, extent in zip(index, self.shape, strict=True))
        return 0.0

    def __setitem__(self, index, value):
        self.written.add(index)


BOXES = [
    ((0, 5), (1, 9), (1, 12)),
    ((2, 19), (30, 41), (60, 63)),
    ((0, 16), (64, 200), (3, 90)),
    ((3, 7), (5, 30), (40, 41)),
    ((0, 33), (20, 22), (40, 90)),
]


@pytest.mark.parametrize("box", BOXES, ids=str)
@pytest.mark.parametrize(("function", "slope"), [(gs, 0), (seidel9, 1)], ids=["gs", "seidel9"])
def test_a_box_writes_its_own_elements_and_no_others(function, slope, box):
    """Any other may be another worker's, which writes it at the same time. The interpreter runs the kernel."""
    n, m, rounds = 60, 70, 40
    with orion.session(workers=1, force_parallel=True):
        source = orion.parallel_for(function).kernel_source(random(n, m), rounds)
    text = source[source.index("def tile") :]
    scope = {
        "np": np, "uint64": int, "int64": int, "floor_divided": int.__floordiv__, "is_alarmed": lambda control: False,
    }  # fmt: skip
    exec(text, scope)
    array = Recorder(n, m)
    scope["tile"](0, 0, np.array([box], object), None, array, rounds)
    (t0, t1), (p0, p1), (q0, q1) = box
    expected = {
        (i, j)
        for t, i, j in product(range(t0, min(t1, rounds)), range(1, n - 1), range(1, m - 1))
        if p0 <= t + i < p1 and q0 <= t + slope * (t + i) + j < q1
    }
    assert array.written == expected
    assert expected


def test_subscripts_that_may_leave_the_array_are_run_without_buffers():
    """The loop is right for n up to the extent; beyond it the error is that of the loop as written."""
    with orion.session(workers=1, force_parallel=True), pytest.raises(IndexError):
        orion.parallel_for(given_size)(random(20, 20), 22, 8)


# ---------------------------------------------------------------- legality


def relation(*distance):
    before, after = (", ".join(f"{name}{k}" for k in range(len(distance))) for name in "ab")
    steps = " and ".join(f"b{k} = a{k} + {step}" for k, step in enumerate(distance))
    return Dependence("A", "flow", None, None, f"{{ [{before}] -> [{after}] : {steps} }}", distance, (), True)


@pytest.mark.parametrize(
    ("distances", "expected"),
    [
        ([(0, 1, 0), (0, 0, 1), (1, 0, 0), (1, 1, 1)], True),
        ([(0, 1, 2), (1, 0, 1)], True),
        ([(0, 1, -2), (0, 0, 1)], False),
        ([(1, -1, 0), (0, 0, 1)], False),
        ([(1, 0, -1), (0, 0, 1)], False),
    ],
)
def test_legality_is_that_of_brute_force(distances, expected):
    assert is_skewable([relation(*distance) for distance in distances]) == expected
    points = list(product(range(6), repeat=3))
    broken = [
        (x, delta, sizes)
        for x, delta, sizes in product(points, distances, [(2, 3, 2), (3, 2, 4), (6, 6, 12), (1, 2, 3)])
        if not place(x, sizes) < place(tuple(a + b for a, b in zip(x, delta, strict=True)), sizes)
    ]
    assert bool(broken) != expected


def place(x, sizes):
    """Where an iteration comes in the order of boxes of (t, p, s), and in them of (t, s, p)."""
    t, p, q = x
    return (t // sizes[0], p // sizes[1], (p + q) // sizes[2], t, p + q, p)


# ---------------------------------------------------------------- sets


def inside(forms, point):
    return all(sum(factor * {**point, "": 1}[name] for name, factor in form.items()) >= 0 for form in forms)


@pytest.mark.parametrize(
    ("tilts", "exact"),
    [((0, 1, 1), True), ((1, 2, 2), True), ((1, 2, 3), False), ((-1, 1, 0), True), ((2, 2, 0), True)],
)
def test_elimination_is_exact_or_refused(tilts, exact):
    """{d : ∃ t  0 ≤ t < 4 and l ≤ d + k t < l + w for each k}."""
    forms = between({}, {"t": 1}, {"": 4})
    for k, (low, width) in zip(tilts, ((2, 6), (3, 7), (5, 8)), strict=True):
        forms += between({"": low}, {"d": 1, "t": k}, {"": low + width})
    if not exact:
        with pytest.raises(InexactError):
            without("t", forms)
    shadow = without("t", forms, exact=False)
    for d in range(-20, 30):
        some = any(inside(forms, {"d": d, "t": t}) for t in range(4))
        assert inside(shadow, {"d": d}) == some if exact else inside(shadow, {"d": d}) >= some


def test_loops_go_through_the_points_of_a_set():
    span = Span("f.py", 1, 0, 1, 1)
    forms = [*between({}, {"i": 2}, {"": 9}), *between({"i": 1}, {"j": 3, "i": -1}, {"n": 1, "": 2})]
    (outer,) = Scanner({name: Var(name, span) for name in "ijn"}, span).loops(["i", "j"], forms, ())
    found = []
    for i in trips(outer.space, {"n": 7}):
        found += [(i, j) for j in trips(outer.body[0].space, {"n": 7, "i": i})]
    expected = [(i, j) for i, j in product(range(-20, 20), repeat=2) if inside(forms, {"i": i, "j": j, "n": 7})]
    assert found == expected != []


def trips(space, values):
    from orion.ir.printer import print_expr

    start, stop = (eval(print_expr(bound), {}, dict(values)) for bound in (space.start, space.stop))
    assert isinstance(space.step, Const)
    return range(start, stop)


def test_simplified_keeps_the_strongest():
    assert simplified([{"i": 2, "": 5}, {"i": 1, "": 1}, {"": 0}]) == [{"i": 1, "": 1}]


def layout(array):
    """What a five-point stencil needs beside its iterations: for 16 rounds that move by (1, 2) each."""
    return Layout(array, ((1, 0), (0, 1)), (), (), (), ((1, 2),), (-16, -32), (17, 33), 0, "")


@pytest.mark.parametrize(
    ("second", "itemsizes", "expected"),
    [
        (2**20, [8], (256, 256)),
        (2**20, [4], (256, 256)),
        (2**20, [8, 8], (256, 128)),
        (2**20, [4, 8], (256, 128)),
        (2**19, [8], (256, 128)),
        (2**18, [8], (256, 32)),
        (2**15, [8], (64, 16)),
    ],
)
def test_buffers_fit_the_cache(second, itemsizes, expected):
    arrays = [f"A{k}" for k in range(len(itemsizes))]
    memory = Memory(Caches(second), tuple(zip(arrays, itemsizes, strict=True)))
    lanes, steps = box_of([layout(array) for array in arrays], memory)
    assert (lanes, steps) == expected
    used = sum(in_box(layout(a), lanes, steps, size).length * size for a, size in zip(arrays, itemsizes, strict=True))
    assert used < second or (lanes, steps) == (64, 16)
