"""Benchmarks of rtlang for its developers, run from a checkout: `python -m rtlang_bench.NAME`; benchmarks/README.md lists them."""
