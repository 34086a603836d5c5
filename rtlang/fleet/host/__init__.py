"""The process of an engine: a runtime that takes graphs from a connection."""
