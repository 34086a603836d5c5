"""Reads schema keywords into facets; `lowering.json_shapes` turns what they describe into automata."""
