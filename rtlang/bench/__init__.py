"""Workloads and baselines behind `rtlang bench`."""
