"""The comparisons with other libraries: what they compare is right, and what is missing is left out."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.measure import Measured
from benchmarks.peers import kmeans, pagerank, run
from benchmarks.peers.contenders import installed, table


def test_only_comparisons_that_are_there_are_run():
    assert run.present(("pagerank", "no_such_comparison", "kmeans")) == ["pagerank", "kmeans"]


def test_an_unknown_comparison_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        run.main(["--only", "no_such_comparison"])
    assert ended.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_options_go_to_the_comparison_that_has_them(monkeypatch, tmp_path, capsys):
    ran = []

    class Ended:
        returncode = 0

    monkeypatch.setattr(run.subprocess, "run", lambda command, **_: ran.append(command[2:]) or Ended)
    assert run.main(["--only", "kmeans", "lda", "--full", "--corpus", str(tmp_path / "a")]) == 0
    lda = ["benchmarks.peers.lda", "--full", "--corpus", str(tmp_path / "a")]
    assert ran == [["benchmarks.peers.kmeans"], lda]
    assert run.main(["--only", "kmeans", "lda"]) == 0
    assert ran[2:] == [["benchmarks.peers.kmeans", "--repeats", "3"], ["benchmarks.peers.lda"]]
    assert "lda: 0 s\n" in capsys.readouterr().out


def test_a_missing_package_is_said(capsys):
    assert installed("numpy", "numpy")
    assert capsys.readouterr().out == ""
    assert not installed("no_such_module", "no-such-package")
    assert "no-such-package is not installed" in capsys.readouterr().out


def test_ratios_are_of_medians():
    values = (("Orion", 1, (2.0, 3.0, 9.0)), ("Orion", 2, (1.0, 2.0, 2.0)), ("other", 1, (6.0, 6.0, 1.0)))
    measured = [Measured("b", name, workers, "s", taken) for name, workers, taken in values]
    found = table("a title", measured, "error", {f"{one.contender} ×{one.workers}": "" for one in measured})
    columns = {column.header: list(column.cells) for column in found.columns}
    assert columns["median ms"] == ["3000.0", "2000.0", "6000.0"]
    assert columns["best ms"] == ["2000.0", "1000.0", "1000.0"]
    assert columns["/ Orion ×1"] == ["1.00", "0.67", "2.00"]
    assert columns["/ Orion ×2"] == ["1.50", "1.00", "3.00"]


def test_ranks_are_right_and_iterations_the_fewest():
    pages = pagerank.Web(pagerank.web(300, 4, 0))
    graph, n = pages.graph, pages.graph.vertices
    links = np.zeros((n, n))
    links[np.repeat(np.arange(n), np.diff(graph.ptr)), graph.idx] = 1.0
    out = links.sum(axis=0)
    links = np.where(out > 0, links / np.maximum(out, 1), 1.0 / n)
    right = pagerank.right_ranks(pages)
    np.testing.assert_allclose(
        right.astype(float), np.linalg.solve(np.eye(n) - 0.85 * links, np.full(n, 0.15 / n)), rtol=1e-12
    )
    count = pagerank.iterations_to(pages, right, 1e-9)
    for one in (*pagerank.of_orion(pages, count), *pagerank.of_numba(pages, count), *pagerank.of_scipy(pages, count)):
        assert pagerank.error_of(one.result(), right) <= 1e-9
    assert pagerank.error_of(pages.by_numba(pagerank.serial_step, count - 1), right) > 1e-9


def test_all_find_the_same_centres():
    case = kmeans.Case.of_size(500, 3, 4, iterations=2, seed=0)
    centres = case.first
    for _ in range(2):
        nearest = ((case.points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        centres = np.array([case.points[nearest == k].mean(axis=0) for k in range(4)])
    expected = ((case.points[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum()
    assert case.by_orion(2) == pytest.approx(expected, rel=1e-10)
    assert case.by_numba(kmeans.serial_step, 1) == pytest.approx(expected, rel=1e-10)
    assert case.by_numba(kmeans.parallel_step, 2) == pytest.approx(expected, rel=1e-10)
