"""Arrays that loops run on: dense and sparse, made from data in memory or read from files."""

from orion.array.base import DistArray
from orion.array.convert import from_arrow, from_pandas, from_scipy
from orion.array.csv import read_csv
from orion.array.dense import DenseArray, array, full, ones, zeros
from orion.array.layout import TileLayout
from orion.array.partition import balanced_bounds, even_bounds
from orion.array.random import normal, uniform
from orion.array.sparse import SparseArray, sparse

__all__ = [
    "DenseArray",
    "DistArray",
    "SparseArray",
    "TileLayout",
    "array",
    "balanced_bounds",
    "even_bounds",
    "from_arrow",
    "from_pandas",
    "from_scipy",
    "full",
    "normal",
    "ones",
    "read_csv",
    "sparse",
    "uniform",
    "zeros",
]
