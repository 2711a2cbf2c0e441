"""All comparisons with well-known libraries, each in a process of its own.

python -m benchmarks.peers.run                       # from the project's folder; `make peers` does the same
python -m benchmarks.peers.run --only kmeans pagerank
python -m benchmarks.peers.run --full --corpus docword.kos.txt.gz    # all measurements; topic models of a real corpus
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from benchmarks.process import ROOT

ORDER = ("pagerank", "kmeans", "gbt", "lda", "slr")
SHORT = {
    "pagerank": ("--repeats", "3"), "kmeans": ("--repeats", "3"), "gbt": ("--rounds", "2"), "slr": ("--repeats", "3"),
}  # fmt: skip
"""Options of a run without `--full`, beside two seeds of the topic models."""


def present(names: Sequence[str] = ORDER) -> list[str]:
    """Those of the comparisons that are in this folder."""
    return [name for name in names if find_spec(f"benchmarks.peers.{name}") is not None]


def run(names: Sequence[str], options: Mapping[str, Sequence[str]]) -> list[str]:
    """Run comparisons in turn, with the options of each; the names of those that failed."""
    failed = []
    for name in names:
        start = perf_counter()
        print(f"\n{name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.peers.{name}", *options.get(name, ())]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(name)
        print(f"{name}: {perf_counter() - start:.0f} s", flush=True)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    names = present()
    parser = argparse.ArgumentParser(description="Programs by Orion next to well-known libraries.")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--corpus", type=Path, metavar="FILE", help="of the topic models (default: generated)")
    parser.add_argument("--full", action="store_true", help="as many measurements as in the documentation")
    given = parser.parse_args(arguments)
    of_topics = ["--full"] * given.full + ([] if given.corpus is None else ["--corpus", str(given.corpus.resolve())])
    failed = run(given.only, {"lda": of_topics} if given.full else {**SHORT, "lda": of_topics})
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
