"""The KV cache: pages, the radix tree over token ids that shares them, and eviction."""
