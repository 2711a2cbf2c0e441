"""All everyday loops: which are taken, which are parallel, how fast. Prints a table, and what is left by cause.

    python -m benchmarks.everyday.run                    # from the project's folder; `make everyday` does the same
    python -m benchmarks.everyday.run --only kmeans viterbi --repeats 9
    python -m benchmarks.everyday.run --plans            # nothing is run: what is taken, and what is parallel

Each loop runs in a process of its own: `numba.njit` of the same text, and Orion on one thread and on two. Times are
medians of interleaved runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import geometric_mean, median
from typing import Any

from rich.console import Console
from rich.table import Table

import orion
from benchmarks.everyday.case import Case, Nature
from benchmarks.everyday.cases import DOMAINS
from benchmarks.everyday.planning import WHOLLY, Refused, planned
from benchmarks.measure import machine
from benchmarks.process import ROOT, told_by

RESULTS = ROOT / "benchmarks" / "results" / "everyday.json"
ONE = "benchmarks.everyday.one"
WIDTH = 150  # of the table, where it goes to a file


@dataclass(frozen=True)
class Row:
    """What was found of a loop."""

    domain: str
    case: Case
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def is_analysed(self) -> bool:
        return "part" in self.facts

    @property
    def is_taken(self) -> bool:
        """Whether it is analysed, or runs as it is; whether Numba compiles it shows where it is run."""
        return self.is_analysed or (bool(self.facts.get("as_it_is")) and "failed" not in self.facts)

    @property
    def is_parallel(self) -> bool:
        return bool(self.facts.get("part", 0.0) >= WHOLLY)

    def ratio(self, workers: int) -> float | None:
        """How many times as fast as `njit` it is."""
        times = self.facts.get("times", {})
        if "njit" not in times or f"orion x{workers}" not in times:
            return None
        return median(times["njit"]) / median(times[f"orion x{workers}"])


def main() -> None:
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    cases = [(domain, case) for domain, found in DOMAINS.items() for case in found if case.name in options.only]
    how = "--repeats", str(options.repeats), "--limit", str(options.limit)
    rows = []
    for number, (domain, case) in enumerate(cases, 1):
        with console.status(f"{case.name} ({number} of {len(cases)})"):
            facts = plan_of(case) if options.plans else told_by([ONE, case.name, *how], options.limit)
        rows.append(Row(domain, case, facts))
    console.print(table(rows))
    for line in summary(rows):
        console.print(line, highlight=False)
    if not options.plans:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({"machine": machine(), "loops": {row.case.name: row.facts for row in rows}}))
        console.print(f"written to {RESULTS}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Everyday loops: Orion next to Numba on the same text.")
    names = [case.name for cases in DOMAINS.values() for case in cases]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="these loops only")
    parser.add_argument("--plans", action="store_true", help="plan only; nothing is compiled or run")
    parser.add_argument("--repeats", type=int, default=5, help="measurements of each contender")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that each step may take")
    return parser.parse_args()


def plan_of(case: Case) -> dict[str, Any]:
    with warnings.catch_warnings(), orion.session(workers=2):
        warnings.simplefilter("ignore")
        found = planned(case, case.arguments(case.large))
    if isinstance(found, Refused):
        return {"refused": found.message, "cause": found.cause, "as_it_is": found.as_it_is}
    return {"part": found.part, "codes": found.codes}


# ---------------------------------------------------------------- what is printed


def table(rows: Iterable[Row]) -> Table:
    found = Table(
        "domain", "loop", "nature", "taken", "parallel", "right", "×njit, 1", "×njit, 2", "what is in the way"
    )
    for row in rows:
        facts = row.facts
        ratios = [row.ratio(workers) for workers in (1, 2)]
        found.add_row(
            row.domain,
            row.case.name,
            str(row.case.nature),
            "yes" if row.is_analysed else "as it is" if row.is_taken else "no",
            f"{facts['part']:.2f}" if row.is_analysed else "",
            {True: "yes", False: "NO"}.get(facts.get("right"), ""),  # type: ignore[arg-type]
            *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
            facts.get("failed") or facts.get("cause") or ", ".join(facts.get("codes", ())),
        )
    return found


def summary(rows: list[Row]) -> Iterator[str]:
    """The shares that matter, then what is in the way, by cause."""
    natures = (Nature.PARALLEL, Nature.WAVEFRONT)
    able = [row for row in rows if row.case.nature in natures]
    yield f"taken {share([row.is_taken for row in rows])}, of these analysed {sum(row.is_analysed for row in rows)}"
    yield f"wholly parallel, of those that are so by their nature: {share([row.is_parallel for row in able])}"
    yield f"  of those of them that are analysed: {share([row.is_parallel for row in able if row.is_analysed])}"
    yield f"right {share([bool(row.facts['right']) for row in rows if 'right' in row.facts])}"
    for workers in (1, 2):
        ratios = [ratio for row in rows if (ratio := row.ratio(workers)) is not None]
        if ratios:
            mean, slow = geometric_mean(ratios), sum(ratio < 0.95 for ratio in ratios)
            yield f"on {workers} of them {mean:.2f} × njit (geometric mean of {len(ratios)}), {slow} below 0.95"
    causes = Counter(row.facts["cause"] for row in rows if "cause" in row.facts)
    codes = Counter(code for row in able if not row.is_parallel for code in row.facts.get("codes", ()))
    yield from (f"  not analysed {number}: {cause}" for cause, number in causes.most_common())
    yield from (f"  serial {number}: {code}" for code, number in codes.most_common())
    yield from (f"  {row.case.name}: {row.facts['failed']}" for row in rows if "failed" in row.facts)


def share(found: list[bool]) -> str:
    return f"{sum(found)} of {len(found)} ({sum(found) / max(1, len(found)):.0%})"


if __name__ == "__main__":
    main()
