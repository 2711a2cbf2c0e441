"""`orion audit`: which loops over `numba.prange` are parallel, and which race, without running them."""
