"""Rules of a request about its next token that follow from its history: forbidden words, repeated n-grams, DRY."""
