"""Kernels compiled for another CPU, in a process of its own: `python -m orion.kernel.build.ahead JOB`.

Numba reads for which CPU it compiles when it is imported. So each CPU has a process, whose environment names it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from numba.core.errors import NumbaError
from numba.core.serialize import dumps

from orion.dataclass import dataclass
from orion.kernel.build.compile import place_of, shared_text, signature
from orion.kernel.build.cpus import Cpu
from orion.kernel.build.modules import compile_dispatcher, load_compilable
from orion.kernel.build.recorded import SWITCH, records_in, write_record
from orion.kernel.build.shipped import Head, made_with, shipped_name, write_shipped
from orion.kernel.calling import SCALARS, KernelSource

TYPE_ANNOTATION = 6
"""The part of compiled code, as Numba pickles it, that has the types of all lines, for `inspect_types` alone: three
quarters of a file."""


@dataclass(frozen=True, slots=True)
class Made:
    """A kernel that was compiled, or why it was not: the function, its line, the types of the arguments, the CPU, and
    the bytes of its file."""

    function: str
    line: int
    types: str
    cpu: str
    bytes: int
    why_not: str = ""


def compile_ahead(sources: Sequence[KernelSource], cpu: Cpu, folder: Path, tell: Callable[[Made], None]) -> None:
    """Compile kernels for a CPU into a folder, and tell of each. OSError where the process ends before it is done."""
    with tempfile.TemporaryDirectory(prefix="orion-build-") as place:
        for source in sources:
            write_record(Path(place), source)
        job = {"records": place, "folder": str(folder.absolute()), "cpu": cpu.name, "needs": cpu.needs}
        chosen = {"NUMBA_CPU_NAME": cpu.name, "NUMBA_CPU_FEATURES": cpu.features, "ORION_CACHE": f"{place}/cache"}
        environment = {**os.environ, **chosen, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        environment.pop(SWITCH, None)
        command = [sys.executable, "-P", "-m", "orion.kernel.build.ahead", json.dumps(job)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                tell(Made(**json.loads(line)))
        if process.returncode:
            raise OSError(f"compiling for {cpu.name} ended with {process.returncode}")


def main(job: str) -> None:
    """Compile the kernels of a job for the CPU that the environment names, and print a line for each."""
    said = json.loads(job)
    cpu = Cpu(said["cpu"], tuple(said["needs"]))
    for source in records_in(Path(said["records"])):
        print(json.dumps(asdict(_compiled(source, cpu, Path(said["folder"])))), flush=True)


def distinct(sources: Iterable[KernelSource]) -> list[KernelSource]:
    """Return kernels without those that have the machine code of one before."""
    found: dict[str, KernelSource] = {}
    for source in sources:
        found.setdefault(shipped_name(shared_text(source).text, signature(source)), source)
    return [*found.values()]


def types_text(source: KernelSource) -> str:
    """Return the types of the user's arguments of a kernel, as `x: float64[::1], n: int64`."""
    found = {}
    for one in source.arguments:
        if one.kind == "array":
            last = ["::1" if one.contiguous else ":"]
            found[one.name] = f"{one.dtype}[{', '.join([':'] * (one.ndim - 1) + last)}]"
        elif one.kind in (*SCALARS, "key", "value"):
            found.setdefault(one.name, one.dtype)
    return ", ".join(f"{name}: {kind}" for name, kind in found.items())


def _compiled(source: KernelSource, cpu: Cpu, folder: Path) -> Made:
    text, kinds = shared_text(source).text, signature(source)
    name = shipped_name(text, kinds)
    about = *place_of(source), types_text(source)
    module = load_compilable(name, text)
    dispatcher = getattr(module, source.entry)
    try:
        compile_dispatcher(module, dispatcher, kinds)
    except NumbaError as error:
        return Made(*about, cpu.name, 0, str(error).splitlines()[0])
    (found,) = dispatcher.overloads.values()
    if found.lifted or found.library.has_dynamic_globals:
        return Made(*about, cpu.name, 0, "its machine code has addresses of this process")
    parts = [*found._reduce()]
    parts[TYPE_ANNOTATION] = ""
    path = write_shipped(folder, name, Head(cpu.name, cpu.needs, made_with(), *about), dumps(tuple(parts)))
    return Made(*about, cpu.name, path.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1])
