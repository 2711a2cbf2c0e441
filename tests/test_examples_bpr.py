"""Ranking by likes: the steps, AUC, and late factors of items next to the serial run."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import orion

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import bpr  # noqa: E402


@pytest.fixture(autouse=True)
def every_worker(monkeypatch):
    """Small loops would stay on one worker."""
    monkeypatch.setenv("ORION_FORCE_PARALLEL", "1")


SMALL = ["--users", "200", "--items", "150", "--likes", "12", "--rank", "8", "--epochs", "6", "--max-delay", "50"]


def liked(likes):
    """The likes as a matrix."""
    found = np.zeros(likes.shape, bool)
    found[np.repeat(np.arange(likes.shape[0]), np.diff(likes.ptr)), likes.items] = True
    return found


def test_users_like_as_many_items_as_they_should_and_one_more():
    likes = bpr.generated(30, 40, 7, 3)
    found = liked(likes)
    assert found.sum(axis=1).tolist() == [7] * 30
    assert not found[np.arange(30), likes.held].any()
    assert len(np.unique(likes.held)) > 5
    assert all(bpr.has_liked(likes.ptr, likes.items, u, j) == found[u, j] for u in range(30) for j in range(40))


def test_late_steps_end_near_the_serial_run(tmp_path, capsys):
    picture = tmp_path / "auc.svg"
    found = bpr.run(bpr.parse([*SMALL, "--workers", "2", "--picture", str(picture)]))
    told = capsys.readouterr().out
    serial, late = found["serial"], found["late"]
    assert serial.curve[0] == late.curve[0] == pytest.approx(0.5, abs=0.1)
    assert late.curve != serial.curve  # two workers, with steps of their own
    assert serial.curve[-1] > serial.curve[0] + 0.15
    assert late.curve[-1] == pytest.approx(serial.curve[-1], abs=0.03)
    assert serial.latest == 0 < late.latest <= 50
    assert bpr.rank_pairs.plan(*late.ranking.arguments()).strategy == "1d"
    assert f"{late.curve[-1]:.4f}" in told
    assert "at most 50 iterations late" in " ".join(told.split())
    texts = [element.text for element in ElementTree.parse(picture).iter() if element.tag.endswith("text")]
    assert {"serial", "late", "AUC"} <= {*texts}


def test_an_epoch_takes_the_steps_that_plain_python_takes():
    options = bpr.parse([*SMALL, "--seed", "3", "--step", "0.3", "--reg", "0.05"])
    likes = bpr.generated(40, 14, 10, 3)  # four of an item's draws are liked ones, most often
    ranking = bpr.Ranking(likes, options, 0)
    expected = bpr.Ranking(likes, options, 0)
    W, H, found = expected.W.astype(float), expected.H.astype(float), liked(likes)
    with orion.session("serial", 1), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        ranking.train()
        order = bpr.rank_pairs.last_run.serial_order()
    assert sorted(order) == list(range(len(likes.items)))
    users, items = (np.asarray(keys) for keys in ranking.pairs.coords)
    for u, i in zip(users[order].tolist(), items[order].tolist(), strict=True):
        drawn = (int(orion.random.integers(0, 14, 3 * 2**32, u, i, k)) for k in range(8))
        j = next((j for j in drawn if not found[u, j]), None)
        if j is not None:
            w, apart = W[u].copy(), H[i] - H[j]
            g = 1.0 / (1.0 + np.exp(w @ apart))
            W[u] += 0.3 * (g * apart - 0.05 * w)
            H[i] += 0.3 * (g * w - 0.05 * H[i])
            H[j] -= 0.3 * (g * w + 0.05 * H[j])
    np.testing.assert_allclose(ranking.W, W, atol=1e-5)
    np.testing.assert_allclose(ranking.H, H, atol=1e-5)


def test_auc_is_the_share_of_items_that_come_after_the_one_held_out():
    likes = bpr.generated(20, 30, 5, 1)
    ranking = bpr.Ranking(likes, bpr.parse([*SMALL, "--seed", "1"]), 0)
    products, found = ranking.W.astype(float) @ ranking.H.T.astype(float), liked(likes)
    shares = []
    for u, i in enumerate(likes.held):
        others = [j for j in range(30) if j != i and not found[u, j]]
        shares.append(np.mean([products[u, j] < products[u, i] for j in others]))
    assert ranking.auc() == pytest.approx(np.mean(shares), abs=1e-9)


def test_more_likes_than_items_are_refused(capsys):
    with pytest.raises(SystemExit):
        bpr.main(["--items", "20", "--likes", "19"])
    assert "--likes 19, one held out and one not liked are more than --items 20" in capsys.readouterr().err


@pytest.mark.ray
def test_ray_ranks_too():
    with orion.session("ray", 2):
        ranking = bpr.Ranking(bpr.generated(200, 150, 12, 0), bpr.parse(SMALL), 50)
        before = ranking.auc()
        for _ in range(6):
            ranking.train()
        late = bpr.rank_pairs.last_run.late
        assert ranking.auc() > before + 0.15
    assert [one.worker for one in late] == [0, 1]
    assert max(one.latest for one in late) <= 50
