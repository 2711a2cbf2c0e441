"""`python -m orion`."""

import sys

from orion.inspect.cli.cli import main

if __name__ == "__main__":
    sys.exit(main())
