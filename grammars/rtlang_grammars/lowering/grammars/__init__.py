"""Lowers context-free grammars to tables."""
