"""GGUF files: their container, and the blocks of weights in it."""
