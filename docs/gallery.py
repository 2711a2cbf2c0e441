"""The gallery: `python docs/gallery.py` writes the pages of `docs/gallery/` and their pictures.

`python docs/gallery.py --measure` also times the loops next to `numba.njit`, and keeps the times in `docs/gallery.json`
with the name of the CPU. The pages show them where they are there. Each loop is shown, planned and run as a file of its
own, so that the lines of its plan are those that the reader sees.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from textwrap import fill
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import orion
from benchmarks.everyday.case import Case
from benchmarks.everyday.one import on_workers, timed, with_numba
from benchmarks.measure import interleaved, machine
from docs.gallery_loops import ENTRIES, FIELDS, Entry
from orion.cost.caches import USUAL

DOCS = Path(__file__).parent
PAGES, PICTURES, TIMES = DOCS / "gallery", DOCS / "figures" / "gallery", DOCS / "gallery.json"

WORKERS = 2
"""How many workers the loops are planned for and timed on."""

LARGEST = 30_000
"""The bytes of a picture at most; of loops with larger ones a call on little data is drawn."""

LITTLE = (8, 5)
"""The sizes of such calls, in the order in which they are tried."""

WIDTH, COLUMNS = "100", 140
"""The columns of plans, and of what stands around them."""

STRATEGY = re.compile(r"^  strategy .*\n(?: {14}.*\n)*", re.MULTILINE)
"""The lines of a plan that say how a loop is shared out."""

REPEATS = 7

NOT_RUN = "<!-- not run: `tests/test_gallery.py` runs it on data of its own -->"


# ---------------------------------------------------------------- the code


def shown(case: Case) -> str:
    """The code of a loop as a reader would write it: imports, functions that it calls, the decorated function."""
    functions = [*_helpers(case.function), case.function]
    names = {name for one in functions for name in one.__code__.co_names}
    imports = [line for name, line in (("math", "import math"), ("np", "import numpy as np")) if name in names]
    around = "\n\n".join(filter(None, ["\n".join(imports[:-1]), "\n".join([*imports[-1:], "import orion"])]))
    sources = [inspect.getsource(one) for one in functions]
    return "\n\n\n".join(
        [around, *(one.strip() for one in sources[:-1]), f"@orion.parallel_for\n{sources[-1].strip()}"]
    )


def _helpers(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """The functions of its module that a function calls, those that they call first."""
    assert isinstance(function, FunctionType)
    for name in dict.fromkeys(function.__code__.co_names):
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType):
            yield from _helpers(value)
            yield value
        elif value is not None and not isinstance(value, ModuleType):
            raise ValueError(f"`{function.__name__}` reads `{name}`, which the gallery does not show")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="orion-gallery-")


@cache
def loop_of(entry: Entry) -> Any:
    """The decorated function of a loop, from a file that holds what is shown."""
    path = Path(_folder().name, f"{entry.name}.py")
    path.write_text(shown(entry.case) + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"orion_gallery_{entry.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, entry.name)


# ---------------------------------------------------------------- plans and pictures


def plan_of(entry: Entry) -> orion.Plan:
    """The plan of a loop for a large call."""
    return _planned(entry, entry.case.large)


@cache
def _planned(entry: Entry, size: int) -> orion.Plan:
    """The plan for a size, the same on every machine: tiles are as large as caches of the usual size ask for."""
    with orion.session(workers=WORKERS), patch("orion.prepare.caches_here", lambda: USUAL):
        plan: orion.Plan = loop_of(entry).plan(*entry.case.arguments(size))
        return plan


def head(plan: orion.Plan) -> str:
    """The first lines of a plan, which say how each loop runs; of a single loop its strategy is told further down."""
    with _columns(WIDTH):
        text = str(plan)
    first = text.split("\n\n", maxsplit=1)[0]
    if "\n  line " not in first and (strategy := STRATEGY.search(text)):
        return f"{first}\n{strategy.group().rstrip()}"
    return first


@contextmanager
def _columns(width: str) -> Iterator[None]:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = width
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before


@dataclass(frozen=True)
class Picture:
    """A drawing of the costliest loop, and whether it is that of a call on little data."""

    svg: str
    is_of_little: bool


def picture(entry: Entry, plan: orion.Plan) -> Picture | None:
    """The picture of a plan; of a call on little data where it is too large, None where that is too large as well."""
    if _size(found := _svg(plan)) <= LARGEST:
        return Picture(found, is_of_little=False)
    for size in LITTLE:
        with orion.session(workers=WORKERS, force_parallel=True):
            found = _svg(_planned(entry, size))
        if _size(found) <= LARGEST:
            return Picture(found, is_of_little=True)
    return None


def _svg(plan: orion.Plan) -> str:
    """The picture of a plan, without the folder that the loop's file is in."""
    path = Path(_folder().name, "picture.svg")
    plan.save_svg(path)
    return path.read_text(encoding="utf-8").replace(f"{_folder().name}{os.sep}", "")


def _size(text: str) -> int:
    return len(text.encode())


# ---------------------------------------------------------------- times


def measured() -> dict[str, Any]:
    """The times of all loops in seconds, with the machine that they were taken on."""
    return {"machine": machine(), "seconds": {entry.name: _times(entry) for entry in ENTRIES}}


def _times(entry: Entry) -> dict[str, float]:
    case = entry.case
    contenders: dict[str, Callable[[], float]] = {}
    if (compiled := with_numba(case)) is not None:
        contenders["numba.njit"] = partial(timed, compiled, case)
    for workers in (1, WORKERS):
        contenders[f"Orion, {workers} worker{'s' * (workers > 1)}"] = partial(
            on_workers, workers, partial(timed, loop_of(entry), case)
        )
    for contender in contenders.values():
        contender()  # compiles
    return {name: median(values) for name, values in interleaved(contenders, REPEATS).items()}


def _kept_times() -> dict[str, Any]:
    return json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {"machine": {}, "seconds": {}}


# ---------------------------------------------------------------- pages


def pages() -> dict[Path, str]:
    """All files of the gallery: pages and pictures, with what is in them."""
    files: dict[Path, str] = {PAGES / "index.md": _index()}
    for field in FIELDS:
        parts = [f"# {field.title}", _wrapped(f"{field.about} {_how()}")]
        for entry in field.entries:
            plan = plan_of(entry)
            drawn = picture(entry, plan)
            if drawn is not None:
                files[PICTURES / f"{entry.name}.svg"] = drawn.svg
            parts += _section(entry, plan, drawn)
        files[PAGES / field.file] = "\n\n".join(parts) + "\n"
    return files


def _how() -> str:
    return f"Each plan is made for {WORKERS} workers, and for the arguments that stand above it."


def _section(entry: Entry, plan: orion.Plan, drawn: Picture | None) -> list[str]:
    case = entry.case
    about = " ".join(inspect.cleandoc(case.function.__doc__ or "").split())
    parts = [
        f"## {entry.title}",
        _wrapped(about),
        f"{NOT_RUN}\n```python\n{shown(case)}\n```",
        _wrapped(f"Arguments: {_arguments(case)}."),
        f"```text\n{head(plan)}\n```",
        _wrapped(entry.see),
    ]
    if drawn is not None:
        of = "of a call on little data, " if drawn.is_of_little else ""
        parts.append(f"![Iterations of {entry.name}, {of}by workers](../figures/gallery/{entry.name}.svg)")
        parts += ["The picture is that of a call on little data, in which one sees the tiles."] * drawn.is_of_little
    return [*parts, *_timing(entry)]


def _wrapped(text: str) -> str:
    return fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


def _arguments(case: Case) -> str:
    names = inspect.signature(case.function).parameters
    return ", ".join(f"`{name}` {_said(value)}" for name, value in zip(names, case.arguments(case.large), strict=False))


def _said(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of {' × '.join(f'{extent:,}' for extent in value.shape)}"
    return f"= {value}"


def _timing(entry: Entry) -> list[str]:
    kept = _kept_times()
    if not (seconds := kept["seconds"].get(entry.name)):
        return []
    titles = " | ".join(f"`{name}`" if "." in name else name for name in seconds)
    times = " | ".join(f"{1e3 * value:.3g} ms" for value in seconds.values())
    return [f"Measured on {kept['machine']['processor']}:", f"| {titles} |\n|{'---|' * len(seconds)}\n| {times} |"]


def _index() -> str:
    about = (
        "Twenty-five loops of real programs, as people write them. Look for one like yours. Each has its code and the "
        "first lines of its plan; most have a picture of their iterations."
    )
    lines = ["# Gallery", _wrapped(about)]
    for field in FIELDS:
        lines.append(f"## [{field.title}]({field.file})")
        lines.append("\n".join(f"- {entry.title}: {_strategies(entry)}" for entry in field.entries))
    lines.append("[Will it work for my loop?](../will-it-work.md) has twenty shapes of loops in one table.")
    names = "\n".join(field.file.removesuffix(".md") for field in FIELDS)
    lines.append(f":::{{toctree}}\n:hidden:\n\n{names}\n:::")
    return "\n\n".join(lines) + "\n"


def _strategies(entry: Entry) -> str:
    return ", ".join(dict.fromkeys(loop.strategy for loop in plan_of(entry).loops))


def write() -> None:
    for folder in (PAGES, PICTURES):
        folder.mkdir(parents=True, exist_ok=True)
    files = pages()
    for old in {*PAGES.glob("*.md"), *PICTURES.glob("*.svg")} - {*files}:
        old.unlink()
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the pages of the gallery.")
    parser.add_argument("--measure", action="store_true", help="time all loops first, and keep the times")
    if parser.parse_args().measure:
        TIMES.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    write()
