"""Clauses of texts about people: a person, and the ticket of somebody with a problem."""

from tiny_model.corpus.clauses import Clauses
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.kinds import lines

TEMPLATES = sections_of("clauses_of_people")

PERSON = Clauses(
    cores=lines(TEMPLATES["PERSON.cores"]),
    adjuncts=lines(TEMPLATES["PERSON.adjuncts"]),
)

TICKET = Clauses(
    cores=lines(TEMPLATES["TICKET.cores"]),
    adjuncts=lines(TEMPLATES["TICKET.adjuncts"]),
)
