"""A fleet on Ray: engines as actors, found by name, scaled by their queues. Ray is imported in this folder only, where it is used."""
