"""Costs of a step with each decoder."""
