"""Parts of the command line: options from settings, programs from files, and terminal output."""
