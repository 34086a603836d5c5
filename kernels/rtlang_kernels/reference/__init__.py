"""The reference backend: the definition of every operation, in plain torch and numpy, on any device."""
