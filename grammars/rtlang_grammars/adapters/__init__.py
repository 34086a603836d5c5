"""Adapters to other grammar libraries: llguidance, xgrammar, outlines."""
