"""Wheel and sdist: built, checked, and tried in fresh environments on each Python that is named.

    python tests/packages.py                                            # or: make packages
    python tests/packages.py --python python3.12 --python python3.13    # on these, in place of this one
    python tests/packages.py --oldest --extras files                    # with the versions of constraints-oldest.txt

What is tried is `tests/smoke.py`, in a folder outside of the project.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = ROOT / "constraints-oldest.txt"


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--python", action="append", metavar="PROGRAM", help="an interpreter (default: this one)")
    parser.add_argument("--extras", nargs="*", default=["files", "ray"], help="extras to install, and to try")
    parser.add_argument("--oldest", action="store_true", help="the oldest versions that pyproject.toml allows")
    parser.add_argument("--dist", type=Path, metavar="FOLDER", help="take wheel and sdist from there, build none")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="orion-packages-") as name:
        folder = Path(name)
        made = sorted((asked.dist or built(folder / "dist")).glob("orion_loops-*"))
        run([sys.executable, "-m", "twine", "check", "--strict", *map(str, made)])
        constraint = OLDEST if asked.oldest else None
        for python in asked.python or [sys.executable]:
            for package in made:
                is_fine = tried(folder / "env", python, package.resolve(), asked.extras, constraint)
                print(f"{package.name}: {'works' if is_fine else 'FAILED'} with {python}", flush=True)
                if not is_fine:
                    return 1
    return 0


def built(folder: Path) -> Path:
    """Build the sdist, and the wheel from the sdist."""
    run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)])
    return folder


def tried(env: Path, python: str, package: Path, extras: Sequence[str], constraint: Path | None) -> bool:
    """Whether the package can be installed in an environment of its own, and the smoke program runs there."""
    shutil.rmtree(env, ignore_errors=True)
    run([python, "-m", "venv", str(env)])
    bounds = [] if constraint is None else ["--constraint", str(constraint)]
    what = f"{package}[{','.join(extras)}]" if extras else str(package)
    own = env / "bin" / "python"
    run([str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *bounds, what])
    folder = env / "work"
    folder.mkdir()
    shutil.copy(ROOT / "tests" / "smoke.py", folder)
    apart = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ORION_"))}
    apart["ORION_CACHE"] = str(env / "cache")  # what earlier runs compiled must not hide what cannot be compiled
    return subprocess.run([str(own), "smoke.py", *extras], cwd=folder, env=apart, check=False).returncode == 0


def run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
