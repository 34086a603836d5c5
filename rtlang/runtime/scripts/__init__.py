"""Graphs that run without a model."""
