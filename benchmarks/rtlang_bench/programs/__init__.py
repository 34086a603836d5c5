"""Benchmarks of programs: what the passes of the compiler and staged votes save, and the cost of many candidates on one prompt."""
