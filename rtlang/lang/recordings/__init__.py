"""The nodes that a program run records, and their outcomes."""
