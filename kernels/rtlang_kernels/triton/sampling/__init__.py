"""Sampling, filters, log-probabilities, penalties and token masks."""
