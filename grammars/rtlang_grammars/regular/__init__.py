"""Regular languages over text: patterns, formats and numbers, as lazily made automata over bytes."""
