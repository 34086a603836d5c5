"""The messages between a target and the processes of its engines."""
