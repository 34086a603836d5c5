"""Tools of money, shops, travel and free time, by theme, written as in `tools_catalogue`."""

from tiny_model.corpus.corpus_data import sections_of

TEMPLATES = sections_of("tools_catalogue_more")

MONEY = TEMPLATES["MONEY"]

SHOPPING = TEMPLATES["SHOPPING"]

TRAVEL = TEMPLATES["TRAVEL"]

LEISURE = TEMPLATES["LEISURE"]
