"""Attention over a paged, prefix-shared KV cache and constrained sampling, as plain functions over tensors."""
