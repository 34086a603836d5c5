"""More kinds of records: bookings, jobs, invoices, contacts, products, weather, visits, results, titles, houses."""

from tiny_model.corpus.kinds import Kind
from tiny_model.corpus.kinds_of_goods import book, house, match, product
from tiny_model.corpus.kinds_of_travel import flight, hotel, weather
from tiny_model.corpus.kinds_of_work import contact, invoice, vacancy, visit

KINDS: tuple[Kind, ...] = (flight, hotel, vacancy, invoice, contact, product, weather, visit, match, book, house)
