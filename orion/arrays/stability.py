"""Which pulls of copies are stable with momentum, from the eigenvalues of steps and pull together.

Near a minimum, in a direction in which step times curvature is e, an iteration of the loop is the linear map of a
worker's copy x and its momentum v

    v' = μ v - e x,  x' = x + v'        M = [[1 - e, μ], [-e, μ]]

stable alone for 0 < e < 2 (1 + μ). With P the pull of all workers and the centre c, sync_every iterations and a pull
are P M^τ. It takes two directions apart: copies that differ, with c at rest, and copies that are alike, with c. Of
workers that pull in turn the whole map is looked at.

Up to e = (1 - √μ)² steps do not oscillate, and every alpha that is stable without momentum is so with it. Beyond that
it depends on τ: where M^τ turns (x, v) by a part of a circle, a pull of x alone may add to what the next steps make of
it. So a policy that names the greatest e, its `curvature`, has all up to that looked at, as far as a grid shows it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orion.arrays.policies import Elastic, Mode

Matrix = NDArray[np.float64]

ABOVE = 1e-9
"""By how much eigenvalues may be above 1 by rounding."""

CURVATURES, ALPHAS = 48, 24
"""How many values are looked at."""

MOST_IN_TURN = 16
"""Of more workers that pull in turn, so many are looked at."""


@lru_cache(maxsize=64)
def greatest_alpha(policy: Elastic, workers: int) -> float:
    """The alpha up to which pulls are stable for all of step times curvature up to `policy.curvature`.

    >>> from orion.arrays.policies import elastic
    >>> calm, hasty = (elastic(momentum=0.9, sync_every=5, curvature=e) for e in (0.002, 3.5))
    >>> round(greatest_alpha(calm, 2), 3), 0.1 < greatest_alpha(hasty, 2) < 0.4
    (0.667, True)
    """
    bound, low = policy.bound(workers), 0.0
    for high in np.linspace(bound / ALPHAS, bound, ALPHAS).tolist():
        if is_stable(policy, high, workers):
            low = high
            continue
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if is_stable(policy, middle, workers) else (low, middle)
        return low
    return bound


def is_stable(policy: Elastic, alpha: float, workers: int) -> bool:
    """Whether nothing grows, for each of step times curvature."""
    curvatures = np.linspace(policy.curvature / CURVATURES, policy.curvature, CURVATURES).tolist()
    return all(radius(policy, alpha, workers, e) <= 1 + ABOVE for e in curvatures)


def radius(policy: Elastic, alpha: float, workers: int, e: float) -> float:
    """The greatest absolute eigenvalue of the iterations from a pull to the next one, with this."""
    one = np.array([[1 - e, policy.momentum], [-e, policy.momentum]])
    steps = np.linalg.matrix_power(one, policy.sync_every)
    match policy.mode:
        case Mode.SYNC:
            return _together(steps, alpha, workers, policy.overlaps)
        case Mode.HOGWILD:
            return max(_together(steps, alpha, workers, False), _in_turn(steps, alpha, workers))
        case Mode.ASYNC | Mode.ROUND_ROBIN:
            return _in_turn(steps, alpha, workers)


def _together(steps: Matrix, alpha: float, workers: int, overlaps: bool) -> float:
    """Of pulls of all workers by the same centre: of what they posted before the steps, where they overlap."""
    pulled = np.diag([alpha, 0.0])
    apart = steps - pulled if overlaps else steps - pulled @ steps
    alike = np.zeros((3, 3))
    alike[:2, :2] = apart
    alike[0, 2], alike[2, 2] = alpha, 1 - workers * alpha
    alike[2, :2] = workers * alpha * (np.array([1.0, 0.0]) if overlaps else steps[0])
    return max(_radius(alike), _radius(apart) if workers > 1 else 0.0)


def _in_turn(steps: Matrix, alpha: float, workers: int) -> float:
    """Of workers that all make their steps and then pull one after another."""
    workers = min(workers, MOST_IN_TURN)
    size = 2 * workers + 1
    found = np.eye(size)
    for worker in range(workers):
        found[2 * worker : 2 * worker + 2, 2 * worker : 2 * worker + 2] = steps
    for worker in range(workers):
        pull = np.eye(size)
        pull[np.ix_([2 * worker, size - 1], [2 * worker, size - 1])] = [[1 - alpha, alpha], [alpha, 1 - alpha]]
        found = pull @ found
    return _radius(found)


def _radius(matrix: Matrix) -> float:
    return float(np.abs(np.linalg.eigvals(matrix)).max())
