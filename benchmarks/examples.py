"""Every example at its defaults, on threads and on Ray: seconds, and for how long nothing was printed.

    python -m benchmarks.examples                         # from the project's folder; `make examples` does the same
    python -m benchmarks.examples --only word2vec bpr --backends threads

Examples run one after the other. Compiled kernels are kept in a folder of this run, so that the first backend compiles
and the next one loads. CPU: seconds of all cores together, which other work on the machine changes less; processes of
Ray that outlive the example are not among them. Silence: the longest time without a line, in seconds. The exit code is
1 where an example fails, or takes longer than `--limit`.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

from benchmarks.measure import machine
from benchmarks.process import ROOT

EXAMPLES = ROOT / "examples"
BACKENDS = ("threads", "ray")
LIMIT = 60.0
PATIENCE = 10
"""A program is ended after so many times the limit."""


@dataclass(frozen=True)
class Run:
    """One run of an example: seconds, CPU seconds, the longest time without output, the exit code, the last line."""

    seconds: float
    cpu: float
    silence: float
    code: int
    last: str

    def is_within(self, limit: float) -> bool:
        """Whether the run ended well, and in time."""
        return self.code == 0 and self.seconds <= limit


def programs(folder: Path = EXAMPLES) -> list[str]:
    """Return the names of the examples that are programs."""
    return [path.stem for path in sorted(folder.glob("*.py")) if '__name__ == "__main__"' in path.read_text("utf-8")]


def timed(command: Sequence[str], most: float, environment: dict[str, str] | None = None) -> Run:
    """Run a command to its end, or for `most` seconds, and note when it prints."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    last, silence, line = start, 0.0, ""
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        timer = threading.Timer(most, process.terminate)
        timer.start()
        try:
            for printed in process.stdout:
                silence, last = max(silence, perf_counter() - last), perf_counter()
                line = printed.strip() or line
        finally:
            timer.cancel()
    end, after = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(end - start, cpu, max(silence, end - last), process.returncode, line)


def table(found: dict[tuple[str, str], Run], backends: Sequence[str]) -> Table:
    """A row for each example."""
    made = Table("example", title="each example at its defaults", title_justify="left")
    for backend in backends:
        made.add_column(f"{backend}, s", justify="right")
        for head in ("CPU", "silence"):
            made.add_column(head, justify="right")
    for name in dict.fromkeys(name for name, _ in found):
        runs = [found[name, backend] for backend in backends if (name, backend) in found]
        cells = [f"{value:.1f}" for run in runs for value in (run.seconds, run.cpu, run.silence)]
        made.add_row(f"{name}.py", *cells)
    return made


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Every example at its defaults, on threads and on Ray.")
    names = programs()
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="these examples")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=BACKENDS, help="(default: both)")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of an example (default: %(default)g)")
    return parser.parse_args()


def main() -> int:
    """Run all, and print the table."""
    options, about = arguments(), machine()
    console = Console(width=None if sys.stdout.isatty() else 120)
    found: dict[tuple[str, str], Run] = {}
    with tempfile.TemporaryDirectory(prefix="orion-examples-") as cache:
        environment = os.environ | {"ORION_CACHE": cache}
        for name in options.only:
            for backend in options.backends:
                command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--backend", backend]
                run = timed(command, PATIENCE * options.limit, environment)
                found[name, backend] = run
                told = "" if run.code == 0 else f"; exit code {run.code}: {run.last}"
                times = f"{run.seconds:.1f} s, CPU {run.cpu:.1f} s, silent for {run.silence:.1f} s"
                print(f"{name}.py on {backend}: {times}{told}", flush=True)
    console.print(table(found, options.backends))
    console.print(f"{about['processor']}, {about['cores']} cores, load before {about['load'][0]:.2f}", highlight=False)
    wrong = [f"{name}.py on {where}" for (name, where), run in found.items() if not run.is_within(options.limit)]
    if wrong:
        print(f"failed, or longer than {options.limit:g} s: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
