"""Executors of the kinds of nodes: each starts the nodes of its kind, and stops or cancels them."""
