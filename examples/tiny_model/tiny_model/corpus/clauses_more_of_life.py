"""More clauses of texts about occasions, people and things, above all passive and inverted ones."""

from tiny_model.corpus.clauses import Clauses
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.kinds import lines

TEMPLATES = sections_of("clauses_more_of_life")

EVENT = Clauses(
    cores=lines(TEMPLATES["EVENT.cores"]),
    adjuncts=lines(TEMPLATES["EVENT.adjuncts"]),
)

PERSON = Clauses(
    cores=lines(TEMPLATES["PERSON.cores"]),
    adjuncts=lines(TEMPLATES["PERSON.adjuncts"]),
)

TICKET = Clauses(
    cores=lines(TEMPLATES["TICKET.cores"]),
    adjuncts=lines(TEMPLATES["TICKET.adjuncts"]),
)

RECIPE = Clauses(
    cores=lines(TEMPLATES["RECIPE.cores"]),
    adjuncts=lines(TEMPLATES["RECIPE.adjuncts"]),
)

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
