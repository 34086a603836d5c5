"""The words that the corpus of the embedded model holds back for its tests."""

from tiny_model.corpus import lexicon

HELD_WORDS = [word for name, listed in vars(lexicon).items() if name.startswith("HELD_") for word in listed]
