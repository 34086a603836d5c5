"""Foundation of the library: constraints, errors, limits, the vocabulary, and the protocols of backends and matchers."""
