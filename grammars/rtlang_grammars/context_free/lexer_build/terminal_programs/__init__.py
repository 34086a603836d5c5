"""The programs of byte threads that terminals become, and their steps."""
