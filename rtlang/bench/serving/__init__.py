"""`rtlang bench serve`: the figures that a server promises, measured on this machine."""
