"""`python -m rtlang_bench.serve`: the figures that a server promises, measured on this machine."""
