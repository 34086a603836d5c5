"""Compatibility layers for programs of other frameworks, one package each."""
