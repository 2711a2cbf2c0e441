"""Loops as users write them: `make everyday` says which are taken, which run in parallel, and how fast."""
