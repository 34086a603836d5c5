"""JSON schemas and text patterns of Python types."""
