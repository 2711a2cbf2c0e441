"""`f.debug(...)`: the tiles of a plan, run as plain Python on one thread."""
