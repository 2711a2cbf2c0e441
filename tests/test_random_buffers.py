"""Random loops with buffers; see `tests/oracles/buffered_loops.py`."""

import warnings
from collections import Counter

import pytest

from orion.errors import SerialLoopWarning
from tests.oracles.buffered_loops import BufferedLoop
from tests.trials import TIMES

PARTS, LOOPS = 3 * TIMES, 10


@pytest.mark.parametrize("part", range(PARTS))
def test_no_update_of_a_random_loop_is_lost_or_too_late(part):
    tally = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialLoopWarning)
        for seed in range(part, PARTS * LOOPS, PARTS):
            BufferedLoop(seed).run(1 + seed // PARTS % 3, tally)
    assert tally["relaxed"] > tally["calls"] / 3
    assert tally["dense"] + tally["listed"] > tally["at once"] > 0


def test_a_part_of_the_random_loops_applies_its_updates_in_order():
    in_order = [BufferedLoop(seed).is_deterministic for seed in range(PARTS * LOOPS)]
    assert 0.1 < sum(in_order) / len(in_order) < 0.4
