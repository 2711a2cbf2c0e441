"""Updates that may be late: logistic regression and matrix factorization next to their exact runs, and the steps."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import adaptive  # noqa: E402
import sgd_mf_adarev  # noqa: E402
import slr  # noqa: E402
import slr_data  # noqa: E402

import orion  # noqa: E402

A9A = EXAMPLES.parents[1] / "shared" / "data" / "a9a" / "a9a"
SMALL = ["--samples", "4000", "--features", "300", "--each", "6", "--passes", "3", "--max-delay", "40"]


@pytest.fixture(autouse=True)
def every_worker(monkeypatch):
    """Small loops would stay on one worker."""
    monkeypatch.setenv("ORION_FORCE_PARALLEL", "1")


# ---------------------------------------------------------------- the steps


def stepped(gradients, befores, step=0.4):
    """The weight, and all that goes with it, after gradients that were computed when their sum was `before`."""
    apply = adaptive.adarevision(step)
    state = (0.0, 0.0, 1.0, 1.0)
    for g, before in zip(gradients, befores, strict=True):
        w, *helpers = state
        state = apply(w, g, *helpers, before)
    return state


def test_without_delay_adarevision_is_adagrad():
    gradients = np.random.default_rng(0).normal(size=40)
    apply, w, z = adaptive.adagrad(0.4), 0.0, 1.0
    for g in gradients:
        w, z = apply(w, g, z)
    found = stepped(gradients, np.concatenate([[0.0], np.cumsum(gradients)[:-1]]))
    np.testing.assert_allclose(found, [w, gradients.sum(), z, z], rtol=1e-12)


def test_gradients_that_are_all_computed_first_count_as_their_sum():
    """So many steps are revised to one: of the sum of them all, and as large as it allows (the paper, section 3)."""
    gradients = np.random.default_rng(1).random(30)
    total = gradients.sum()
    expected = -0.4 * total / np.sqrt(1.0 + total**2)
    w, kept, z, most = stepped(gradients, np.zeros(30))
    np.testing.assert_allclose([w, kept, z, most], [expected, total, 1.0 + total**2, 1.0 + total**2], rtol=1e-12)
    np.testing.assert_allclose(stepped([total], [0.0]), [w, kept, z, most], rtol=1e-12)


def test_step_sizes_never_grow_again():
    """A gradient against those that came meanwhile makes `z` less; the greatest so far counts."""
    w, total, z, most = stepped([3.0, -2.0], [0.0, 0.0])
    assert z == 1.0 + 9.0 + 4.0 - 12.0
    assert most == 10.0
    np.testing.assert_allclose([w, total], [-0.4 * 1.0 / np.sqrt(10.0), 1.0])


# ---------------------------------------------------------------- logistic regression


def reference(samples, step, passes):
    """Weights by plain Python."""
    w = np.zeros(samples.features)
    for _ in range(passes):
        for s in range(len(samples)):
            row = slice(samples.indptr[s], samples.indptr[s + 1])
            at, x = samples.indices[row], samples.values[row].astype(float)
            g = 1.0 / (1.0 + np.exp(-(w[at] @ x))) - samples.labels[s]
            np.subtract.at(w, at, step * g * x)
    return w


def loss_of(samples, w):
    z = np.add.reduceat(w[samples.indices] * samples.values, samples.indptr[:-1])
    return np.logaddexp(0.0, z).mean() - (samples.labels * z).mean()


def test_each_way_to_train_ends_near_its_serial_run(tmp_path, capsys):
    picture = tmp_path / "loss.svg"
    found = slr.run(slr.parse([*SMALL, "--workers", "2", "--picture", str(picture)]))
    told = capsys.readouterr().out
    samples, held = slr_data.hold_out(slr_data.generated(4000, 300, 6, 0))
    w = reference(samples, slr.step_of("sgd", samples, None), 3)
    np.testing.assert_allclose(found["SGD, serial"].losses[-1], loss_of(samples, w), rtol=1e-9)
    np.testing.assert_allclose(found["SGD, serial"].held_out, loss_of(held, w), rtol=1e-9)
    assert found["SGD, exact"].losses == found["SGD, serial"].losses
    np.testing.assert_allclose(found["AdaRevision, serial"].losses, found["AdaGrad, serial"].losses, rtol=1e-9)
    for name in ("SGD", "AdaGrad", "AdaRevision"):
        late, serial = found[f"{name}, late"], found[f"{name}, serial"]
        assert late.losses[0] == pytest.approx(np.log(2.0))
        assert late.losses[-1] < 1.02 * serial.losses[-1] < 0.9 * late.losses[0]
        assert 0 <= late.latest <= 40
        assert late.losses != serial.losses  # two workers, with updates of their own
        assert serial.latest is None
    assert told.index("SGD, exact: exact(") < told.index("SGD, late: descend(") < told.index("mean log loss")
    assert "at most 40 iterations late" in " ".join(told.split())
    assert f"{found['AdaGrad, late'].losses[-1]:.6f}" in told
    texts = [element.text for element in ElementTree.parse(picture).iter() if element.tag.endswith("text")]
    assert {"SGD, serial", "AdaRevision, late"} <= {*texts}


def test_files_need_labels_of_two_kinds(tmp_path, capsys):
    path = tmp_path / "one.txt"
    path.write_text("".join(f"1 {k + 1}:1\n" for k in range(12)))
    assert slr.main([str(path)]) == 1
    assert "two kinds of labels are needed, there are 1" in capsys.readouterr().err
    path.write_text("1 1:1\n0 2:1\n")
    assert slr.main([str(path)]) == 1
    assert "of 2 samples none can be held out" in capsys.readouterr().err
    assert slr.main([str(tmp_path / "nothing")]) == 1


def test_rows_of_files_keep_their_features_in_another_order(tmp_path):
    path, rng = tmp_path / "rows.txt", np.random.default_rng(3)
    rows = [np.sort(rng.choice(50, rng.integers(0, 6), replace=False)) for _ in range(40)]
    written = [f"{s % 2 * 2 - 1} " + " ".join(f"{k + 1}:{s + 1}" for k in row) for s, row in enumerate(rows)]
    path.write_text("\n".join(written) + "\n")
    samples = slr_data.read(path, 0)
    seen = set()
    for s in range(40):
        part = slice(samples.indptr[s], samples.indptr[s + 1])
        if part.start < part.stop:
            of = int(samples.values[part][0]) - 1  # each row has a value of its own
            seen.add(of)
            np.testing.assert_array_equal(samples.indices[part], rows[of])
            assert samples.labels[s] == of % 2
    assert len(seen) == sum(len(row) > 0 for row in rows)


@pytest.mark.data
@pytest.mark.skipif(not A9A.exists(), reason="needs ../shared/data/a9a/a9a")
def test_real_samples_train():
    found = slr.run(slr.parse([str(A9A), "--passes", "5", "--max-delay", "100"]))
    for name in ("SGD", "AdaGrad", "AdaRevision"):
        assert found[f"{name}, late"].losses[-1] < 0.34
        assert found[f"{name}, late"].held_out < 0.36


@pytest.mark.all("test_examples_bpr.py::test_ray_ranks_too")
@pytest.mark.ray
def test_ray_trains_too():
    samples, _ = slr_data.hold_out(slr_data.generated(2000, 200, 6, 0))
    with orion.session("ray", 2):
        training = slr.Training(samples, "adarevision", 0.3, 40)
        before = training.loss(samples)
        for _ in range(3):
            training.one_pass()
        assert training.loss(samples) < 0.9 * before
        late = slr.collect.last_run.late
    assert [one.worker for one in late] == [0, 1]
    assert max(one.latest for one in late) <= 40


# ---------------------------------------------------------------- matrix factorization


def test_factors_with_late_updates_end_near_the_exact_ones(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sgd_mf_adarev.SHAPES, "100k", sgd_mf_adarev.SHAPES["100k"].__class__(
        200, 150, 6000, (0.9, 1.2), (20, 20)))  # fmt: skip
    picture = tmp_path / "rmse.svg"
    command = ["--rank", "4", "--epochs", "3", "--max-delay", "40", "--workers", "2", "--picture", str(picture)]
    found = sgd_mf_adarev.run(sgd_mf_adarev.parse(command))
    told = capsys.readouterr().out
    assert [*found] == [*sgd_mf_adarev.NAMES]
    starts = {one.errors[0] for one in found.values()}
    assert len(starts) == 1
    exact = found["AdaRevision, exact"].errors[-1]
    for name in ("AdaGrad, late", "AdaRevision, late"):
        np.testing.assert_allclose(found[name].errors[-1], exact, rtol=0.02)
        assert found[name].errors != found["AdaRevision, exact"].errors
        assert 0 <= found[name].latest <= 40
    assert exact[0] < 0.95 * found["SGD, exact"].errors[0][0]
    assert told.index("SGD, exact: sgd(") < told.index("AdaRevision, late: collect(") < told.index("RMSE of the test")
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_gradients_of_factors_are_those_of_the_exact_loop():
    """One rating a user and an item, so that all is one step of plain gradients."""
    data = sgd_mf_adarev.load(sgd_mf_adarev.parse(["--seed", "1"]))
    keys = np.arange(50), np.arange(50)[::-1].copy()
    ratings = orion.sparse(keys, np.linspace(1, 5, 50).astype(np.float32), shape=data.train.shape)
    options = sgd_mf_adarev.parse(["--rank", "4", "--seed", "1"])
    late = sgd_mf_adarev.LateTraining(data, options, "adagrad", 5)
    W, H = late.W.copy(), late.H.copy()
    with orion.session(workers=1):
        sgd_mf_adarev.collect(ratings, late.W, late.H, *late.late, options.reg)
    err = np.linspace(1, 5, 50) - (W[keys[0]] * H[keys[1]]).sum(axis=1)
    for one, other, at, of, before in ((late.W, H, *keys, W), (late.H, W, *keys[::-1], H)):
        g = options.reg * before[at] - err[:, None] * other[of]
        step = options.step or sgd_mf_adarev.STEP
        np.testing.assert_allclose(one[at], before[at] - step * g / np.sqrt(1.0 + g * g), rtol=1e-4)
