"""The words that the corpus of the embedded model holds back for its tests."""

from rtlang.model.embedded import lexicon

HELD_WORDS = [word for name, listed in vars(lexicon).items() if name.startswith("HELD_") for word in listed]
