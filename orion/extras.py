"""Packages that an install may leave out: which extra brings each, and what a call says that misses one."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec

from orion.errors import MissingExtraError, describe

DISTRIBUTION = "orion-loops"
EXTRAS = {"ray": "ray", "pyarrow": "files"}
"""By package, the extra that brings it."""


def require(package: str, purpose: str, instead: str = "") -> None:
    """Raise MissingExtraError unless `package` is installed, in a version that Orion works with.

    `purpose` says what needs it ("the Ray backend"), `instead` what to do without it.

    >>> require("ray", "the Ray backend")
    """
    trouble = _trouble(package)
    if trouble:
        hint = f"install it with `{install(EXTRAS[package])}`" + (f", or {instead}" if instead else "")
        raise MissingExtraError(describe(f"{purpose} needs the package `{package}`, {trouble}", hint=hint))


def install(extra: str) -> str:
    """The command that installs an extra.

    >>> install("files")
    "pip install 'orion-loops[files]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _trouble(package: str) -> str:
    """What is wrong with a package, in half a sentence; "" if nothing is."""
    if package not in sys.modules and find_spec(package) is None:
        return "which is not installed"
    least, found = least_version(package), _installed(package)
    if _numbers(found) and _numbers(found) < _numbers(least):
        return f"version {least} or later, and {found} is installed"
    return ""


@cache
def least_version(package: str) -> str:
    """The oldest version of a package that Orion asks for; "" if it asks for none, or is not installed itself.

    >>> least_version("ray")
    '2.40'
    """
    for line in _requirements():
        found = re.match(rf"{re.escape(package)}\s*\(?>=\s*([0-9.]+)", line, re.IGNORECASE)
        if found:
            return found[1]
    return ""


def _requirements() -> list[str]:
    """What Orion asks for, as its metadata has it."""
    try:
        return requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # run from its folder
        return []


@cache
def _installed(package: str) -> str:
    """The version of a distribution, "" if it has none that is known."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers in front of a version.

    >>> _numbers("2.40.1rc2")
    (2, 40, 1)
    """
    front = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, front[0].split("."))) if front else ()
