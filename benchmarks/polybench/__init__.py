"""The kernels of PolyBench/C 4.2 (Pouchet and Yuki) as plain Python loops over NumPy arrays, and what compares them."""
