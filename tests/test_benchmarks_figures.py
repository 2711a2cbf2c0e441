"""The figures of benchmarks: well-formed, everything measured is in them, where it belongs."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from math import log

import pytest

from benchmarks.figures import Axis, Box, Curve, Entry, Part, axis_of, bar, duration, key, panel
from benchmarks.hosts import pictures
from benchmarks.hosts.parts import Parts, parts_of
from benchmarks.hosts.results import BYTES, TIMES, Row, agreement
from benchmarks.hosts.results import documented as hosts_documented
from benchmarks.transports import __main__ as transports
from benchmarks.transports.contenders import BY_NAME
from benchmarks.transports.one import measured
from benchmarks.transports.pictures import main as draw_transports
from benchmarks.transports.pictures import transports_figure
from benchmarks.transports.tables import Figures, documented
from benchmarks.written import FIGURES, RESULTS, figures_folder, markdown, stem
from orion.inspect.pictures.shapes import document
from orion.runtime.profile.records import CallRecord, Message, Wait, WorkerRecord
from orion.runtime.profile.records import Part as LoopPart

SVG = "{http://www.w3.org/2000/svg}"
DECADES = Axis(1.0, 100.0, (1.0, 10.0, 100.0), str, "a & b")


def drawn(shapes):
    return ET.fromstring(document(400, 300, "a title", "what it shows", shapes))


def titled(root, kind):
    """The shapes of a kind that were measured, by what is said of them."""
    return {one.find(f"{SVG}title").text: one for one in root.iter(kind) if one.find(f"{SVG}title") is not None}


def at(circle):
    return float(circle.get("cx")), float(circle.get("cy"))


def test_points_are_where_they_belong():
    points = ((1.0, 1.0, "first"), (10.0, 100.0, "<second>"), (100.0, 10.0, "third"))
    root = drawn(panel(Box(50, 20, 200, 100), "a < b", DECADES, DECADES, [Curve("#123456", points, True)]))
    assert {title: at(circle) for title, circle in titled(root, f"{SVG}circle").items()} == {
        "first": (50, 120), "<second>": (150, 20), "third": (250, 70),
    }  # fmt: skip
    (through,) = root.iter(f"{SVG}polyline")
    assert through.get("points") == "50,120 150,20 250,70"
    assert {"a < b", "a & b", "1.0", "10.0", "100.0"} <= {one.text for one in root.iter(f"{SVG}text")}


def test_what_was_not_measured_has_no_points():
    root = drawn(panel(Box(0, 0, 10, 10), "", DECADES, DECADES, [Curve("#123456", ((1, 1, ""), (2, 2, "")), False)]))
    assert not list(root.iter(f"{SVG}circle"))
    assert next(root.iter(f"{SVG}polyline")).get("stroke-dasharray")


@pytest.mark.parametrize("values", [[3.0], [0.02, 4e6], [5.0, 6.0], [1.0, 9.9]])
def test_axes_hold_their_values_and_have_ticks(values):
    axis = axis_of(values, str, "")
    assert all(0 < axis.part(value) < 1 for value in values)
    assert all(0 <= axis.part(tick) <= 1 for tick in axis.ticks)
    assert axis.ticks
    for low, high in pairwise(values):
        assert axis.part(high) - axis.part(low) == pytest.approx(log(high / low) / log(axis.high / axis.low))


def test_the_parts_of_a_bar_fill_it():
    root = drawn(
        bar(
            Box(10, 5, 100, 8),
            [Part(3.0, "#111111", "three"), Part(0.0, "#222222", "none"), Part(1.0, "#333333", "one")],
        )
    )
    found = titled(root, f"{SVG}rect")
    assert {title: (float(one.get("x")), float(one.get("width"))) for title, one in found.items()} == {
        "three": (10, 75), "none": (85, 0), "one": (85, 25),
    }  # fmt: skip


def test_a_key_breaks_lines_before_its_end():
    shapes, end = key(10, 20, 220, [Entry(word * 10, "#111111", word == "a", True) for word in "abcd"])
    root = drawn(shapes)
    words = [(float(one.get("x")), float(one.get("y")), one.text) for one in root.iter(f"{SVG}text")]
    assert [text for _, _, text in words] == ["a" * 10, "b" * 10, "c" * 10, "d" * 10]
    assert len({y for _, y, _ in words}) > 1
    assert max(x for x, _, _ in words) < 230
    assert end > max(y for _, y, _ in words)


def test_markdown_has_a_line_for_each_row():
    assert markdown(("", "ms"), [("a", "1"), ("b", "2")]) == "| | ms |\n|---|---|\n| a | 1 |\n| b | 2 |\n"


# ---------------------------------------------------------------- hosts


def row(name, megabits, scale, **other):
    sent = int(scale * 1e6)
    seconds = sent * 8 / (megabits * 1e6)
    values = {
        "about": f"{scale:g} <points>", "alone": 0.01 * scale, "seconds": 2 * seconds, "expected": 2.2 * seconds,
        "predicted": sent, "sent": sent, "moved": 0, "contents": 1.01 * sent, "carried": 1.06 * sent,
        "busiest": float(sent), "again": 0, "computing": 0.1 * seconds, "both": 0.2 * seconds, "moving": 0.8 * seconds,
        "neither": 0.9 * seconds, "why": [],
    }  # fmt: skip
    return Row(name=name, megabits=megabits, scale=scale, **{**values, **other})


ROWS = [row(name, megabits, scale) for name in ("A & B", "C") for megabits in (1000, 20) for scale in (0.25, 1.0, 4.0)]


def test_times_against_bytes_have_every_measurement_in_a_panel_of_its_program():
    root = ET.fromstring(pictures.time_figure(ROWS, 2))
    points = titled(root, f"{SVG}circle")
    of_hosts = {title: at(one) for title, one in points.items() if "busiest" in title}
    assert len(of_hosts) == len(ROWS)
    assert len(points) == len(ROWS) + 6, "and one worker's, of each program and size"
    for one in ROWS:
        assert any(
            title.startswith(f"{one.place}: {pictures.megabytes(one.sent)}, {duration(one.seconds)}")
            for title in of_hosts
        )
    x = {title.partition(":")[0]: found[0] for title, found in of_hosts.items()}
    y = {title.partition(":")[0]: found[1] for title, found in of_hosts.items()}
    assert x["C, 4 <points>, 20 Mbit/s"] == x["C, 4 <points>, 1000 Mbit/s"] > x["C, 1 <points>, 20 Mbit/s"]
    assert y["C, 4 <points>, 20 Mbit/s"] < y["C, 4 <points>, 1000 Mbit/s"], "more time stands higher"
    assert x["C, 0.25 <points>, 20 Mbit/s"] > x["A & B, 4 <points>, 20 Mbit/s"], "a panel beside the other"
    assert max(y.values()) < float(root.get("height"))


def test_one_worker_is_drawn_once_for_all_rates():
    rows = [row("A", megabits, 1.0, alone=alone) for megabits, alone in ((1000, 0.01), (100, 0.5), (20, 0.02))]
    titles = titled(ET.fromstring(pictures.time_figure(rows, 2)), f"{SVG}circle")
    assert [title for title in titles if "one worker" in title] == ["A, 1 <points>, one worker: 20 ms"]


def test_what_a_call_is_made_of_fills_its_bar():
    root = ET.fromstring(pictures.parts_figure(ROWS, 2))
    found = titled(root, f"{SVG}rect")
    assert len(found) == 4 * len(ROWS)
    for one in ROWS:
        own = {title.partition(": ")[2]: shape for title, shape in found.items() if title.startswith(f"{one.place}: ")}
        widths = [float(shape.get("width")) for shape in own.values()]
        assert [width / sum(widths) for width in widths] == pytest.approx([0.05, 0.1, 0.4, 0.45], abs=0.005)
        assert len({shape.get("y") for shape in own.values()}) == 1
    assert max(float(shape.get("y")) for shape in found.values()) < float(root.get("height"))


def test_figures_are_drawn_from_written_results(tmp_path):
    results = tmp_path / "hosts-2.json"
    results.write_text(json.dumps({"hosts": 2, "rows": [one.__dict__ for one in ROWS]}))
    pictures.main([str(results), str(tmp_path / "figures")])
    assert (tmp_path / "figures" / "hosts-2-time.svg").read_text() == pictures.time_figure(ROWS, 2)
    assert (tmp_path / "figures" / "hosts-2-parts.svg").read_text() == pictures.parts_figure(ROWS, 2)


def test_programs_of_which_nothing_is_sent_are_not_drawn_against_bytes(tmp_path):
    silent = row("S", 20, 1.0, sent=0, busiest=-10.0)
    titles = titled(ET.fromstring(pictures.time_figure([*ROWS, silent], 2)), f"{SVG}circle")
    assert titles
    assert not any(title.startswith("S,") for title in titles)
    pictures.draw([silent], 2, "hosts-2", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["hosts-2-parts.svg"]


def test_bytes_that_do_not_agree_are_told():
    rows = [
        row("A", 20, 1.0),
        row("B", 20, 1.0, sent=999_999),
        row("C", 20, 1.0, contents=1.2e6),
        row("D", 20, 1.0, predicted=None),
    ]
    times, equal, without, with_headers = agreement(rows)
    off = "10.0% in the mean of 4 rows, 10.0% in the median, 10.0% at most"
    assert times == f"Times: predicted ones are off by {off}"
    assert equal == "Bytes: predicted and sent are equal in 2 of 3 rows; not in: B, 1 <points>, 20 Mbit/s"
    assert without.endswith("in 3 of 4 rows; not in: C, 1 <points>, 20 Mbit/s")
    assert with_headers == "Bytes: `tc -s` with them is 1.060 to 1.060 times what was counted"


def test_a_row_has_a_cell_for_each_head():
    one = row("A", 20, 1.0, moved=250_000)
    sizes, times = dict(zip(BYTES, one.bytes(), strict=True)), dict(zip(TIMES, one.times(), strict=True))
    assert (sizes["MB predicted"], sizes["MB sent"], sizes["MB, driver"]) == ("1.000", "1.000", "0.250")
    assert (sizes["MB by `tc -s`"], sizes["/ counted"]) == ("1.010", "0.808")
    assert (sizes["with headers"], sizes["with / counted"]) == ("1.060", "0.848")
    assert (times["ms, busiest link"], times["both"], times["hidden"]) == ("400.0", "80.0", "20%")


def test_tables_of_the_documentation_are_of_scale_1_where_that_was_run():
    times, sizes = (table.splitlines() for table in hosts_documented(ROWS).split("\n\n"))
    assert len(times) == len(sizes) == 2 + 4
    assert times[2].startswith("| A & B | 1 <points> | 1000 |")
    assert len(hosts_documented(ROWS[:1]).splitlines()) == 7


def worker(number, *, parts, waits=(), sent=(), arrived=()):
    """A worker on a node of its own, whose run is from 100 to 900 µs; times are microseconds."""
    node = f"node {number}"
    loops = tuple(
        LoopPart(0, k, s * 1000, e * 1000, 1, c * 1000, c * 1000, 0, n * 1000) for k, (s, e, c, n) in enumerate(parts)
    )
    return WorkerRecord(
        worker=number, node=node, start=100_000, end=900_000, totals=loops, tiles=(), parts=loops,
        waits=tuple(Wait(0, start * 1000, end * 1000) for start, end in waits), waited=0, sends=0, messages=len(sent),
        bytes=0, last=0, sent=tuple(Message(time * 1000, number, to, k, 8) for k, (time, to) in enumerate(sent)),
        arrived=tuple(Message(time * 1000, by, node, k, 8) for k, (time, by) in enumerate(arrived)),
    )  # fmt: skip


def call(*workers, copying=0):
    return CallRecord("f", 1, 0, 0, 0, 1_000_000, copying * 1000, 0, (), workers, True)


def test_a_call_without_messages_hides_nothing_and_computes():
    found = parts_of(call(worker(0, parts=[(100, 500, 400, 0)]), worker(1, parts=[(100, 300, 200, 0)])))
    assert found == Parts(pytest.approx(300e-6), 0.0, 0.0, pytest.approx(700e-6))
    assert found.hidden == 1.0


def test_parts_of_a_call_are_all_of_its_time():
    """Worker 0 computes from 100 to 300, sends until 350, and waits until 500 for a message that is sent at 400; worker
    1 waits from 100 to 400, as the first message comes at 380, and computes from 400 to 600."""
    first = worker(0, parts=[(100, 350, 200, 50)], waits=[(350, 500)], sent=[(300, "node 1")], arrived=[(500, 1)])
    second = worker(1, parts=[(100, 600, 200, 0)], waits=[(100, 400)], sent=[(400, "node 0")], arrived=[(380, 0)])
    found = parts_of(call(first, second, copying=40))
    # On their way from 300 to 380 and from 400 to 500: 180, and 40 more of the driver. Worker 1 computes 100 of them.
    assert found.both == pytest.approx(50e-6)
    assert found.computing == pytest.approx(150e-6)
    assert found.moving == pytest.approx(170e-6)
    assert found.computing + found.both + found.moving + found.neither == pytest.approx(1e-3)
    assert found.hidden == pytest.approx(50 / 220)


# ---------------------------------------------------------------- transports


def figures_of(size, factor):
    """Figures of a payload that takes so many nanoseconds per byte."""
    each = size * factor * 1e-9
    return Figures(
        handed=each / 2, touched=each, cpu=factor * 1e-9, waiting=0.0, cpu_others=0.0, network=1.0, memory=0.0
    )


SIZES = (1 << 10, 1 << 20, 1 << 28)
FOUND = {
    name: {size: figures_of(size, number + 1) for size in SIZES}
    for number, name in enumerate(("segment", "link", "grpc"))
}


def test_transports_are_curves_with_a_point_for_each_size():
    root = ET.fromstring(transports_figure(FOUND))
    times = {title: at(one) for title, one in titled(root, f"{SVG}circle").items() if not title.endswith(" ns")}
    assert len(times) == len(FOUND) * len(SIZES)
    assert len(list(root.iter(f"{SVG}polyline"))) == 2 * len(FOUND)
    assert times["link, 1 MB: 2.1 ms"][0] == times["segment, 1 MB: 1.05 ms"][0]
    assert times["link, 1 MB: 2.1 ms"][1] < times["segment, 1 MB: 1.05 ms"][1], "more time stands higher"
    for low, high in pairwise(times[f"segment, {at}"] for at in ("1 KB: 1.02 µs", "1 MB: 1.05 ms", "256 MB: 268 ms")):
        assert low[0] < high[0]
        assert low[1] > high[1]


def test_a_transport_that_takes_no_time_of_a_core_has_no_point_there():
    found = {"segment": {1 << 10: replace(figures_of(1 << 10, 1), cpu=0.0), 1 << 20: figures_of(1 << 20, 1)}}
    titles = titled(ET.fromstring(transports_figure(found)), f"{SVG}circle")
    assert [title for title in titles if title.endswith(" ns")] == ["segment, 1 MB: 1 ns"]


def test_tables_of_the_documentation_have_all_transports_and_sizes():
    times, costs = (table.splitlines() for table in documented(FOUND).split("\n\n"))
    assert times[0].endswith("| copies | 1 KB | 1 MB | 256 MB | GB/s at 1 KB, 1 MB, 256 MB |")
    assert times[3] == f"| {BY_NAME['link'].label} | 2 | 2.05 | 2,097 | 536,871 | 0.5, 0.5, 0.5 |"
    assert costs[2] == f"| {BY_NAME['segment'].label} | 0.51, 524, 134,218 | 1, 1, 1 | 0, 0, 0 | 0, 0, 0 | – | – |"
    assert len(times) == len(costs) == 2 + len(FOUND)


def test_transports_are_drawn_from_written_results(tmp_path):
    results = tmp_path / "transports.json"
    values = {name: {size: one.__dict__ for size, one in by_size.items()} for name, by_size in FOUND.items()}
    results.write_text(json.dumps({"figures": values}))
    draw_transports([str(results), str(tmp_path / "figures")])
    assert (tmp_path / "figures" / "transports.svg").read_text() == transports_figure(FOUND)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["segment", "link"])
def test_waiting_for_flags_is_counted_apart(name):
    pair = BY_NAME[name].make()
    try:
        found = measured(pair, 1 << 16, 0.02)
    finally:
        pair.close()
    assert found["waiting"] > 0
    assert found["cpu"] > 0
    assert len(found["handed"]) >= 5


# ---------------------------------------------------------------- files


def test_a_part_of_a_benchmark_replaces_nothing_of_all_of_it(tmp_path):
    everything = {name: dict.fromkeys(transports.SIZES, figures_of(1, 1)) for name in BY_NAME}
    assert transports.is_whole(everything)
    assert not transports.is_whole(FOUND)
    assert not transports.is_whole({name: one for name, one in everything.items() if name != "grpc"})
    assert stem("transports", True) != stem("transports", False)
    assert figures_folder(None, True) == FIGURES
    assert figures_folder(None, False) == RESULTS
    assert figures_folder(tmp_path, True) == tmp_path


def test_figures_that_the_documentation_links_are_there_and_well_formed():
    text = (FIGURES.parent / "benchmarks.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((figures/[^)]+)\)", text)
    assert linked
    for name in linked:
        root = ET.parse(FIGURES.parent / name).getroot()
        assert root.tag == f"{SVG}svg", name
        assert titled(root, f"{SVG}circle") or titled(root, f"{SVG}rect"), name
