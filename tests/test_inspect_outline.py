"""What of a picture's tiles is no iteration is blank: triangles are drawn as triangles."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import orion
from tests.loop_text import defined

SVG = "{http://www.w3.org/2000/svg}"
SIDE = 336.0

LOOPS = {
    "below the diagonal": ("range(n)", "range(i + 1)"),
    "above the diagonal": ("range(n)", "range(i, n)"),
    "a band": ("range(n)", "range(max(0, i - 3), min(n, i + 4))"),
    "a parallelogram": ("range(n)", "range(i, i + n)"),
    "backwards": ("range(n - 1, -1, -1)", "range(i + 1)"),
    "every second": ("range(0, n, 2)", "range(i, n)"),
    "a square": ("range(n)", "range(n)"),
    "a rectangle": ("range(1, n)", "range(n // 2)"),
}


def drawn(rows, columns, n, statement="A[i, j] = 0.5 * (A[i - 1, j] + A[i, j - 1])"):
    """The plan of a loop over a table, and the elements of its picture."""
    text = f"def f(A, n):\n    for i in {rows}:\n        for j in {columns}:\n            {statement}\n"
    A = np.zeros((n, 2 * n))
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(defined(text)).plan(A, n)
    return plan, ET.fromstring(plan.svg_of(plan.only))


def titled(root, kind):
    found = [(element.find(f"{SVG}title"), element) for element in root.iter(f"{SVG}{kind}")]
    return [(title.text, element) for title, element in found if title is not None]


def blank_area(root):
    """What is drawn as paper, in square pixels."""
    area = 0.0
    for title, path in titled(root, "path"):
        assert title == "no iterations"
        box, inside = path.get("d").split("z")[:2]
        width, height = (float(number) for number in re.findall(r"[hv]([\d.]+)", box)[:2])
        x, y = np.array([point.split() for point in inside.strip("M").split("L")], float).T
        area += width * height - abs(np.sum(x * np.roll(y, 1) - y * np.roll(x, 1))) / 2
    return area


def coordinates(plan, rows, columns, n):
    """The iterations as a schedule counts them."""
    found = []
    for i_trip, i in enumerate(eval(rows, {"n": n})):
        inner = eval(columns, {"n": n, "i": i})
        found += [(i if eval(rows, {"n": n}).step == 1 else i_trip, j) for j in inner]
    return np.array(found)


@pytest.mark.parametrize("n", [12, 200])
@pytest.mark.parametrize(("rows", "columns"), LOOPS.values(), ids=LOOPS)
def test_tiles_without_iterations_are_blank(rows, columns, n):
    plan, root = drawn(rows, columns, n, statement="A[i, j] += 1")
    schedule = plan.schedule()
    cells = np.stack([
        np.searchsorted(bounds, part, side="right") - 1
        for bounds, part in zip(schedule.bounds, coordinates(plan, rows, columns, n).T, strict=True)
    ])  # fmt: skip
    filled = len(np.unique(np.ravel_multi_index(cells, schedule.grid)))
    tiles = [title for title, _ in titled(root, "rect")]
    assert len(tiles) == schedule.tiles
    assert sum("no iterations" in title for title in tiles) == schedule.tiles - filled


def blank_share(plan, rows, columns, n):
    """The share of the picture without iterations, where each block is drawn as large as any other."""
    schedule, here = plan.schedule(), coordinates(plan, rows, columns, n)
    width = here[:, 1].max() + 1 - here[:, 1].min()
    counts = np.bincount(here[:, 0], minlength=int(schedule.bounds[0][-1]))
    blocks = zip(schedule.bounds[0][:-1], schedule.bounds[0][1:], strict=True)
    return 1 - np.mean([counts[low:high].mean() / width for low, high in blocks])


@pytest.mark.parametrize("n", [12, 200])
def test_what_a_triangle_has_not_is_blank(n):
    for rows, columns in (LOOPS["below the diagonal"], LOOPS["above the diagonal"]):
        plan, root = drawn(rows, columns, n, statement="A[i, j] += 1")
        assert blank_area(root) / SIDE**2 == pytest.approx(blank_share(plan, rows, columns, n), abs=0.02)


def test_a_square_is_drawn_as_one():
    for name in ("a square", "a rectangle"):
        _, root = drawn(*LOOPS[name], 200)
        assert blank_area(root) == 0


def test_steps_are_written_into_tiles_with_iterations_alone():
    plan, root = drawn("range(1, n)", "range(1, i + 1)", 200)
    assert plan.only.strategy == "wavefront"
    tiles = [title for title, _ in titled(root, "rect")]
    numbers = [t for t in root.iter(f"{SVG}text") if t.get("text-anchor") == "start" and t.text.isdigit()]
    assert len(numbers) == sum("no iterations" not in title for title in tiles) < len(tiles)
    assert 0.2 < blank_area(root) / SIDE**2 < 0.5
