"""The engine thread, and the settings of the process that it runs in."""
