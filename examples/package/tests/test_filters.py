"""Run by `orion build smoothing --record "python -m pytest tests"`, whose calls are built."""

import numpy as np
from smoothing import blur, relax, smooth


def test_smooth():
    out = np.zeros(1000)
    smooth(np.arange(1000.0), out)
    assert out[1:-1].tolist() == np.arange(1.0, 999.0).tolist()


def test_blur():
    out = np.zeros((50, 50))
    blur(np.ones((50, 50)), out)
    assert (out[1:-1, 1:-1] == 1.0).all()


def test_relax():
    image = np.ones((1000, 1000))
    relax(image, 4)
    assert np.allclose(image, 1.0)
