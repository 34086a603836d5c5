"""The corpus, training and evaluation of a small model that rtlang can serve."""
