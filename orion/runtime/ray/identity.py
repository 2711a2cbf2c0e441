"""A mapping keyed by objects themselves, not by what they are equal to, that does not keep them alive."""

from __future__ import annotations

from typing import Generic, TypeVar
from weakref import ref

V = TypeVar("V")


class IdentityMap(Generic[V]):
    """Values for objects that may have no hash (arrays); an entry goes with its object.

    >>> import numpy as np
    >>> names = IdentityMap()
    >>> a = np.zeros(2)
    >>> names[a] = "a"
    >>> names.get(a), names.get(np.zeros(2))
    ('a', None)
    >>> del a
    >>> len(names)
    0
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[ref[object], V]] = {}

    def get(self, key: object) -> V | None:
        """The value for this very object, or None."""
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def __setitem__(self, key: object, value: V) -> None:
        place = id(key)

        def forget(gone: ref[object]) -> None:
            entry = self._entries.get(place)
            if entry is not None and entry[0] is gone:
                del self._entries[place]

        self._entries[place] = ref(key, forget), value

    def clear(self) -> None:
        """Let go of all values."""
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
