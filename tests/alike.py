"""Results compared with Python's: values, dtypes, and the types of lists, tuples and numbers."""

from __future__ import annotations

import numpy as np


def alike(got, wanted):
    """Fail where two results differ."""
    assert type(got) is type(wanted)
    if isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            alike(one, other)
    else:
        np.testing.assert_array_equal(got, wanted, strict=True)
