"""`orion audit PATH`: verdicts on the loops over `numba.prange` of files, folders and installed packages."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter

from orion.cli.audit.files import files_of, holds_loops, read_parts, source_of
from orion.cli.audit.find import find_loops, prange_names
from orion.cli.audit.judge import bounded, judge
from orion.cli.audit.modules import Library
from orion.cli.audit.report import Report
from orion.cli.audit.values import Audited, Finding, Unreadable, Verdict
from orion.cli.cells import LoadError

FILE_SECONDS = 120.0
"""What the loops of one file may take together. Past it the rest of them are not analysed."""


def audit(options: Namespace) -> int:
    """Run the command; return the exit status: 1 where a loop races."""
    files, roots = files_of(options.path)
    report = Report(options, Path.cwd())
    report.begin(len(files))
    for one in audited(files, roots):
        report.add(one)
    report.end()
    return int(report.counts[Verdict.RACE] > 0)


def audited(files: list[Path], roots: tuple[Path, ...]) -> Iterator[Audited | Unreadable]:
    """Audit files one by one, each loop as soon as it is known."""
    for path in files:
        try:
            if holds_loops(path):
                yield from _loops_of(path, Library(roots))
        except LoadError as error:
            yield Unreadable(str(path), str(error))


def _loops_of(path: Path, library: Library) -> Iterator[Audited]:
    end = perf_counter() + FILE_SECONDS
    for part in read_parts(path):
        sites = find_loops(part.tree, part.file)
        if not sites:
            continue
        module = library.module(part, path.resolve())
        names, source = prange_names(part.tree), source_of(part.file)
        written = {(site.line, site.loop.col_offset): site for site in sites}
        for site in find_loops(module.tree, part.file):
            began = perf_counter()
            if began > end:
                late = f"the loops before it in the file took longer than {FILE_SECONDS:.0f} s"
                finding = Finding(Verdict.UNKNOWN, "AUD124", late)
            else:
                finding = _judged(partial(judge, site, module, names, source))
                own = written.get((site.line, site.loop.col_offset), site)
                finding = _judged(partial(bounded, finding, own))
            yield Audited(site, finding, source.line(site.line).strip(), perf_counter() - began)


def _judged(verdict: Callable[[], Finding]) -> Finding:
    """Return a verdict, or that there is none as the analysis failed: other loops have theirs all the same."""
    try:
        return verdict()
    except Exception as error:
        reason = f"the analysis failed: {type(error).__name__}: {error}".splitlines()[0]
        return Finding(Verdict.UNKNOWN, "AUD126", reason)
