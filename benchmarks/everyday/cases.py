"""All everyday loops, by the domain that they are of."""

from __future__ import annotations

from benchmarks.everyday import (
    factors,
    finance,
    graphs,
    images,
    learning,
    physics,
    sequences,
    simulation,
    solvers,
    statistics,
    tables,
)
from benchmarks.everyday.case import Case

DOMAINS: dict[str, tuple[Case, ...]] = {
    "learning": learning.CASES,
    "factors": factors.CASES,
    "statistics": statistics.CASES,
    "finance": finance.CASES,
    "sequences": sequences.CASES,
    "physics": physics.CASES,
    "solvers": solvers.CASES,
    "images": images.CASES,
    "graphs": graphs.CASES,
    "tables": tables.CASES,
    "simulation": simulation.CASES,
}

CASES: tuple[Case, ...] = tuple(case for cases in DOMAINS.values() for case in cases)
