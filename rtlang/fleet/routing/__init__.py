"""Chooses the replica of each program by the work that waits and the prefixes that replicas hold."""
