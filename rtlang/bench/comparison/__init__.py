"""Runs the same workloads on rtlang and on a baseline, and reports both."""
