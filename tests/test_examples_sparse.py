"""The examples on graphs and meshes: what they compute, on both backends, and how they end."""

from __future__ import annotations

import gzip
import re
import resource
import struct
import sys
import zlib
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import orion

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import gauss_seidel  # noqa: E402
import graph as graph_program  # noqa: E402
import graph_data  # noqa: E402
import kmeans  # noqa: E402
import pagerank  # noqa: E402
import triangular  # noqa: E402
from pictures import read_png, save_curves, save_png  # noqa: E402

CAMERA = EXAMPLES.parents[1] / "shared" / "data" / "image" / "camera.png"
FACEBOOK = EXAMPLES.parents[1] / "shared" / "data" / "graph" / "facebook_combined.txt"


def ranks_of(graph, damping=0.85):
    """The ranks, by a dense system of equations."""
    n = graph.vertices
    links = np.zeros((n, n))
    links[np.repeat(np.arange(n), np.diff(graph.ptr)), graph.idx] = 1.0
    out = links.sum(axis=0)
    links = np.where(out > 0, links / np.maximum(out, 1), 1.0 / n)
    return np.linalg.solve(np.eye(n) - damping * links, np.full(n, (1.0 - damping) / n))


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("how", ["pull", "push", "sweep"])
def test_ranks_are_those_of_the_equations(how, capsys):
    options = pagerank.parse(["--pages", "300", "--links", "4", "--how", how, "--workers", "2", "--tolerance", "1e-13"])
    ranks = pagerank.run(options)
    told = capsys.readouterr().out
    assert "300 pages" in told
    assert "milliseconds" in told
    if how == "sweep":  # a page without links gives its rank to all, as it was before the sweep
        assert abs(ranks.rank.sum() - 1.0) < 1e-9
    np.testing.assert_allclose(ranks.rank, ranks_of(ranks.graph), rtol=1e-7)


def test_a_file_of_edges(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("# a comment\nfrom,to\n7,9\n9 12\n7 12\n")
    graph = graph_data.read_edges(path)
    assert graph.ptr.tolist() == [0, 2, 4, 6]
    assert graph.idx.tolist() == [1, 2, 0, 2, 0, 1]
    assert [graph.number(v) for v in range(3)] == [7, 9, 12]
    assert [graph.vertex(number) for number in (7, 12, 0, 8, 13)] == [0, 2, None, None, None]


def test_vertices_have_the_numbers_of_the_file(tmp_path, capsys):
    path = tmp_path / "edges.txt"
    path.write_text("10 20\n20 30\n")
    assert pagerank.main(["--edges", str(path), "--workers", "1"]) == 0
    ranks = capsys.readouterr().out.partition("the highest ranks\n")[2]
    assert [int(line.split()[1]) for line in ranks.splitlines()] == [20, 10, 30]
    assert graph_program.main(["--edges", str(path), "--start", "20", "--workers", "1"]) == 0
    assert "3 vertices are reached from 20, in 1 steps" in capsys.readouterr().out
    assert graph_program.main(["--edges", str(path), "--workers", "1"]) == 0
    assert "3 vertices are reached from 10, in 2 steps" in capsys.readouterr().out
    assert graph_program.main(["--edges", str(path), "--start", "1"]) == 1
    assert "--start 1 is no vertex: their numbers are from 10 to 30" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no edge in it"),
        ("1 2\nx y\n", "line 2 is no edge, two whole numbers from 0 on: 'x y'"),
        ("# two\n\n1 2\n3\n", "line 4 is no edge"),
        ("1.5 2\n1 2\n", "line 1 is no edge, two whole numbers from 0 on: '1.5 2'"),
        ("a 2\n1 2\n", "line 1 is no edge"),
        ("1 2\n1 ²\n", "line 2 is no edge"),
        ("1 2\n1 9999999999999999999\n", "line 2 is no edge"),
    ],
)
def test_a_file_that_has_no_edges(tmp_path, text, message, capsys):
    path = tmp_path / "edges.txt"
    path.write_text(text)
    assert pagerank.main(["--edges", str(path)]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.txt", b"1 2\n\xff\n"), ("a.gz", b"1 2\n"), ("a.gz", gzip.compress(b"1 2\n" * 99, mtime=0)[:-9])],
)
def test_a_file_of_edges_that_cannot_be_read(name, data, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(data)
    assert graph_program.main(["--edges", str(path)]) == 1
    assert f"{path} cannot be read" in capsys.readouterr().err


def test_lines_are_counted_from_the_head_of_the_file(tmp_path, capsys):
    path = tmp_path / "edges.txt"
    path.write_text("4 3\n0 1\n1 2\nx\n")
    assert graph_program.main(["--edges", str(path), "--skip", "1"]) == 1
    assert "line 4 is no edge" in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.skipif(not FACEBOOK.exists(), reason="the graph is no part of the project, and not there")
def test_a_real_graph(capsys):
    options = pagerank.parse(["--edges", str(FACEBOOK), "--skip", "2", "--workers", "2"])
    ranks = pagerank.run(options)
    assert "4,039 vertices, 176,468 links" in capsys.readouterr().out
    assert abs(ranks.rank.sum() - 1.0) < 1e-9


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("how", ["cg", "sor"])
def test_the_heat_equation_is_met(how, tmp_path, capsys):
    picture = tmp_path / "heat.png"
    arguments = ["--side", "12", "--how", how, "--workers", "2", "--iterations", "3000", "--picture", str(picture)]
    heat = triangular.run(triangular.parse(arguments))
    n = len(heat.b)
    matrix = np.diag(heat.diagonal)
    matrix[np.repeat(np.arange(n), np.diff(heat.all.ptr)), heat.all.idx] += heat.all.data
    np.testing.assert_allclose(matrix @ heat.x, heat.b, atol=1e-6)
    assert picture.read_bytes().startswith(b"\x89PNG")
    scale = f"black is {heat.x.min():.4g}, white {heat.x.max():.4g}"
    assert (
        f"written to {picture}: the temperatures, a pixel for each point of the mesh, {scale}"
        in capsys.readouterr().out
    )


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_the_bits_do_not_depend_on_the_workers():
    found = []
    for workers in ("1", "2", "3"):
        options = triangular.parse(["--side", "40", "--how", "sor", "--workers", workers, "--iterations", "5"])
        found.append(triangular.run(options).x)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.all(
    "test_examples_tensor.py::test_the_bits_are_those_of_ray",
    "test_examples_sgd_mf.py::test_ray_gives_the_same_digits_as_threads",
)
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_both_on_ray():
    options = triangular.parse(
        ["--side", "12", "--how", "sor", "--workers", "2", "--iterations", "3", "--backend", "ray"]
    )
    here = triangular.parse(["--side", "12", "--how", "sor", "--workers", "2", "--iterations", "3"])
    np.testing.assert_array_equal(triangular.run(options).x, triangular.run(here).x)
    sweep = ["--pages", "200", "--how", "sweep", "--workers", "2", "--iterations", "3"]
    there = pagerank.run(pagerank.parse([*sweep, "--backend", "ray"]))
    np.testing.assert_allclose(there.rank, pagerank.run(pagerank.parse(sweep)).rank, rtol=1e-12)


def test_the_matrix_is_symmetric():
    heat = triangular.Heat(graph_data.mesh(9, 0), 0)
    n = len(heat.b)
    matrix = np.zeros((n, n))
    matrix[np.repeat(np.arange(n), np.diff(heat.all.ptr)), heat.all.idx] = heat.all.data
    np.testing.assert_array_equal(matrix, matrix.T)
    assert len(np.unique(heat.all.data)) == len(heat.all.data) // 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--side 60", "\nconverged after"),
        ("--side 60 --how sor", "\nnot converged after 200 iterations: |b - Ax| is"),
        ("--side 8 --how sor --tolerance 0 --iterations 2000", "has not fallen in the 30 that followed"),
        ("--side 8 --tolerance 0 --iterations 2000", "what is left of the residual are rounding errors"),
    ],
)
def test_how_the_iterations_end_is_said(arguments, message, capsys, recwarn):
    assert triangular.main([*arguments.split(), "--workers", "2"]) == 0
    told = capsys.readouterr().out
    assert message in told
    assert told.count("converged after") == 1
    residuals = [float(line.split()[1]) for line in told.splitlines() if re.match(r" *\d+ +[\d.,]", line)]
    assert min(residuals[-31:]) == min(residuals)
    assert not [warning for warning in recwarn if warning.category is orion.SerialLoopWarning]


def test_ranks_that_have_not_converged(capsys):
    assert pagerank.main(["--pages", "300", "--iterations", "2", "--workers", "1"]) == 0
    assert "\nnot converged after 2 iterations: the change is" in capsys.readouterr().out
    assert pagerank.main(["--pages", "300", "--workers", "1"]) == 0
    assert "\nconverged after" in capsys.readouterr().out


def test_the_loops_are_parallel():
    graph = graph_data.mesh(60, 0, shuffled=True)
    heat = triangular.Heat(graph, 0)
    with orion.session(workers=2, force_parallel=True):
        loop, arguments = triangular.Relaxation(heat, 1.5).first()
        plan = loop.plan(*arguments, inspect=True)
    plan.check(2)
    assert plan.strategy == "inspected"


def test_a_picture_is_read_as_it_is_written(tmp_path):
    path, grey = tmp_path / "a.png", np.arange(12, dtype=np.uint8).reshape(3, 4) * 23
    save_png(path, grey)
    read = read_png(path)
    np.testing.assert_array_equal(read, np.rint(grey * (255.0 / 253.0)))


SAVED = {
    "a.png": lambda path: save_png(path, np.random.default_rng(0).random((40, 40))),
    "a.svg": lambda path: save_curves(path, {"loss": [(0, 1.0), (1, 0.5)]}, ("epochs", "loss")),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_picture_for_which_there_is_no_room_leaves_the_file_that_was_there(tmp_path, name):
    path, before = tmp_path / name, resource.getrlimit(resource.RLIMIT_FSIZE)
    path.write_text("before")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match=rf"File too large: '.*{name}'"):
            SAVED[name](path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]


def filtered(how, rows):
    """A grey PNG file whose rows are all filtered so."""
    packed = b""
    for y, row in enumerate(rows.astype(int)):
        up = rows[y - 1].astype(int) if y else np.zeros_like(row)
        left, corner = np.concatenate(([0], row[:-1])), np.concatenate(([0], up[:-1]))
        near = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
        paeth = np.where((near[0] <= near[1]) & (near[0] <= near[2]), left, np.where(near[1] <= near[2], up, corner))
        guess = (0 * row, left, up, (left + up) // 2, paeth)[how]
        packed += bytes([how]) + ((row - guess) % 256).astype(np.uint8).tobytes()
    header = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(packed)), (b"IEND", b"")]
    chunks = (struct.pack(">I", len(data)) + kind + data + b"\0\0\0\0" for kind, data in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("how", range(5))
def test_every_filter_of_png_is_read(how, tmp_path):
    path, grey = tmp_path / "a.png", np.random.default_rng(how).integers(0, 256, (5, 7)).astype(np.uint8)
    path.write_bytes(filtered(how, grey))
    np.testing.assert_array_equal(read_png(path), grey)


NOTHING = np.zeros((5, 7), np.uint8)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GIF89a", "no PNG"),
        (b"\x89PNG\r\n\x1a\n", "no header"),
        (filtered(0, NOTHING)[:-20], "is damaged or not complete"),  # cut off within the pixels
        (filtered(0, NOTHING)[:33], "is damaged or not complete"),  # after the header
        (filtered(0, NOTHING).replace(b"\0\0\0\5\b", b"\0\0\0\6\b"), "48 bytes are needed, there are 40"),
    ],
)
def test_what_is_no_picture_is_said(data, message, tmp_path, capsys):
    path = tmp_path / "a.png"
    path.write_bytes(data)
    assert gauss_seidel.main(["--photo", str(path)]) == 1
    told = capsys.readouterr().err
    assert message in told
    assert str(path) in told


def test_pixels_that_are_no_finite_numbers_have_no_quality(capsys):
    assert gauss_seidel.main(["--side", "16", "--strength", "1e308", "--workers", "1"]) == 1
    assert "pixels that are no finite numbers" in capsys.readouterr().err


def test_a_picture_loses_its_noise(tmp_path, capsys):
    arguments = ["--side", "64", "--workers", "2", "--rounds", "2", "--picture", str(tmp_path / "a.png")]
    found = gauss_seidel.run(gauss_seidel.parse(arguments))
    told = [line.split() for line in capsys.readouterr().out.splitlines()]
    before = next(float(line[4]) for line in told if line[3:4] == ["pixels,"])
    after = [float(line[1]) for line in told if line[:1] in (["5"], ["10"])]
    assert min(after) > before + 3.0
    alone = gauss_seidel.run(gauss_seidel.parse([*arguments, "--workers", "1"]))
    np.testing.assert_array_equal(found, alone)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--rounds 8", "sweeps smooth more of the picture than of the noise; --rounds"),
        ("--rounds 1", "the last sweeps are the best"),
        ("--noise 0 --rounds 1", "no noise was added"),
        ("--noise 1e-3 --rounds 1", "the picture was best before the first sweep"),
    ],
)
def test_which_sweeps_are_the_best_is_said(arguments, message, capsys):
    assert gauss_seidel.main(["--side", "64", "--workers", "1", *arguments.split()]) == 0
    assert message in capsys.readouterr().out


@pytest.mark.data
@pytest.mark.skipif(not CAMERA.exists(), reason="the photograph is no part of the project, and not there")
def test_a_photograph():
    assert read_png(CAMERA).shape == (512, 512)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_distances_components_and_triangles(workers, capsys):
    options = graph_program.parse(["--pages", "250", "--links", "1", "--workers", workers, "--seed", "3"])
    found = graph_program.run(options)
    assert "triangles" in capsys.readouterr().out
    graph = graph_program.both_ways(graph_data.web(250, 1, 3))
    theirs = nx.Graph()
    theirs.add_nodes_from(range(250))
    theirs.add_edges_from(zip(np.repeat(np.arange(250), np.diff(graph.ptr)).tolist(), graph.idx.tolist(), strict=True))
    distance = nx.single_source_shortest_path_length(theirs, 0)
    assert found["distance"].tolist() == [distance.get(v, -1) for v in range(250)]
    assert found["triangles"] == sum(nx.triangles(theirs).values()) // 3
    for part in nx.connected_components(theirs):
        assert set(found["label"][list(part)].tolist()) == {min(part)}


def test_a_start_that_is_no_vertex(capsys):
    assert graph_program.main(["--pages", "50", "--start", "50"]) == 1
    assert "--start 50 is no vertex" in capsys.readouterr().err


def test_centres_are_means_of_the_nearest_points():
    arguments = ["--points", "400", "--width", "3", "--clusters", "5"]
    centres, inertia = kmeans.run(kmeans.parse([*arguments, "--workers", "2"]))
    points = kmeans.generated(400, 3, 5, 0)
    distances = ((points[:, None] - centres) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances.min(axis=1).sum(), inertia, rtol=1e-5)
    labels = distances.argmin(axis=1)
    np.testing.assert_allclose(centres, [points[labels == k].mean(axis=0) for k in range(5)], atol=1e-3)
    alone, _ = kmeans.run(kmeans.parse([*arguments, "--workers", "1"]))
    np.testing.assert_array_equal(centres, alone)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_the_gain_of_each_iteration_is_printed(capsys):
    few = ["--points", "5000", "--clusters", "20", "--width", "2", "--workers", "2"]
    kmeans.main([*few, "--iterations", "200"])
    told = capsys.readouterr().out
    lines = [line.split() for line in told.splitlines() if re.match(r" *\d+ +[\d.,]", line)]
    inertia = [float(line[1].replace(",", "")) for line in lines]
    assert len(set(inertia)) >= len(inertia) - 1 > 2  # the last gain may be 0
    gains = [float(line[2]) for line in lines[1:]]
    np.testing.assert_allclose(gains, -np.diff(inertia), rtol=1e-2, atol=1e-3)
    assert f"\nconverged after {len(lines)} iterations" in told
    kmeans.main([*few, "--iterations", "2"])
    assert "\nnot converged after 2 iterations" in capsys.readouterr().out
    kmeans.main([*few, "--iterations", "1"])
    assert "\nnot converged: a second iteration" in capsys.readouterr().out


@pytest.mark.all(
    "test_examples_tensor.py::test_the_bits_are_those_of_ray",
    "test_examples_sgd_mf.py::test_ray_gives_the_same_digits_as_threads",
)
@pytest.mark.ray
def test_they_run_on_ray():
    arguments = ["--points", "300", "--width", "2", "--clusters", "3", "--workers", "2"]
    there, _ = kmeans.run(kmeans.parse([*arguments, "--backend", "ray"]))
    np.testing.assert_array_equal(there, kmeans.run(kmeans.parse(arguments))[0])
    graph = ["--pages", "120", "--links", "2", "--workers", "2"]
    found = graph_program.run(graph_program.parse([*graph, "--backend", "ray"]))
    here = graph_program.run(graph_program.parse(graph))
    assert found["triangles"] == here["triangles"]
    np.testing.assert_array_equal(found["label"], here["label"])
