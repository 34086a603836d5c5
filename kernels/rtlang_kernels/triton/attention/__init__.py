"""Paged attention: rectangles of the prefix tree, merging of partial results, plans for captured graphs."""
