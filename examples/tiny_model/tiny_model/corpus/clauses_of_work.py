"""Clauses of texts about work: job ads, invoices, contacts, and visits to a doctor."""

from tiny_model.corpus.clauses import Clauses
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.kinds import lines

TEMPLATES = sections_of("clauses_of_work")

VACANCY = Clauses(
    cores=lines(TEMPLATES["VACANCY.cores"]),
    adjuncts=lines(TEMPLATES["VACANCY.adjuncts"]),
)

INVOICE = Clauses(
    cores=lines(TEMPLATES["INVOICE.cores"]),
    adjuncts=lines(TEMPLATES["INVOICE.adjuncts"]),
)

CONTACT = Clauses(
    cores=lines(TEMPLATES["CONTACT.cores"]),
    adjuncts=lines(TEMPLATES["CONTACT.adjuncts"]),
)

VISIT = Clauses(
    cores=lines(TEMPLATES["VISIT.cores"]),
    adjuncts=lines(TEMPLATES["VISIT.adjuncts"]),
)
