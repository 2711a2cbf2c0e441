"""Pictures of iteration space: well-formed, complete, and true to the schedule."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from orion.inspect.pictures.arrows import patterns_of
from orion.inspect.pictures.shapes import WORKERS, arrow
from orion.inspect.pictures.svg import plan_svg
from orion.inspect.pictures.tiles import describe
from orion.plan.source_plans import source_plans
from tests.inspect_loops import (
    CASES,
    factorize,
    permuted,
    plan_of,
    prefix,
    recurrence,
    rmse,
    running_sum,
    scale_rows,
    scattered_steps,
    schedules_of,
    search,
    sgd_epoch,
    shift,
    smooth,
)

SVG = "{http://www.w3.org/2000/svg}"


def picture(function, *, symbolic=False, workers=4):
    plan = plan_of(function, symbolic=symbolic, workers=workers)
    schedule = None if symbolic else schedules_of(plan, function, workers)[0]
    loop = source_plans(plan)[0]
    return loop, schedule, ET.fromstring(plan_svg(loop, schedule))


def words(root):
    return [element.text for element in root.iter(f"{SVG}text")]


def tiles(root):
    """The titled rectangles: one per tile."""
    return {r.find(f"{SVG}title").text: r for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_every_picture_is_well_formed_and_says_what_it_shows(function, symbolic):
    _, _, root = picture(function, symbolic=symbolic)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert function.__name__ in root.find(f"{SVG}title").text
    assert len(root.find(f"{SVG}desc").text) > 20


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_nothing_is_drawn_outside_of_the_paper(function, symbolic):
    _, _, root = picture(function, symbolic=symbolic)
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter():
        for x, y in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
            if element.get(x) is not None:
                assert 0 <= float(element.get(x)) <= width
                assert 0 <= float(element.get(y)) <= height
    for element in root.iter(f"{SVG}text"):
        reach = len(element.text) * float(element.get("font-size")) * 0.5
        start = float(element.get("x")) - {"start": 0, "middle": reach / 2, "end": reach}[element.get("text-anchor")]
        assert start >= 0
        assert start + reach <= width


def test_every_tile_has_the_colour_of_its_worker_and_the_number_of_its_step():
    loop, schedule, root = picture(sgd_epoch)
    found = tiles(root)
    assert len(found) == schedule.tiles == 64
    for tile in range(schedule.tiles):
        i, j = np.unravel_index(tile, schedule.grid)
        edges = [(int(b[k]), int(b[k + 1]) - 1) for b, k in zip(schedule.bounds, (i, j), strict=True)]
        ranges = [f"{name} = {low:,}–{high:,}" for name, (low, high) in zip(loop.nest.dims, edges, strict=True)]
        worker, step = schedule.owner[tile], schedule.step[tile]
        title = f"worker {worker}, step {step}, {ranges[0]}, {ranges[1]}"
        assert found[title].get("fill") == WORKERS[worker]


@pytest.mark.parametrize("function", [sgd_epoch, smooth])
def test_the_tiles_of_the_outlined_step_share_no_row_and_no_column(function):
    _, _, root = picture(function)
    outlined = [r for r in root.iter(f"{SVG}rect") if r.get("fill") == "none" and r.get("stroke-width") == "2"]
    assert len(outlined) == 8
    assert len({r.get("x") for r in outlined}) == len({r.get("y") for r in outlined}) == 8


@pytest.mark.parametrize("function", [sgd_epoch, rmse])
def test_of_many_tiles_those_of_one_worker_in_a_row_are_one_shape(function):
    loop, schedule, root = picture(function, workers=64)
    found = tiles(root)
    rows = schedule.grid[loop.space]
    assert rows > 20
    assert len(found) == rows
    for row, (title, shape) in enumerate(found.items()):
        worker = schedule.owner[row * (schedule.tiles // rows)]
        assert title.startswith(f"worker {worker}, {loop.nest.dims[loop.space]} = ")
        assert shape.get("fill") == WORKERS[worker % len(WORKERS)]


def test_block_bounds_are_on_the_axes():
    _, schedule, root = picture(sgd_epoch)
    said = set(words(root))
    assert {"0", "6,040", "3,706", "i ↓", "j →"} <= said
    assert f"{int(schedule.bounds[0][1]):,}" in said


def test_arrows_of_conflicts_are_named_where_they_lie_and_explained_in_the_key():
    _, _, root = picture(sgd_epoch)
    said = words(root)
    assert said.count("W") == said.count("H") == 1
    assert "W: iterations with the same i conflict" in said
    assert "H: iterations with the same j conflict" in said


def test_a_three_dimensional_loop_has_a_square_per_block_of_the_third():
    _, schedule, root = picture(factorize)
    assert sum(word.startswith("k = ") for word in words(root)) == schedule.grid[2] == 4
    assert len(tiles(root)) == 64
    assert "T: iterations with the same k conflict (each square as a whole)" in words(root)


def test_squares_that_do_not_fit_are_counted():
    plan = plan_of(factorize)
    loop = replace(plan.loops[0], cuts=(4, 4, 6))
    assert "2 more squares like these, for the other blocks of k" in words(ET.fromstring(plan_svg(loop)))


def test_an_ordered_loop_has_an_arrow_to_every_next_tile():
    _, _, root = picture(smooth)
    heads = list(root.iter(f"{SVG}polygon"))
    assert len(heads) == 2 * 8 * 7 + 2  # and one per entry of the key


def test_an_independent_loop_has_no_arrows():
    for function in (rmse, scale_rows):
        _, _, root = picture(function)
        assert not list(root.iter(f"{SVG}polygon"))
        assert "all tiles may run at the same time;" in words(root)


@pytest.mark.parametrize(
    ("function", "arrows", "dashed"), [(shift, 6, False), (running_sum, 6, False), (permuted, 9, True)]
)
def test_a_serial_loop_is_a_chain(function, arrows, dashed):
    loop, _, root = picture(function)
    arcs = list(root.iter(f"{SVG}path"))
    assert len(list(root.iter(f"{SVG}circle"))) == 7
    assert len(arcs) == arrows
    assert all((arc.get("stroke-dasharray") is not None) == dashed for arc in arcs)
    assert loop.strategy == "serial"


def test_a_serial_loop_of_two_dimensions_is_a_lattice():
    _, _, root = picture(recurrence)
    assert len(list(root.iter(f"{SVG}circle"))) == 4 * 6
    assert "t passes a value from one iteration to the next" in words(root)
    _, _, root = picture(scattered_steps)
    assert all(line.get("stroke-dasharray") for line in root.iter(f"{SVG}line"))


def test_iterations_of_a_chain_have_the_values_of_their_variable():
    _, _, root = picture(search)
    assert [word for word in words(root) if word.isdigit()] == [str(value) for value in range(3, 10)]


def test_a_tile_as_long_as_its_dimension_has_the_arrow_inside():
    _, _, root = picture(prefix)
    (arrow_line,) = [line for line in root.iter(f"{SVG}line") if float(line.get("x2")) - float(line.get("x1")) > 300]
    assert arrow_line.get("y1") == arrow_line.get("y2")
    assert "A" in words(root)


def test_sizes_that_are_not_known_leave_the_axes_without_bounds():
    _, _, root = picture(sgd_epoch, symbolic=True)
    numbers = [word for word in words(root) if re.fullmatch(r"[\d,]+", word)]
    assert set(numbers) == {str(step) for step in range(8)}  # the steps
    assert len(tiles(root)) <= 64


def test_a_loop_that_runs_on_one_worker_says_so_in_a_picture_of_more():
    plan = plan_of(sgd_epoch)
    loop = replace(plan.loops[0], runs_on=1)
    root = ET.fromstring(plan_svg(loop, schedules_of(plan, sgd_epoch)[0]))
    assert "at these sizes it runs on 1 worker; the picture has more" in words(root)


def test_names_are_escaped():
    plan = plan_of(sgd_epoch)
    nest = replace(plan.loops[0].nest, dims=("i<W>", 'j"&'))
    text = plan_svg(replace(plan.loops[0], nest=nest), schedules_of(plan, sgd_epoch)[0])
    assert "i<W>" not in text
    assert "i&lt;W&gt;" in text
    ET.fromstring(text)


def test_the_description_tells_the_tiles():
    plan = plan_of(sgd_epoch)
    said = describe(plan.loops[0], schedules_of(plan, sgd_epoch)[0])
    assert said.startswith("8 blocks of i by 8 blocks of j, on 4 workers: blocks of i are shared out")


def test_patterns_point_where_the_conflicts_do():
    assert [(p.arrays, p.steps, p.is_next) for p in patterns_of(plan_of(smooth).loops[0])] == [
        (("A",), ("+", "0"), True),
        (("A",), ("0", "+"), True),
    ]
    assert [(p.arrays, p.steps, p.is_next) for p in patterns_of(plan_of(sgd_epoch).loops[0])] == [
        (("W",), ("0", "*"), False),
        (("H",), ("*", "0"), False),
    ]


def test_an_arrow_has_its_head_at_its_end():
    head = re.search(r'points="([\d.]+),([\d.]+) ', arrow(10, 20, 50, 20))
    assert (float(head[1]), float(head[2])) == (50.0, 20.0)
