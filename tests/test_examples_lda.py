"""Topic models: what is found, the same topics on any number of workers, and files that are none."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import orion

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import lda  # noqa: E402
import lda_data  # noqa: E402
from pictures import read_png  # noqa: E402

from tests.trials import ALL  # noqa: E402

KOS = EXAMPLES.parents[1] / "shared" / "data" / "kos" / "docword.kos.txt.gz"
SMALL = ["--documents", "150", "--vocabulary", "300", "--length", "40", "--topics", "12", "--every", "4"]


def trained(*more):
    """The model of a small corpus, and its perplexities."""
    return lda.run(lda.parse([*SMALL, *more]))


def test_perplexity_falls_below_that_of_one_topic(capsys):
    corpus, held = lda_data.hold_out(lda_data.generated(600, 1000, 120, 10, 0), 0)
    with orion.session(workers=2):
        warp = lda.Warp(corpus, 20, 0.1, 0.01, 1, 0)
        curve = lda.train(warp, held, 120, 60)
    assert [sweep for sweep, _ in curve] == [0, 60, 120]
    assert curve[-1][1] < 0.7 * lda.unigram(corpus, held, 0.01)
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 121
    assert told[-1].startswith("  120 ")
    assert told[-1].endswith(f"{curve[-1][1]:.2f}")


def test_plans_are_printed_before_anything_runs(capsys):
    trained("--sweeps", "1", "--workers", "2")
    told = capsys.readouterr().out
    assert told.index("by documents: resample(") < told.index("by words: resample(") < told.index("million tokens/s")


def test_the_perplexity_is_that_of_the_formula():
    warp, curve = trained("--sweeps", "4", "--alpha", "0.3", "--beta", "0.05")
    corpus, held = lda_data.hold_out(lda_data.generated(150, 300, 40, 50, 0), 0)
    topics = np.empty(len(corpus), np.int64)
    topics[warp.by_word] = warp.words.topics
    theta, phi = np.full((150, 12), 0.3), np.full((300, 12), 0.05)
    np.add.at(theta, (corpus.docs, topics), 1.0)
    np.add.at(phi, (corpus.words, topics), 1.0)
    theta, phi = theta / theta.sum(axis=1, keepdims=True), phi / phi.sum(axis=0)
    chances = np.array([theta[d] @ phi[w] for d, w in zip(held.docs, held.words, strict=True)])
    np.testing.assert_allclose(curve[-1][1], np.exp(-np.log(chances).mean()), rtol=1e-9)


def test_topics_of_vocabularies_that_share_no_word_are_found():
    rng = np.random.default_rng(1)
    kind = np.repeat(np.arange(4), 30)  # of each document
    docs = np.repeat(np.arange(120), 50)
    corpus = lda_data.Corpus(docs, 25 * kind[docs] + rng.integers(0, 25, len(docs)), 120, 100, "four vocabularies")
    with orion.session(workers=2):
        warp = lda.Warp(corpus, 8, 0.02, 0.01, 1, 0)
        for _ in range(150):
            warp.sweep()
        _, of_words = warp.counts()
    of_kinds = of_words.reshape(4, 25, 8).sum(axis=1)  # tokens by vocabulary and topic
    assert of_kinds.sum() == len(docs)
    assert of_kinds.max(axis=0).sum() > 0.98 * len(docs)  # a topic has words of one vocabulary


def test_the_totals_of_topics_are_kept_and_each_token_stays_one():
    corpus = lda_data.generated(60, 200, 30, 5, 2)
    with orion.session(workers=2):
        warp = lda.Warp(corpus, 300, 0.1, 0.01, 2, 0)
        for _ in range(3):
            warp.sweep()
            assert warp.totals.tolist() == np.bincount(warp.words.topics, minlength=300).tolist()
        of_docs, of_words = warp.counts()
    assert warp.words.topics.dtype == np.uint16
    assert of_docs.sum(axis=1).tolist() == np.bincount(corpus.docs, minlength=60).tolist()
    assert of_words.sum(axis=1).tolist() == np.bincount(corpus.words, minlength=200).tolist()
    assert of_words.sum(axis=0).tolist() == of_docs.sum(axis=0).tolist() == warp.totals.tolist()


def proposals_of(length, width, prior, passes):
    """Topics of a row of a document, and how often each of its tokens is offered each topic, over many passes."""
    corpus = lda_data.Corpus(np.zeros(length, np.int64), np.arange(length), 1, length, "one document")
    warp = lda.Warp(corpus, width, prior, 0.01, 1, 0)
    topics = np.arange(length) % 3
    offers = np.zeros((length, width))
    for number in range(passes):
        warp.words.topics[warp.documents.at] = topics
        warp.words.proposed[0, warp.documents.at] = topics  # nothing changes
        warp.passes = number
        lda.resample(*warp.arguments(warp.documents, warp.words))
        offers[np.arange(length), warp.documents.proposed[0]] += 1
    assert warp.documents.topics.tolist() == topics.tolist()
    return topics, offers / passes


@pytest.mark.parametrize(("length", "prior"), [(1, 0.5), (2, 0.3), (11, 0.4)])
def test_proposals_have_the_distribution_that_they_should_have(length, prior):
    with orion.session(workers=1):
        topics, offers = proposals_of(length, 5, prior, 4000)
    others = np.bincount(topics, minlength=5) - np.eye(5)[topics]  # for each token, without itself
    np.testing.assert_allclose(offers, (others + prior) / (length - 1 + 5 * prior), atol=0.04)


@pytest.mark.parametrize("proposals", ["1", "3"])
def test_topics_are_the_same_on_any_number_of_workers(proposals):
    found = [
        trained("--sweeps", "8", "--seed", "5", "--proposals", proposals, "--workers", workers)
        for workers in ("1", "2", "4")
    ]
    first, curve = found[0]
    assert len(np.unique(first.words.topics)) > 1
    for other, its_curve in found[1:]:
        np.testing.assert_array_equal(first.words.topics, other.words.topics)
        np.testing.assert_array_equal(first.words.proposed, other.words.proposed)
        np.testing.assert_array_equal(first.documents.topics, other.documents.topics)
        assert its_curve == curve


@pytest.mark.all(
    "test_examples_tensor.py::test_the_bits_are_those_of_ray",
    "test_examples_sgd_mf.py::test_ray_gives_the_same_digits_as_threads",
)
@pytest.mark.ray
def test_topics_are_the_same_on_ray():
    here, curve = trained("--sweeps", "4", "--workers", "1")
    there, its_curve = trained("--sweeps", "4", "--workers", "2", "--backend", "ray")
    np.testing.assert_array_equal(here.words.topics, there.words.topics)
    np.testing.assert_array_equal(here.words.proposed, there.words.proposed)
    assert its_curve == curve


def test_another_seed_gives_other_topics():
    first, second = (trained("--sweeps", "2", "--workers", "1", "--seed", seed)[0] for seed in ("1", "2"))
    assert len(first.corpus) != len(second.corpus) or (first.words.topics != second.words.topics).any()


def test_the_passes_are_parallel():
    corpus = lda_data.generated(2000 if ALL else 500, 2000, 100, 20, 0)
    with orion.session(workers=2, force_parallel=True):
        warp = lda.Warp(corpus, 100, 0.1, 0.01, 1, 0)
        for rows, others in ((warp.documents, warp.words), (warp.words, warp.documents)):
            plan = lda.resample.plan(*warp.arguments(rows, others))
            assert plan.strategy == "independent"
            plan.check()


def test_a_tenth_of_each_document_is_held_out():
    corpus = lda_data.generated(50, 80, 35, 5, 0)
    kept, held = lda_data.hold_out(corpus, 3)
    lengths = np.bincount(corpus.docs, minlength=50)
    assert np.bincount(held.docs, minlength=50).tolist() == (lengths // 10).tolist()
    both = np.concatenate((kept.docs * 80 + kept.words, held.docs * 80 + held.words))
    assert np.sort(both).tolist() == np.sort(corpus.docs * 80 + corpus.words).tolist()
    assert lda_data.hold_out(corpus, 3)[1].words.tolist() == held.words.tolist()
    assert lda_data.hold_out(corpus, 4)[1].words.tolist() != held.words.tolist()


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_bags_of_words_are_read(tmp_path, suffix):
    path, text = tmp_path / f"docword.a{suffix}", "3\n4\n4\n3 1 1\n1 2 2\n1 4 1\n3 3 1\n\n"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    corpus = lda_data.read_docword(path)
    assert (corpus.documents, corpus.vocabulary) == (3, 4)
    assert list(zip(corpus.docs.tolist(), corpus.words.tolist(), strict=True)) == [
        (0, 1), (0, 1), (0, 3), (2, 0), (2, 2),
    ]  # fmt: skip


BAD = {
    "": "line 1 must be a number: ''",
    "2\nx\n1\n1 1 1\n": "line 2 must be a number: 'x'",
    "2\n3\n2\n1 1 1\n": "line 3 says that 2 lines follow, there are 1",
    "2\n3\n2\n1 1 1\n1 2\n": "line 5 must be `document word count`, three numbers: '1 2'",
    "2\n3\n2\n1 1 1 1\n1 2\n": "line 4 must be",
    "2\n3\n2\n1 1 1\n1 two 1\n": "line 5 must be",
    "2\n3\n2\n1 1 1\n1 4 1\n": "line 5 is '1 4 1', but documents are numbered from 1 to 2, words to 3",
    "2\n3\n2\n0 1 1\n1 3 1\n": "line 4 is '0 1 1'",
    "2\n3\n2\n1 1 1\n1 3 0\n": "line 5 is '1 3 0'",
    "2\n3\n1\n1 1 -1\n": "line 4 is '1 1 -1'",
    "2\n3\n1\n1 1 99999999999999999999\n": "line 4 must be",
    "2\n3\n0\n": "there is no word in it",
    "2\n3\n1\n1 1 9\n": "no document has ten tokens",
}


@pytest.mark.parametrize("text", BAD)
def test_files_that_are_no_bags_of_words(tmp_path, text, capsys):
    path = tmp_path / "docword.bad.txt"
    path.write_text(text)
    assert lda.main(["--corpus", str(path)]) == 1
    told = capsys.readouterr().err
    assert BAD[text] in told
    assert "no document" in told or str(path) in told


def test_files_that_are_not_there_or_no_text(tmp_path, capsys):
    assert lda.main(["--corpus", str(tmp_path / "nothing.txt")]) == 1
    assert "nothing.txt" in capsys.readouterr().err
    for name, data in (("a.gz", b"no gzip"), ("b.gz", gzip.compress(b"1\n" * 99)[:20]), ("c.txt", b"\xff\xfe\x00")):
        path = tmp_path / name
        path.write_bytes(data)
        assert lda.main(["--corpus", str(path)]) == 1
        assert str(path) in capsys.readouterr().err


def test_a_picture_of_the_perplexities(tmp_path, capsys):
    path = tmp_path / "a.svg"
    _, points = trained("--sweeps", "4", "--workers", "1", "--picture", str(path))
    assert f"written to {path}: the perplexity by sweeps, and that of one topic" in capsys.readouterr().out
    picture = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    lines = [node.attrib["points"].split() for node in picture.iter() if node.tag.endswith("polyline")]
    assert list(map(len, lines)) == [len(points), 2]
    for place in [place for line in lines for place in line]:
        x, y = map(float, place.split(","))
        assert 0 < x < width
        assert 0 < y < height
    texts = [node.text for node in picture.iter() if node.tag.endswith("text")]
    corpus, held = lda_data.hold_out(lda_data.generated(150, 300, 40, 50, 0), 0)
    level = lda.unigram(corpus, held, 0.01)
    assert {"sweeps", "perplexity", "held-out tokens", f"of one topic: {level:,.0f}"} <= set(texts)
    values = [level, *(p for _, p in points)]
    assert {f"{min(values):.4g}", f"{max(values):.4g}", "0", "4"} <= set(texts)


def test_a_picture_of_topics_by_words(tmp_path, capsys):
    path = tmp_path / "a.png"
    trained("--sweeps", "4", "--workers", "1", "--picture", str(path))
    told = capsys.readouterr().out
    assert "topics 1 to 12 from top to bottom, 50 pixels each,\nand the 300 most frequent words" in told
    assert read_png(path).shape == (600, 300)


def test_perplexities_are_taken_ten_times_if_nothing_else_is_said():
    _, curve = lda.run(lda.parse([*SMALL[:-2], "--sweeps", "12", "--workers", "1"]))
    assert [sweep for sweep, _ in curve] == [0, 2, 4, 6, 8, 10, 12]
    _, curve = lda.run(lda.parse([*SMALL[:-2], "--sweeps", "10", "--workers", "1"]))
    assert [sweep for sweep, _ in curve] == list(range(11))


@pytest.mark.data
@pytest.mark.skipif(not KOS.exists(), reason="the corpus is no part of the project, and not there")
def test_a_real_corpus(capsys):
    _, curve = lda.run(lda.parse(["--corpus", str(KOS), "--workers", "2", "--sweeps", "60", "--every", "60"]))
    assert "3,430 documents, 6,906 words, 422,499 tokens" in capsys.readouterr().out
    corpus, held = lda_data.hold_out(lda_data.read_docword(KOS), 0)
    assert curve[-1][1] < 0.7 * lda.unigram(corpus, held, 0.01)
