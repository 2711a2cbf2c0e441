"""Arrays on several kinds of memory: traces of accesses, the times of placements, and which array goes where."""

import json
import warnings
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings

import orion
from benchmarks.estimates import factorize
from orion.arrays.sizes import size_in_bytes
from orion.errors import ArgumentError, PlanError
from orion.ir.program import RunLoop
from orion.kernel.calling import tile_boxes
from orion.kinds.best import best_placement, costs_of, left_of, room_of
from orion.kinds.blocks import NOTHING, Accesses, BlockCost, Blocks, FolderCost, Windows, windows_of
from orion.kinds.folders import FileArrays, FreshPages, cost_of_blocks
from orion.kinds.measured import Costs, LoopOnKinds, MeasuredKinds, part_of, placed_seconds
from orion.kinds.runs import Run, typical
from orion.kinds.trace import LoopTracer, Sampler, Touched, Traced, TracedArray
from orion.measured import LoopName, Measurement
from tests.oracles.brute_force import record
from tests.oracles.random_nests import RandomNest, random_nests
from tests.trials import times

FEW = settings(
    max_examples=times(25, 10), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@orion.parallel_for
def add_up(a, b, c, rounds):
    for _ in range(rounds):
        for i in range(a.shape[0]):
            c[i] += a[i] * b[2 * i]


# ---------------------------------------------------------------- the formula


@pytest.mark.parametrize(
    ("times", "counts", "expected"),
    [
        ([1.0, 5.0], [3, 1], 2.0),
        ([1.0, 5.0], [4, 0], 1.0),
        ([1.0, 5.0], [0, 4], 5.0),
        ([1.0, 5.0], [0, 0], 1.0),  # a window without accesses costs what it computes
        ([1.0, 5.0, 13.0], [2, 1, 1], 5.0),
        ([1.0, 5.0, 13.0], [0, 1, 3], 11.0),
    ],
)
def test_a_window_takes_the_mean_of_kinds_weighted_by_accesses(times, counts, expected):
    seconds, none = [np.array([time]) for time in times], np.zeros(1)
    all_arrays = Costs(np.array([float(sum(counts))]), none)
    parts = [
        part_of(time - seconds[0], Costs(np.array([count]), none), all_arrays, 1.0)
        for time, count in zip(seconds, counts, strict=True)
    ]
    assert placed_seconds(seconds, parts).tolist() == [expected]


def test_the_time_is_the_sum_over_windows():
    fast, slow = np.array([1.0, 2.0]), np.array([3.0, 10.0])
    assert placed_seconds([fast, slow], [0.0, np.array([0.5, 0.75])]).sum() == 2.0 + 8.0


def test_what_windows_take_more_than_reading_is_of_arrays_that_were_written():
    """Two arrays bring in a second each; only the first one was written, and is on the slow kind, or the other one."""
    more, all_arrays = np.array([1.5, 2.0, 6.0]), Costs(np.full(3, 2.0), np.full(3, 4.0))
    written, read = Costs(np.ones(3), np.full(3, 4.0)), Costs(np.ones(3), np.zeros(3))
    assert (more * part_of(more, written, all_arrays, 1.0)).tolist() == [0.75, 1.0, 5.0]
    assert (more * part_of(more, read, all_arrays, 1.0)).tolist() == [0.75, 1.0, 1.0]
    assert (more * part_of(more, read, all_arrays, 0.5)).tolist() == [0.75, 1.0, 2.0]


def test_a_window_that_was_faster_on_a_slow_kind_costs_what_it_computes():
    own = Costs(np.ones(1), np.ones(1))
    assert part_of(np.array([-1.0]), own, own, 1.0).tolist() == [0.0]


# ---------------------------------------------------------------- traces


def prepared_for(function, arguments, ordered=None):
    with orion.session(workers=3, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return orion.parallel_for(ordered=ordered)(function)._preparations.plain.prepare(arguments, 3, True)


def traced(prepared, arguments) -> Counter:
    """Accesses by array, element and whether it is a write, as the planned loops are traced tile by tile."""
    found = Counter()
    arrays = {name: one for name, one in arguments.items() if isinstance(one, np.ndarray)}
    for loop in prepared.program.loops:
        own = {name: TracedArray(one, one.itemsize) for name, one in arrays.items()}
        names = {**arguments, **own}
        tracer, sampler = LoopTracer(loop.plan.nest, [*names]), Sampler(1)
        boxes = tile_boxes(loop.schedule)
        for tile in loop.schedule.serial_tiles().tolist():
            tracer.tile(names, boxes[tile], sampler)
            for name, array in own.items():
                for place, is_write in ((array.reads, False), (array.writes, True)):
                    found.update({(name, int(at), is_write): int(place[at]) for at in np.flatnonzero(place)})
                array.taken()
    return found


def as_python(function, arguments, dims: int) -> Counter:
    """The same of the function itself, run by the Python interpreter."""
    return Counter((name, element, is_write) for _, name, element, is_write in record(function, arguments, dims).events)


@FEW
@given(random_nests())
def test_a_trace_of_all_iterations_has_the_accesses_of_the_loop_as_python(nest: RandomNest):
    note(str(nest))
    function = nest.function()
    expected = as_python(function, nest.arguments(), nest.source.count("for "))
    prepared = prepared_for(function, nest.arguments(), nest.ordered)
    assume(all(isinstance(step, RunLoop) for step in prepared.program.program.steps))  # nothing is run in rounds
    assume(not prepared.local.specs)  # what a loop reads of a copy of an array it does not read of that
    assert traced(prepared, nest.arguments()) == expected


def sweep(a, rounds):
    for _ in range(rounds):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


def product_of(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@pytest.mark.parametrize("function", [sweep, product_of])
def test_loops_in_another_order_have_the_accesses_of_those_of_the_source(function):
    def arguments():
        if function is sweep:
            return {"a": np.ones((24, 24)), "rounds": 3}
        return {name: np.ones((24, 24)) for name in "abc"}

    prepared = prepared_for(function, arguments())
    assert any(loop.parts for loop in prepared.plan.loops)
    assert traced(prepared, arguments()) == as_python(function, arguments(), 3)


def test_every_third_iteration_is_taken_whatever_the_loops():
    sampler = Sampler(3)
    taken = [at for start in (0, 2, 3, 10) for at in sampler.of(range(start, {0: 2, 2: 3, 3: 10, 10: 20}[start]))]
    assert taken == [*range(0, 20, 3)]


def test_rows_slices_and_lists_of_places_are_counted_by_element():
    data = np.arange(24.0).reshape(4, 6)
    array = TracedArray(data, 8)
    array[1]
    array[:, 2]
    array[np.array([0, 3]), np.array([5, 5])]
    array[-1, -1] = 7.0
    expected = np.zeros((4, 6), int)
    expected[1] += 1
    expected[:, 2] += 1
    expected[[0, 3], 5] += 1
    assert np.array_equal(array.reads.reshape(4, 6), expected)
    assert np.flatnonzero(array.writes).tolist() == [23]
    assert data[3, 5] == 7.0


def touched(reads, writes):
    return Touched(*(np.array([[at, 1] for at in found], np.int64).reshape(-1, 2) for found in (reads, writes)))


def test_a_block_is_brought_in_once():
    first = Traced(0, 0, {0: {"a": touched([0, 1], [])}, 1: {"a": touched([1], [2]), "b": touched([0], [])}})
    second = Traced(0, 1, {0: {"a": touched([0, 3], [])}, 1: {"b": touched([0], [0])}})
    found, accesses = windows_of([first, second], {"a": 350, "b": 12}, 100, {0: 2}, [3])
    brought = [{name: one.brought for name, one in trace.items()} for trace in found]
    dirty = [{name: one.dirty for name, one in trace.items()} for trace in found]
    assert [{name: one.count.tolist() for name, one in trace.items()} for trace in brought] == [
        {"a": [2, 1], "b": [0, 1]},
        {"a": [1, 0], "b": [0, 0]},
    ]
    assert [{name: one.bytes.tolist() for name, one in trace.items()} for trace in brought] == [
        {"a": [200, 100], "b": [0, 12]},  # the last block is shorter
        {"a": [50, 0], "b": [0, 0]},
    ]
    assert [{name: one.bytes.tolist() for name, one in trace.items()} for trace in dirty] == [
        {"a": [0, 100], "b": [0, 0]},
        {"a": [100, 100], "b": [0, 12]},
    ]
    assert accesses["a"] == Accesses(reads=15, writes=3, blocks=4, bytes=350, written=1, written_bytes=100)
    assert accesses["b"] == Accesses(reads=6, writes=3, blocks=1, bytes=12, written=1, written_bytes=12)


def test_what_was_counted_is_more_than_a_trace_of_few_iterations_has_seen():
    seen = Accesses(reads=10, writes=10, blocks=2, bytes=200, written=1, written_bytes=100)
    assert seen.as_counted(650, 100) == Accesses(10, 10, blocks=7, bytes=650, written=3, written_bytes=325)
    windows = Windows(*(Blocks(np.array([1, 1]), np.array([100, 100])) for _ in range(2)))
    counted = windows.as_counted(np.array([400, 250]), 100, 3.25)
    assert (counted.brought.count.tolist(), counted.brought.bytes.tolist()) == ([4, 3], [400, 250])
    assert counted.dirty.bytes.tolist() == [325, 325]


def test_pages_that_are_brought_in_are_counted_by_file_and_once(tmp_path):
    files = FileArrays(tmp_path)
    files.add("a", np.ones(30_000))
    files.add("b", np.ones(10))
    files.drop()
    pages = FreshPages(files)
    if files.resident()["a"].all():
        pytest.skip("the folder's files are in memory only: their pages are never given up")
    float(files.arrays["a"].sum())
    assert pages.look() == {"a": 240_000, "b": 0}
    float(files.arrays["b"].sum() + files.arrays["a"].sum())
    assert pages.look() == {"a": 0, "b": 80}
    files.close()


def test_what_a_block_costs_is_known_from_a_small_and_a_large_one():
    cost = BlockCost.through((4096, 1e-4 + 4096e-9), (131072, 1e-4 + 131072e-9))
    blocks = Blocks(np.array([2]), np.array([132000]))
    assert blocks.seconds(cost) == pytest.approx([2e-4 + 132e-6])
    assert BlockCost.through((4096, 3.0), (131072, 2.0)) == BlockCost(2.0, 0.0)  # nothing is less than free


def test_blocks_of_a_folder_are_tried(tmp_path):
    cost = cost_of_blocks(tmp_path, 1 << 16)
    assert cost.read.each + cost.read.byte > 0
    assert min(cost.write.each, cost.write.byte) >= 0
    assert not [*tmp_path.iterdir()]


def test_files_say_what_writing_each_took(tmp_path):
    files = FileArrays(tmp_path)
    files.add("a", np.ones(10))
    files.add("b", np.ones(10))
    assert {name: seconds >= 0 for name, seconds in files.flush().items()} == {"a": True, "b": True}
    files.close()


# ---------------------------------------------------------------- measured, and estimated


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """`add_up` on 64 KB, 128 KB and 64 KB, with all of its iterations traced."""
    a, b, c = np.ones(8192), np.ones(16384), np.zeros(8192)
    folder = tmp_path_factory.mktemp("files")
    with orion.session(workers=2, force_parallel=True):
        found = add_up.measure(a, b, c, 3, kinds={"dram": None, "file": folder}, every=1)
        plan = add_up.plan(a, b, c, 3)
    assert not c.any()
    assert not [*folder.iterdir()]
    return found, plan


def test_accesses_are_counted_by_array_reads_and_writes_apart(measured):
    found = measured[0].accesses["dram"]
    assert (found["a"].reads, found["a"].writes) == (3 * 8192, 0)
    assert (found["b"].reads, found["b"].writes) == (3 * 8192, 0)
    assert (found["c"].reads, found["c"].writes) == (3 * 8192, 3 * 8192)
    assert found["a"].written == 0 < found["c"].written == found["c"].blocks
    assert [found[name].bytes for name in "abc"] == [65536, 131072, 65536]
    assert [found[name].written_bytes for name in "abc"] == [0, 0, 65536]


def test_an_estimate_takes_a_placement(measured):
    found, plan = measured
    names = ("a", "b", "c")
    for chosen in product(("dram", "file"), repeat=3):
        placement = dict(zip(names, chosen, strict=True))
        for workers in (1, 2):
            estimate = plan.estimate(workers=workers, placement=placement)
            assert estimate.seconds > 0
            assert estimate.placement == placement
            assert json.loads(estimate.to_json())["placement"] == placement
    assert "`a` on file, `b` on dram, `c` on dram" in str(plan.estimate(placement={"a": "file"}))
    assert found.loops[0].seconds["file"].shape == found.loops[0].windows["file"]["a"].brought.bytes.shape


def test_estimates_refuse_names_that_were_not_measured(measured):
    plan = measured[1]
    with pytest.raises(PlanError, match=r"(?s)no array `d` was measured.*those that can be placed: `a`, `b`, `c`"):
        plan.estimate(placement={"d": "file"})
    with pytest.raises(PlanError, match=r"(?s)no kind of memory `disk` was measured.*`dram`, `file`"):
        plan.estimate(placement={"a": "disk"})
    anew = orion.parallel_for(factorize.__wrapped__)
    with pytest.raises(PlanError, match=r"f\.measure\(\.\.\., kinds="):
        anew.plan(ratings(), np.ones((50, 4)), np.ones((40, 4)), 0.1).estimate(placement={"W": "file"})
    with pytest.raises(PlanError, match="no kind of memory `disk`"):
        plan.estimate().best(capacity={"disk": "1MB"})
    with pytest.raises(PlanError, match='a text such as "256MB"'):
        plan.estimate().best(capacity={"dram": "2 elephants"})
    with pytest.raises(PlanError, match="no room for all arrays"):
        plan.estimate().best(capacity={"dram": "64kB", "file": "64kB"})


def test_measuring_refuses_what_are_no_kinds(tmp_path):
    a = np.ones(10)
    for kinds in (7, {}, {"dram": None}, {"file": tmp_path}, {"file": tmp_path, "dram": None}, {"a": None, "b": None}):
        with pytest.raises(ArgumentError, match="`kinds`"):
            add_up.measure(a, np.ones(20), a.copy(), 1, kinds=kinds)
    with pytest.raises(ArgumentError, match=r"(?s)no files can be made in the folder '/proc' of the kind `file`.*disk"):
        add_up.measure(np.ones(9), np.ones(18), np.ones(9), 1, kinds={"dram": None, "file": "/proc"})
    with pytest.raises(ArgumentError, match="the kind `file` is no folder"):
        add_up.measure(a, np.ones(20), a.copy(), 1, kinds={"dram": None, "file": tmp_path / "none"})
    with pytest.raises(ArgumentError, match="`every` is an integer"):
        add_up.measure(a, np.ones(20), a.copy(), 1, kinds={"dram": None, "file": tmp_path}, every=0)


def ratings():
    rng = np.random.default_rng(3)
    return orion.sparse((rng.integers(0, 50, 200), rng.integers(0, 40, 200)), rng.random(200), shape=(50, 40))


def test_loops_over_elements_are_traced(tmp_path):
    W, H = np.ones((50, 4)), np.ones((40, 4))
    with orion.session(workers=2):
        found = factorize.measure(ratings(), W, H, 0.1, kinds={"dram": None, "file": tmp_path}, every=1)
    assert [*found.arrays] == ["W", "H"]
    assert found.accesses["dram"]["W"].writes == found.accesses["dram"]["H"].writes == 200 * 4
    assert np.all(W == 1.0)


def test_the_typical_run_has_medians_of_windows_and_the_least_sum():
    windows = [np.array(one) for one in ([5, 1, 4], [1, 5, 4], [2, 2, 8])]
    runs = [
        Run({0: {0: one, 1: 2 * one}}, {0: {0: 20 - k, 1: 40}}, {"a": float(k)}, {0: 2})
        for k, one in enumerate(windows)
    ]
    del runs[2].tiles[0][1]  # a round that was left out
    found = typical(runs)
    assert {loop: [*rounds] for loop, rounds in found.tiles.items()} == {0: [0]}
    assert found.tiles[0][0] == pytest.approx(np.array([2.0, 2.0, 4.0]) * 10 / 8)
    assert (found.flush, found.whole) == ({"a": 1.0}, {0: {0: 18}})


# ---------------------------------------------------------------- which array goes where


def of_arrays(sizes, slow):
    """A measurement of arrays with these bytes, which take `slow[array]` seconds in files, and nothing in memory."""
    seconds = {"dram": np.array([[1.0]]), "file": np.array([[1.0 + sum(slow.values())]])}
    plan = add_up.plan(np.ones(9), np.ones(18), np.ones(9), 1)
    name = LoopName(plan.function.loops[0].nest.span, ("i",), (), 0)
    none = Blocks(*np.zeros((2, 1, 1), np.int64))
    windows = {one: Windows(Blocks(np.array([[1]]), np.array([[round(1000 * slow[one])]])), none) for one in sizes}
    loop = LoopOnKinds(
        name, 1, (np.array([0, 1]),), np.array([0]), seconds, dict.fromkeys(seconds), dict.fromkeys(seconds, windows), 0
    )
    base = Measurement("f", plan.sizes, 1, (), 0.0, None, 0.0, None, 0.0, True)
    accesses = {one: Accesses(0, 0, 1, round(1000 * slow[one]), 0, 0) for one in sizes}
    flush = dict.fromkeys(seconds, dict.fromkeys(sizes, 0.0))
    tried = {"dram": NOTHING, "file": FolderCost(BlockCost(0.0, 1e-3), BlockCost(0.0, 1e-3))}
    return MeasuredKinds(
        base, ("dram", "file"), (loop,), sizes, dict.fromkeys(seconds, accesses), 0.0, flush, tried, (1,), 1, 0.0
    )


def test_costs_of_arrays_add_up():
    found = of_arrays({"x": 10, "y": 20, "z": 30}, {"x": 1.0, "y": 5.0, "z": 2.0})
    assert {name: round(cost["file"], 9) for name, cost in costs_of(found).items()} == {"x": 1.0, "y": 5.0, "z": 2.0}
    assert found.seconds_on_one({"x": "file", "y": "dram", "z": "file"}) == pytest.approx(4.0)


def test_rounds_between_those_that_were_measured_take_what_those_do():
    """The first of 1,000 rounds brings all in, and the others nothing."""
    found = of_arrays({"x": 10}, {"x": 5.0})
    loop = found.loops[0]
    seconds = {"dram": np.full((3, 1), 1.0), "file": np.array([[6.0], [1.0], [1.0]])}
    brought, none = Blocks(*np.array([[[1], [0], [0]]] * 2)), Blocks(*np.zeros((2, 3, 1), np.int64))
    windows = {kind: {"x": Windows(brought, none)} for kind in seconds}
    loop = replace(loop, rounds=1000, sampled=np.array([0, 1, 999]), seconds=seconds, windows=windows)
    found = replace(found, loops=(loop,))
    assert found.seconds_on_one({"x": "dram"}) == pytest.approx(1000.0)
    assert found.seconds_on_one({"x": "file"}) == pytest.approx(1005.0)


def test_what_is_missing_at_the_end_was_written_before():
    """A window takes 9 seconds more, 5 of them for reading; of 4 for writing 3 are at the end, or all 4, or none."""
    for at_end, expected in ((3.0, 1.0), (4.0, 0.0), (0.0, 4.0)):
        found = of_arrays({"x": 10, "y": 10}, {"x": 2.0, "y": 3.0 + 4.0 - at_end})
        dirty = Blocks(np.array([[1]]), np.array([[4000]]))
        windows = {
            "x": Windows(Blocks(np.array([[1]]), np.array([[2000]])), dirty),
            "y": Windows(Blocks(np.array([[1]]), np.array([[3000]])), Blocks(*np.zeros((2, 1, 1), np.int64))),
        }
        loop = replace(found.loops[0], windows=dict.fromkeys(found.kinds, windows))
        accesses = {"x": Accesses(0, 0, 1, 2000, 1, 4000), "y": Accesses(0, 0, 1, 3000, 0, 0)}
        flush = {"dram": {"x": 0.0, "y": 0.0}, "file": {"x": at_end, "y": 0.0}}
        found = replace(found, loops=(loop,), accesses=dict.fromkeys(found.kinds, accesses), flush=flush)
        assert found.seconds_on_one({"x": "file", "y": "dram"}) == pytest.approx(1.0 + 2.0 + expected + at_end)
        assert found.seconds_on_one({"x": "dram", "y": "file"}) == pytest.approx(1.0 + 3.0)


def test_the_best_placement_is_the_best_of_all_that_have_room():
    rng = np.random.default_rng(1)
    for _ in range(30):
        names = [f"a{k}" for k in range(int(rng.integers(1, 7)))]
        sizes = {name: int(rng.integers(1, 50)) for name in names}
        found = of_arrays(sizes, {name: float(rng.integers(1, 20)) for name in names})
        room = room_of(found, {"dram": int(rng.integers(0, 120))})
        placements = [dict(zip(names, one, strict=True)) for one in product(found.kinds, repeat=len(names))]
        fit = [one for one in placements if min(left_of(found, one, room).values()) >= 0]
        least = min(found.seconds_on_one(one) for one in fit)
        best = best_placement(found, room)
        assert best in fit
        assert found.seconds_on_one(best) == pytest.approx(least)


def test_many_arrays_are_placed_by_what_they_gain_per_byte():
    sizes = {f"a{k}": 10 for k in range(20)}
    found = of_arrays(sizes, {f"a{k}": float(1 + k) for k in range(20)})
    best = best_placement(found, room_of(found, {"dram": 50}))
    assert [name for name, kind in best.items() if kind == "dram"] == [f"a{k}" for k in range(15, 20)]


def test_a_proposal_says_why(measured):
    plan = measured[1]
    best = plan.estimate().best(capacity={"dram": "140kB"})
    sizes = {one.array: one.bytes for one in best.arrays}
    assert sum(sizes[name] for name, kind in best.placement.items() if kind == "dram") <= 140_000
    assert best.estimate.placement == best.placement
    text = str(best)
    assert all(f"{one.array}, " in text and f"on {one.kind}" in text for one in best.arrays)
    assert "of dram are left" in text


def test_where_all_have_room_none_is_on_a_slower_kind():
    found = of_arrays({"x": 10, "y": 20}, {"x": 1.0, "y": 5.0})
    assert best_placement(found, room_of(found, {})) == {"x": "dram", "y": "dram"}


def test_sizes_are_numbers_or_text():
    sizes = [size_in_bytes(one, "it", PlanError) for one in (5, "5B", "2kB", "2 KiB", "1.5GB")]
    assert sizes == [5, 5, 2000, 2048, 1_500_000_000]
