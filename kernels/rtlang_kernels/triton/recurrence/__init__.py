"""Recurrent layers: short convolutions, gated linear attention and the scan of Mamba, over states in slots."""
