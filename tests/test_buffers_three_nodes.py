"""Updates that may be late, on three nodes: each sends what its own workers have changed to both others."""

import numpy as np
import pytest

import orion
from tests.ray_nodes import session_on
from tests.test_buffers import count, latest, look

pytestmark = [
    pytest.mark.all("test_buffers_nodes.py::test_no_update_is_lost"),
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning"),
]


def test_no_update_is_lost_or_too_late_or_told_on_twice():
    with session_on((1, 1, 1)):
        for send in (None, orion.pacing(batch=100)):
            for bins in (7, 3000):
                group, totals = np.random.default_rng(bins).integers(0, bins, 6000), orion.zeros(bins)
                count(group, orion.buffer(totals, max_delay=90, send=send))
                np.testing.assert_array_equal(totals.to_numpy(), np.bincount(group, minlength=bins))
                assert len(count.last_run.sent) == 3
                assert max(one.latest for one in count.last_run.late) <= 90
            assert latest(3, 7, n=300, send=send) <= 7
            assert len(look.last_run.sent) == 3
