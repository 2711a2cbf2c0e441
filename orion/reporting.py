"""`orion.report`: what has run in this process, as one HTML file."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from html import escape
from typing import Any

from orion.arrays.files.whole import write_text
from orion.inspect.html.style import STYLE
from orion.inspect.text.words import counted, time_in_words
from orion.last_run import LastRun
from orion.other_runs import OtherRuns, decorated
from orion.profiling import last_profile
from orion.runtime.session import current_session
from orion.source import Span
from orion.tracebacks import ends_in_users_line

NO_TIMES = "Times are taken of calls inside <code>with orion.profile():</code> alone."
AS_IT_IS = "no loop is planned; compiled as it is, on one worker"
PAGE_STYLE = """
body { margin: 24px auto; max-width: 1220px; padding: 0 16px; background: #f6f8fa; color: #1f2328;
  font: 14px/1.5 system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
body > section { margin: 24px 0; }
table.o-report { border-collapse: collapse; background: #fff; }
table.o-report th, table.o-report td { border: 1px solid #d1d9e0; padding: 4px 10px; text-align: left; }
pre.o-report { background: #fff; border: 1px solid #d1d9e0; border-radius: 6px; padding: 10px; overflow-x: auto; }
"""

Function = OtherRuns[Any, Any]


@ends_in_users_line
def report(path: str | os.PathLike[str]) -> None:
    """Write the plans, times and timeline of this process to one HTML file.

    The file has a section per function that has run, in the order of their definition: its plan, as a notebook shows
    it, and the times of its last call. Calls outside of `with orion.profile():` have no times. The last profile
    follows, with its timeline. Functions that the program has deleted are left out.

    - `path`: the file to write. It needs no other file, no network and no scripts.

    Errors: `StorageError` where the file cannot be written; an older file of that name then stays.

    >>> import numpy as np, orion, os, tempfile
    >>> @orion.parallel_for
    ... def double(a):
    ...     for i in range(a.shape[0]):
    ...         a[i] = 2.0 * a[i]
    >>> with orion.profile():
    ...     double(np.ones(1000))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     orion.report(os.path.join(folder, "run.html"))
    ...     os.listdir(folder)
    ['run.html']
    """
    functions = [one for one in decorated() if one.last_run is not None or one.runs_as_it_is]
    parts = [*_summary(functions), *_plans(functions), *_profile()]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Orion report</title>'
        f"<style>{PAGE_STYLE}</style></head>\n<body>\n"
    )
    write_text(path, head + _with_one_style("\n".join(parts)) + "\n</body></html>\n")


def _with_one_style(page: str) -> str:
    """The page with the style sheet of its views once."""
    style = f"<style>{STYLE}</style>"
    first, found, rest = page.partition(style)
    return first + found + rest.replace(style, "")


def _summary(functions: list[Function]) -> Iterator[str]:
    session = current_session()
    when = time.strftime("%Y-%m-%d %H:%M:%S")
    yield "<h1>Orion report</h1>"
    yield (
        f"<p>{when}, process {os.getpid()}, Python {platform.python_version()}, "
        f"{escape(session.settings.backend)}, {counted(session.workers, 'worker')}</p>"
    )
    if not functions:
        yield "<p>No loop of this process has run.</p>"
        return
    rows = "".join(_row(number, one) for number, one in enumerate(functions))
    titles = "".join(f"<th>{title}</th>" for title in ("function", "line", "plan", "workers", "last call"))
    yield f'<table class="o-report"><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>'
    if any(one.last_run is None or one.last_run.record is None for one in functions):
        yield f"<p>{NO_TIMES}</p>"


def _row(number: int, function: Function) -> str:
    code, run = function.py_func.__code__, function.last_run
    place = escape(str(Span(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 0)))
    name = f'<a href="#o-function-{number}"><code>{escape(function.py_func.__name__)}</code></a>'
    if run is None:
        cells = name, place, AS_IT_IS, "1", ""
    else:
        seconds = "" if run.record is None else time_in_words(run.record.end - run.record.start)
        cells = name, place, escape(run.verdict), str(run.workers), escape(seconds)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _plans(functions: list[Function]) -> Iterator[str]:
    for number, function in enumerate(functions):
        run = function.last_run
        title = f"<h2><code>{escape(function.py_func.__name__)}</code></h2>"
        body = f"<p>{AS_IT_IS}</p>" if run is None else f"{run.plan._repr_html_()}{_times(run)}"
        yield f'<section id="o-function-{number}">{title}{body}</section>'


def _times(run: LastRun) -> str:
    return "" if run.record is None else f'<h3>Last call</h3><pre class="o-report">{escape(str(run))}</pre>'


def _profile() -> Iterator[str]:
    profile = last_profile()
    if profile is not None:
        yield f"<section><h2>Profile</h2>{profile._repr_html_()}</section>"
