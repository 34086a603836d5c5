"""The parts of the native decoder."""
