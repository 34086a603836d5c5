"""Decoders: the native one for Llama-family models and the one over transformers."""
