"""Programs whose loops are small and many: `make small` says how fast they are next to Numba."""
