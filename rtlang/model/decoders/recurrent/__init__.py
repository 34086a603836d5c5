"""Recurrent layers of models of `transformers`, over states in the slots of a runner."""
