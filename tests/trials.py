"""How much the random tests try: `ORION_TRIALS=4 make test` has them try four times as much as a commit has to pass."""

import os

TIMES = int(os.environ.get("ORION_TRIALS", "1"))
