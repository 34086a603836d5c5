"""Constraints of running requests: compilation, caching, sessions and checks of finished values."""
