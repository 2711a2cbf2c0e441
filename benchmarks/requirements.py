"""Requirements of a benchmark, checked before it computes anything: a sentence says what is missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

CPU_QUOTAS = Path("/sys/fs/cgroup/cpu")
"""The controller `cpu` of cgroup v1."""

FUSE = Path("/dev/fuse")


def require(benchmark: str, *missing: str) -> None:
    """Exit with code 1 and the first sentence about something missing; empty ones stand for what is there."""
    sentence = next(filter(None, missing), "")
    if sentence:
        raise SystemExit(f"{benchmark}: {sentence}")


def missing_root(purpose: str) -> str:
    """Return the sentence about missing root rights, which serve a purpose; "" for root."""
    return "" if os.geteuid() == 0 else f"only root can {purpose}: run it as root"


def missing_program(name: str, purpose: str) -> str:
    """Return the sentence about a program that is not on the PATH; "" for one that is."""
    return "" if shutil.which(name) else f"`{name}` is not on the PATH, and {purpose} needs it: install it"


def missing_hosts() -> str:
    """Return why this machine can have no hosts in network namespaces; "" where it can."""
    from tests.hosts import why_not

    reason = why_not()
    return reason and f"there can be no hosts here: {reason}"


def missing_quotas() -> str:
    """Return the sentence about CPU quotas that cannot be set; "" where they can."""
    if sentence := missing_root("hold a thread to a part of a core"):
        return sentence
    if (CPU_QUOTAS / "cpu.cfs_quota_us").exists():
        return ""
    return f"cgroup v1 with the controller `cpu` is required, and nothing is mounted at {CPU_QUOTAS}"


def missing_fuse() -> str:
    """Return the sentence about a FUSE folder that cannot be mounted; "" where it can."""
    if sentence := missing_root("mount a folder by FUSE"):
        return f"{sentence}, or name a folder with --folder"
    return "" if FUSE.exists() else f"FUSE is required, and there is no {FUSE}: name a folder with --folder"
