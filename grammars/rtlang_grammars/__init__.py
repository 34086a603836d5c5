"""Grammar-constrained generation as a leaf library: specs, vocabularies, matchers and their backends."""
