"""Clauses of texts about occasions: events and recipes."""

from tiny_model.corpus.clauses import Clauses
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.kinds import lines

TEMPLATES = sections_of("clauses_of_occasions")

EVENT = Clauses(
    cores=lines(TEMPLATES["EVENT.cores"]),
    adjuncts=lines(TEMPLATES["EVENT.adjuncts"]),
)

RECIPE = Clauses(
    cores=lines(TEMPLATES["RECIPE.cores"]),
    adjuncts=lines(TEMPLATES["RECIPE.adjuncts"]),
)
