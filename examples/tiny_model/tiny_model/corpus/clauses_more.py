"""More clauses of texts about trade, travel and work, above all passive and inverted ones and lists inside sentences."""

from tiny_model.corpus.clauses import Clauses
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.kinds import lines

TEMPLATES = sections_of("clauses_more")

ORDER = Clauses(
    cores=lines(TEMPLATES["ORDER.cores"]),
    adjuncts=lines(TEMPLATES["ORDER.adjuncts"]),
)

BASKET = Clauses(
    cores=lines(TEMPLATES["BASKET.cores"]),
    adjuncts=lines(TEMPLATES["BASKET.adjuncts"]),
)

FLIGHT = Clauses(
    cores=lines(TEMPLATES["FLIGHT.cores"]),
    adjuncts=lines(TEMPLATES["FLIGHT.adjuncts"]),
)

HOTEL = Clauses(
    cores=lines(TEMPLATES["HOTEL.cores"]),
    adjuncts=lines(TEMPLATES["HOTEL.adjuncts"]),
)

WEATHER = Clauses(
    cores=lines(TEMPLATES["WEATHER.cores"]),
    adjuncts=lines(TEMPLATES["WEATHER.adjuncts"]),
)

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
