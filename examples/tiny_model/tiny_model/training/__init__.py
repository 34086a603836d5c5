"""The network and its training."""
