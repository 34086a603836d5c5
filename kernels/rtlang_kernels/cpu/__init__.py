"""Fast CPU implementations."""
