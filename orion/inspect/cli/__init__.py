"""The command line: `python -m orion explain FILE[:FUNCTION]`."""

from orion.inspect.cli.command import main

__all__ = ["main"]
