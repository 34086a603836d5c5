"""Decides what runs when: requests, scheduling, constraints, the engine loop and the graph runtime."""
