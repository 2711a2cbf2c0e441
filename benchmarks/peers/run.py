"""All comparisons with well-known libraries, each in a process of its own.

python -m benchmarks.peers.run                       # from the project's folder; `make peers` does the same
python -m benchmarks.peers.run --only kmeans pagerank
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from benchmarks.process import ROOT

ORDER = ("pagerank", "kmeans", "gbt", "lda", "slr")


def present(names: Sequence[str] = ORDER) -> list[str]:
    """Those of the comparisons that are in this folder."""
    return [name for name in names if find_spec(f"benchmarks.peers.{name}") is not None]


def run(names: Sequence[str]) -> list[str]:
    """Run comparisons in turn; the names of those that failed."""
    failed = []
    for name in names:
        print(f"\n{name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.peers.{name}"], cwd=ROOT, check=False).returncode:
            failed.append(name)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    names = present()
    parser = argparse.ArgumentParser(description="Programs by Orion next to well-known libraries.")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    failed = run(parser.parse_args(arguments).only)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
