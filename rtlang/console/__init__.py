"""The command line's parts: flags from settings, programs from files, and output for people."""
