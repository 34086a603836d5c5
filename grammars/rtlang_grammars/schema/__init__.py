"""Compile JSON Schema to shapes: a normal form without references, conjunctions or negations."""
