"""Tools of a house, a day and a desk, by theme: their heads, and requests that call each, known and held out."""

from tiny_model.corpus.corpus_data import sections_of

TEMPLATES = sections_of("tools_catalogue")

TIME = TEMPLATES["TIME"]

HOME = TEMPLATES["HOME"]

MESSAGES = TEMPLATES["MESSAGES"]

OFFICE = TEMPLATES["OFFICE"]
