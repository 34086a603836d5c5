"""Clients of a remote runtime."""
