"""Orion runs ordinary Python loops in parallel, and proves that it may.

    import numpy as np, orion

    @orion.parallel_for
    def scale(a, factor):
        for i in range(a.shape[0]):
            a[i] *= factor

Nothing heavy is imported until it is needed: neither Numba nor Ray by `import orion`.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orion.api import ParallelFunction as ParallelFunction
    from orion.api import parallel_for as parallel_for
    from orion.arrays import DenseArray as DenseArray
    from orion.arrays import DistArray as DistArray
    from orion.arrays import SparseArray as SparseArray
    from orion.arrays import array as array
    from orion.arrays import from_arrow as from_arrow
    from orion.arrays import from_pandas as from_pandas
    from orion.arrays import from_scipy as from_scipy
    from orion.arrays import full as full
    from orion.arrays import normal as normal
    from orion.arrays import ones as ones
    from orion.arrays import read_csv as read_csv
    from orion.arrays import read_libsvm as read_libsvm
    from orion.arrays import read_parquet as read_parquet
    from orion.arrays import sparse as sparse
    from orion.arrays import text_file as text_file
    from orion.arrays import uniform as uniform
    from orion.arrays import zeros as zeros
    from orion.arrays.accumulator import accumulator as accumulator
    from orion.arrays.buffer import buffer as buffer
    from orion.arrays.files.saved import load as load
    from orion.arrays.frozen import freeze as freeze
    from orion.arrays.pacing import pacing as pacing
    from orion.arrays.policies import elastic as elastic
    from orion.arrays.policies import local_sgd as local_sgd
    from orion.arrays.replica import replicate as replicate
    from orion.checkpointing import checkpoint as checkpoint
    from orion.checkpointing import restore as restore
    from orion.compared import Verification as Verification
    from orion.errors import AliasError as AliasError
    from orion.errors import ArgumentError as ArgumentError
    from orion.errors import CheckpointWarning as CheckpointWarning
    from orion.errors import DataFormatError as DataFormatError
    from orion.errors import MissingExtraError as MissingExtraError
    from orion.errors import MissingKeyError as MissingKeyError
    from orion.errors import NotParallelError as NotParallelError
    from orion.errors import OrionError as OrionError
    from orion.errors import OutOfBoundsError as OutOfBoundsError
    from orion.errors import PlanError as PlanError
    from orion.errors import SerialLoopWarning as SerialLoopWarning
    from orion.errors import StandstillWarning as StandstillWarning
    from orion.errors import StorageError as StorageError
    from orion.errors import UnprovedWarning as UnprovedWarning
    from orion.errors import UnsupportedLoopError as UnsupportedLoopError
    from orion.errors import UpdateError as UpdateError
    from orion.errors import WorkerLostError as WorkerLostError
    from orion.errors import WorkerReplacedWarning as WorkerReplacedWarning
    from orion.keyed_random import random as random
    from orion.planned import Plan as Plan
    from orion.profiling import Profile as Profile
    from orion.profiling import profile as profile
    from orion.reporting import report as report
    from orion.runtime.session import init as init
    from orion.runtime.session import scale as scale
    from orion.runtime.session import session as session
    from orion.runtime.session import shutdown as shutdown

__version__ = "0.1.0"

HOMES = {
    "orion.api": ("ParallelFunction", "parallel_for"),
    "orion.planned": ("Plan",),
    "orion.arrays": (
        "DenseArray", "DistArray", "SparseArray", "array", "from_arrow", "from_pandas", "from_scipy", "full",
        "normal", "ones", "read_csv", "read_libsvm", "read_parquet", "sparse", "text_file", "uniform", "zeros",
    ),
    "orion.arrays.accumulator": ("accumulator",),
    "orion.arrays.buffer": ("buffer",),
    "orion.arrays.files.saved": ("load",),
    "orion.arrays.frozen": ("freeze",),
    "orion.arrays.pacing": ("pacing",),
    "orion.arrays.policies": ("elastic", "local_sgd"),
    "orion.arrays.replica": ("replicate",),
    "orion.checkpointing": ("checkpoint", "restore"),
    "orion.compared": ("Verification",),
    "orion.errors": (
        "AliasError", "ArgumentError", "CheckpointWarning", "DataFormatError", "MissingExtraError", "MissingKeyError",
        "NotParallelError", "OrionError", "OutOfBoundsError", "PlanError", "SerialLoopWarning", "StandstillWarning",
        "StorageError", "UnprovedWarning", "UnsupportedLoopError", "UpdateError", "WorkerLostError",
        "WorkerReplacedWarning",
    ),
    "orion.keyed_random": ("random",),
    "orion.profiling": ("Profile", "profile"),
    "orion.reporting": ("report",),
    "orion.runtime.session": ("init", "scale", "session", "shutdown"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in HOMES.items() for name in names}

OTHERS = "client"
"""A folder of the distribution `orion`, which is another project's and installs into a package of the same name."""

if os.path.isdir(os.path.join(os.path.dirname(__file__), OTHERS)):
    warnings.warn(
        "the distribution `orion`, a hyperparameter search, is installed over `orion-loops`, and files of both have "
        "the same names: pip uninstall orion, then pip install --force-reinstall --no-deps orion-loops",
        stacklevel=2,
    )

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - computed, so that there is one list of public names


if not TYPE_CHECKING:  # type checkers would take any name for one of the module

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            from orion.errors import did_you_mean
            from orion.tracebacks import cut

            similar = did_you_mean(name, __all__)
            try:
                raise AttributeError(f"module 'orion' has no attribute {name!r}{similar and f': {similar}'}")
            except AttributeError as error:
                cut(error)
                raise
        value = getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
