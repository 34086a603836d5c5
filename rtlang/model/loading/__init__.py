"""Reading checkpoints: configuration, weights and model hubs."""
