"""Tools of reference books, words and numbers, written as in `tools_catalogue`."""

from tiny_model.corpus.corpus_data import sections_of

TEMPLATES = sections_of("tools_catalogue_reference")

REFERENCE = TEMPLATES["REFERENCE"]
