"""Commands that make checkpoints."""
