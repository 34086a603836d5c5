"""Execution of the kinds of nodes: model calls, blocks, decisions."""
