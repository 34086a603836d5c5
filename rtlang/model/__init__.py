"""Computes: checkpoints, tokenizers, decoders and the step runner."""
