"""The examples on graphs and meshes: what they compute, on both backends, and how they end."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import orion

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import graph_data  # noqa: E402
import pagerank  # noqa: E402
import triangular  # noqa: E402
from pictures import save_png  # noqa: E402

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


@pytest.mark.parametrize(
    ("text", "message"), [("", "no edge in it"), ("1 2\nx y\n", "line 2 is no edge: 'x y'"), ("1 2\n3\n", "line 2")]
)
def test_a_file_that_has_no_edges(tmp_path, text, message, capsys):
    path = tmp_path / "edges.txt"
    path.write_text(text)
    assert pagerank.main(["--edges", str(path)]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.skipif(not FACEBOOK.exists(), reason="the graph is no part of the project, and not there")
def test_a_real_graph(capsys):
    options = pagerank.parse(["--edges", str(FACEBOOK), "--workers", "2"])
    ranks = pagerank.run(options)
    assert "4,039 vertices, 176,468 links" in capsys.readouterr().out
    assert abs(ranks.rank.sum() - 1.0) < 1e-9


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("how", ["cg", "sor"])
def test_the_heat_equation_is_met(how, tmp_path):
    picture = tmp_path / "heat.png"
    arguments = ["--side", "12", "--how", how, "--workers", "2", "--iterations", "3000", "--picture", str(picture)]
    heat = triangular.run(triangular.parse(arguments))
    n = len(heat.b)
    matrix = np.diag(heat.diagonal)
    matrix[np.repeat(np.arange(n), np.diff(heat.all.ptr)), heat.all.idx] += heat.all.data
    np.testing.assert_allclose(matrix @ heat.x, heat.b, atol=1e-6)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_the_bits_do_not_depend_on_the_workers():
    found = []
    for workers in ("1", "2", "3"):
        options = triangular.parse(["--side", "40", "--how", "sor", "--workers", workers, "--iterations", "5"])
        found.append(triangular.run(options).x)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


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


def test_the_loops_are_parallel():
    graph = graph_data.mesh(60, 0, shuffled=True)
    heat = triangular.Heat(graph, 0)
    with orion.session(workers=2, force_parallel=True):
        loop, arguments = triangular.Relaxation(heat, 1.5).first()
        plan = loop.plan(*arguments, inspect=True)
    plan.check(2)
    assert plan.strategy == "inspected"


def test_wrong_options_are_refused(capsys):
    for program, arguments in ((pagerank, ["--damping", "2"]), (triangular, ["--side", "2"])):
        with pytest.raises(SystemExit) as ended:
            program.parse(arguments)
        assert ended.value.code == 2
        assert "must be" in capsys.readouterr().err


def test_a_picture(tmp_path):
    path = tmp_path / "a.png"
    save_png(path, np.array([[0.0, 1.0], [0.5, 0.25]]))
    assert path.stat().st_size > 60
