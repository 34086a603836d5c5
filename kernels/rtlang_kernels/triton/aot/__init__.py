"""Ahead-of-time compilation of every kernel configuration, without a GPU."""
