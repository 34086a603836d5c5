"""Benchmarks and conformance tables of the grammar library; part of no wheel."""
