"""Functions compiled with numba that walk the tables."""
