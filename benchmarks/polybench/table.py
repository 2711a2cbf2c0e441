"""Outcomes as a table, and the numbers over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import geometric_mean
from typing import Any

from rich.markup import escape
from rich.table import Table

from .outcome import SLOWER, Outcome

COLUMNS = (
    "kernel", "loops", "workers", "vs Numba", "vs Python, tiny", "serial, ms", "prange, ms", "Orion, ms",
    "serial/Orion", "prange/Orion", "serial/prange",
)  # fmt: skip
RATIOS = (("serial", "orion"), ("prange", "orion"), ("serial", "prange"))


def kernel_table(outcomes: Sequence[Outcome], title: str) -> Table:
    """One row per kernel, and the geometric means below."""
    table = Table(title=title)
    for name in COLUMNS:
        right = name.endswith("ms") or "/" in name
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "loops")
    for outcome in outcomes:
        table.add_row(*cells(outcome))
    table.add_section()
    for label, means in mean_rows(outcomes):
        table.add_row("geometric mean", label, *[""] * 6, *(number(mean) for mean in means))
    return table


def cells(outcome: Outcome) -> list[str]:
    times = (outcome.median(contender) for contender in ("serial", "prange", "orion"))
    return [
        outcome.kernel,
        escape(verdict(outcome)),
        "" if outcome.runs_on is None else str(outcome.runs_on),
        *("" if result is None else str(result) for result in (outcome.at_size, outcome.tiny)),
        *("" if time is None else f"{1000 * time:.1f}" for time in times),
        *(number(outcome.ratio(*pair)) for pair in RATIOS),
    ]


def verdict(outcome: Outcome) -> str:
    """The strategies of the loops, and what went wrong."""
    runs = [(strategy, len(list(same))) for strategy, same in groupby(outcome.strategies)]
    strategies = ", ".join(strategy if count == 1 else f"{strategy} ×{count}" for strategy, count in runs)
    refused = f"refused: {outcome.refused}" if outcome.refused else ""
    failed = f"failed: {outcome.failed}" if outcome.failed else ""
    return "; ".join(filter(None, (strategies, refused, failed)))


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


# ---------------------------------------------------------------- numbers over all


def mean_rows(outcomes: Sequence[Outcome]) -> list[tuple[str, list[float | None]]]:
    """Geometric means of the ratios: over the kernels that Orion ran right, and over all."""
    right = [outcome for outcome in outcomes if outcome.is_right and outcome.orion]
    timed = [outcome for outcome in outcomes if outcome.serial and outcome.prange]
    return [
        (f"of the {len(right)} that Orion ran right", [mean(right, *pair) for pair in RATIOS]),
        (f"of {len(timed)}, others as serial Numba", [mean(timed, *pair) for pair in RATIOS]),
    ]


def mean(outcomes: Sequence[Outcome], of: str, over: str) -> float | None:
    """The geometric mean of a ratio. Where Orion gave no right result, the user runs serial Numba: its time counts."""

    def ratio(outcome: Outcome) -> float | None:
        ran = outcome.is_right and outcome.orion
        return outcome.ratio(*(name if ran or name != "orion" else "serial" for name in (of, over)))

    ratios = [value for value in map(ratio, outcomes) if value is not None]
    return geometric_mean(ratios) if ratios else None


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What is counted, by name, and the geometric means."""
    return {
        "accepted": [outcome.kernel for outcome in outcomes if outcome.is_accepted],
        "right": [outcome.kernel for outcome in outcomes if outcome.is_right],
        "slower": [outcome.kernel for outcome in outcomes if outcome.is_slower],
        "geometric_means": {
            label: {f"{of}/{over}": value for (of, over), value in zip(RATIOS, means, strict=True)}
            for label, means in mean_rows(outcomes)
        },
    }


def summary_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """The counts in words."""
    found = summary(outcomes)
    slower = ", ".join(found["slower"]) or "none"
    return [
        f"accepted {len(found['accepted'])} of {len(outcomes)}, right {len(found['right'])}",
        f"slower than serial Numba by more than {SLOWER - 1:.0%}: {len(found['slower'])} ({slower})",
    ]
