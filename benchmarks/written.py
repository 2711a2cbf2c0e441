"""Results as files: JSON and Markdown in `benchmarks/results/`, figures in `docs/figures/`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.process import ROOT

RESULTS = ROOT / "benchmarks" / "results"
FIGURES = ROOT / "docs" / "figures"


def stem(name: str, is_whole: bool) -> str:
    """The name, without its end, of the files of a benchmark. Those of a part of it do not replace those of all of it.

    >>> stem("transports", True), stem("transports", False)
    ('transports', 'transports-part')
    """
    return name if is_whole else f"{name}-part"


def figures_folder(chosen: Path | None, is_whole: bool) -> Path:
    """Where figures go: what was chosen; else where the documentation has them if all of a benchmark was run."""
    if chosen is not None:
        return chosen
    return FIGURES if is_whole else RESULTS


def write(folder: Path, name: str, contents: str) -> None:
    """Write a file, and say so."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(contents, encoding="utf-8")
    print(f"written: {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")


def as_json(values: Mapping[str, Any]) -> str:
    """Values as JSON, to be read by people too."""
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown.

    >>> print(markdown(("", "ms"), [("a", "1")]), end="")
    | | ms |
    |---|---|
    | a | 1 |
    """
    lines = [heads, *rows]
    written = ["| " + " | ".join(cells) + " |" for cells in lines]
    written.insert(1, "|" + "---|" * len(heads))
    return "\n".join(line.replace("|  |", "| |") for line in written) + "\n"
