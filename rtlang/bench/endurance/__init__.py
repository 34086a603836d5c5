"""Measurements of what must not change with time or with the size of the pool: memory under load, and texts."""
