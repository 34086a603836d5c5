"""Request graphs: nodes, checks, the plain form, and what a graph does without a model."""
