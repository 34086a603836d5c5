"""The version of rtlang, for every layer."""

VERSION = "0.1.0"
"""As in pyproject.toml."""
