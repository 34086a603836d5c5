"""Submits the graph of one run, part by part, and waits for its events."""
