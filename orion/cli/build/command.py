"""`orion build MODULE`: compiles the loops of a package into it, for its wheel."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orion.api import ParallelFunction
from orion.arrays.base import bytes_text
from orion.cli.build.annotations import annotated
from orion.cli.build.loops import Package, import_package
from orion.cli.build.signatures import SignatureError, Wanted, calls_of, parse_signature
from orion.cli.given import UsageError
from orion.cli.shown import show
from orion.cost.caches import VARIABLE
from orion.errors import OrionError, is_of_user
from orion.inspect.text.words import counted

if TYPE_CHECKING:
    from orion.kernel.build.ahead import Made
    from orion.kernel.build.cpus import Cpu
    from orion.kernel.calling import KernelSource

DESCRIPTION = """\
Compile the loops of a package into its folder `_orion`, which belongs into its wheel: calls then load them instead of
compiling. For which arguments is said by `parallel_for(signatures=[...])`, by annotations, or by what a command calls.
A kernel is loaded only by the versions of Python, Orion and Numba that built it, on a CPU that it is for, and by a loop
with the same text. Whatever else is called is compiled as ever."""

EPILOG = "exit status: 0; 1 where something that was asked for is not built; 2 for wrong usage."

L2 = (512, 1024, 2048)
"""The KiB of the second-level cache of a core that loops are planned for: tiles of another size are another kernel. A
machine with a size in between often plans the same tiles."""

WORKERS = (1, 8)
"""For how many workers calls are planned: others seldom need another kernel."""


def add_build(commands: Any) -> None:
    """Add the command."""
    build: ArgumentParser = commands.add_parser(
        "build", help="compile a package's loops into its wheel", description=DESCRIPTION, epilog=EPILOG
    )
    build.set_defaults(run=_build)
    build.add_argument("module", metavar="MODULE", help="a package, by the name that `import` takes")
    cpus = "also for this CPU, as LLVM names it, or `host`; the first is x86-64-v3 unless --only is given"
    build.add_argument("--cpu", metavar="NAME", action="append", default=[], help=cpus)
    build.add_argument("--only", action="store_true", help="for no CPU but those of --cpu")
    build.add_argument(
        "--record", metavar="COMMAND", action="append", default=[], help='build what it calls, as in "pytest tests"'
    )
    caches = f"plan for cores with such a second-level cache; {', '.join(map(str, L2))} if not given"
    build.add_argument("--l2", type=_kibibytes, metavar="KIB", action="append", default=[], help=caches)
    build.add_argument("--out", type=Path, metavar="FOLDER", help="the package's folder, if not that which is imported")


def _kibibytes(text: str) -> int:
    """The number that a text is. ValueError where it is none above 0."""
    if int(text) <= 0:
        raise ValueError
    return int(text)


def _build(options: Namespace) -> int:
    from orion.kernel.build.ahead import distinct
    from orion.kernel.build.shipped import FOLDER

    cpus = _cpus(options)
    package = import_package(options.module)
    problems = [f"module `{name}`: {why}" for name, why in package.broken.items()]
    asked: list[KernelSource] = []
    for size in options.l2 or L2:
        with _l2(size):
            found, refused = _signed(package)
            asked += [*found, *(one for command in options.record for one in _recorded(command, package))]
            problems += [text for text in refused if text not in problems]
    sources = distinct(asked)
    folder = (options.out or package.folder) / FOLDER
    built = _compiled(sources, cpus, folder) if sources else []
    problems += [f"`{one.function}`, line {one.line}, for {one.cpu}: {one.why_not}" for one in built if one.why_not]
    made = [one for one in built if not one.why_not]
    places = {(one.user.file, one.user.first_line) for one in sources}
    problems += [text for name, one in package.functions.items() if (text := _missing(name, one, places))]
    _tell(package, folder, made)
    for text in problems:
        print(f"orion: not built: {text}", file=sys.stderr)
    return int(bool(problems) or not made)


def _cpus(options: Namespace) -> list[Cpu]:
    from orion.kernel.build.cpus import GENERIC, UnknownCpuError, cpu_of

    names = options.cpu if options.only else [GENERIC, *options.cpu]
    if not names:
        raise UsageError("--only: name a CPU with --cpu, too")
    try:
        return [cpu_of(name) for name in dict.fromkeys(names)]
    except UnknownCpuError as error:
        raise UsageError(f"--cpu: {error}") from None


@contextmanager
def _l2(kibibytes: int) -> Iterator[None]:
    """Plan for a second-level cache of that size, in this process and in those that it starts."""
    os.environ[VARIABLE] = str(kibibytes << 10)
    try:
        yield
    finally:
        del os.environ[VARIABLE]


# ------------------------------------------------------------ what is to be built


def _signed(package: Package) -> tuple[list[KernelSource], list[str]]:
    """The kernels of what functions say of their arguments, and what cannot be built."""
    sources: list[KernelSource] = []
    problems: list[str] = []
    for name, decorated in package.functions.items():
        function = ParallelFunction(decorated.__wrapped__, decorated.options)  # which has no plan yet
        for signature in function.options.signatures:
            try:
                sources += _kernels(function, parse_signature(signature))
            except SignatureError as error:
                problems.append(f"`{name}`: {error}")
        if not function.options.signatures:
            with suppress(SignatureError):  # then it may be recorded
                sources += _kernels(function, annotated(function.__wrapped__))
    return sources, problems


def _kernels(function: ParallelFunction[..., Any], wanted: Sequence[Wanted]) -> list[KernelSource]:
    """The kernels of the calls that a signature stands for. SignatureError where none can be planned."""
    found: list[KernelSource] = []
    refused = ""
    for call in calls_of(wanted):
        for workers in WORKERS:
            try:
                found += function._kernels(call, {}, workers)
            except (OrionError, ValueError) as error:
                if not (isinstance(error, OrionError) or is_of_user(error)):
                    raise
                refused = refused or str(error).splitlines()[0]
    if not found:
        raise SignatureError(f"no call with its arguments can be planned, {refused}")
    return found


def _recorded(command: str, package: Package) -> list[KernelSource]:
    """The kernels of the package that a command calls for. UsageError where it fails."""
    from orion.kernel.build.recorded import SWITCH, records_in

    with tempfile.TemporaryDirectory(prefix="orion-record-") as folder:
        paths = [str(package.folder.parents[package.name.count(".")]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, SWITCH: folder, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        try:
            code = subprocess.run(shlex.split(command), env=environment, check=False).returncode
        except (OSError, ValueError) as error:
            raise UsageError(f"--record {command}: {error}") from None
        if code:
            raise UsageError(f"--record {command}: it ended with {code}; nothing is built from a run that failed")
        return [one for one in records_in(Path(folder)) if package.holds(one.user.file)]


def _missing(name: str, function: ParallelFunction[..., Any], places: set[tuple[str, int]]) -> str:
    """Why nothing of a function is built, if nobody has asked for it; "" where something is, or was asked for."""
    code = function.__wrapped__.__code__
    if function.options.signatures or (code.co_filename, code.co_firstlineno) in places:
        return ""
    try:
        annotated(function.__wrapped__)
    except SignatureError as error:
        return f"`{name}`: {error}; give `signatures=[...]`, or call it under --record"
    return f"`{name}`: none of its calls has a loop to compile"


# ------------------------------------------------------------ building


def _compiled(sources: Sequence[KernelSource], cpus: Sequence[Cpu], folder: Path) -> list[Made]:
    """Compile kernels into a folder; those that are there for this Python go. UsageError where it cannot be written."""
    from orion.kernel.build.ahead import compile_ahead
    from orion.kernel.build.shipped import replace_shipped

    made: list[Made] = []
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=folder) as place:
            for cpu in cpus:
                compile_ahead(sources, cpu, Path(place), made.append)
            replace_shipped(folder, Path(place))
    except OSError as error:
        raise UsageError(f"cannot build into {folder}: {error}") from None
    return made


def _tell(package: Package, folder: Path, made: Sequence[Made]) -> None:
    size = sum(one.bytes for one in made)
    lines = [f"{folder}: {counted(len(made), 'kernel')}, {bytes_text(size)}"]
    width = max((len(one.cpu) for one in made), default=0)
    ordered = sorted(made, key=lambda one: (one.cpu, one.line, one.types))
    lines += [f"  {one.cpu:<{width}}  {one.function}, line {one.line}: {one.types}" for one in ordered]
    show("\n".join(lines))
