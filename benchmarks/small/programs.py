"""All programs whose loops are small and many."""

from __future__ import annotations

from benchmarks.small import factors, graphs, learning, physics, sequences, solvers
from benchmarks.small.program import Program

PROGRAMS: tuple[Program, ...] = tuple(
    program for group in (graphs, factors, solvers, sequences, learning, physics) for program in group.PROGRAMS
)
