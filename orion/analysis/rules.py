"""The table of strategies, strongest first. Each row is a file of `orion.analysis.strategies`, which says
when it is legal.
`docs/how-it-works/extending.md` says how to add one.
"""

from __future__ import annotations

from orion.analysis.strategies.independent import INDEPENDENT
from orion.analysis.strategies.inspected import INSPECTED
from orion.analysis.strategies.latin import LATIN
from orion.analysis.strategies.one_dimensional import ONE_DIMENSIONAL
from orion.analysis.strategies.permutable import PERMUTABLE
from orion.analysis.strategies.relaxed import RELAXED
from orion.analysis.strategies.serial import SERIAL
from orion.analysis.strategies.tiling import Question, Tiling
from orion.cost.candidate import Candidate, Strategy

STRATEGIES: tuple[Tiling, ...] = (INDEPENDENT, RELAXED, ONE_DIMENSIONAL, LATIN, PERMUTABLE, INSPECTED, SERIAL)


def strength(name: Strategy) -> int:
    """The strength of a strategy among all.

    >>> sorted([Strategy.INDEPENDENT, Strategy.WAVEFRONT, Strategy.TWO_D, Strategy.SERIAL], key=strength)
    ['serial', 'wavefront', '2d', 'independent']
    """
    names = dict.fromkeys(name for one in STRATEGIES for name in one.names)
    return -list(names).index(name)


def legal_candidates(question: Question) -> list[Candidate]:
    """The candidates of the strongest strategy that is legal; empty where the loop is serial."""
    return next(filter(None, (one.legal(question) for one in STRATEGIES)), [])


def tiling_of(name: Strategy, ordered: bool) -> Tiling:
    """The tiling of that name, of loops in their order or in any.

    >>> [tiling_of(Strategy.TWO_D, ordered) is one for ordered, one in ((True, PERMUTABLE), (False, LATIN))]
    [True, True]
    """
    return next(one for one in STRATEGIES if name in one.names and one.ordered in (None, ordered))


def stronger_than(name: Strategy) -> tuple[Tiling, ...]:
    """The tilings that are stronger than all of a name.

    >>> [list(one.names) for one in stronger_than(Strategy.ND)]
    [['independent'], ['relaxed'], ['1d']]
    """
    first = next(number for number, one in enumerate(STRATEGIES) if name in one.names)
    return STRATEGIES[:first]
