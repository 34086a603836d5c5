"""Runs one program over many rows, and keeps what they give."""
