"""Kernels that packages ship: files in the folder `_orion` of a package, which `orion build` writes.

A file is named by a hash of the loop's generated source, the types of its arguments and the versions of all that turn
it into machine code, and by the CPU that it is for. So a changed loop, or another version, finds none. Its head says
the same in words. What is damaged, or is for another CPU, is passed over, and the loop compiled.

Whoever can write to a package can change its source: its kernels are trusted as that is.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys

from orion.dataclass import dataclass
from orion.kernel.build.cache import write_whole
from orion.kernel.build.checked import checked, unpickled, with_digest
from orion.kernel.build.cpus import Cpu, is_chosen, this_cpu
from orion.kernel.build.machine_code import add_machine_code
from orion.kernel.build.modules import key_for_any_cpu
from orion.kernel.build.perf import is_on

FOLDER = "_orion"
SUFFIX = ".kernel"
SWITCH = "ORION_SHIPPED"


class DamagedError(Exception):
    """A file that is not as it was written."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the file of a shipped kernel says of it: its CPU, and the features that it needs; what it was made with
    (`made_with`); the loop's function and line, and the types of its arguments."""

    cpu: str
    needs: tuple[str, ...]
    versions: dict[str, str]
    function: str
    line: int
    types: str

    @property
    def is_for(self) -> Cpu:
        """The CPU that it is for."""
        return Cpu(self.cpu, self.needs)


def made_with() -> dict[str, str]:
    """Return the versions that machine code depends on."""
    modules = {"Orion": "orion", "Numba": "numba", "llvmlite": "llvmlite"}
    versions: dict[str, str] = {name: sys.modules[module].__version__ for name, module in modules.items()}
    return {**versions, "Python": "{}.{}".format(*sys.version_info), "platform": sys.platform}


def shipped_name(text: str, kinds: tuple[Any, ...]) -> str:
    """Return the name of a kernel, by its source and the types of its arguments; that of the module that it is compiled
    in, too."""
    return f"orion_shipped_{key_for_any_cpu(text, *map(str, kinds))}"


@cache
def folder_beside(file: str) -> Path | None:
    """Return the folder of kernels of the package that a file is in, or of one around it; None where there is none."""
    for folder in Path(file).absolute().parents:
        if not (folder / "__init__.py").exists():
            return None
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    return None


def load_shipped(module: ModuleType, dispatcher: Any, text: str, kinds: tuple[Any, ...], file: str) -> bool:
    """Give the dispatcher the machine code that the package of this file ships; False where it ships none that may be
    loaded here."""
    folder = folder_beside(file)
    if folder is None or is_switched_off():
        return False
    name = shipped_name(text, kinds)
    for code in _candidates(folder, name):
        try:
            with global_compiler_lock:
                sys.modules.setdefault(name, module)  # the code says that it is of the module by that name
                rtsys.initialize(dispatcher.targetctx)
                found = CompileResult._rebuild(dispatcher.targetctx, *unpickled(code))
                add_machine_code(dispatcher, found)
                return True
        except Exception:  # what foreign files may end in: it is compiled
            if dispatcher.overloads:
                return True
    return False


def is_switched_off() -> str:
    """Return what keeps this process from loading any such kernel, in a few words; "" where nothing does."""
    if os.environ.get(SWITCH) == "0":
        return f"left out by {SWITCH}=0"
    if is_chosen():
        return "left out, as NUMBA_CPU_NAME or NUMBA_CPU_FEATURES chooses the CPU"
    return "left out by ORION_PERF" if is_on() else ""


def _candidates(folder: Path, name: str) -> Iterator[bytes]:
    """Yield the machine code of a kernel from the files that may run here, the best one first."""
    here = this_cpu()
    found = []
    for path in sorted(folder.glob(f"{name}-*{SUFFIX}")):
        with contextlib.suppress(DamagedError):
            head, code = read_shipped(path)
            if head.is_for.fits(here) and head.versions == made_with():
                found.append((not head.is_for.is_level, len(head.needs), code))
    yield from (code for *_, code in sorted(found, reverse=True))


def misfit(path: Path) -> str:
    """Return why a file is not loaded here, in a few words; "" where its loop would load it."""
    try:
        head, _ = read_shipped(path)
    except DamagedError:
        return "damaged"
    here = made_with()
    other = [f"{name} {found}" for name, found in head.versions.items() if found != here.get(name)]
    if other:
        return f"made with {', '.join(other)}"
    return "" if head.is_for.fits(this_cpu()) else f"for the CPU {head.cpu}"


def read_shipped(path: Path) -> tuple[Head, bytes]:
    """Return what a file says of its kernel, and the machine code. DamagedError where that cannot be had."""
    try:
        head, _, code = checked(path).partition(b"\n")
        said = json.loads(head)
        return Head(**{**said, "needs": tuple(said["needs"])}), code
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DamagedError(str(error)) from error


def write_shipped(folder: Path, name: str, head: Head, code: bytes) -> Path:
    """Write the file of a kernel; never half of it."""
    path = folder / f"{name}-{head.cpu}{SUFFIX}"
    write_whole(path, with_digest(json.dumps(asdict(head)).encode() + b"\n" + code))
    return path


def replace_shipped(folder: Path, new: Path) -> None:
    """Put the files of one folder into another, in place of those of the same version of Python and platform."""
    here = made_with()
    for path in folder.glob(f"*{SUFFIX}"):
        try:
            versions = read_shipped(path)[0].versions
        except DamagedError:
            versions = here
        if all(versions.get(name) == here[name] for name in ("Python", "platform")):
            path.unlink()
    for path in new.glob(f"*{SUFFIX}"):
        path.chmod(0o644)
        path.replace(folder / path.name)
