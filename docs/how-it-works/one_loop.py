"""The loop that `docs/how-it-works/pipeline.md` follows through the compiler."""

import orion


def clipped(value, most):
    return most if value > most else value


@orion.parallel_for
def step(ratings, W, H, rate: float):
    """One step for every rating: rows of W and H move towards it."""
    for (i, j), r in ratings:
        w, h = W[i], H[j]
        e = clipped(r - w @ h, 2.0)
        w += rate * e * h
        h += rate * e * w
