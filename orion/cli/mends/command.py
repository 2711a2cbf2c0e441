"""`orion explain --fix` and `--diff`: the mends of files, printed as unified diffs, and written."""

from __future__ import annotations

import contextlib
import difflib
import linecache
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from orion.api import parallel_for
from orion.cli.cells import LoadError, part_named
from orion.cli.given import UsageError
from orion.cli.loading import LoadedFile, load_functions
from orion.cli.mends.mending import Mended, mended
from orion.cli.mends.text import ChangedError, ReadFile, read_file
from orion.errors import OrionError
from orion.planned import Plan
from orion.printable import printable
from orion.source import Replacement

PlanIn = Callable[[LoadedFile, str], Plan]
"""The plan of a function of a loaded file, by its name."""


def mend_file(path: Path, functions: Sequence[str], plan_in: PlanIn, *, writes: bool) -> Mended:
    """Print the mends of a file's functions as a unified diff, and write them if asked to. UsageError where the file
    cannot be mended."""
    if path.suffix == ".ipynb":
        raise UsageError(f"{path}: a notebook is not changed; save the cell as a script, or write the hint's code")
    try:
        file = read_file(path)
    except (OSError, SyntaxError, UnicodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None

    def plan_of(text: str, name: str) -> Plan | Replacement | None:
        return _plan_of(path, text, name, plan_in)

    found = mended(file.text, functions, plan_of)
    for note in found.notes:
        print(f"orion: {path}: {note}", file=sys.stderr)
    if found.text == file.text:
        return found
    _print(diff_of(file, found.text), file.encoding)
    if writes:
        _write(file, found.text)
    return found


def diff_of(file: ReadFile, text: str) -> bytes:
    """Return the changes of a file as a unified diff in the bytes of the file, as `patch` and `git apply` take it."""
    before, after = (re.findall(rb"[^\n]*\n|[^\n]+$", data) for data in (file.data, file.encoded(text)))
    old, new = map(os.fsencode, _names(file.path))
    found = difflib.diff_bytes(difflib.unified_diff, before, after, old, new)
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in found)


def _names(path: Path) -> tuple[str, str]:
    """The names of a file before and after, relative to the folder where it is below that. A tab ends one with blanks,
    as in the diffs of git."""
    with contextlib.suppress(ValueError):
        path = path.relative_to(Path.cwd())
    end = "\t" if " " in str(path) else ""
    return (f"{path}{end}",) * 2 if path.is_absolute() else (f"a/{path}{end}", f"b/{path}{end}")


def _print(diff: bytes, encoding: str) -> None:
    """Print a diff: in a terminal as its text, else, for programs, as its bytes."""
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None or sys.stdout.isatty():
        print(printable(diff.decode(encoding, "replace").replace("\r\n", "\n")), end="")
    else:
        sys.stdout.flush()
        stream.write(diff)


def _write(file: ReadFile, text: str) -> None:
    try:
        file.write(text)
    except ChangedError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"cannot write {file.path}: {error.strerror or error}") from None


def _plan_of(path: Path, text: str, name: str, plan_in: PlanIn) -> Plan | Replacement | None:
    """The plan of a function, if the file had this text, or what its error says to write there."""
    file = f"{path}, mended"
    try:
        loaded = load_functions(path, parallel_for, [part_named(file, text)])
        return plan_in(loaded, name) if name in loaded.functions else None
    except OrionError as error:
        found = error.replacement
        return found if found is not None and found.span.file == file and not found.span.inlined else None
    except (LoadError, ValueError):
        return None
    finally:
        linecache.cache.pop(file, None)
