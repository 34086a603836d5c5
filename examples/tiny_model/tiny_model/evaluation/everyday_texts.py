"""Everyday texts of the kinds of `tasks_extraction.SHORT`, by an author who had seen nothing of the corpus, for evaluation alone.

The held-out texts of the corpus share no five words with a known one, which makes them few and some of them odd. These say what
people say: a phrase in one may stand in a known text as well, but none is close to one as a whole.
"""

from dataclasses import replace

from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.lexicon import lines
from tiny_model.corpus.record_kinds import basket, event, order, person, recipe, ticket

TEMPLATES = sections_of("everyday_texts")

ORDER = lines(TEMPLATES["ORDER"])

BASKET = lines(TEMPLATES["BASKET"])

EVENT = lines(TEMPLATES["EVENT"])

PERSON = lines(TEMPLATES["PERSON"])

TICKET = lines(TEMPLATES["TICKET"])

RECIPE = lines(TEMPLATES["RECIPE"])

KINDS = (
    replace(order, held=ORDER),
    replace(basket, held=BASKET),
    replace(event, held=EVENT),
    replace(person, held=PERSON),
    replace(ticket, held=TICKET),
    replace(recipe, held=RECIPE),
)
