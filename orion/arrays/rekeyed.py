"""Sparse arrays with maps of their keys as keys (`orion.frontend.mapped_keys`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from orion.arrays.sparse import SparseArray, sparse


def rekeyed(
    array: SparseArray, terms: tuple[tuple[int, str], ...], kept: tuple[int, ...], maps: Mapping[str, Any]
) -> SparseArray | None:
    """The elements of an array, in the order in which they were given, with other keys: for each of `terms` one, which
    is that of a dimension, or what a map among `maps` has for it. The keys of the dimensions `kept` are values behind
    the others. None where a map is no array of integers for all keys, or has negative ones: these count from the end,
    and so are not the same for the same element.

    >>> array = sparse(([0, 2], [1, 0]), np.array([0.5, 0.25]))
    >>> found = rekeyed(array, ((0, "group"), (1, "")), (0,), {"group": np.array([7, 0, 7])})
    >>> [key for key, _ in found], found.values[1]
    ([(7, 0), (7, 1)], array([0, 2], dtype=int32))
    """
    keys, shape = [], []
    coords = array.coords
    for dim, name in terms:
        own = coords[dim]
        if not name:
            keys.append(own)
            shape.append(array.shape[dim])
            continue
        one = maps[name]
        if type(one) is not np.ndarray or one.ndim != 1 or one.dtype.kind not in "iu" or len(one) < array.extents[dim]:
            return None
        mapped = one[own]
        least, greatest = (int(mapped.min()), int(mapped.max())) if mapped.size else (0, 0)
        if least < 0 or greatest >= 2**62:
            return None
        keys.append(mapped)
        shape.append(greatest + 1)
    values = array.values if isinstance(array.values, tuple) else (array.values,)
    values = (*values, *(coords[dim] for dim in kept))
    return sparse(keys, values if len(values) > 1 or array.values_are_tuple else values[0], shape, allow_nan=True)
