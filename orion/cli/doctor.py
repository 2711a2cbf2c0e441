"""`orion doctor`: what is installed, what the machine can do, where compiled loops are kept, and what is slow here."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from orion import __version__
from orion.arrays.base import bytes_text
from orion.cli.build.installed import Shipped, shipped_here
from orion.cli.given import UsageError
from orion.cli.shown import hanging, show
from orion.cores import affinity, cores, cpu_quota, machine_cores
from orion.dataclass import dataclass
from orion.errors import ArgumentError
from orion.inspect.text.text import WIDTH, terminal_width
from orion.inspect.text.words import counted
from orion.kernel.build.cache import in_words, named_folder, trouble_with
from orion.kernel.build.target import target
from orion.runtime.session import current_session

PACKAGES = ("numpy", "numba", "llvmlite", "islpy", "networkx", "scipy", "threadpoolctl", "pyarrow", "ray")
OWN_FILES = re.compile(r"orion_\w+\.py|orion_\w+\..*\.(nbi|nbc)|orion_\w+\.tmp")
"""The names of Orion's files in the cache folder, and of Numba's beside them."""

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "fuse.sshfs", "9p", "afs", "ceph", "glusterfs")
MEASURED_BYTES = 32 << 20
HASHED_BYTES = 16 << 20
BUSY = 0.75
"""The share of the cores below which other programs are said to have them."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The folder of compiled loops: whether it exists, the bytes of Orion's files there, its `kernels` (generated
    modules), what keeps Orion from using it, and the kind of its file system."""

    folder: str
    exists: bool
    bytes: int
    kernels: int
    trouble: str
    filesystem: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of the machine: bandwidth of one thread that copies memory, in GB/s read and written; cores that
    computing threads got at once; seconds that it took."""

    gigabytes: float
    cores: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Blas:
    """A BLAS library of this process, and the number of its threads."""

    name: str
    version: str
    threads: int


@dataclass(frozen=True, slots=True)
class Report:
    """Findings of `orion doctor`. `cores` are those that the process may use: the smaller of its `affinity` and its
    `quota`. `trouble` says what is wrong with Orion's environment variables."""

    python: str
    system: str
    versions: dict[str, str]
    cpu: str
    vectors: int
    online: int
    affinity: int
    quota: float | None
    cores: int
    blas: tuple[Blas, ...]
    layer: str
    settings: dict[str, str]
    backend: str
    workers: int
    trouble: str
    cache: Cache
    shipped: tuple[Shipped, ...]
    measured: Measured


# ------------------------------------------------------------ looking


def look() -> Report:
    """Look at the process and its machine; no loop runs, and no worker starts."""
    processor, (backend, workers, trouble) = target(), _session()
    return Report(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        versions={name: _version(name) for name in PACKAGES},
        cpu=f"{_cpu_name()} ({processor.cpu})",
        vectors=processor.vectors,
        online=machine_cores(),
        affinity=affinity(),
        quota=cpu_quota(),
        cores=cores(),
        blas=_blas(),
        layer=processor.layer,
        settings=processor.settings,
        backend=backend,
        workers=workers,
        trouble=trouble,
        cache=found_cache(),
        shipped=shipped_here(),
        measured=_measured(),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"(?m)^model name\s*: (.*)$", text)
    return found[1].strip() if found else platform.machine()


def _blas() -> tuple[Blas, ...]:
    from threadpoolctl import threadpool_info

    libraries = [one for one in threadpool_info() if one["user_api"] == "blas"]
    return tuple(Blas(one["internal_api"], one["version"] or "", one["num_threads"]) for one in libraries)


def _session() -> tuple[str, int, str]:
    """The backend and workers of the session that a call would begin, and what is wrong with its variables."""
    try:
        session = current_session()
        return session.settings.backend, session.workers, ""
    except ArgumentError as error:
        return "", 0, str(error).splitlines()[0]


def found_cache() -> Cache:
    """Look at the folder of compiled loops; it is not made."""
    try:
        folder = named_folder()
    except RuntimeError as error:
        return Cache("", False, 0, 0, str(error), "")
    files = [path for path in _own_files(folder) if path.exists()]
    sizes = sum(path.stat().st_size for path in files)
    kernels = sum(path.suffix == ".py" for path in files)
    return Cache(str(folder), folder.is_dir(), sizes, kernels, _trouble(folder), _filesystem(folder))


def _trouble(folder: Path) -> str:
    """What keeps Orion from writing to its folder, or from making it."""
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    if not existing.is_dir():
        return f"{existing} is a file, and no folder"
    if existing == folder:
        return trouble_with(folder)
    return "" if os.access(existing, os.W_OK) else f"{existing} cannot be written to"


def _own_files(folder: Path) -> Iterator[Path]:
    """Yield Orion's files in its folder; links are not followed."""
    for place in (folder, folder / "__pycache__"):
        if place.is_dir() and not place.is_symlink():
            yield from (path for path in place.iterdir() if OWN_FILES.fullmatch(path.name) and not path.is_dir())


def _filesystem(folder: Path) -> str:
    """The kind of the file system that a folder is on, as Linux calls it; empty where it is not known."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    place, found = str(folder.absolute()), ("", "")
    for line in lines:
        before, _, after = line.partition(" - ")
        where, kind = before.split(" ")[4], after.split(" ")[0]
        if (f"{place}/".startswith(where.rstrip("/") + "/")) and len(where) >= len(found[0]):
            found = where, kind
    return found[1]


def _measured() -> Measured:
    begin = time.perf_counter()
    source = np.ones(MEASURED_BYTES // 8)
    target = np.empty_like(source)
    copied = min(_seconds(lambda: np.copyto(target, source)) for _ in range(5))
    data = bytes(HASHED_BYTES)
    count = cores()

    def hash_all(_: int) -> bytes:  # without the interpreter's lock
        return hashlib.sha256(data).digest()

    alone = min(_seconds(lambda: hash_all(0)) for _ in range(3))
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda _: hashlib.sha256(b"").digest(), range(count)))  # threads have begun
        together = min(_seconds(lambda: list(pool.map(hash_all, range(count)))) for _ in range(3))
    return Measured(2 * MEASURED_BYTES / copied / 1e9, count * alone / together, time.perf_counter() - begin)


def _seconds(run: Any) -> float:
    begin = time.perf_counter()
    run()
    return max(time.perf_counter() - begin, 1e-9)


# ------------------------------------------------------------ clearing


def cleared() -> tuple[int, int]:
    """Remove Orion's files from the cache folder; returns how many, and their bytes. OSError where one stays."""
    files, size = 0, 0
    for path in list(_own_files(Path(found_cache().folder))):
        bytes_of = path.lstat().st_size
        path.unlink(missing_ok=True)
        files, size = files + 1, size + bytes_of
    return files, size


# ------------------------------------------------------------ telling


def slow(report: Report) -> list[str]:
    """Return what makes loops slower here than they could be: a sentence each, with why and what to do."""
    return [*_few_cores(report), *_slow_code(report), *_slow_cache(report.cache)]


def _few_cores(report: Report) -> Iterator[str]:
    if report.trouble:
        yield f"Orion's settings cannot be read: {report.trouble}"
    if report.quota is not None and report.quota < report.affinity:
        yield (
            f"the control group (container, job) allows {report.quota:g} of {report.affinity} cores: ask for more CPU, "
            "for example by `--cpus` of the container or by the job's CPU limit"
        )
    if report.affinity < report.online:
        yield (
            f"the affinity of the process allows {report.affinity} of {report.online} cores: look at `taskset` and at "
            "the scheduler that starts it"
        )
    if report.cores == 1:
        yield "there is one core: loops are compiled, and run one iteration after the other"
    elif report.measured.cores < BUSY * report.cores:
        yield (
            f"{report.cores} computing threads get {report.measured.cores:.1f} cores at once: other programs, or other "
            "guests of the host, have the rest; look at `top`"
        )
    if report.backend == "serial":
        yield "the backend is `serial`: unset ORION_BACKEND, or set it to `threads`"
    elif 0 < report.workers < report.cores:
        yield f"loops run on {report.workers} of {report.cores} cores: unset ORION_WORKERS"


def _slow_code(report: Report) -> Iterator[str]:
    if report.vectors < 256 and platform.machine() in ("x86_64", "AMD64"):
        yield (
            f"kernels have vectors of {report.vectors} bits: the CPU, or the virtual machine, shows no AVX; loops over "
            "rows take about twice as long as with AVX2"
        )
    meanings = {
        "NUMBA_DISABLE_JIT": ("0", "turns the compiler off"),
        "NUMBA_OPT": ("3", "is not the full optimization, 3"),
        "NUMBA_ENABLE_AVX": ("1", "turns AVX off"),
        "NUMBA_CPU_NAME": ("host", "compiles for another CPU"),
        "NUMBA_CPU_FEATURES": ("", "compiles for a CPU with other features"),
    }
    for name, value in report.settings.items():
        usual, meaning = meanings[name]
        if value not in (usual, "max"):
            yield f"{name}={value} {meaning}: unset it"


def _slow_cache(cache: Cache) -> Iterator[str]:
    if cache.trouble:
        yield (
            f"compiled loops are not kept ({cache.trouble}), so each process has them compiled anew: name a folder of "
            "your own in ORION_CACHE"
        )
        return
    if cache.filesystem in NETWORK:
        yield (
            f"the cache is on a network file system ({cache.filesystem}), which makes first calls slow: name a local "
            "folder in ORION_CACHE"
        )
    if not cache.kernels:
        yield "nothing is compiled yet: the first call of each loop compiles it, later processes read the cache"


def report_text(report: Report, width: int = WIDTH) -> str:
    """Return the report as it is printed, at most `width` columns wide where it can be broken."""
    installed = [f"{name} {found}" for name, found in report.versions.items() if found]
    missing = [name for name, found in report.versions.items() if not found]
    quota = "no quota" if report.quota is None else f"a quota of {report.quota:g}"
    blas = [f"{one.name} {one.version} with {counted(one.threads, 'thread')}" for one in report.blas]
    cache = report.cache
    state = cache.trouble or ("can be written" if cache.exists else "will be made by the first call")
    measured = report.measured
    rows = [
        ("python", f"{report.python}, {report.system}"),
        ("installed", ", ".join(installed)),
        *([("missing", ", ".join(missing))] if missing else []),
        ("CPU", report.cpu),
        ("vectors", f"{report.vectors} bits"),
        ("cores", f"{report.cores}: {report.affinity} of {report.online} by affinity, {quota}"),
        ("measured", f"{measured.gigabytes:.1f} GB/s read and written by one thread that copies"),
        ("", f"{measured.cores:.1f} cores for {counted(report.cores, 'computing thread')}"),
        ("BLAS", ", ".join(blas) or "none"),
        ("threads", f"Orion's own; Numba's threading layer ({report.layer}) is not used"),
        ("session", report.trouble or f"{report.backend}, {counted(report.workers, 'worker')}"),
        ("cache", cache.folder),
        ("", f"{bytes_text(cache.bytes)}, {counted(cache.kernels, 'kernel')}, {state}"),
        ("", f"on {cache.filesystem or 'a file system that is not known'}"),
        *(("shipped" if number == 0 else "", one.in_words()) for number, one in enumerate(report.shipped)),
    ]
    lines = [f"orion {__version__}", *(hanging(text, width, f"  {name:<10} ") for name, text in rows), ""]
    found = slow(report)
    lines += ["slow here:"] if found else ["nothing here is slow that Orion knows of"]
    lines += [hanging(one, width, "  - ") for one in found]
    return "\n".join(lines)


def doctor(*, as_json: bool, clears: bool) -> int:
    """Run the command; returns the exit status."""
    if clears:
        try:
            files, size = cleared()
        except OSError as error:
            raise UsageError(f"cannot clear the cache: {in_words(error)}") from None
        show(f"removed {counted(files, 'file')}, {bytes_text(size)}, from {found_cache().folder}")
        return 0
    report = look()
    if as_json:
        print(json.dumps({**asdict(report), "slow": slow(report)}, indent=2))
    else:
        show(report_text(report, terminal_width()))
    return 0
