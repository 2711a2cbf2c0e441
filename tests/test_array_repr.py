"""What arrays show of themselves: one line, and a small table in a notebook."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import orion

RATINGS = orion.sparse(([0, 2, 1], [1, 0, 6]), (np.ones(3, np.float32), np.arange(3)))

SHOWN = {
    "dense": (orion.zeros((1000, 20), dtype="float32"), "DenseArray(shape=(1000, 20), dtype=float32)"),
    "a number": (orion.array(3.0), "DenseArray(shape=(), dtype=float64)"),
    "large": (orion.zeros((300, 200, 10)), "DenseArray(shape=(300, 200, 10), dtype=float64)"),
    "sparse": (RATINGS, "SparseArray(shape=(3, 7), nnz=3, dtype=(float32, int64))"),
    "without elements": (orion.sparse(([], []), []), "SparseArray(shape=(0, 0), nnz=0, dtype=float64)"),
}


def table(array):
    """The caption and the rows of the table of an array."""
    text = array._repr_html_()
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)
    parser.handle_endtag = tags.remove
    parser.feed(text)
    assert not tags, "every tag is closed"
    return re.search("<caption>(.*)</caption>", text)[1], dict(re.findall("<th>(.*?)</th><td>(.*?)</td>", text))


@pytest.mark.parametrize(("array", "line"), SHOWN.values(), ids=SHOWN.keys())
def test_one_line(array, line):
    assert repr(array) == line
    assert table(array)[0] == f"orion.{type(array).__name__}"


def test_the_table_of_a_dense_array():
    assert table(SHOWN["dense"][0])[1] == {
        "shape": "1,000 × 20",
        "dtype": "float32",
        "memory": "125.0 KiB with padding, in this process",
    }


def test_the_table_of_a_sparse_array():
    array = orion.sparse(([0, 2, 1], [1, 0, 6]), np.ones(3, np.float32))
    assert table(array)[1] == {
        "shape": "3 × 7",
        "elements": "3 (0.14 of all cells)",
        "dtype": "float32, keys int32",
        "memory": "36 bytes, in this process",
        "stored": "as given",
    }
    array.layout(([0, 3], [0, 7]), "shuffled")
    assert table(array)[1]["stored"] == "in tiles, shuffled inside"
    assert table(RATINGS)[1]["dtype"] == "(float32, int64), keys int32"


@pytest.mark.ray
def test_an_array_that_ray_workers_share_says_so():
    @orion.parallel_for
    def add(ratings, w):
        for (i, _j), r in ratings:
            w[i] += r

    ratings, w = orion.sparse(([0, 2, 1], [1, 0, 6]), np.ones(3)), orion.zeros(3)
    with orion.session(backend="ray", workers=1):
        add(ratings, w)
        for array in (ratings, w):
            assert table(array)[1]["memory"].endswith(", in memory shared by the workers of this machine")
    np.testing.assert_array_equal(w.to_numpy(), np.ones(3))
