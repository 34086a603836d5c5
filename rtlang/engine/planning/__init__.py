"""Predicts the time of steps and limits their tokens."""
