"""Layers that all decoders share, and where their weights come from."""
