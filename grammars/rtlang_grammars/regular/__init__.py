"""Regular languages: regex patterns, string formats and JSON numbers, compiled to lazily built byte automata."""
