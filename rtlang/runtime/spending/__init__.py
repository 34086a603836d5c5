"""Budgets of runs, and the elimination of candidates that cannot win."""
