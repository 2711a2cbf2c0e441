"""The number of cores that this process may use: the smaller of its CPU affinity and the CPU quota of its control
groups."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from orion.dataclass import dataclass

PROCESS = Path("/proc/self")


def cores() -> int:
    """Return the number of cores that this process may use, at least 1; a fraction of a core counts as one.

    It reads a few files each time, since quotas change while processes run.
    """
    quota = cpu_quota()
    return affinity() if quota is None else max(1, min(affinity(), math.ceil(quota)))


def cpu_quota(process: Path = PROCESS) -> float | None:
    """Return the smallest CPU quota, in cores, of a process's control groups up to their roots; None without a quota.
    `process` is the process's folder in `/proc`."""
    return min(_quotas(process), default=None)


def machine_cores() -> int:
    """Return the number of cores of the machine, whether this process may use them or not."""
    return os.cpu_count() or 1


def affinity() -> int:
    """Return the number of cores that this process may run on, whatever its quota."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return machine_cores()


# ---------------------------------------------------------------- control groups


@dataclass(frozen=True)
class _Mount:
    """A mounted hierarchy of control groups: its version, the group at its root, and its folder."""

    version: int
    root: PurePosixPath
    folder: Path


def _quotas(process: Path) -> Iterator[float]:
    """Yield the quotas of the groups of a process, of both versions of control groups."""
    groups = _groups(_text(process / "cgroup"))
    for mount in _mounts(_text(process / "mountinfo")):
        if mount.version in groups:
            for folder in _up_to_root(mount, groups[mount.version]):
                quota = _quota_v2(folder) if mount.version == 2 else _quota_v1(folder)
                if quota is not None:
                    yield quota


def _groups(text: str) -> dict[int, PurePosixPath]:
    """Return the group of a process in the CPU hierarchy of version 1, and in that of version 2, by version.

    >>> _groups("4:memory:/job\\n3:cpu,cpuacct:/job\\n0::/job/step\\n")
    {1: PurePosixPath('/job'), 2: PurePosixPath('/job/step')}
    """
    found = {}
    for line in text.splitlines():
        _, _, controllers_and_path = line.partition(":")
        controllers, _, path = controllers_and_path.partition(":")
        if not controllers:
            found[2] = PurePosixPath(path)
        elif "cpu" in controllers.split(","):
            found[1] = PurePosixPath(path)
    return found


def _mounts(text: str) -> Iterator[_Mount]:
    """Yield the mounted hierarchies that may hold CPU quotas, by the lines of `mountinfo`: `id parent device root
    folder options … - type source options`."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        where, kind = before.split(" "), after.split(" ")
        if len(where) < 5:
            continue
        is_first = kind[0] == "cgroup" and "cpu" in kind[-1].split(",")
        if is_first or kind[0] == "cgroup2":
            yield _Mount(1 if is_first else 2, PurePosixPath(_unescaped(where[3])), Path(_unescaped(where[4])))


def _up_to_root(mount: _Mount, group: PurePosixPath) -> list[Path]:
    """Return the folders of a group and its ancestors, as far as they are mounted. A container may see a group that is
    outside of its mount: its own is then the root of this."""
    try:
        parts = group.relative_to(mount.root).parts
    except ValueError:
        parts = ()
    if ".." in parts:
        parts = ()
    return [mount.folder.joinpath(*parts[:end]) for end in range(len(parts), -1, -1)]


def _quota_v2(folder: Path) -> float | None:
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    return _share(quota, period)


def _quota_v1(folder: Path) -> float | None:
    return _share(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))


def _share(quota: str, period: str) -> float | None:
    """Return a quota in cores; None for `max`, -1, and whatever is not a pair of positive numbers.

    >>> _share("150000", "100000\\n"), _share("max", "100000"), _share("-1", "100000"), _share("", "")
    (1.5, None, None, None)
    """
    if not (quota.strip().isdecimal() and period.strip().isdecimal()):
        return None
    microseconds, of = int(quota), int(period)
    return microseconds / of if microseconds and of else None


def _text(path: Path) -> str:
    """Return what a file holds; nothing where it cannot be read."""
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""


def _unescaped(path: str) -> str:
    """Return a path of `mountinfo`, in which blanks and the like are octal numbers.

    >>> _unescaped("/sys/fs/my\\\\040groups")
    '/sys/fs/my groups'
    """
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
