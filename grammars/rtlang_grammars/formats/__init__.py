"""The formats in which models write tool calls and reasoning: a catalogue, constraints, parsers, and a reader of structural tags."""
