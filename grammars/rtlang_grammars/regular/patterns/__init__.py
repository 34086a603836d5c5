"""Syntax trees of regular expressions: reading, zero-width assertions, syntactic checks."""
