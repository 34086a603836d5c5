"""The version of rtlang, for every layer."""

VERSION = "0.1.0"
"""Same as in pyproject.toml."""
