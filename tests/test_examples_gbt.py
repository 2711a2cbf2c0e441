"""Boosted trees: what they find, that they are the same everywhere, and how wrong data are refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import orion

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import gbt  # noqa: E402
import gbt_data  # noqa: E402

HIGGS = EXAMPLES.parents[1] / "shared" / "data" / "higgs-7k"
SMALL = ["--rows", "3000", "--features", "6", "--trees", "6", "--leaves", "8"]
pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def arrays(forest):
    return forest.feature, forest.place, forest.left, forest.right, forest.values


@pytest.mark.parametrize("objective", ["binary", "regression"])
def test_the_trees_are_the_same_on_any_number_of_workers(objective):
    found = [
        gbt.run(gbt.parse([*SMALL, "--objective", objective, "--workers", workers])) for workers in ("1", "2", "3", "4")
    ]
    assert found[0].forest.grown == 6
    assert (found[0].forest.left[:, 0] > 0).all()
    for other in found[1:]:
        for mine, theirs in zip(arrays(found[0].forest), arrays(other.forest), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert other.test == found[0].test


@pytest.mark.all(
    "test_examples_tensor.py::test_the_bits_are_those_of_ray",
    "test_examples_sgd_mf.py::test_ray_gives_the_same_digits_as_threads",
)
@pytest.mark.ray
def test_and_on_ray():
    here, there = (
        gbt.run(gbt.parse([*SMALL, "--workers", "2", "--backend", backend])) for backend in ("threads", "ray")
    )
    for mine, theirs in zip(arrays(here.forest), arrays(there.forest), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_root_has_the_best_split():
    rows = gbt_data.generated(400, 3, 1)
    bins = gbt.Bins.of(rows.features)(rows.features)
    with orion.session(workers=2, force_parallel=True):
        grower = gbt.Grower(bins, rows.labels, gbt.Options(trees=1, leaves=2, objective="regression", least_rows=20))
        grower.grow()

    def left_over(feature, place):
        goes_left = bins[feature] <= place
        sides = rows.labels[goes_left], rows.labels[~goes_left]
        return np.inf if min(map(len, sides)) < 20 else sum(((y - y.mean()) ** 2).sum() for y in sides)

    best = min(((left_over(f, b), f, b) for f in range(3) for b in range(bins[f].max())), key=lambda one: one[0])
    forest = grower.forest
    assert left_over(forest.feature[0, 0], forest.place[0, 0]) == pytest.approx(best[0], rel=1e-9)
    goes_left = bins[forest.feature[0, 0]] <= forest.place[0, 0]
    step = 0.1 * (rows.labels[goes_left].mean() - rows.labels.mean())
    assert forest.values[0, 1] == pytest.approx(step, rel=1e-5)


def test_scores_while_training_are_those_of_the_forest():
    rows = gbt_data.labels_for("binary", gbt_data.generated(2000, 5, 2))
    bins = gbt.Bins.of(rows.features)
    with orion.session(workers=2):
        grower = gbt.Grower(bins(rows.features), rows.labels, gbt.Options(trees=5))
        for _ in range(5):
            grower.grow()
        scores = grower.forest.scores(bins(rows.features))
    np.testing.assert_allclose(scores, grower.scores, rtol=1e-12)
    assert gbt_data.auc(scores, rows.labels) > 0.85


def test_every_leaf_has_rows_enough():
    options = gbt.Options(trees=3, leaves=16, least_rows=50, objective="regression")
    rows = gbt_data.generated(1500, 4, 3)
    bins = gbt.Bins.of(rows.features)(rows.features)
    with orion.session(workers=2):
        grower = gbt.Grower(bins, rows.labels, options)
        for _ in range(3):
            grower.grow()
            sizes = (grower.end - grower.first)[: int((grower.forest.left[grower.forest.grown - 1] > 0).sum()) + 1]
            assert sizes.min() >= 50
            assert sizes.sum() == 1500
            assert sorted(grower.rows) == list(range(1500))


def test_few_values_have_bins_of_their_own_and_what_is_no_number_the_last():
    features = np.array([[0.0, 1.0, 1.0, 3.0, np.nan], [2.0, 2.0, 2.0, 2.0, 2.0]]).T
    found = gbt.Bins.of(features)(features)
    assert found.tolist() == [[0, 1, 1, 2, 2], [0, 0, 0, 0, 0]]


def test_many_values_have_bins_of_about_the_same_size():
    features = np.random.default_rng(0).standard_normal((50_000, 1))
    counts = np.bincount(gbt.Bins.of(features)(features)[0], minlength=256)
    assert counts.min() > 150
    assert counts.max() < 250


def test_labels_that_are_all_the_same():
    rows = gbt_data.Rows(np.random.default_rng(0).random((100, 2)), np.ones(100))
    bins = gbt.Bins.of(rows.features)(rows.features)
    grower = gbt.Grower(bins, rows.labels, gbt.Options(trees=2))
    grower.grow()
    assert grower.forest.left.max() == 0
    assert np.isfinite(grower.scores).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a line needs a label and at least one feature"),
        ("1\n0\n", "a line needs a label and at least one feature"),
        ("1\t0.5\n0\tx\n", "line 2: 'x' is no number; a line needs a label and at least one feature, between tabs"),
        ("1\t0.5\n\n0\t1\t2\n", "line 3: 3 numbers between tabs, where the first line has 2"),
        ("-1 3:1 11:1\n+1 5:1\n", "line 1: '-1 3:1 11:1' is no number; a line needs a label and"),
        ("1\t0.5\nnan\t1\n", "row 2: the label is nan"),
        ("1\t0.5\n2\t1\n", "labels must be 0 or 1"),
        ("1\t0.5\n0\t1\n", "has 2 rows, and a tenth is tested on: 100 are needed"),
    ],
)
def test_files_that_are_refused(text, message, tmp_path, capsys):
    path = tmp_path / "rows.tsv"
    path.write_text(text)
    assert gbt.main(["--data", str(path)]) == 1
    told = capsys.readouterr().err
    assert message in told
    assert str(path) in told


@pytest.mark.parametrize(("name", "data"), [("a.tsv", b"1\t\xff\n"), ("a.gz", b"1\t2\n"), ("b.gz", b"\x1f\x8b\x08\0")])
def test_files_that_cannot_be_read(name, data, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(data)
    assert gbt.main(["--data", str(path)]) == 1
    assert str(path) in capsys.readouterr().err


def test_rows_of_one_label_have_no_area_under_the_curve(tmp_path, capsys):
    first, second = tmp_path / "a.tsv", tmp_path / "b.tsv"
    first.write_text("1\t0.5\n0\t1\n")
    second.write_text("1\t0.5\n1\t1\n")
    assert gbt.main(["--data", str(first), "--test", str(second), "--trees", "2", "--workers", "1"]) == 0
    told = capsys.readouterr().out
    assert "all rows to test on have label 1: there is no AUC" in told
    assert "nan" not in told


def test_a_test_file_of_other_width(tmp_path, capsys):
    first, second = tmp_path / "a.tsv", tmp_path / "b.tsv"
    first.write_text("1\t0.5\t2\n0\t1\t2\n")
    second.write_text("1\t0.5\n")
    assert gbt.main(["--data", str(first), "--test", str(second)]) == 1
    assert "1 features, not 2" in capsys.readouterr().err


def test_the_area_under_the_curve_counts_ties_by_half():
    scores, labels = np.array([0.1, 0.4, 0.4, 0.8]), np.array([0.0, 0.0, 1.0, 1.0])
    assert gbt_data.auc(scores, labels) == 0.875
    assert np.isnan(gbt_data.auc(scores, np.ones(4)))


def test_the_picture_and_the_plan(tmp_path, capsys):
    path = tmp_path / "loss.svg"
    gbt.run(gbt.parse([*SMALL, "--workers", "2", "--picture", str(path)]))
    told = capsys.readouterr().out
    assert "independent" in told
    assert "for pair in range(bins.shape[0] // 2)  " in told
    assert "wo features at a time" not in told
    assert "test AUC" in told
    text = path.read_text()
    assert text.startswith("<svg")
    assert text.count("<polyline") == 2
    for name in ("trees", "log loss", "rows trained on", "test rows"):
        assert f">{name}</text>" in text


@pytest.mark.data
@pytest.mark.skipif(not HIGGS.exists(), reason="the rows are no part of the project, and not there")
def test_real_rows():
    given = ["--data", str(HIGGS / "train.tsv"), "--test", str(HIGGS / "test.tsv"), "--trees", "40", "--workers", "2"]
    found = gbt.run(gbt.parse(given))
    assert found.train[-1] < found.train[0]
    assert min(found.test) < 0.62
