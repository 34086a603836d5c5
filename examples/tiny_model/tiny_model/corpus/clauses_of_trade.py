"""Clauses of texts about trade: an order of one article, and a basket of several."""

from tiny_model.corpus.clauses import Clauses
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.kinds import lines

TEMPLATES = sections_of("clauses_of_trade")

ORDER = Clauses(
    cores=lines(TEMPLATES["ORDER.cores"]),
    adjuncts=lines(TEMPLATES["ORDER.adjuncts"]),
)

BASKET = Clauses(
    cores=lines(TEMPLATES["BASKET.cores"]),
    adjuncts=lines(TEMPLATES["BASKET.adjuncts"]),
)
