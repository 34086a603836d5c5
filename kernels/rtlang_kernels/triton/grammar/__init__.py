"""Pushdown automata on the device: token masks and state transitions."""
