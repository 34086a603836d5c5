"""The continuous-batching engine."""
