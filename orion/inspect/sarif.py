"""Plans as SARIF 2.1.0 (OASIS, 2020), for editors and for the code scanning of CI: a result per reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from orion.dataclass import dataclass
from orion.inspect.text.where import why_not_shared_out
from orion.plan.parallelism import parallelism
from orion.plan.plan import FunctionPlan
from orion.plan.source_plans import loops_of_source
from orion.reasons import CODES, Reason, ReasonKind
from orion.source import Replacement, Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {ReasonKind.BLOCKS: "warning", ReasonKind.RULES_OUT: "note", ReasonKind.SIZES: "note", ReasonKind.NOTE: "note"}
SERIAL, UNSUPPORTED = "serial", "unsupported"
OTHERS = {
    SERIAL: "a loop, or statements between loops, run on one worker",
    UNSUPPORTED: "the function cannot be planned",
}
"""Rules beside the codes of reasons, with what they stand for."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a function has no plan, and where; `fix` is what to write, where that does the same."""

    message: str
    span: Span
    fix: tuple[Replacement, ...] = ()


@dataclass(frozen=True, slots=True)
class _Result:
    """A result before it is written: its places are the first, and those that belong to it."""

    rule: str
    level: str
    message: str
    spans: tuple[Span, ...]
    fix: tuple[Replacement, ...] = ()


def sarif_log(
    plans: Iterable[FunctionPlan], refusals: Iterable[Refusal], version: str, pages: Mapping[str, str], root: Path
) -> dict[str, Any]:
    """Return the log of plans and refusals as plain data. Files below `root` are named relative to it; `pages` has the
    text of each code in Markdown."""
    found = [one for plan in plans for one in _results(plan)]
    found += [_Result(UNSUPPORTED, "error", one.message, (one.span,), one.fix) for one in refusals]
    titles = {one.rule: _title(one.rule) for one in found}
    return _log(found, titles, version, pages, root)


@dataclass(frozen=True, slots=True)
class Located:
    """Something to be told of places: the first, and those that belong to it."""

    rule: str
    level: str
    message: str
    spans: tuple[Span, ...]


def located_log(found: Iterable[Located], titles: Mapping[str, str], version: str, root: Path) -> dict[str, Any]:
    """Return the log of what was found as plain data; `titles` say what each rule stands for."""
    results = [_Result(one.rule, one.level, one.message, one.spans) for one in found]
    return _log(results, titles, version, {}, root)


def _log(
    found: Iterable[_Result], titles: Mapping[str, str], version: str, pages: Mapping[str, str], root: Path
) -> dict[str, Any]:
    found = list(dict.fromkeys(found))
    rules = sorted({one.rule for one in found})
    driver = {"name": "Orion", "version": version, "rules": [_rule(name, titles[name], pages) for name in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"uri": f"{root.absolute().as_uri()}/"}},
        "results": [_result(one, rules, root) for one in found],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _results(plan: FunctionPlan) -> Iterator[_Result]:
    blocked: set[Span] = set()
    for loop in loops_of_source(plan):
        place = loop.nest.span
        for reason in loop.reasons:
            if reason.kind is ReasonKind.BLOCKS:
                blocked.add(place)
            spans = tuple(dict.fromkeys(span.in_source for span in (*reason.spans, place)))
            yield _Result(reason.code, LEVELS[reason.kind], _message(reason), spans)
    for span in parallelism(plan).serial:
        if span not in blocked:
            yield _Result(SERIAL, "warning", why_not_shared_out(plan, span), (span.in_source,))


def _message(reason: Reason) -> str:
    return f"{reason.message}{reason.help}"


def _title(name: str) -> str:
    return CODES[name].title if name in CODES else OTHERS[name]


def _rule(name: str, title: str, pages: Mapping[str, str]) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": name, "shortDescription": {"text": title}}
    if name in pages:
        rule["help"] = {"text": pages[name], "markdown": pages[name]}
    return rule


def _result(one: _Result, rules: Sequence[str], root: Path) -> dict[str, Any]:
    first, *others = one.spans
    cell = first.file.rpartition(", cell ")[2] if ".ipynb, cell " in first.file else ""
    text = f"cell {cell}, line {first.line}: {one.message}" if cell else one.message
    found: dict[str, Any] = {
        "ruleId": one.rule,
        "ruleIndex": rules.index(one.rule),
        "level": one.level,
        "message": {"text": text},
        "locations": [_place(first, root)],
    }
    if one.fix:
        found["fixes"] = [_fix(one.fix, root)]
    if others:
        found["relatedLocations"] = [_place(span, root) for span in others]
    return found


def _fix(fix: Sequence[Replacement], root: Path) -> dict[str, Any]:
    """The changes of one file."""
    places = [_place(one.span, root)["physicalLocation"] for one in fix]
    changes = [
        {"deletedRegion": place["region"], "insertedContent": {"text": one.text}}
        for one, place in zip(fix, places, strict=True)
    ]
    words = [f"write `{one.text}`" for one in fix if one.text] or ["leave it out"]
    change = {"artifactLocation": places[0]["artifactLocation"], "replacements": changes}
    return {"description": {"text": words[0]}, "artifactChanges": [change]}


def _place(span: Span, root: Path) -> dict[str, Any]:
    """A place; of a notebook the file alone, as lines are those of a cell."""
    file, is_cell, _ = span.file.partition(", cell ") if ".ipynb, cell " in span.file else (span.file, "", "")
    found: dict[str, Any] = {"artifactLocation": _artifact(Path(file), root)}
    if not is_cell:
        found["region"] = {
            "startLine": span.line,
            "startColumn": span.column + 1,
            "endLine": max(span.line, span.end_line),
            "endColumn": span.end_column + 1,
        }
    return {"physicalLocation": found}


def _artifact(file: Path, root: Path) -> dict[str, str]:
    whole = file.absolute()
    if whole.is_relative_to(root.absolute()):
        return {"uri": quote(whole.relative_to(root.absolute()).as_posix()), "uriBaseId": "%SRCROOT%"}
    return {"uri": whole.as_uri()}
