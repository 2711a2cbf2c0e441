"""Random functions that follow each other on the arrays of several nodes; see `tests/oracles/call_sequences.py`."""

from collections import Counter

import pytest

from tests.oracles.call_sequences import Calls
from tests.trials import ALL, TIMES

PARTS, SEQUENCES = 3 * TIMES, 8 if ALL else 4


@pytest.mark.parametrize("part", range(PARTS))
def test_calls_that_follow_each_other_on_nodes_give_what_python_gives(part):
    tally = Counter()
    for seed in range(part, PARTS * SEQUENCES, PARTS):
        Calls(seed, tally).run()
    assert tally["on several nodes"] > tally["calls"] / 2 > SEQUENCES / 2
    assert tally["bytes predicted"]


def test_what_somebody_changes_meanwhile_is_missed_where_images_swallow_it(monkeypatch):
    """The sequences reach what they are for."""
    from orion.runtime.ray.up_to_date import UpToDate

    def swallow(known, block, array, written):
        known._images[block][...] = array
        return True

    monkeypatch.setattr(UpToDate, "keep_image", swallow)
    with pytest.raises(AssertionError, match="seed 9:"):
        Calls(9, Counter()).run()
