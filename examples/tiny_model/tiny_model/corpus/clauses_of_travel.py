"""Clauses of texts about journeys: flights, hotels and the weather."""

from tiny_model.corpus.clauses import Clauses
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.kinds import lines

TEMPLATES = sections_of("clauses_of_travel")

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
