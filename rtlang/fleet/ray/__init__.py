"""A fleet on Ray: engines as actors, found by name, scaled by their queues. Only this folder imports Ray."""
