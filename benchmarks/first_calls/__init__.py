"""How long first calls take: Orion next to `numba.njit` of the same text."""
