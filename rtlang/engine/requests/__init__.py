"""One request of the engine: its specification, its progress and its output."""
