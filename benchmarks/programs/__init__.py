"""Twenty whole programs in NumPy style: array expressions, slices and helpers, as users write them."""
