"""Generators of the training corpus, over the text data in `data/`."""
