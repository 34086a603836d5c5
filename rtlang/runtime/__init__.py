"""The runtime: a model, its engine thread, and the graphs that run on it."""
