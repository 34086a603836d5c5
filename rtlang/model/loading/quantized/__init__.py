"""Reads the matrices of quantized safetensors checkpoints: one module per scheme, found by `schemes.scheme_of`."""
