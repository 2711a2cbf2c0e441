"""Topic models by Gibbs sampling: counts and lists that agree, the distribution that is sampled, late totals next to
the serial run."""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import orion

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import lda_data  # noqa: E402
import lda_gibbs  # noqa: E402

from tests.trials import ALL  # noqa: E402

KOS = EXAMPLES.parents[1] / "shared" / "data" / "kos" / "docword.kos.txt.gz"


@pytest.fixture(autouse=True)
def every_worker(monkeypatch):
    """Small loops would stay on one worker."""
    monkeypatch.setenv("ORION_FORCE_PARALLEL", "1")


def dense(model):
    """What words and documents have of each topic, by the topics of the tokens."""
    words, docs, _ = (np.asarray(keys) for keys in model.tokens.coords)
    drawn = np.asarray(model.tokens.values)
    of_docs = np.zeros((model.corpus.documents, len(model.totals)))
    of_words = np.zeros((model.corpus.vocabulary, len(model.totals)))
    np.add.at(of_docs, (docs, drawn), 1)
    np.add.at(of_words, (words, drawn), 1)
    return of_docs, of_words


def test_late_totals_end_near_the_serial_run(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("ORION_FORCE_PARALLEL")  # by it the serial run would be of all loops inside, each by itself
    picture = tmp_path / "curve.svg"
    command = ["--documents", "3000", "--vocabulary", "500", "--length", "60", "--topics", "20", "--sweeps", "40"]
    command += ["--every", "20", "--max-delay", "200", "--workers", "2", "--picture", str(picture)]
    found = lda_gibbs.run(lda_gibbs.parse(command))
    told = capsys.readouterr().out
    serial, late = found["serial"], found["late"]
    assert [sweep for sweep, _ in serial.curve] == [sweep for sweep, _ in late.curve] == [0, 20, 40]
    assert serial.curve[0] == late.curve[0]
    assert serial.curve[-1] != late.curve[-1]  # two workers, with totals of their own
    assert late.curve[0][1] + 1.0 < late.curve[-1][1]
    assert abs(late.curve[-1][1] - serial.curve[-1][1]) < 0.1
    assert late.perplexity == pytest.approx(serial.perplexity, rel=0.05)
    assert serial.latest == 0 < late.latest <= 200
    assert lda_gibbs.sweep.plan(*late.model.arguments()).strategy == "2d"
    assert "at most 200 iterations late" in " ".join(told.split())
    assert f"{late.curve[-1][1]:.4f}" in told
    texts = [element.text for element in ElementTree.parse(picture).iter() if element.tag.endswith("text")]
    assert {"serial", "late", "sweeps"} <= {*texts}


@pytest.mark.parametrize("topics", [7, 300])
def test_counts_and_lists_are_those_of_the_tokens(topics):
    with orion.session(workers=2):
        model = lda_gibbs.Gibbs(lda_data.generated(60, 200, 30, 5, 2), topics, 0.1, 0.05, 50, 0)
        before = np.array(model.tokens.values)
        for _ in range(3):
            model.sweep()
    assert (np.asarray(model.tokens.values) != before).any()
    of_docs, of_words = dense(model)
    np.testing.assert_array_equal(model.of_docs, of_docs)
    np.testing.assert_array_equal(model.of_words, of_words)
    np.testing.assert_array_equal(model.totals, of_words.sum(axis=0))
    np.testing.assert_allclose(model.share, 1.0 / (of_words.sum(axis=0) + 200 * 0.05))
    for have, used, counts in (
        (model.docs_have, model.docs_used, of_docs), (model.words_have, model.words_used, of_words),
    ):  # fmt: skip
        for r, row in enumerate(counts):
            assert sorted(have[r, : used[r]].tolist()) == np.flatnonzero(row).tolist()


@pytest.mark.parametrize("is_document", [True, False], ids=["document", "word"])
def test_rows_whose_tokens_all_have_topics_of_their_own_have_room(is_document):
    """Of 300 topics no two tokens of the longest row need have the same."""
    rows = np.zeros(20, np.int64), np.arange(20)
    corpus = lda_data.Corpus(*(rows if is_document else rows[::-1]), 20, 200, "one row")
    with orion.session(workers=2):
        model = lda_gibbs.Gibbs(corpus, 300, 50.0, 0.05, 50, 0)
        for _ in range(50):
            model.sweep()
    np.testing.assert_array_equal(model.of_docs, dense(model)[0])


def joint(docs, words, drawn, shape, alpha, beta):
    """The logarithm of the chance of words and topics, by the definition: products of what is drawn one after the
    other."""
    documents, vocabulary, width = shape
    of_docs, of_words = np.zeros((documents, width)), np.zeros((vocabulary, width))
    total = 0.0
    for d, w, z in zip(docs, words, drawn, strict=True):
        total += math.log((of_docs[d, z] + alpha) / (of_docs[d].sum() + width * alpha))
        total += math.log((of_words[w, z] + beta) / (of_words[:, z].sum() + vocabulary * beta))
        of_docs[d, z] += 1
        of_words[w, z] += 1
    return total


def test_the_likelihood_is_that_of_the_definition():
    corpus = lda_data.generated(20, 30, 15, 4, 1)
    model = lda_gibbs.Gibbs(corpus, 6, 0.3, 0.2, 10, 0)
    words, docs, _ = (np.asarray(keys) for keys in model.tokens.coords)
    expected = joint(docs, words, np.asarray(model.tokens.values), (20, 30, 6), 0.3, 0.2)
    assert model.likelihood() * len(corpus) == pytest.approx(expected, rel=1e-9)


def test_topics_are_drawn_from_their_joint_distribution(monkeypatch):
    """Four tokens and three topics: 81 states, of which each has its chance."""
    states = 6000 if ALL else 2000
    monkeypatch.delenv("ORION_FORCE_PARALLEL")
    docs, words = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])
    corpus, alpha, beta = lda_data.Corpus(docs, words, 2, 3, "four tokens"), 0.4, 0.5
    with orion.session("serial", 1), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        model = lda_gibbs.Gibbs(corpus, 3, alpha, beta, 0, 0)
        seen = Counter()
        for _ in range(states):
            model.sweep()
            seen[tuple(np.asarray(model.tokens.values).tolist())] += 1
    by_word, by_doc, _ = (np.asarray(keys) for keys in model.tokens.coords)
    chances = {
        one: math.exp(joint(by_doc, by_word, one, (2, 3, 3), alpha, beta)) for one in product(range(3), repeat=4)
    }
    scale = sum(chances.values())
    off = sum(abs(seen[one] / states - chance / scale) for one, chance in chances.items()) / 2
    assert off < 4.6 / math.sqrt(states)  # 3.1 is what states that are drawn at random are off, on average


def test_keys_of_equal_tokens_are_numbered():
    docs, words = np.array([0, 0, 0, 1]), np.array([2, 1, 2, 2])
    found = lda_gibbs.keys_of(lda_data.Corpus(docs, words, 2, 3, "four tokens"))
    assert [one.tolist() for one in found] == [[1, 2, 2, 2], [0, 0, 0, 1], [0, 0, 1, 0]]


def test_files_that_are_no_bags_of_words_are_refused(tmp_path, capsys):
    path = tmp_path / "docword.txt"
    command = ["--corpus", str(path), "--topics", "2", "--sweeps", "1", "--workers", "1"]
    for text, message in (("2\n3\n1\n1 1 9\n", "no document has ten tokens"), ("2\n3\n1\n1 1\n", "line 4 must be")):
        path.write_text(text)
        assert lda_gibbs.main(command) == 1
        assert message in capsys.readouterr().err


@pytest.mark.all(
    "test_examples_tensor.py::test_the_bits_are_those_of_ray",
    "test_examples_sgd_mf.py::test_ray_gives_the_same_digits_as_threads",
)
@pytest.mark.ray
def test_ray_samples_too():
    with orion.session("ray", 2):
        model = lda_gibbs.Gibbs(lda_data.generated(150, 200, 40, 5, 0), 10, 0.1, 0.05, 50, 0)
        before = model.likelihood()
        for _ in range(5):
            model.sweep()
        assert [one.worker for one in lda_gibbs.sweep.last_run.late] == [0, 1]
        assert model.likelihood() > before + 0.1
    of_docs, of_words = dense(model)
    np.testing.assert_array_equal(model.of_docs, of_docs)
    np.testing.assert_array_equal(model.of_words, of_words)
    np.testing.assert_array_equal(model.totals, of_words.sum(axis=0))


@pytest.mark.data
@pytest.mark.skipif(not KOS.exists(), reason="the corpus is no part of the project, and not there")
def test_a_real_corpus():
    with orion.session(workers=2):
        corpus, held = lda_data.hold_out(lda_data.read_docword(KOS), 0)
        model = lda_gibbs.Gibbs(corpus, 100, 0.1, 0.01, 10_000, 0)
        for _ in range(40):
            model.sweep()
        assert model.perplexity(held) < 0.7 * lda_gibbs.unigram(corpus, held, 0.01)
