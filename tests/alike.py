"""Results compared with Python's: values, dtypes, and the types of lists, tuples and numbers."""

from __future__ import annotations

import numpy as np


def alike(got, wanted, rtol=0.0):
    """Fail where two results differ, by more than `rtol`."""
    assert type(got) is type(wanted)
    if isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            alike(one, other, rtol)
    else:
        np.testing.assert_allclose(got, wanted, rtol=rtol, strict=True)
