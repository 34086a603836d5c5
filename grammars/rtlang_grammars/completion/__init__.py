"""Completion paths: the shortest ways to end a constrained text within a token budget."""
