"""`python -m orion`."""

import sys

from orion.cli.cli import main

if __name__ == "__main__":
    sys.exit(main())
