"""Compiled grammars and vocabulary indexes on disk."""
