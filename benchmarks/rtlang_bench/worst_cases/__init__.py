"""Worst cases of every pure function, node kind, route and frame, beside canaries of another key.

A case is made from a seed and its number alone, so that it can be repeated alone. Its sizes are log-uniform up to each limit and slightly
beyond. `graph_cases`, `route_cases` and `frame_cases` make them, `attacker` sends them from a process of its own, `canaries` measures from
another one what a bystander notices, and `judge` compares both with the bounds.
"""
