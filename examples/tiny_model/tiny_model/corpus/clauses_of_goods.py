"""Clauses of texts about things: products, results of matches, books, and houses for rent."""

from tiny_model.corpus.clauses import Clauses
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.kinds import lines

TEMPLATES = sections_of("clauses_of_goods")

PRODUCT = Clauses(
    cores=lines(TEMPLATES["PRODUCT.cores"]),
    adjuncts=lines(TEMPLATES["PRODUCT.adjuncts"]),
)

MATCH = Clauses(
    cores=lines(TEMPLATES["MATCH.cores"]),
    adjuncts=lines(TEMPLATES["MATCH.adjuncts"]),
)

BOOK = Clauses(
    cores=lines(TEMPLATES["BOOK.cores"]),
    adjuncts=lines(TEMPLATES["BOOK.adjuncts"]),
)

HOUSE = Clauses(
    cores=lines(TEMPLATES["HOUSE.cores"]),
    adjuncts=lines(TEMPLATES["HOUSE.adjuncts"]),
)
