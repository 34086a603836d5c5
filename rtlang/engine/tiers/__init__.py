"""Tiers of the cache below the pool: which ones a configuration asks for, and the transfers of pages."""
