"""The Python DSL: recording a program as a request graph."""
