"""Three loops, for whose arguments `orion build` has a signature, annotations, and a test that calls it."""

import numpy as np

import orion

Image = np.ndarray[tuple[int, int], np.dtype[np.float64]]


@orion.parallel_for(signatures=["float64[::1], float64[::1]"])
def smooth(x, out):
    """Write the mean of each element's neighbours to `out`."""
    for i in range(1, x.shape[0] - 1):
        out[i] = 0.5 * (x[i - 1] + x[i + 1])


@orion.parallel_for
def blur(image: Image, out: Image) -> None:
    """Write the mean of each pixel's four neighbours to `out`."""
    for i in range(1, image.shape[0] - 1):
        for j in range(1, image.shape[1] - 1):
            out[i, j] = 0.25 * (image[i - 1, j] + image[i + 1, j] + image[i, j - 1] + image[i, j + 1])


@orion.parallel_for
def relax(image, sweeps):
    """Replace each pixel by the mean of its neighbours and itself, `sweeps` times, in place."""
    for _ in range(sweeps):
        for i in range(1, image.shape[0] - 1):
            for j in range(1, image.shape[1] - 1):
                image[i, j] = 0.2 * (
                    image[i, j] + image[i - 1, j] + image[i + 1, j] + image[i, j - 1] + image[i, j + 1]
                )
