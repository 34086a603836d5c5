"""The engine in a process of its own: a target that starts it, watches it, and starts it again."""
