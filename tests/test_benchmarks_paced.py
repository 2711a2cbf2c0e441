"""The trainings of `benchmarks.paced` on threads, and its tables and figure."""

import numpy as np
import pytest

import orion
from benchmarks.paced.__main__ import cells
from benchmarks.paced.pictures import figure, medians
from benchmarks.paced.programs import Factorization, Topics

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


@pytest.mark.parametrize("send", [None, orion.pacing()], ids=["bound", "magnitude"])
def test_they_learn_from_the_same_beginning(send):
    with orion.session("threads", 2, force_parallel=True):
        for program, passes in ((Factorization(300, 60, 40, rank=4, step=0.02), 30), (Topics(80, 60, 50, 8), 20)):
            losses = []
            for epochs in (0, passes, 0):
                program.run(program.iterations, send, epochs)
                losses.append(program.loss())
            assert losses[1] < 0.97 * losses[0]
            assert losses[2] == losses[0]


def test_counts_of_topics_are_those_of_tokens():
    program = Topics(40, 30, 25, 5)
    with orion.session("threads", 2, force_parallel=True):
        program.run(200, None, 3)
    of_document, of_word, totals = program.counted(program.assigned)
    np.testing.assert_array_equal(program.of_document.to_numpy(), of_document)
    np.testing.assert_array_equal(program.of_word.to_numpy(), of_word)
    np.testing.assert_array_equal(program.totals.to_numpy(), totals)


def row(**more):
    return {
        "name": "topics", "share": 0.05, "megabits": 6.4, "policy": "magnitude", "epochs": 2, "seconds": 1.5,
        "loss": 6.1, "sent": 2e6, "carried": 3e6, "early": 0.5, "looking": 0.03, **more,
    }  # fmt: skip


def test_medians_and_what_is_shown_of_them():
    rows = [row(), row(seconds=2.5, loss=6.3), row(seconds=9.0, loss=6.2), row(policy="bound", sent=0.0)]
    found = medians(rows)
    assert [(one["policy"], one["seconds"], one["loss"]) for one in found] == [
        ("magnitude", 2.5, 6.2),
        ("bound", 1.5, 6.1),
    ]
    assert cells(found[0]) == ("topics", "5%", "6.4", "magnitude", "2", "2.50", "6.2000", "2.00", "3.00", "50%", "1.2%")
    drawn = figure(rows, 2)
    assert "magnitude, 2 passes: 2.5 s, 2 MB, loss 6.2000" in drawn
    assert "topics, links at 5%" in drawn
