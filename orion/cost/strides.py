"""Which loop of a band should be innermost: the one along which memory is gone through element by element."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orion.dependence.region import Region, Statement, piece_coefficients
from orion.ir.nodes import For, holds

if TYPE_CHECKING:
    import islpy as isl

Matrix = NDArray[np.floating]

STILL, NEXT, JUMP = 0, 1, 8
"""What one more trip costs an access: nothing where it stays at its element, little for the next one in memory, and a
cache line where it goes anywhere else."""


def innermost_first(node: isl.ScheduleNode, region: Region) -> tuple[list[int], dict[str, int]]:
    """The members of a permutable band from the one that should be innermost to the outermost, and what a trip of the
    innermost costs each statement below it."""
    dims = node.band_n_member()
    costs: dict[str, list[int]] = {}
    for statement in region.statements:
        order = order_matrix(node, statement)
        if order is not None:
            inverse = np.linalg.pinv(order)[:, order.shape[0] - dims :]
            costs[statement.name] = [_all_costs(statement, inverse[:, member]) for member in range(dims)]
    total = [sum(cost[member] for cost in costs.values()) for member in range(dims)]
    best = sorted(range(dims), key=lambda member: (total[member], -member))
    return best, {name: cost[best[0]] for name, cost in costs.items()}


def jam_gains(node: isl.ScheduleNode, region: Region) -> list[bool]:
    """For each member of a band but the last: whether it gains to make several of its trips together.

    It does where an access stays at its element along the member and moves along the last one, so that the element can
    be in a register for several trips (not where other elements of the same array are written meanwhile, which may be
    this one as far as the processor's compiler knows); and where an element is written again and again along the last
    one, a chain, and others along the member. Statements that write elements by subscripts which are read gain nothing.
    """
    dims = node.band_n_member()
    found = [False] * (dims - 1)
    below = [(statement, order_matrix(node, statement)) for statement in region.statements]
    present = [statement for statement, order in below if order is not None]
    for statement, order in below:
        if order is None or _scatters(statement, region.scalars):
            continue
        inverse = np.linalg.pinv(order)[:, order.shape[0] - dims :]
        for array, is_write, subscripts in statement.subscripts:
            stays = [trip_cost(subscripts, inverse[:, member]) == STILL for member in range(dims)]
            moves = [bool(inverse[:, member].any()) for member in range(dims)]
            if not moves[-1]:
                continue
            if stays[-1] and is_write:
                found = [gain or not stay for gain, stay in zip(found, stays, strict=False)]
            if not stays[-1] and _is_alone(array, subscripts, statement, present):
                found = [gain or (stay and move) for gain, stay, move in zip(found, stays, moves, strict=False)]
    return found


def _scatters(statement: Statement, scalars: Set[str]) -> bool:
    """Whether a statement writes elements whose places are read from arrays: which may be any, as far as the
    processor's compiler knows, so that nothing stays in a register meanwhile."""
    writes = sum(access.is_write for access in statement.accesses if access.array not in scalars)
    return writes > sum(is_write for _, is_write, _ in statement.subscripts)


def _is_alone(array: str, subscripts: Matrix, own: Statement, statements: Sequence[Statement]) -> bool:
    """Whether an array is only read, or a statement accesses it with these subscripts alone, and no other one with as
    many loops writes it."""
    writers = [s for s in statements if any(access.array == array and access.is_write for access in s.accesses)]
    same = all(np.array_equal(matrix, subscripts) for name, _, matrix in own.subscripts if name == array)
    return not writers or (same and all(w is own or len(w.space.dims) < len(own.space.dims) for w in writers))


def innermost_cost(statement: Statement) -> int:
    """What a trip of the innermost loop around a statement costs as it is written."""
    direction = np.zeros(len(statement.space.dims))
    direction[-1] = 1.0
    return _all_costs(statement, direction)


def cannot_gain(region: Region) -> bool:
    """Whether it is certain before one is looked for that no order goes through memory in smaller steps, or keeps
    elements in registers: each statement has one loop, or each of its accesses goes to another element in every trip of
    any loop, and to the next one in the innermost. Nothing is certain where loops are part of a statement."""
    return all(_is_best(statement) for statement in region.statements)


def _is_best(statement: Statement) -> bool:
    if holds(For, *statement.body):
        return False
    if len(statement.loops) == 1:
        return True
    dims = len(statement.space.dims)
    innermost = np.eye(dims)[-1]
    return all(
        np.linalg.matrix_rank(matrix) == dims and trip_cost(matrix, innermost) == NEXT
        for _, _, matrix in statement.subscripts
    )


def _all_costs(statement: Statement, direction: Matrix) -> int:
    return sum(trip_cost(matrix, direction) for _, _, matrix in statement.subscripts)


def trip_cost(subscripts: Matrix, direction: Matrix) -> int:
    """What an access costs per trip in a direction of the iteration space: by how its subscripts move.

    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> trip_cost(rows, np.array([0.0, 1.0])), trip_cost(rows, np.array([1.0, 0.0])), trip_cost(rows[:1] * 0, rows[0])
    (1, 8, 0)
    """
    moves = np.round(subscripts @ direction, 6)
    if not moves.any():
        return STILL
    return NEXT if not moves[:-1].any() and abs(moves[-1]) == 1 else JUMP


def order_matrix(node: isl.ScheduleNode, statement: Statement) -> Matrix | None:
    """The coefficients of a statement's loop dimensions in the loops around a band and in the band, one row each.

    None where the statement is not below the band.
    """
    here = node.get_domain()
    if not any(name == statement.name for name in tuple_names(here)):
        return None
    outer, own = node.get_prefix_schedule_multi_union_pw_aff(), node.band_get_partial_schedule()
    rows = [row for schedule in (outer, own) for row in _rows(schedule, statement)]
    return np.array(rows, np.float64).reshape(-1, len(statement.space.dims))


def tuple_names(domain: isl.UnionSet) -> list[str]:
    """The names of the statements of which a union of instances has some."""
    found: list[str] = []
    domain.foreach_set(lambda part: found.append(part.get_tuple_name()))
    return found


def _rows(schedule: isl.MultiUnionPwAff, statement: Statement) -> list[list[float]]:
    import islpy as isl

    rows = []
    for position in range(schedule.dim(isl.dim_type.out)):
        parts: list[isl.PwAff] = []
        schedule.get_at(position).foreach_pw_aff(parts.append)
        for part in parts:
            if part.get_space().get_tuple_name(isl.dim_type.in_) == statement.name:
                rows.append(piece_coefficients(part, len(statement.space.dims)))
    return rows
