"""The command `rtlang bench`."""
