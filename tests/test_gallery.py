"""The gallery of the documentation: its pages are what `python docs/gallery.py` writes, and its loops are right."""

from __future__ import annotations

import pytest

import orion
from benchmarks.everyday.one import agree, run
from docs import gallery
from docs.gallery_loops import ENTRIES, FIELDS


@pytest.fixture(scope="module")
def files():
    return gallery.pages()


def test_there_are_25_loops_five_of_each_field():
    assert len({entry.name for entry in ENTRIES}) == 25
    assert [len(field.entries) for field in FIELDS] == [5] * 5


def test_the_pages_and_pictures_are_what_is_written(files):
    stale = [path.name for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    assert not stale, "`python docs/gallery.py` writes the gallery anew"
    assert {*gallery.PAGES.iterdir(), *gallery.PICTURES.iterdir()} == {*files}


def test_pictures_are_small_and_name_no_folder(files):
    for path, text in files.items():
        assert len(text.encode()) <= gallery.LARGEST
        assert gallery._folder().name not in text, path.name


def test_what_is_measured_is_told_with_the_processor(monkeypatch):
    entry = ENTRIES[0]
    times = {
        "machine": {"processor": "A CPU"},
        "seconds": {entry.name: {"numba.njit": 0.02, "Orion, 2 workers": 0.005}},
    }
    monkeypatch.setattr(gallery, "_kept_times", lambda: times)
    above, table = gallery._timing(entry)
    assert above == "Measured on A CPU:"
    assert table.splitlines()[-1] == "| 20 ms | 5 ms |"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_results_are_those_of_plain_python(entry):
    looped, case = gallery.loop_of(entry), entry.case
    with orion.session(workers=2, force_parallel=True):
        mine = run(looped, case, case.small)
    assert agree(mine, run(looped.__wrapped__, case, case.small))
