"""Vectors of words: the steps, the loss, and late vectors next to the serial run."""

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

import word2vec  # noqa: E402

SMALL = ["--sentences", "600", "--length", "10", "--subjects", "4", "--members", "15", "--width", "16", "--window", "3"]
SMALL += ["--negatives", "4", "--epochs", "4", "--max-delay", "200", "--step", "0.15"]


def small_text():
    return word2vec.generated(600, 10, 4, 15, 0)


def test_sentences_have_words_of_their_subject_between_shared_ones():
    text = small_text()
    assert text.vocabulary == 4 * 15 + 15
    assert 0 <= text.words.min() < text.words.max() < text.vocabulary
    own = text.words < 60
    assert 0.2 < own.mean() < 0.3
    subjects = [np.unique(row[mine] // 15) for row, mine in zip(text.words, own, strict=True)]
    assert max(map(len, subjects)) == 1
    assert len({int(one[0]) for one in subjects if len(one)}) == 4


def test_words_have_places_by_how_often_they_occur():
    text = small_text()
    often = np.bincount(text.words.ravel(), minlength=text.vocabulary) ** 0.75
    found = np.bincount(text.places(), minlength=text.vocabulary) / word2vec.PLACES
    np.testing.assert_allclose(found, often / often.sum(), atol=2 / word2vec.PLACES)


def test_vectors_of_subjects_that_point_their_own_ways_are_pure():
    text = small_text()
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(15, 4))
    vectors = np.concatenate([np.repeat(np.eye(4), 15, axis=0), shared]) * rng.uniform(1, 2, (75, 1))
    assert text.purity(vectors) == 1.0
    assert text.purity(rng.normal(size=(75, 4))) == pytest.approx(14 / 74, abs=0.06)


def test_late_steps_end_near_the_serial_run(tmp_path, capsys):
    picture = tmp_path / "loss.svg"
    found = word2vec.run(word2vec.parse([*SMALL, "--workers", "2", "--picture", str(picture)]))
    told = capsys.readouterr().out
    serial, late = found["serial"], found["late"]
    assert serial.losses[0] == late.losses[0] == pytest.approx(5 * np.log(2.0), rel=1e-6)
    assert late.losses != serial.losses  # two workers, with steps of their own
    assert late.losses[-1] == pytest.approx(serial.losses[-1], rel=0.03)
    assert late.losses[-1] < 0.9 * late.losses[0]
    assert late.purities[0] < 0.4
    assert min(late.purities[-1], serial.purities[-1]) > 0.7
    assert serial.latest == 0 < late.latest <= 200
    assert word2vec.skip_grams.plan(*late.training.arguments()).strategy == "relaxed"
    assert f"{late.losses[-1]:.4f}" in told
    assert "at most 200 iterations late" in " ".join(told.split())
    texts = [element.text for element in ElementTree.parse(picture).iter() if element.tag.endswith("text")]
    assert {"serial", "late", "mean loss of a pair"} <= {*texts}


def pairs_of(options, text, seed, places):
    """Words, and what is asked of each in turn: a target, and whether it is near."""
    length = text.shape[1]
    for s, sentence in enumerate(text.tolist()):
        for t, word in enumerate(sentence):
            for near in range(max(t - options.window, 0), min(t + options.window + 1, length)):
                if near != t:
                    yield word, sentence[near], 1.0
                    for n in range(1, options.negatives + 1):
                        place = orion.random.integers(0, word2vec.PLACES, seed, s, t * length + near, n)
                        yield word, int(places[place]), 0.0


def test_an_epoch_takes_the_steps_that_plain_python_takes():
    options = word2vec.parse([*SMALL, "--seed", "3"])
    text = word2vec.generated(25, 6, 2, 11, 3)
    training = word2vec.Training(text, options, 0)
    training.contexts[:] = np.random.default_rng(0).normal(size=training.contexts.shape)
    vectors, contexts = training.vectors.astype(float), training.contexts.astype(float)
    with orion.session("serial", 1), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        training.train()
        found = training.loss()
    for word, target, label in pairs_of(options, text.words, 3 * 2**32, training.places):
        v = vectors[word].copy()
        g = 0.15 * (label - 1.0 / (1.0 + np.exp(-v @ contexts[target])))
        vectors[word] += g * contexts[target]
        contexts[target] += g * v
    np.testing.assert_allclose(training.vectors, vectors, atol=2e-5)
    np.testing.assert_allclose(training.contexts, contexts, atol=2e-5)
    asked = [*pairs_of(options, text.words, 3 * 2**32 - 1, training.places)]
    losses = [np.logaddexp(0.0, (1 - 2 * label) * (vectors[w] @ contexts[t])) for w, t, label in asked]
    assert found == pytest.approx(sum(losses) / sum(label for _, _, label in asked), rel=1e-4)


@pytest.mark.all("test_examples_bpr.py::test_ray_ranks_too")
@pytest.mark.ray
def test_ray_trains_too():
    with orion.session("ray", 2):
        training = word2vec.Training(small_text(), word2vec.parse(SMALL), 200)
        before = training.loss()
        for _ in range(4):
            training.train()
        late = word2vec.skip_grams.last_run.late
        assert training.loss() < 0.9 * before
    assert {one.worker for one in late} == {0, 1}
    assert max(one.latest for one in late) <= 200
