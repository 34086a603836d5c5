"""Tiers below the pool: pages in host memory, on disk, or elsewhere, by the digest of all tokens up to their end."""
