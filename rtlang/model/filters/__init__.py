"""Filters of the distribution of the next token that the kernels' sampler lacks."""
