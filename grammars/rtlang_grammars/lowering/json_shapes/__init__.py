"""Lowers the shapes of JSON values to tables."""
