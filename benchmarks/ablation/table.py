"""What was measured, as tables: a row per rewrite, then the pairs that are far from 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from rich.table import Table

from orion.pipeline import REWRITES

PAYS, HARMS = 1.2, 0.83
"""Ratios from which leaving a rewrite out costs that much, and up to which it gains."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One program on some workers, with all rewrites and without one. `ratio` is the time without over that with."""

    program: str
    rewrite: str
    workers: int
    ratio: float
    rounds: int
    is_same: bool

    def __str__(self) -> str:
        return f"{self.program} x{self.workers} {self.ratio:.2f}"


def pairs_of(found: Iterable[dict[str, Any]]) -> list[Pair]:
    """The pairs of all programs."""
    return [
        Pair(facts["program"], one["rewrite"], one["workers"], one["ratio"], len(one["with"]), one["same"])
        for facts in found
        for one in facts["pairs"]
    ]


def by_rewrite(found: Sequence[dict[str, Any]], title: str) -> Table:
    """A row per rewrite: where it fired, what it gained and lost, and its part in the time of all plans."""
    table = Table(title=title, title_justify="left")
    heads = ("rewrite", "programs", f"≥ {PAYS}", f"≤ {HARMS}", "mean", "best", "plans")
    for head in heads:
        table.add_column(head, justify="left" if head in ("rewrite", "best") else "right")
    every = pairs_of(found)
    for one in REWRITES:
        pairs = [pair for pair in every if pair.rewrite == one.name]
        table.add_row(one.name, *_cells(pairs), _planning(found, one.name))
    return table


def _cells(pairs: list[Pair]) -> tuple[str, ...]:
    if not pairs:
        return "0", "0", "0", "", "fires nowhere"
    pays = {pair.program for pair in pairs if pair.ratio >= PAYS}
    harms = {pair.program for pair in pairs if pair.ratio <= HARMS}
    best = max(pairs, key=lambda pair: pair.ratio)
    mean = geometric_mean(pair.ratio for pair in pairs)
    return str(len({pair.program for pair in pairs})), str(len(pays)), str(len(harms)), f"{mean:.2f}", str(best)


def _planning(found: Iterable[dict[str, Any]], name: str) -> str:
    """By how much the first plans of all programs take longer with it, where it fires and where it does not."""
    times = [facts["planning"] for facts in found if facts.get("planning")]
    whole = sum(one[""] for one in times)
    return f"{100 * (whole / sum(one[name] for one in times) - 1):+.0f} %" if times else ""


def far_from_one(found: Sequence[dict[str, Any]]) -> Iterable[str]:
    """A line per rewrite of programs that it pays for, or harms, and one for each result that is not the same."""
    every = sorted(pairs_of(found), key=lambda pair: -pair.ratio)
    for one in REWRITES:
        pairs = [pair for pair in every if pair.rewrite == one.name]
        for word, chosen in (
            ("pays", [pair for pair in pairs if pair.ratio >= PAYS]),
            ("harms", [pair for pair in reversed(pairs) if pair.ratio <= HARMS]),
        ):
            if chosen:
                yield f"{one.name} {word}: {'; '.join(map(str, chosen))}"
    for pair in every:
        if not pair.is_same:
            yield f"DIFFERENT RESULT without {pair.rewrite}: {pair.program} x{pair.workers}"
    for facts in found:
        yield from (f"FAILED: {facts['program']}, {why}" for why in facts["failed"])
