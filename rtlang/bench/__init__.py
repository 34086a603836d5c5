"""Workloads and baselines of `rtlang bench`."""
