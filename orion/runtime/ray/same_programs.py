"""Workers run what the driver runs: the same Orion, Python, NumPy and Numba, and the modules of the user."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np
import ray
from ray.exceptions import RayActorError, RayError

from orion.errors import ArgumentError, describe

WHY = "workers run the driver's compiled loops, and results keep their bits only where the same programs compile them"

EVERYWHERE = 'or give all nodes one environment: ray.init(address=…, runtime_env={"pip": […]}) before `orion.init`'


def own_versions() -> dict[str, str]:
    """The versions of what must be the same in all processes of a session. Python may differ in its last number."""
    python = ".".join(platform.python_version_tuple()[:2])
    own: str = sys.modules["orion"].__version__
    return {"Orion": own, "Python": python, "NumPy": np.__version__, "Numba": version("numba")}


def refuse_others(found: Sequence[Mapping[str, str]], nodes: Sequence[str]) -> None:
    """`ArgumentError` where a worker has other versions than this process; `found` are those of worker w, which is on
    node `nodes[w]`."""
    here = own_versions()
    for there, node in zip(found, nodes, strict=True):
        other = [name for name in here if there.get(name) != here[name]]
        if other:
            told = "; ".join(f"{name} {there.get(name, '?')} there, {here[name]} here" for name in other)
            wanted = " ".join(f"{name.lower()}=={here[name]}" for name in other)
            what = f"the workers on {node_text(node)} have other versions than this program: {told}"
            raise ArgumentError(describe(what, why=WHY, hint=f"install {wanted} there, {EVERYWHERE}"))


def not_made(error: RayActorError) -> ArgumentError:
    """What to say where an actor's class could not be loaded, or made: that is the same at each attempt."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    place = re.search(r"\bip=([^,)\s]+)", str(error))
    where = f"node {place[1]}" if place else "one of the nodes"
    versions = ", ".join(f"{name} {number}" for name, number in own_versions().items())
    what = f"no worker can be made on {where}, which lacks what workers need, or has other versions of it"
    return ArgumentError(describe(what, why=lines[-1], hint=f"install there what is here ({versions}), {EVERYWHERE}"))


def module_not_found(error: BaseException, node: str) -> ArgumentError | None:
    """What to say where a worker could not import a module that a loop uses; None for any other error."""
    found = re.search(r"No module named '([^']+)'", str(error))
    if found is None or not isinstance(error, ImportError | RayError):
        return None
    what = f"the workers on {node_text(node)} have no module `{found[1]}`, which the loop uses"
    sent = f'runtime_env={{"py_modules": ["path/to/{found[1].partition(".")[0]}"]}}'
    hint = f"install it there, or send it along: ray.init(address=…, {sent}) before `orion.init`"
    return ArgumentError(describe(what, hint=hint))


def node_text(node: str) -> str:
    """A node by its address, and the beginning of the id that Ray gave it."""
    addresses = {one["NodeID"]: one["NodeManagerAddress"] for one in ray.nodes()}
    return f"node {addresses.get(node, '?')} ({node[:8]})"
