"""`orion explain --fix` and `--diff`: the mends of files, printed as unified diffs, and written."""

from __future__ import annotations

import difflib
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from orion.api import parallel_for
from orion.cli.cells import LoadError
from orion.cli.given import UsageError
from orion.cli.loading import LoadedFile, load_functions
from orion.cli.mends.mending import mended
from orion.cli.mends.text import ChangedError, ReadFile, read_file
from orion.errors import OrionError
from orion.planned import Plan

PlanIn = Callable[[LoadedFile, str], Plan]
"""The plan of a function of a loaded file, by its name."""


def mend_file(path: Path, functions: Sequence[str], plan_in: PlanIn, *, writes: bool) -> tuple[str, ...]:
    """Print the mends of a file's functions as a unified diff, and write them if asked to. Returns the functions that
    are parallel by these. UsageError where the file cannot be mended."""
    if path.suffix == ".ipynb":
        raise UsageError(f"{path}: a notebook is not changed; save the cell as a script, or write the hint's code")
    try:
        file = read_file(path)
    except (OSError, SyntaxError, UnicodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None

    def plan_of(text: str, name: str) -> Plan | None:
        return _plan_of(file, text, name, plan_in)

    found = mended(file.text, functions, plan_of)
    for note in found.notes:
        print(f"orion: {path}: {note}", file=sys.stderr)
    if found.text == file.text:
        return ()
    print(diff_of(file, found.text), end="")
    if writes:
        _write(file, found.text)
    return found.functions


def diff_of(file: ReadFile, text: str) -> str:
    """Return the changes of a file as a unified diff. Lines end as they do in the file."""
    before, after = _lines(file.text), _lines(text)
    names = (str(file.path),) * 2 if file.path.is_absolute() else (f"a/{file.path}", f"b/{file.path}")
    found = difflib.unified_diff(before, after, *names)
    return "".join(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n" for line in found)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)


def _write(file: ReadFile, text: str) -> None:
    try:
        file.write(text)
    except ChangedError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"cannot write {file.path}: {error.strerror or error}") from None


def _plan_of(file: ReadFile, text: str, name: str, plan_in: PlanIn) -> Plan | None:
    """The plan of a function, if the file had this text: one of the same name in another folder has."""
    with tempfile.TemporaryDirectory(prefix="orion-") as folder, _importing_from(file.path.parent):
        path = Path(folder) / file.path.name
        path.write_bytes(text.encode(file.encoding))
        try:
            loaded = load_functions(path, parallel_for)
            return plan_in(loaded, name) if name in loaded.functions else None
        except (OrionError, LoadError, ValueError):
            return None


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Import modules from a folder, too."""
    name = str(folder.absolute())
    sys.path.insert(0, name)
    try:
        yield
    finally:
        if name in sys.path:
            sys.path.remove(name)
