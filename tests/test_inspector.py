"""Inspectors list every access that iterations make; tiles keep the order of those in conflict; a plan that breaks it
is refused."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from dataclasses import replace

import numpy as np
import pytest

import orion
from benchmarks.indirect.loops import LOOPS
from orion.dependence.inspection import Order
from orion.errors import PlanError
from orion.kernel.inspector.inspect import Costs, Listed, inspected
from orion.kernel.inspector.levels import colours, components, levels, pieces
from orion.plan.inspected import with_inspection
from orion.plan.plan import Inspected
from orion.schedule.inspected import inspected_schedule
from orion.verify.inspected import prove_accesses, prove_needs
from tests.loop_text import defined
from tests.trials import TIMES

BY_INSPECTION = {"swap_pairs", "solve_lower", "sweep", "depths", "longest_paths", "chase", "last_seen", "by_colour"}
"""Loops of the list that run in tiles found by looking, where every worker is to be used."""


def inspection_of(plan):
    (tiles,) = [loop.tiles for loop in plan.loops]
    assert isinstance(tiles, Inspected), tiles
    return tiles.inspectable, tiles.inspection


# ---------------------------------------------------------------- what is listed: by running the function


class Traced(np.ndarray):
    """An array that notes which of its elements are read and written."""

    def __getitem__(self, index):
        self.note(index, False)
        return np.asarray(self)[index]

    def __setitem__(self, index, value):
        self.note(index, True)
        np.asarray(self)[index] = value

    def note(self, index, is_write):
        numbers = np.arange(self.size).reshape(self.shape)[index]
        self.log.extend((self.name, int(number), is_write) for number in np.ravel(numbers))


def traced(function, arguments, names):
    """What each iteration of the outermost loop touches of some arrays: sets of (array, element, whether written)."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    loop = next(node for node in tree.body[0].body if isinstance(node, ast.For))
    loop.body.insert(0, ast.parse("begin()").body[0])
    log, found = [], []

    def begin():
        found.append(set(log))
        log.clear()

    space = {"np": np, "begin": begin}
    exec(compile(ast.fix_missing_locations(tree), "traced", "exec"), space)
    given = []
    for name, value in zip(inspect.signature(function).parameters, arguments, strict=True):
        if name in names:
            value = value.copy().view(Traced)
            value.name, value.log = name, log
        given.append(value)
    space[function.__name__](*given)
    begin()
    return found[1:]


def listed(inspectable, inspection, shapes):
    """The same as an inspector has listed it."""
    ends, places = inspection.accesses
    bases, base = [], 0
    for name, axes in zip(inspectable.arrays, inspectable.keyed, strict=True):
        bases.append((base, name))
        base += int(np.prod([shapes[name][axis] for axis in axes]))
    found, first = [], 0
    for end in ends:
        here = set()
        for place in places[first:end].tolist():
            start, name = max(one for one in bases if one[0] <= place // 2)
            here.add((name, place // 2 - start, bool(place & 1)))
        found.append(here)
        first = end
    return found


def by_colour_as_one_loop(u, f, first, order, ptr, idx):
    for k in range(len(order)):
        i = order[k]
        s = f[i]
        for p in range(ptr[i], ptr[i + 1]):
            s += u[idx[p]]
        u[i] = s / (ptr[i + 1] - ptr[i] + 1)


AS_RUN = {"by_colour": by_colour_as_one_loop}
"""Loops whose iterations are others than those of the outermost loop of the source."""


@pytest.mark.parametrize("one", LOOPS, ids=lambda one: one.name)
def test_inspectors_list_what_iterations_touch(one):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(ordered=one.ordered)(one.function).plan(*one.arguments(60), inspect=True)
    tiles = [loop.tiles for loop in plan.loops]
    if not any(isinstance(each, Inspected) for each in tiles):
        assert one.name not in BY_INSPECTION
        return
    inspectable, inspection = inspection_of(plan)
    names = dict(zip(inspectable.arrays, inspectable.keyed, strict=True))
    arguments = one.arguments(60)
    shapes = {
        name: value.shape
        for name, value in zip(inspect.signature(one.function).parameters, arguments, strict=True)
        if isinstance(value, np.ndarray)
    }
    mine = listed(inspectable, inspection, shapes)
    theirs = traced(AS_RUN.get(one.name, one.function), arguments, names)
    assert len(mine) == len(theirs)
    for own, real in zip(mine, theirs, strict=True):
        keyed = {(name, _key(element, shapes[name], names[name]), is_write) for name, element, is_write in real}
        writes = {(name, element) for name, element, is_write in own if is_write}
        for name, element, is_write in keyed:  # what is written need not be listed as read
            assert (name, element) in writes or (not is_write and (name, element, False) in own)


def _key(element, shape, axes):
    """The number of an element by the subscripts that tell elements apart."""
    at = np.unravel_index(element, shape)
    return int(np.ravel_multi_index([at[axis] for axis in axes], [shape[axis] for axis in axes]))


# ---------------------------------------------------------------- tables


def lists(*iterations):
    """Accesses of iterations, each "r3 w5": element 3 is read, 5 written."""
    places = [[2 * int(one[1:]) + (one[0] == "w") for one in each.split()] for each in iterations]
    ends = np.cumsum([len(each) for each in places])
    return ends, np.array([place for each in places for place in each], np.int64)


LEVELS = {
    "nothing in common": (("w0", "w1", "w2"), [1, 1, 1]),
    "a chain": (("w0", "r0 w1", "r1 w2"), [1, 2, 3]),
    "readers need none of each other": (("w0", "r0", "r0", "w0"), [1, 2, 2, 3]),
    "an anti-dependence": (("r1 w0", "w1"), [1, 2]),
    "an output dependence": (("w0", "w0"), [1, 2]),
    "its own element": (("r0 w0", "r1 w1"), [1, 1]),
    "the farthest counts": (("w0", "r0 w1", "w2", "r1 r2 w3"), [1, 2, 1, 3]),
    "only read": (("r0", "r0"), [1, 1]),
    "no access": (("", "w0", ""), [1, 1, 1]),
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels(name):
    iterations, expected = LEVELS[name]
    assert levels(*lists(*iterations), 8).tolist() == expected


COMPONENTS = {
    "nothing in common": (("w0", "w1"), [0, 1]),
    "joined by a third": (("w0", "w5", "r0 w5"), [0, 0, 0]),
    "what is only read joins nothing": (("r7 w0", "r7 w1"), [0, 1]),
    "no access": (("", "r3"), [-1, -1]),
    "the least element": (("w5 w3", "w3 w1"), [1, 1]),
}


@pytest.mark.parametrize("name", COMPONENTS)
def test_components(name):
    iterations, expected = COMPONENTS[name]
    assert components(*lists(*iterations), 8).tolist() == expected


@pytest.mark.parametrize(
    ("level", "longest", "expected"),
    [
        ([1, 2, 3, 2, 3, 4], 9, [0, 3, 6]),
        ([1, 1, 1, 1], 2, [0, 2, 4]),
        ([1, 2, 3, 4, 5], 2, [0, 1, 3, 5]),
        ([3, 2, 1], 9, [0, 1, 2, 3]),
        ([1], 9, [0, 1]),
    ],
)
def test_pieces(level, longest, expected):
    assert pieces(np.array(level, np.int32), longest).tolist() == expected


# ---------------------------------------------------------------- tiles of any accesses


def random_lists(rng, count, elements, most):
    """Accesses of random iterations: near each other, at few elements, or anywhere."""
    kind, found = rng.integers(3), []
    for i in range(count):
        here = []
        for _ in range(rng.integers(most + 1)):
            at = rng.integers(elements) if kind == 0 else rng.integers(3) if kind == 1 else i + rng.integers(-2, 3)
            here.append(f"{'rw'[rng.integers(2)]}{int(np.clip(at, 0, elements - 1))}")
        found.append(" ".join(here))
    return lists(*found)


def order_is_kept(schedule, found, ordered, rng):
    """Run the tiles as workers may, one iteration after the other, and look at each pair of accesses in conflict."""
    ends, places = found.accesses
    begins = np.concatenate([[0], ends[:-1]])
    touched = [places[a:b].tolist() for a, b in zip(begins, ends, strict=True)]

    def conflict(first, second):
        return any(one >> 1 == other >> 1 and (one | other) & 1 for one in touched[first] for other in touched[second])

    def of_tile(tile):
        return found.order[found.offsets[tile] : found.offsets[tile + 1]].tolist()

    place = np.empty(ends.size, np.int64)
    done, number = set(), 0
    while len(done) < schedule.tiles:
        able = []
        for tile in range(schedule.tiles):  # whoever runs it: workers take tiles of each other
            waits = schedule.waits[schedule.wait_offsets[tile] : schedule.wait_offsets[tile + 1]]
            if tile not in done and done.issuperset(waits.tolist()):
                able.append(tile)
        for tile, other in itertools.combinations(able, 2):  # they may run at the same time
            if any(conflict(i, j) for i in of_tile(tile) for j in of_tile(other)):
                return False
        tile = able[rng.integers(len(able))]
        for i in of_tile(tile):
            place[i] = number
            number += 1
        done.add(tile)
    if ordered and any(conflict(i, j) and place[j] > place[i] for i in range(ends.size) for j in range(i)):
        return False
    return sorted(place.tolist()) == list(range(ends.size))


@pytest.mark.parametrize("seed", range(7 * TIMES))
def test_tiles_keep_the_order_of_any_accesses(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    elements = int(rng.integers(1, 70))
    ends, places = random_lists(rng, count, elements, int(rng.integers(1, 4)))
    ordered = bool(rng.integers(2))
    workers = int(rng.integers(2, 5))
    found = inspected(Listed(ends, places, 0.0, Costs(elements, 0, ordered, False, 100.0, 0.0, 0.0, 1.0)), workers)
    assert sorted(found.order.tolist()) == list(range(count))
    for used in (1, 2, 3, workers):
        schedule = inspected_schedule(found, (found.offsets,), used)
        prove_needs(schedule, found)
        prove_accesses(schedule, found, ordered=ordered)
        for _ in range(3):
            assert order_is_kept(schedule, found, ordered, rng)


WAYS = {
    Order.COMPONENTS: (True, lambda i, rng: f"w{rng.integers(50)}"),
    Order.PIECES: (True, lambda i, rng: f"w{i} r{i - 1 if i % 40 else i} r{max(i - 40, 0)}"),
    Order.LEVELS: (True, lambda i, rng: f"w{i} r{rng.integers(max(i, 1))}"),
    Order.BLOCKS: (False, lambda i, rng: f"w{rng.integers(400)} w{rng.integers(400)}"),
    Order.COLOURS: (False, lambda i, rng: " ".join(f"w{at}" for at in rng.integers(0, 9000, 9))),
}


@pytest.mark.parametrize("kind", WAYS, ids=lambda kind: kind.name)
def test_every_way_to_cut_a_loop_is_taken_by_some(kind):
    ordered, accesses = WAYS[kind]
    rng, count = np.random.default_rng(1), 3000 if kind is Order.COLOURS else 400
    ends, places = lists(*(accesses(i, rng) for i in range(count)))
    found = inspected(Listed(ends, places, 0.0, Costs(9000, 0, ordered, False, 1000.0, 0.0, 0.0, 1.0)), 2)
    prove_accesses(inspected_schedule(found, (found.offsets,), 2), found, ordered=ordered)
    assert found.kind is kind
    in_pieces = inspected(Listed(ends, places, 0.0, Costs(9000, 0, ordered, True, 1000.0, 0.0, 0.0, 1.0)), 2)
    assert in_pieces.kind is Order.PIECES
    assert (np.diff(in_pieces.order) == 1).all()


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize(("more", "wanted"), [("top = max(x[i], top)", True), ("top += 1", False)])
def test_loops_whose_results_hang_on_the_order_run_in_pieces(more, wanted):
    head = "def f(x, idx):\n    top = 0\n    for i in range(40):\n        x[i] = x[idx[i]] + 1.0\n"
    text = f"{head}        {more}\n    return top\n"
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(defined(text)).plan(np.ones(40), np.maximum(np.arange(40) - 2, 0), inspect=True)
    assert plan.only.tiles.inspectable.in_pieces is wanted


COLOURS = {
    "nothing in common": (("w0", "w1"), [1, 1]),
    "a chain": (("w0", "r0 w1", "r1 w2"), [1, 2, 1]),
    "readers may have one colour": (("r0 w1", "r0 w2", "w0"), [1, 1, 2]),
    "all together": (("w0", "w0", "w0"), [1, 2, 3]),
}


@pytest.mark.parametrize("name", COLOURS)
def test_colours(name):
    iterations, expected = COLOURS[name]
    assert colours(*lists(*iterations), 8).tolist() == expected


def test_more_colours_than_there_are_bits_are_none():
    assert colours(*lists(*["w0"] * 63), 1).max() == 63
    assert colours(*lists(*["w0"] * 64), 1) is None


# ---------------------------------------------------------------- the checker


def solved():
    one = next(one for one in LOOPS if one.name == "solve_lower")
    with orion.session(workers=2, force_parallel=True):
        return orion.parallel_for(one.function).plan(*one.arguments(400), inspect=True)


def broken(plan, **changes):
    (loop,) = plan.function.loops
    tiles = replace(loop.tiles, inspection=replace(loop.tiles.inspection, **changes))
    return replace(plan, function=replace(plan.function, loops=(replace(loop, tiles=tiles),)))


def test_the_checker_takes_the_plan_as_it_is():
    solved().check()


@pytest.mark.parametrize("what", ["needs", "order", "twice", "left out", "a circle"])
def test_the_checker_refuses_tiles_that_break_the_order(what):
    plan = solved()
    _, found = inspection_of(plan)
    if what == "needs":  # nothing is waited for
        changes = {"needs": found.needs[:0], "need_offsets": np.zeros_like(found.need_offsets)}
    elif what == "order":  # a tile from its last iteration to its first
        order = found.order.copy()
        tile = int(np.argmax(np.diff(found.offsets)))
        part = slice(found.offsets[tile], found.offsets[tile + 1])
        order[part] = order[part][::-1]
        changes = {"order": order}
    elif what == "twice":
        order = found.order.copy()
        order[3] = order[4]
        changes = {"order": order}
    elif what == "left out":
        changes = {"order": found.order[:-1], "offsets": np.append(found.offsets[:-1], found.offsets[-1] - 1)}
    else:  # two tiles need each other
        offsets = found.need_offsets.copy()
        offsets[1:] += 1
        later = int(found.needs.size and np.repeat(np.arange(found.tiles), np.diff(found.need_offsets))[0])
        changes = {"needs": np.concatenate(([later], found.needs)), "need_offsets": offsets}
    with pytest.raises(PlanError):
        broken(plan, **changes).check(2)


LEFT_OUT = {
    "an access": ("x[idx[i]] = x[i + 1] + 1.0", "x[i + 1]", "x[i]"),
    "a subscript": ("x[idx[i]] = x[i] + 1.0", "idx[i]", "idx[i // 2]"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_the_checker_refuses_an_inspector_that_lists_other_elements(name):
    line, right, wrong = LEFT_OUT[name]
    plans = []
    for text in (line, line.replace(right, wrong)):
        function = defined(f"def f(x, idx):\n    for i in range(len(idx)):\n        {text}\n", np=np)
        with orion.session(workers=2, force_parallel=True):
            plans.append(orion.parallel_for(function).plan(np.zeros(20), np.arange(19) // 2, inspect=True))
    mine, other = (inspection_of(plan)[0] for plan in plans)
    (loop,) = plans[0].function.loops
    swapped = replace(loop.tiles, inspectable=replace(mine, function=other.function))
    plan = replace(plans[0], function=replace(plans[0].function, loops=(replace(loop, tiles=swapped),)))
    with pytest.raises(PlanError, match="inspector"):
        plan.check(2)


def test_a_plan_that_gains_nothing_has_no_call_from_which_on_it_pays():
    plan = solved()
    (loop,) = plan.function.loops
    inspectable, found = inspection_of(plan)
    sizes = replace(plan.sizes, inspected=((inspectable, replace(found, serial_ns=5.0, tiles_ns=5.0)),))
    told = with_inspection(loop, inspectable, sizes).reasons[-1]
    assert told.code == "ORN129"
    assert "pays" not in told.message
