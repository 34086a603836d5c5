"""Remembers: KV pages, the radix tree over token ids, and the account of every page."""
