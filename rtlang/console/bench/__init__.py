"""The commands behind `rtlang bench` that stand alone."""
