"""Arrays of which each worker has a copy, in the source of a function (`orion.replicate`).

`x` in the source stays, as the copy of a worker; `x.shape` and its like become those of the array. The array, the
copies of all workers and the momentum of these become parameters, where the source has none of them.
"""

from __future__ import annotations

import ast

from orion.arrays.policies import Elastic, LocalSgd, Policy
from orion.dataclass import dataclass
from orion.frontend.locate import span_of
from orion.ir.refuse import unsupported
from orion.ir.renaming import fresh
from orion.ir.replicas import Replica, ReplicaPart
from orion.source import SourceText


@dataclass(frozen=True, slots=True)
class ReplicaOf:
    """What a call gives for parameter `name`: a replica of the parameter `array`, None where that is no parameter."""

    name: str
    array: str | None
    policy: Policy


def write_replica(
    definition: ast.FunctionDef, one: ReplicaOf, source: SourceText, used: set[str]
) -> tuple[Replica, list[ReplicaPart]]:
    """The replica in the terms of the function, and the parameters that it takes from it. UnsupportedLoopError where
    the function gives its name to something else."""
    parts = [ReplicaPart(one.name, one.name, "array")]

    def param(wish: str, part: str) -> str:
        name = fresh(f"{one.name}_{wish}", used)
        parts.append(ReplicaPart(name, one.name, part))
        return name

    array = one.array or param("array", "array")
    copies = param("copies", "copies")
    momentum: tuple[str, ...] = ()
    if isinstance(one.policy, Elastic) and one.policy.momentum:
        momentum = param("velocities", "velocities"), param("velocity", "array"), param("before", "array")
    outer = (param("outer", "outer"),) if isinstance(one.policy, LocalSgd) and one.policy.step else ()
    posted = (param("posted", "posted"),) if one.policy.overlaps else ()
    _refuse_other_values(definition, one.name, source)
    _with_attributes_of(definition, one.name, array)
    params = [node for node in ast.walk(definition.args) if isinstance(node, ast.arg) and node.arg == one.name]
    span = span_of(params[0], source)
    return Replica(one.name, array, copies, momentum, outer, posted, one.policy, span), parts


def _refuse_other_values(definition: ast.FunctionDef, name: str, source: SourceText) -> None:
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            if any(isinstance(one, ast.AugAssign) and one.target is node for one in ast.walk(definition)):
                continue  # all of its elements
            what = f"`{name}` is given another value, and is an array of which each worker has a copy"
            hint = f"write `{name}[…] = …`, or use another name"
            raise unsupported(what, span_of(node, source), source, hint=hint, is_for_numba=False)


def _with_attributes_of(definition: ast.FunctionDef, name: str, array: str) -> None:
    for node in ast.walk(definition):
        match node:
            case ast.Attribute(ast.Name(found) as base, "shape" | "size" | "ndim" | "dtype") if found == name:
                base.id = array
            case ast.Call(ast.Name("len"), [ast.Name(found) as base], []) if found == name:
                base.id = array
