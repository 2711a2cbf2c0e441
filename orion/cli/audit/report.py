"""What an audit prints: text as it goes along, JSON or SARIF at its end."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orion import __version__
from orion.cli.audit.values import CODES, Audited, Race, Side, Unreadable, Verdict
from orion.cli.shown import hanging, show
from orion.inspect.sarif import Located, located_log
from orion.inspect.text.text import terminal_width
from orion.reasons import CODES as REASONS
from orion.source import Span

ASSUMED = "What is subscripted is taken to be arrays, each argument another one, and subscripts to lie within them."
LEVELS = {Verdict.RACE: "error", Verdict.CONDITIONAL: "warning", Verdict.UNKNOWN: "note"}


class Report:
    """Prints what is found: text at once, `--json` and `--sarif` at the end."""

    def __init__(self, options: Namespace, root: Path) -> None:
        self.options, self.root = options, root
        self.is_text = not (options.json or options.sarif)
        self.counts: Counter[Verdict] = Counter()
        self.loops: list[Audited] = []
        self.unreadable: list[Unreadable] = []
        self.files = 0

    def begin(self, files: int) -> None:
        self.files = files

    def add(self, one: Audited | Unreadable) -> None:
        """Note a loop, or a file that cannot be read, and print it where text is asked for."""
        if isinstance(one, Unreadable):
            self.unreadable.append(one)
            lines = [f"{one.file}: not read: {one.reason}", ""]
        else:
            self.counts[one.finding.verdict] += 1
            self.loops.append(one) if not self.is_text else None
            lines = [*_told(one), ""]
        if self.is_text:
            show("\n".join(lines))

    def end(self) -> None:
        if self.options.sarif:
            print(json.dumps(self.sarif(), indent=2))
        elif self.options.json:
            print(json.dumps(self.data(), indent=2))
        else:
            show(self.summary())

    def summary(self) -> str:
        total = sum(self.counts.values())
        counts = ", ".join(f"{self.counts[one]} {one}" for one in Verdict)
        unread = f"; {len(self.unreadable)} not read" if self.unreadable else ""
        files = f"{self.files} file{'s' * (self.files != 1)}"
        head = f"{total} loop{'s' * (total != 1)} over prange in {files}{unread}: {counts}."
        return f"{head}\n{ASSUMED}" if total else f"No loop over prange in {files}{unread}."

    # ------------------------------------------------------------ data

    def data(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "assumed": ASSUMED,
            "summary": {one.value: self.counts[one] for one in Verdict},
            "loops": [_data(one) for one in self.loops],
            "unreadable": [{"file": one.file, "reason": one.reason} for one in self.unreadable],
        }

    def sarif(self) -> dict[str, Any]:
        found = [_located(one) for one in self.loops if one.finding.verdict is not Verdict.PARALLEL]
        titles = {
            code: CODES[code] if code in CODES else REASONS[code].title for code in sorted({one.rule for one in found})
        }
        return located_log(found, titles, __version__, self.root)


def _told(one: Audited) -> Iterator[str]:
    """The lines that say what is known of a loop."""
    site, finding = one.site, one.finding
    verdict = f"{finding.verdict}{f' [{finding.code}]' if finding.code else ''}"
    yield f"{site.file}:{site.line}: {verdict}: {site.function}"
    yield f"    {one.text}"
    width = terminal_width()
    parts = [f"parallel if {finding.condition}"] if finding.condition else []
    parts += [finding.reason] if finding.reason else []
    parts += [f"help: {finding.hint}"] if finding.hint else []
    parts += [f"note: {note}" for note in notes_of(one)]
    yield from (hanging(part, width, "  ") for part in parts)
    if finding.race and finding.race.sizes:
        sizes = ", ".join(f"{name} = {value}" for name, value in finding.race.sizes.items())
        yield hanging(f"shown at {sizes}", width, "  ")


def notes_of(one: Audited) -> list[str]:
    """Return what is to be said beside the verdict."""
    notes = list(one.finding.notes)
    if one.site.is_inner:
        notes.append("it stands in another loop over prange, so that Numba runs it as range")
    elif one.site.parallel is False:
        notes.append("the function is not compiled with parallel=True, so that Numba runs the loop as range")
    elif one.site.parallel is None:
        notes.append("whether the function is compiled with parallel=True is not known")
    return notes


def _data(one: Audited) -> dict[str, Any]:
    site, finding = one.site, one.finding
    found: dict[str, Any] = {
        "file": site.file,
        "line": site.line,
        "function": site.function,
        "verdict": finding.verdict.value,
        "code": finding.code or None,
        "reason": finding.reason or None,
        "condition": finding.condition or None,
        "help": finding.hint or None,
        "parallel": site.parallel,
        "nested": site.is_inner,
        "notes": notes_of(one),
        "source": one.text,
        "seconds": round(one.seconds, 3),
    }
    if finding.race is not None:
        found["race"] = _race(finding.race)
    return found


def _race(race: Race) -> dict[str, Any]:
    return {
        "name": race.name,
        "element": race.element,
        "effect": race.effect,
        "iterations": [race.first.iteration, race.second.iteration],
        "accesses": [_side(race.first), _side(race.second)],
        "sizes": dict(race.sizes),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "iteration": side.iteration,
        "kind": "write" if side.is_write else "read",
        "file": side.span.file,
        "line": side.span.line,
        "text": side.text,
    }


def _located(one: Audited) -> Located:
    site, finding = one.site, one.finding
    column = site.loop.col_offset
    places = [Span(site.file, site.line, column, site.line, column + len(one.text))]
    places += [finding.race.first.span, finding.race.second.span] if finding.race else []
    message = f"{finding.verdict}: {finding.reason}"
    message += f"; parallel if {finding.condition}" if finding.condition else ""
    message += f"; help: {finding.hint}" if finding.hint else ""
    return Located(finding.code, LEVELS[finding.verdict], message, tuple(dict.fromkeys(places)))
