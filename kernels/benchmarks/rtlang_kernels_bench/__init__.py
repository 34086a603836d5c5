"""Benchmarks and on-device checks of rtlang_kernels."""
