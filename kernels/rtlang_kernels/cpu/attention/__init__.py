"""Attention over the pages of a CPU."""
