"""Policies that pull the copies of a replicated array together: `orion.elastic` and `orion.local_sgd`.

With x the copy of a worker and c the array itself, the centre, after every so many iterations of the worker

    sync           x -= a (x - c) of all workers, c += a Σ (x - c), with x and c as they were before
                   (of pulls that overlap steps, as they were before the steps)
    async          x -= a (x - c), c += a (x - c), part by part under locks, by each worker when it is there
    hogwild        the same without locks
    round_robin    the same, worker after worker in a fixed order
    local SGD      c = the average of all x, or a step towards it; x = c

Elastic averaging: Zhang, Choromanska, LeCun, "Deep learning with Elastic Averaging SGD", NIPS 2015; with momentum,
EAMSGD there; local SGD: Stich, ICLR 2019; an outer step with Nesterov momentum: Douillard et al., "DiLoCo", 2023.

**Which a are stable.** Near a minimum a step of a worker is a linear map that moves no copy further away. The pull of
one worker is [[1 - a, a], [a, 1 - a]] on (x, c): symmetric, with the eigenvalues 1 and 1 - 2 a, so that it moves
nothing further away where 0 ≤ a ≤ 1. Pulls of one worker after another, between any steps, are then stable. This is
what the condition of the paper for its round-robin scheme, 0 ≤ a ≤ (4 - 2 η) / (4 - η) whatever p is (section 4, for
a step η on x²/2 that is taken at once with the pull), becomes for η → 0; with steps before the pulls it is so for all
η ≤ 2. Pulls of p workers at once are I - a L with L the Laplacian of a star of p leaves, whose greatest eigenvalue is
p + 1: stable where 0 ≤ a ≤ 2 / (p + 1). (Where step and pull are taken at once, the average of all x and c have the
eigenvalues 1 - (b ± √(b² - 4 η p a)) / 2 with b = η + (p + 1) a, which gives the same for η → 0.)
Without locks p workers may have read the same c, which is that case. p a ≤ 1 is no
condition for being stable; up to it the centre is a moving average. No number of iterations between pulls is too large
for this.

Pulls that overlap steps are those of steps and pull taken at once. With E = 1 - (1 - η h)^τ what τ steps do, they are
stable where a < (4 - 2 E) / (2 (p + 1) - E p), the bound of the paper for p = 1, which falls from 2 / (p + 1) at E = 0
to 2 / (p + 2) at E = 1, the most of steps that do not overshoot.

With momentum all this holds while the steps alone do not oscillate (checked by the eigenvalues of the whole map for
η h ≤ (1 - √μ)²); beyond, `orion.arrays.stability` finds the bound, for a given η h.

Of the outer step l with Nesterov momentum m, on differences of which no part points away from the minimum
(0 < h ≤ 1): the roots of z² - (1 + m) (1 - l h) z + m (1 - l h) are inside the unit circle where
l < (2 + 2 m) / (1 + 2 m) (the criterion of Schur and Cohn).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from numbers import Real

import numpy as np

from orion.dataclass import dataclass
from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line

MOVING = 0.9
"""What the alphas of all workers add up to where none is given, as in the paper (its β)."""


class Mode(StrEnum):
    """When workers pull."""

    SYNC = "sync"
    ASYNC = "async"
    HOGWILD = "hogwild"
    ROUND_ROBIN = "round_robin"

    @property
    def bounds_sums(self) -> bool:
        """True if pulls of several workers may use the same centre, and add up."""
        return self in (Mode.SYNC, Mode.HOGWILD)


@dataclass(frozen=True, slots=True)
class Elastic:
    """Policy of elastic averaging, made by `orion.elastic`. `alpha` 0 is the default for the number of workers."""

    mode: Mode
    alpha: float
    sync_every: int
    momentum: float
    overlaps: bool = False
    curvature: float = 0.0

    @property
    def name(self) -> str:
        return self.mode.value

    @property
    def meets(self) -> tuple[object, ...]:
        """Key of the replicas that are pulled together at the same times: equal for all of them."""
        return self.name, self.sync_every, self.overlaps

    @property
    def waits_for_all(self) -> bool:
        """True if all workers meet."""
        return self.mode is Mode.SYNC

    @property
    def pulls_at_home(self) -> bool:
        """True if the home node pulls for the workers of other nodes: unless all workers meet, and wait during the
        pull."""
        return not self.waits_for_all or self.overlaps

    @property
    def waits(self) -> bool:
        """True if workers wait for each other."""
        return self.mode in (Mode.SYNC, Mode.ROUND_ROBIN)

    @property
    def is_in_turn(self) -> bool:
        """Whether one worker pulls after the other."""
        return self.mode is Mode.ROUND_ROBIN

    def alpha_of(self, workers: int) -> float:
        """Return the alpha of a pull by so many workers."""
        most = 2 * MOVING / (workers + 2) if self.overlaps else MOVING
        return self.alpha or min(MOVING / workers, most)

    def bound(self, workers: int) -> float:
        """Return the greatest alpha that is stable for steps that do not overshoot."""
        return 2 / (workers + 1 + self.overlaps) if self.mode.bounds_sums else 1.0

    def __repr__(self) -> str:
        alpha = f", alpha={self.alpha}" if self.alpha else ""
        momentum = f", momentum={self.momentum}" if self.momentum else ""
        others = ", overlap=True" * self.overlaps + (f", curvature={self.curvature}" if self.curvature else "")
        return f"elastic(mode={self.mode.value!r}{alpha}, sync_every={self.sync_every}{momentum}{others})"


@dataclass(frozen=True, slots=True)
class LocalSgd:
    """Policy of local SGD, made by `orion.local_sgd`. `step`, where it is not 0, and `momentum` (Nesterov's) are those
    of the outer step."""

    sync_every: int
    step: float
    momentum: float

    @property
    def name(self) -> str:
        return "local_sgd"

    @property
    def meets(self) -> tuple[object, ...]:
        """Key of the replicas that are averaged at the same times: equal for all of them."""
        return self.name, self.sync_every

    @property
    def overlaps(self) -> bool:
        """True if workers run their next steps meanwhile."""
        return False

    @property
    def waits_for_all(self) -> bool:
        return True

    @property
    def pulls_at_home(self) -> bool:
        return False

    @property
    def waits(self) -> bool:
        return True

    @property
    def is_in_turn(self) -> bool:
        return False

    def __repr__(self) -> str:
        outer = f", outer=({self.step}, {self.momentum})" if self.step else ""
        return f"local_sgd(sync_every={self.sync_every}{outer})"


Policy = Elastic | LocalSgd


@ends_in_users_line
def elastic(
    mode: str = "sync",
    alpha: float | None = None,
    sync_every: int = 10,
    momentum: float = 0.0,
    *,
    overlap: bool = False,
    curvature: float | None = None,
) -> Elastic:
    """Make the policy of elastic averaging for the copies of an array (`orion.replicate`).

    Every worker has a copy x; the array itself is the centre c. After `sync_every` iterations of its own, and at the
    end of the loop, a worker pulls x and c together. The pull is `alpha` times their difference.

    - `mode`: which workers pull when. With "sync", all workers meet, and pull towards the same centre. With "async",
      each pulls when it is due. "hogwild" is "async" without locks: a pull of another worker may be lost. With
      "round_robin", one worker pulls after another. "sync" and "round_robin" are reproducible: equal bits for the same
      number of workers.
    - `alpha`: above 0 and at most 1; ηρ in the paper. The default is 0.9 / p for p workers. It is stable up to 2 / (p +
      1) with "sync" and "hogwild", up to 1 otherwise.
    - `sync_every`: iterations between pulls, from 1 on.
    - `momentum`: μ, at least 0 and below 1. After each iteration, v = μ v + (the change of x), and x becomes its value
      before the iteration plus v.
    - `overlap`: True, with "sync", lets workers run their next steps during a pull, which uses the values before these
      steps. A worker waits only for workers that are `sync_every` iterations behind or more. It is stable up to 2 / (p
      + 2) where steps do not overshoot.
    - `curvature`: the greatest product of step and curvature in the loop, η h, above 0 and below 2 (1 + μ). With it,
      Orion checks steps and pulls together, by their eigenvalues on quadratic functions. Beyond (1 - √μ)², momentum
      oscillates, and stability also depends on `sync_every`.

    Errors: `ArgumentError` for values outside of these ranges, and for `overlap` in another mode. A call with more
    workers than an `alpha` is stable for raises it, too, and names the bound (`orion.arrays.policies` derives it).

    Source: Zhang, Choromanska, LeCun, "Deep learning with Elastic Averaging SGD", NIPS 2015. Overlap: You, Buluç,
    Demmel, "Scaling deep learning on GPU and Knights Landing clusters", SC 2017 (Sync EASGD).

    >>> import orion
    >>> orion.elastic(mode="async", alpha=0.3, sync_every=20)
    elastic(mode='async', alpha=0.3, sync_every=20)
    """
    if not isinstance(mode, str) or mode not in [one.value for one in Mode]:
        hint = "write one of " + ", ".join(f'"{one.value}"' for one in Mode)
        raise ArgumentError(describe(f"`mode={mode!r}` of orion.elastic", hint=hint))
    if alpha is not None and not (_is_number(alpha) and 0 < alpha <= 1):
        hint = "give a number above 0 and at most 1, or leave it out for 0.9 / the number of workers"
        why = "a pull by more than the whole difference grows from pull to pull"
        raise ArgumentError(describe(f"`alpha={alpha!r}` of orion.elastic", why=why, hint=hint))
    if not (_is_number(momentum) and 0 <= momentum < 1):
        hint = "give a number of at least 0 and less than 1"
        raise ArgumentError(describe(f"`momentum={momentum!r}` of orion.elastic", hint=hint))
    if not isinstance(overlap, bool) or (overlap and mode != Mode.SYNC):
        what = f"`overlap={overlap!r}` of orion.elastic with mode={mode!r}"
        raise ArgumentError(describe(what, hint='write `mode="sync", overlap=True`: in the other modes nobody meets'))
    return Elastic(
        Mode(mode), float(alpha or 0), _iterations(sync_every, "elastic"), float(momentum), overlap,
        _curvature(curvature, float(momentum)),
    )  # fmt: skip


def _curvature(curvature: object, momentum: float) -> float:
    if curvature is None:
        return 0.0
    most = 2 * (1 + momentum)
    if not _is_number(curvature) or not 0 < float(curvature) < most:  # type: ignore[arg-type]
        what = f"`curvature={curvature!r}` of orion.elastic with momentum {momentum:g}"
        why = f"steps alone are stable where step times curvature is above 0 and less than 2 (1 + momentum) = {most:g}"
        raise ArgumentError(describe(what, why=why, hint="give the greatest of step times curvature, or leave it out"))
    return float(curvature)  # type: ignore[arg-type]


@ends_in_users_line
def local_sgd(sync_every: int = 10, outer: Sequence[float] | None = None) -> LocalSgd:
    """Make the policy of local SGD, which averages the copies of an array (`orion.replicate`).

    After every `sync_every` iterations, all workers meet. The array and all copies become the average of the copies. At
    the end of the loop, workers with further iterations meet once more. The bits are equal for the same number of
    workers.

    - `sync_every`: iterations between averages, from 1 on.
    - `outer`: (step, momentum) of an outer step with Nesterov momentum, as in DiLoCo, whose authors use (0.7, 0.9).
      With d = array - average and v = momentum · v + d, the array becomes array - step · (d + momentum · v).

    Errors: `ArgumentError` for a `sync_every` that is no number of iterations, and for a momentum m below 0, or not
    below 1. The same for a step that is not above 0 and below (2 + 2 m) / (1 + 2 m): a larger one is unstable
    (`orion.arrays.policies`).

    Source: Stich, "Local SGD converges fast and communicates little", ICLR 2019; Douillard et al., "DiLoCo: Distributed
    Low-Communication Training of Language Models", 2023.

    >>> import orion
    >>> orion.local_sgd(sync_every=50, outer=(0.7, 0.9))
    local_sgd(sync_every=50, outer=(0.7, 0.9))
    """
    if outer is None:
        return LocalSgd(_iterations(sync_every, "local_sgd"), 0.0, 0.0)
    given = tuple(outer) if isinstance(outer, Sequence) else ()
    if len(given) != 2 or not all(map(_is_number, given)) or not 0 <= given[1] < 1:
        hint = "give (step, momentum), with a momentum of at least 0 and less than 1, such as (0.7, 0.9)"
        raise ArgumentError(describe(f"`outer={outer!r}` of orion.local_sgd", hint=hint))
    step, momentum = map(float, given)
    bound = (2 + 2 * momentum) / (1 + 2 * momentum)
    if not 0 < step < bound:
        why = (
            f"with momentum {momentum} the step is to be above 0 and less than {bound:.4g}: from there on it overshoots"
        )
        hint = "give a smaller one, such as 0.7, or a smaller momentum"
        raise ArgumentError(describe(f"`outer={outer!r}` of orion.local_sgd is not stable", why=why, hint=hint))
    return LocalSgd(_iterations(sync_every, "local_sgd"), step, momentum)


def _iterations(sync_every: object, function: str) -> int:
    if isinstance(sync_every, bool) or not isinstance(sync_every, int | np.integer) or sync_every < 1:
        hint = "give the iterations from one pull to the next, at least 1"
        raise ArgumentError(describe(f"`sync_every={sync_every!r}` of orion.{function}", hint=hint))
    return int(sync_every)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))
