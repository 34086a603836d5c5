"""Lowers schema keywords to facets."""
