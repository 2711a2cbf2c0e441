"""Arrays that loops run on: dense and sparse, made from data in memory or read from files."""

from orion.arrays.base import DistArray
from orion.arrays.convert import from_arrow, from_pandas, from_scipy
from orion.arrays.dense import DenseArray, array, full, ones, zeros
from orion.arrays.files.csv import read_csv
from orion.arrays.files.libsvm import read_libsvm
from orion.arrays.files.parquet import read_parquet
from orion.arrays.files.text import text_file
from orion.arrays.layout import TileLayout
from orion.arrays.partition import balanced_bounds, even_bounds
from orion.arrays.random import normal, uniform
from orion.arrays.sparse import SparseArray, sparse

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
    "read_libsvm",
    "read_parquet",
    "sparse",
    "text_file",
    "uniform",
    "zeros",
]
