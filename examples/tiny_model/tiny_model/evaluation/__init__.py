"""Evaluation of a trained checkpoint."""
