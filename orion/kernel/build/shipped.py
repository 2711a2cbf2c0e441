"""Kernels that packages ship: files in the folder `_orion` of a package, which `orion build` writes.

A file is named by a hash of the loop's generated source, the types of its arguments and the versions of all that turn
it into machine code, and by the CPU that it is for. So a changed loop, or another version, finds none. Its head says
the same in words. What is damaged, or is for another CPU, is passed over, and the loop compiled.

Whoever can write to a package can change its source: its kernels are trusted as that is.
"""

from __future__ import annotations

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
    folder = Path(file).absolute().parent
    while (folder / "__init__.py").exists():
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
        folder = folder.parent
    return None


def load_shipped(module: ModuleType, dispatcher: Any, text: str, kinds: tuple[Any, ...], file: str) -> bool:
    """Give the dispatcher the machine code that the package of this file ships; False where it ships none that may be
    loaded here."""
    folder = folder_beside(file)
    if folder is None or is_chosen() or is_on() or os.environ.get(SWITCH) == "0":
        return False
    name = shipped_name(text, kinds)
    for path in _candidates(folder, name):
        try:
            with global_compiler_lock:
                sys.modules.setdefault(name, module)  # the code says that it is of the module by that name
                rtsys.initialize(dispatcher.targetctx)
                parts = unpickled(read_shipped(path)[1])
                add_machine_code(dispatcher, CompileResult._rebuild(dispatcher.targetctx, *parts))
                return True
        except Exception:  # what damaged or foreign files may end in: it is compiled
            if dispatcher.overloads:
                return True
    return False


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files of a kernel that may run here, the one that is best first."""
    here = this_cpu()
    found = []
    for path in folder.glob(f"{name}-*{SUFFIX}"):
        try:
            cpu = read_shipped(path)[0].is_for
        except (OSError, ValueError, TypeError):
            continue
        if cpu.fits(here):
            found.append((not cpu.is_level, len(cpu.needs), path))
    yield from (path for *_, path in sorted(found, reverse=True))


def read_shipped(path: Path) -> tuple[Head, bytes]:
    """Return what a file says of its kernel, and the machine code. OSError where it is damaged, or cannot be read."""
    head, _, code = checked(path).partition(b"\n")
    said = json.loads(head)
    return Head(**{**said, "needs": tuple(said["needs"])}), code


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
        except (OSError, ValueError, TypeError):
            versions = here
        if all(versions.get(name) == here[name] for name in ("Python", "platform")):
            path.unlink()
    for path in new.glob(f"*{SUFFIX}"):
        path.chmod(0o644)
        path.replace(folder / path.name)
