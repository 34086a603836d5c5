"""Requests: what is asked, how far each has come, and its output."""
