"""Norms, gated activations, rotary embedding, and writes to the KV pool."""
