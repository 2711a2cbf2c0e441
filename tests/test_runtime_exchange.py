"""What goes between nodes: every tile finds the newest contents of all that it uses, however late messages are.

The runs here are simulated (`tests/oracles/nodes.py`): nodes have arrays of their own, full of what nobody wrote, and a
random choice decides which worker goes on and which message arrives next.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.arrays.dense import DenseArray
from orion.runtime.ray.cells import Cells
from orion.runtime.ray.exchange import program_exchange
from orion.runtime.ray.holdings import Holdings
from orion.runtime.ray.mirrors import program_traffic
from orion.runtime.ray.regions import Region
from orion.schedule.footprints import with_skews
from tests.oracles.interpreted import Order, StuckError, kernel_code
from tests.oracles.nodes import run_on_nodes
from tests.runtime_programs import NAMES, assert_same, cases, integers, outcome
from tests.trials import TIMES

NODES = {
    "one each": "abcd",
    "two and two": "aabb",
    "three and one": "aaab",
    "one and two": "abb",
    "one and one": "ab",
}


@pytest.fixture(scope="module")
def expected():
    with orion.session("serial"):
        return {name: outcome(name) for name in NAMES}


def prepared(function, arguments, workers):
    return function._preparations.plain.prepare(arguments, workers, True)


def dense_of(arguments):
    return {key: value for key, value in arguments.items() if isinstance(value, np.ndarray | DenseArray)}


def exchange_of(name, nodes):
    function, arguments = cases()[name]
    program = prepared(function, arguments, len(nodes)).program
    return program, program_exchange(
        program.loops, program.known, nodes, {key: value.shape for key, value in dense_of(arguments).items()}
    )


def simulated(name, nodes, seed, driver=None):
    function, arguments = cases()[name]
    found = prepared(function, arguments, len(nodes))
    codes = [kernel_code(loop.kernel.text) for loop in found.program.loops]
    given = {**arguments, **found.local.take()}
    result, exchange, _ = run_on_nodes(found.program, codes, given, Order(seed), nodes, driver or nodes[0])
    return (result, {key: np.array(value) for key, value in dense_of(arguments).items()}), exchange


# ---------------------------------------------------------------- results


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "sweeps"])  # 300,000 elements: see below
def test_nodes_that_share_nothing_but_messages_give_the_serial_result(name, nodes, expected):
    for seed in range(TIMES):
        found, exchange = simulated(name, NODES[nodes], seed, driver=["a", "driver"][seed % 2])
        assert_same(found, expected[name])
        assert max(len(loop.tiles) for loop in exchange.loops) == len({*NODES[nodes]})


@orion.parallel_for
def smooth(a, b, rounds):
    for _ in range(rounds):
        for i in range(1, a.shape[0] - 1):
            b[i] = (a[i - 1] + 2 * a[i] - a[i + 1]) % 1009
        for i in range(1, a.shape[0] - 1):
            a[i] = b[i] - b[i - 1]


@orion.parallel_for
def pivots(A):
    """Rows that every worker needs, another one in each round."""
    for k in range(A.shape[0] - 1):
        for i in range(k + 1, A.shape[0]):
            for j in range(k + 1, A.shape[0]):
                A[i, j] = (A[i, j] - A[i, k] * A[k, j]) % 1009


@orion.parallel_for
def there_and_back(a, b, rounds):
    """Blocks in one loop and in the other way round in the next one."""
    n = a.shape[0]
    for t in range(rounds):
        for i in range(n):
            a[i] = (a[i] * 3 + t) % 1009
        for i in range(n):
            b[n - 1 - i] = (a[i] + b[n - 1 - i]) % 1009
        if t % 2 == 1:
            for i in range(n):
                a[i] = (b[i] + a[i]) % 1009


@orion.parallel_for
def conditional(a, which):
    if which > 1:
        for i in range(a.shape[0]):
            a[i] += 1
    if which > 0:
        for i in range(1, a.shape[0]):
            a[i] += 2
    return which


@orion.parallel_for
def if_odd(a, b):
    for i in range(1, a.shape[0] - 1):
        if a[i] % 2 == 1:
            b[i + 1] = a[i - 1]


@orion.parallel_for
def counts(bins, best, of, rounds):
    """Arrays that iterations add to, each with copies; read by a loop after them."""
    total = 0
    for t in range(rounds):
        for k in range(of.shape[0]):
            bins[of[k]] += k % 5 + t
            best[of[k]] = max(best[of[k]], (k * 37) % 101 - t)
        for k in range(bins.shape[0]):
            total += bins[k] * best[k]
    return total


@orion.parallel_for
def counts_of_rows(bins, A, of):
    """Copies of an array that each round adds to, from a row of its own."""
    for t in range(A.shape[0]):
        for k in range(of.shape[0]):
            bins[of[k]] += A[t, k] * (t + 1)
        A[t, 0] = bins[t]


@orion.parallel_for
def wrapped_columns(A):
    """As far as is known each tile may write all of a row: several send it to one node."""
    for w in range(8):
        for i in range(17):
            A[23 - i, (w + 3) % 8] = (A[23, (w + 3) % 8] + A[i // 2, 7 - w]) % 1009


@orion.parallel_for
def wrapped_forwards(A):
    for w in range(8):
        for i in range(17):
            A[i, (w + 3) % 8] = (A[0, (w + 3) % 8] * 2 + A[i // 2, w]) % 1009


@orion.parallel_for
def wrapped_rounds(B, T):
    for t in range(3):
        for w in range(8):
            for i in range(20, 2, -1):
                B[(i + 5) % 24, w] = (3 * B[max(i, t), (w + 3) % 8] + t) % 1009
                T[w % 4, i] = (3 * B[i, w] + 2 * T[t % 4 - 1, i + 3] + t) % 1009


@orion.parallel_for
def inner_rounds(a, b, n):
    for s in range(n):
        for t in range(s):
            for i in range(a.shape[0]):
                b[i] = (a[a.shape[0] - 1 - i] + t) % 1009
            for i in range(a.shape[0]):
                a[i] = b[i] + t


@orion.parallel_for
def shifted(a, b, d):
    d = d + 20
    for i in range(20):
        a[i] = b[i + d]
    for i in range(40):
        b[i] = b[i] + 1
    for i in range(20):
        a[i] += b[i + d]


@orion.parallel_for
def returns_early(a, b, d):
    for i in range(a.shape[0]):
        a[i] = b[a.shape[0] - 1 - i]
    if a[0] > -1000:
        return 5
    for i in range(a.shape[0]):
        b[i] = a[a.shape[0] - 1 - i]
    return 6


@orion.parallel_for
def skips_a_round(a, b, d):
    for t in range(6):
        if t == 2:
            continue
        for i in range(a.shape[0]):
            b[i] = (a[a.shape[0] - 1 - i] + t) % 1009
        for i in range(a.shape[0]):
            a[i] = b[i]


@orion.parallel_for
def stops_at_a_round(a, b, d):
    for t in range(6):
        if a[3] > -1000:
            break
        for i in range(a.shape[0]):
            b[i] = (a[a.shape[0] - 1 - i] + t) % 1009
        for i in range(a.shape[0]):
            a[i] = b[i]


@orion.parallel_for
def slanting(A, B):
    """Each tile has the elements between two diagonals."""
    for i in range(9):
        for j in range(12):
            A[i, i + j] = A[i, i + j] * 3 + B[i + 2 * j, j]
    for i in range(9):
        for j in range(12):
            B[2 * i + j, j] = (B[2 * i + j, j] + A[8 - i, 8 - i + j]) % 1009


@orion.parallel_for
def sweeps_backwards(A, sweeps):
    """The sides of tiles lean to the other side."""
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(A.shape[1] - 2, 0, -1):
                A[i, j] = (A[i - 1, j] + 2 * A[i, j] - A[i + 1, j] + A[i, j - 1] + 3 * A[i, j + 1]) % 1009


@orion.parallel_for
def sweeps_of_a_cube(A, sweeps):
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                for k in range(1, A.shape[2] - 1):
                    A[i, j, k] = (
                        A[i - 1, j, k] + A[i + 1, j, k] + A[i, j - 1, k] + 2 * A[i, j + 1, k] + A[i, j, k - 1] * 3
                    ) % 1009


@orion.parallel_for
def sweeps_and_diagonals(A, d, rounds):
    """Tiles of rounds, and after them a loop that uses the same array otherwise."""
    for _ in range(rounds):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = (A[i - 1, j] + 2 * A[i, j] - A[i + 1, j] + A[i, j - 1] + 3 * A[i, j + 1]) % 1009
    for i in range(A.shape[0]):
        d[i] = A[i, i] + A[A.shape[0] - 1 - i, i]


SLANTING = {
    "slanting": (slanting, lambda: {"A": integers(9, 22), "B": integers(40, 12, seed=3)}),
    "sweeps backwards": (sweeps_backwards, lambda: {"A": integers(12, 14), "sweeps": 20}),
    "sweeps of a cube": (sweeps_of_a_cube, lambda: {"A": integers(8, 9, 6), "sweeps": 9}),
    "sweeps and diagonals": (sweeps_and_diagonals, lambda: {"A": integers(13, 13), "d": integers(13), "rounds": 15}),
}
"""Loops whose tiles are bounded by other lines than rows and columns."""

WRAPPED = {
    "wrapped columns": (wrapped_columns, lambda: {"A": integers(24, 8)}),
    "wrapped forwards": (wrapped_forwards, lambda: {"A": integers(24, 8)}),
    "wrapped rounds": (wrapped_rounds, lambda: {"B": integers(24, 8), "T": integers(4, 24, seed=6)}),
}


@orion.parallel_for
def bounded_by_an_array(a, cnt):
    """Nothing reads `cnt` but the bounds of loops."""
    low = 1000
    for t in range(4):
        for i in range(a.shape[0]):
            a[i] = a[i] * 3 + t
        for r in range(cnt[t]):
            low = min(low, a[t] + r)
    return low


ENDS = {shifted: "depends on `d`", returns_early: "line", skips_a_round: "line", stops_at_a_round: "line"}
"""Functions in which statements between loops decide what these use, or whether they run, and what is said of that."""

MORE = {
    **WRAPPED,
    **SLANTING,
    **{one.__name__: (one, lambda: {"a": integers(40), "b": integers(40, seed=5), "d": 0}) for one in ENDS},
    "bounded by an array": (bounded_by_an_array, lambda: {"a": integers(30), "cnt": integers(4) % 5 + 1}),
    "rounds of rounds": (inner_rounds, lambda: {"a": integers(40), "b": integers(40, seed=5), "n": 4}),
    "counts of rows": (counts_of_rows, lambda: {"bins": integers(11), "A": integers(9, 200), "of": integers(200) % 11}),
    "counts": (
        counts,
        lambda: {"bins": integers(11), "best": integers(11, seed=9), "of": integers(400) % 11, "rounds": 3},
    ),
    "smooth": (smooth, lambda: {"a": integers(40), "b": integers(40, seed=5), "rounds": 4}),
    "pivots": (pivots, lambda: {"A": integers(9, 9)}),
    "there and back": (there_and_back, lambda: {"a": integers(30), "b": integers(30, seed=4), "rounds": 5}),
    "no loop": (conditional, lambda: {"a": integers(30), "which": 0}),
    "one loop": (conditional, lambda: {"a": integers(30), "which": 1}),
    "both loops": (conditional, lambda: {"a": integers(30), "which": 2}),
    "a condition": (if_odd, lambda: {"a": integers(50), "b": integers(51, seed=6)}),
}


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("name", MORE)
def test_more_loops_give_the_serial_result(name, nodes):
    function, given = MORE[name]
    expected = given()
    result = function.serial(**expected)
    for seed in range((4 if name in WRAPPED else 1) * TIMES):
        arguments = given()
        found = prepared(function, arguments, len(NODES[nodes]))
        codes = [kernel_code(loop.kernel.text) for loop in found.program.loops]
        driver = ["a", "driver"][seed % 2]
        own = {**arguments, **found.local.take()}
        assert run_on_nodes(found.program, codes, own, Order(seed), NODES[nodes], driver)[0] == result
        for key, array in dense_of(arguments).items():
            np.testing.assert_array_equal(array, expected[key], err_msg=f"{key}, seed {seed}")


@orion.parallel_for
def in_turns(C, rounds):
    for t in range(rounds):
        for i in range(5, 0, -1):
            for j in range(1, 6):
                for k in range(1, 5):
                    C[i, j, k] = C[i - 1, j + 1, k - 1] % 97
        for i in range(1, 6):
            for j in range(6, 1, -1):
                for k in range(1, 4, 2):
                    C[i, j, k] = t % 97


@pytest.mark.parametrize("nodes", ["abc", "abcd", "aabbc"])
def test_what_is_sent_after_a_barrier_comes_after_all_that_was_sent_before(nodes):
    """One node may be past a barrier, and send what it writes then, while a third one has not got what others have
    sent before it."""
    for seed in range(8 * TIMES):
        arguments, expected = ({"C": integers(7, 8, 6, seed=seed), "rounds": 3} for _ in range(2))
        found = prepared(in_turns, arguments, len(nodes))
        codes = [kernel_code(loop.kernel.text) for loop in found.program.loops]
        run_on_nodes(found.program, codes, {**arguments, **found.local.take()}, Order(seed), nodes, "a")
        in_turns.serial(**expected)
        np.testing.assert_array_equal(arguments["C"], expected["C"])


# ---------------------------------------------------------------- what is sent


@pytest.mark.parametrize(("shape", "sweeps"), [((40, 50), 3), ((13, 17), 30)])
def test_what_is_sent_of_a_wavefront_is_what_crosses_nodes(shape, sweeps):
    """By the definition: an element is sent once to each node that reads what a tile elsewhere wrote last; and each
    tile waits itself for all that have written what it reads, not by way of others, whose flags may come sooner."""
    arguments = {"A": integers(*shape), "sweeps": sweeps}
    for nodes in ("ab", "abc", "aabb"):
        program = prepared(cases()["wavefront"][0], arguments, len(nodes)).program
        (loop,) = program.loops
        exchange = program_exchange(program.loops, program.known, nodes, {"A": shape})
        assert {*exchange.loops[0].tiles} == {*nodes}
        sent = [
            (send.node, tile, place)
            for tile, sends in exchange.loops[0].sends.items()
            for send in sends
            for place in elements(send.regions, shape)
        ]
        crossed, pairs = crossing(loop.schedule, nodes, shape, sweeps)
        assert {*sent} == crossed
        assert len(sent) == len(crossed)
        offsets, waits, _ = exchange.loops[0].waits
        assert pairs <= {
            *zip(np.repeat(np.arange(loop.schedule.tiles), np.diff(offsets)).tolist(), waits.tolist(), strict=True)
        }


def elements(regions, shape):
    """The places of the elements in some regions, which do not overlap."""
    found = covered(regions, shape)
    assert found.max(initial=0) <= 1
    return map(tuple, np.argwhere(found).tolist())


def covered(regions, shape):
    """How many of some regions have each element of an array."""
    found = np.zeros(shape, int)
    for region in regions:
        region.put(found, region.of(found) + 1)
    return found


def crossing(schedule, nodes, shape, sweeps):
    """(node, tile that wrote it last, element) for all that tiles of the node read and another node's wrote last; and
    (tile, the one that wrote) for these. The coordinates of tiles are t, t + i, t + j (`plan.loops[0]` has them)."""
    last, found, pairs = {}, set(), set()
    for t in range(sweeps):
        for i in range(1, shape[0] - 1):
            for j in range(1, shape[1] - 1):
                at = zip(schedule.bounds, (t, t + i, t + j), strict=True)
                blocks = [int(np.searchsorted(edges, x, side="right")) - 1 for edges, x in at]
                tile = int(np.ravel_multi_index(blocks, schedule.grid))
                node = nodes[schedule.owner[tile]]
                for place in ((i, j), (i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                    before = last.get(place)
                    if before is not None and nodes[schedule.owner[before]] != node:
                        found.add((node, before, place))
                        pairs.add((tile, before))
                last[i, j] = tile
    return found, pairs


def test_blocks_that_rotate_are_sent_to_their_next_user_only():
    program, exchange = exchange_of("rotated", "ab")
    (loop,) = exchange.loops
    to = defaultdict(set)
    for tile, sends in loop.sends.items():
        for send in sends:
            for region in send.regions:
                assert region.array == "H"
                to[region].add((tile, send.node))
    assert to
    assert loop.rounds_overlap
    columns = {int(tile) % program.loops[0].schedule.grid[1] for users in to.values() for tile, _ in users}
    assert len(columns) == program.loops[0].schedule.grid[1]


def test_loops_in_a_row_send_what_the_next_one_lacks_and_no_more():
    arguments = MORE["smooth"][1]()
    program = prepared(smooth, arguments, 2).program
    exchange = program_exchange(program.loops, program.known, "ab", {"a": (40,), "b": (40,)})
    holdings = Holdings(exchange)
    state, sizes = holdings.begin, []
    assert len(program.loops) == 2
    for _ in range(3):
        for number in range(2):
            moves, state = holdings.before(state, number, exchange.loops[number].usage)
            sizes.append(sum(r.elements((40,)) for sends in moves for send in sends for r in send.regions))
            state = holdings.after(state, number, exchange.loops[number].usage)
    assert sizes == [0, 1, 2, 1, 2, 1]  # b[i - 1] of the neighbour; a[i - 1] and a[i + 1]
    moves, _ = holdings.at_end(state)
    assert all(send.node == "a" for sends in moves for send in sends)


def test_states_repeat_and_steps_are_worked_out_once():
    _, exchange = exchange_of("two loops", "aabb")
    holdings = Holdings(exchange)
    state, seen = holdings.begin, []
    for _ in range(20):
        for number, loop in enumerate(exchange.loops):
            _, state = holdings.before(state, number, loop.usage)
            state = holdings.after(state, number, loop.usage)
        seen.append(state)
    assert len({*seen[2:]}) == 1
    assert len(holdings._known) < 12


def test_what_has_not_been_written_comes_back_as_it_was():
    """The home node is not the driver's: it must not give back what it never had."""
    _, exchange = exchange_of("wavefront", "ab")
    traffic = program_traffic(exchange)
    cells = exchange.cells["A"]
    there = np.zeros((40, 50), bool)
    for region in cells.regions(traffic.shares["a"].dense["A"]):
        region.put(there, True)
    for region in traffic.written:
        assert region.of(there).all()
    assert cells.regions(exchange.written("A")) == traffic.written


@pytest.mark.parametrize("name", ["rotated", "tensor", "wavefront", "stencil", "two loops"])
def test_tiles_on_one_node_send_nothing(name):
    _, exchange = exchange_of(name, "aa")
    assert all(loop.sends == {} for loop in exchange.loops)


def test_a_loop_whose_blocks_are_others_in_each_round_runs_on_the_home_node():
    """Each worker writes what another one has written in the round before."""

    @orion.parallel_for
    def shifting(a, rounds):
        for t in range(rounds):
            for i in range(40):
                a[i + t] = a[i + t] * 3 + t

    program = prepared(shifting, {"a": np.zeros(60, np.int64), "rounds": 4}, 4).program
    exchange = program_exchange(program.loops, program.known, "aabb", {"a": (60,)})
    (loop,) = exchange.loops
    assert [order.size > 0 for order in loop.order] == [True, True, False, False]
    assert np.sort(np.concatenate(loop.order)).tolist() == list(range(program.loops[0].schedule.tiles))
    assert loop.is_at_home
    assert {*loop.tiles} == {"a"}


def test_copies_of_an_array_go_to_those_who_combine_them():
    function, given = MORE["counts"]
    program = prepared(function, given(), 4).program
    exchange = program_exchange(program.loops, program.known, "aabb", {"bins": (11,), "best": (11,), "of": (400,)})
    assert program.loops[0].plan.copies
    assert {*exchange.loops[0].tiles} == {"a", "b"}
    usage = exchange.loops[0].usage["bins"]
    assert np.unique(usage.writer).tolist() == [0, 1, 2, 3]
    assert (usage.first.sum(axis=0) == 1).all()


# ---------------------------------------------------------------- what is predicted is what is sent

EVEN = {2: "ab", 3: "aab", 4: "aabb"}
KNOWN = [name for name in NAMES if name != "sweeps"] + [
    "counts",
    "counts of rows",
    "smooth",
    "pivots",
    "a condition",
    *SLANTING,
]


@pytest.mark.parametrize("workers", EVEN)
@pytest.mark.parametrize("name", KNOWN)
def test_the_bytes_that_a_plan_predicts_are_those_that_are_sent(name, workers):
    function, given = MORE[name] if name in MORE else (cases()[name][0], lambda: cases()[name][1])
    arguments = given()
    found = prepared(function, arguments, workers)
    nodes = EVEN[workers][: found.program.workers] if workers == 2 else EVEN[workers]
    assert found.program.workers == len(nodes)
    codes = [kernel_code(loop.kernel.text) for loop in found.program.loops]
    own = {**arguments, **found.local.take()}
    sent = run_on_nodes(found.program, codes, own, Order(1), nodes, "a")[2]
    estimate = found.plan.estimate(nodes=2)
    assert estimate.bytes == sent
    assert sum(loop.bytes for loop in estimate.loops) + estimate.bytes_at_end == sent
    assert found.plan.estimate(nodes=1).bytes == 0


def test_what_depends_on_data_is_not_predicted():
    function, given = MORE["both loops"]
    estimate = prepared(function, given(), 2).plan.estimate(nodes=2)
    assert estimate.bytes is None
    assert "the `if` in line" in estimate.unknown
    assert "unknown number of bytes" in str(estimate)


@pytest.mark.parametrize("n", [1, 4, 7])
def test_rounds_of_rounds_are_predicted(n):
    found = prepared(inner_rounds, {"a": integers(40), "b": integers(40, seed=5), "n": n}, 2)
    codes = [kernel_code(loop.kernel.text) for loop in found.program.loops]
    arguments = {"a": integers(40), "b": integers(40, seed=5), "n": n}
    assert run_on_nodes(found.program, codes, arguments, Order(1), "ab", "a")[2] == found.plan.estimate(nodes=2).bytes


@pytest.mark.parametrize("function", ENDS, ids=lambda one: one.__name__)
def test_what_statements_between_loops_decide_is_not_predicted(function):
    estimate = prepared(function, {"a": integers(40), "b": integers(40, seed=5), "d": 0}, 2).plan.estimate(nodes=2)
    assert estimate.bytes is None
    assert ENDS[function] in estimate.unknown


def test_an_estimate_says_why_a_loop_is_on_one_node():
    @orion.parallel_for
    def shifting(a, rounds):
        for t in range(rounds):
            for i in range(40):
                a[i + t] = a[i + t] * 3 + t

    plan = prepared(shifting, {"a": np.zeros(60, np.int64), "rounds": 4}, 4).plan
    estimate = plan.estimate(nodes=2)
    assert estimate.loops[0].nodes == 1
    assert "tiles with no order between them write the same elements of `a`" in str(estimate)
    assert estimate.bytes == 0
    with pytest.raises(orion.PlanError, match="at least one node, not 0"):
        plan.estimate(nodes=0)


def test_long_sweeps_over_a_large_array_are_on_all_nodes():
    """What a tile touches is not gone through sweep by sweep."""
    arguments = {"A": np.empty((4096, 4096), np.int64), "sweeps": 1000}
    estimate = prepared(cases()["wavefront"][0], arguments, 4).plan.estimate(nodes=2)
    assert estimate.loops[0].nodes == 2
    few = prepared(cases()["wavefront"][0], {**arguments, "sweeps": 1}, 4).plan.estimate(nodes=2)
    assert estimate.loops[0].bytes == 1000 * few.loops[0].bytes


def test_many_rounds_are_predicted_without_going_through_them_all():
    arguments = {**MORE["smooth"][1](), "rounds": 10**9}
    plan = prepared(smooth, arguments, 2).plan
    few = prepared(smooth, {**arguments, "rounds": 11}, 2).plan
    each = plan.estimate(nodes=2).bytes - few.estimate(nodes=2).bytes
    assert each == (10**9 - 11) * 3 * 8


@pytest.mark.parametrize("most", [0, 20, 400])
@pytest.mark.parametrize("name", ["wavefront", "stencil", "row by row", "two loops"])
def test_arrays_with_too_many_cells_are_told_apart_less(name, most, expected, monkeypatch):
    monkeypatch.setattr("orion.runtime.ray.exchange.MOST_CELLS", most)
    for seed in range(3):
        found, exchange = simulated(name, "abb", seed, driver="driver")
        assert_same(found, expected[name])
    assert max(np.prod(cells.shape) for cells in exchange.cells.values()) <= max(most, 20)


# ---------------------------------------------------------------- what is broken is found


def without(change):
    """A run whose exchange is changed."""

    def changed(*given):
        exchange = program_exchange(*given)
        return replace(exchange, loops=tuple(change(loop) for loop in exchange.loops))

    return changed


def without_data(loop):
    cut = {tile: tuple(replace(send, regions=()) for send in sends) for tile, sends in loop.sends.items()}
    return replace(loop, sends=cut)


def without_flags(loop):
    return replace(loop, sends={})


def without_first(loop):
    return replace(loop, usage={a: replace(u, first=np.zeros_like(u.first)) for a, u in loop.usage.items()})


def without_end(loop):
    return replace(loop, usage={a: replace(u, after=np.ones_like(u.after)) for a, u in loop.usage.items()})


@pytest.mark.parametrize("change", [without_data, without_flags, without_first, without_end])
def test_an_exchange_that_leaves_something_out_is_found(change, expected, monkeypatch):
    monkeypatch.setattr("tests.oracles.nodes.program_exchange", without(change))
    with pytest.raises((AssertionError, StuckError)):  # noqa: PT012 - one of the seeds will do
        for seed in range(10):
            found, _ = simulated("wavefront", "ab", seed, driver="driver")
            assert_same(found, expected["wavefront"])


# ---------------------------------------------------------------- regions


def test_cells_are_cut_where_boxes_begin_and_end():
    low, high = np.array([[0, 2], [3, 2]]), np.array([[3, 5], [6, 5]])
    cells = Cells.around("A", (8, 9), [(low, high)], (), ())
    assert [cuts.tolist() for cuts in cells.cuts] == [[0, 3, 6, 8], [0, 2, 5, 9]]
    first, end = cells.places(low, high)
    assert first.tolist() == [[0, 1], [1, 1]]
    assert end.tolist() == [[1, 2], [2, 2]]


def test_regions_of_cells_cover_them_once():
    generator = np.random.default_rng(4)
    for _ in range(50):
        shape = tuple(generator.integers(0, 6, generator.integers(1, 4)))
        cells = Cells("A", tuple(np.arange(n + 1) * 2 for n in shape), ())
        mask = generator.random(shape) < 0.5
        found = covered(cells.regions(mask), [2 * n for n in shape])
        whole = mask.astype(int)
        for axis in range(len(shape)):
            whole = np.repeat(whole, 2, axis=axis)
        np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize("skews", [((-1, 1, 0),), ((1, 1, 0),), ((0, -2, 1),), ((-1, 2, 0),), ((-1, 1, 0), (0, -1, 1))])
def test_regions_of_cells_with_slanting_sides_cover_them_once(skews):
    generator = np.random.default_rng(5)
    shape = (9, 11, 7)
    for _ in range(30):
        corners = np.sort(generator.integers(0, np.add(shape, 1), (6, 2, 3)), axis=1)
        low, high = with_skews(corners[:, 0], corners[:, 1], skews)
        low[:, 3:] += generator.integers(0, 4, (6, len(skews)))
        high[:, 3:] -= generator.integers(0, 4, (6, len(skews)))
        cells = Cells.around("A", shape, [(low, high)], (), skews)
        for box in range(6):
            index = np.indices(shape)
            numbers = [*index, *(np.tensordot(skew, index, 1) for skew in skews)]
            inside = [(a <= x) & (x < b) for a, x, b in zip(low[box], numbers, high[box], strict=True)]
            _, own = cells.inside(low[box : box + 1], high[box : box + 1])
            assert covered(cells.regions_of(own), shape).tolist() == np.all(inside, axis=0).astype(int).tolist()


def test_an_array_without_elements_has_no_cells():
    cells = Cells.around("A", (0, 3), [], (), ())
    assert cells.shape == (0, 1)
    assert cells.regions(cells.none()) == ()
    assert Region("A").elements((0, 3)) == 0
    assert Region("A", ((1, 3),)).elements((5, 3)) == 6
