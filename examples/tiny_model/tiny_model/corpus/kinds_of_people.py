"""Kinds of records about people: a person, and the ticket of somebody with a problem."""

from tiny_model.corpus import clauses_more_of_life
from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.clauses_of_people import PERSON, TICKET
from tiny_model.corpus.corpus_data import lines_of, sections_of
from tiny_model.corpus.extras import EMAIL, PHONE, URGENT, Record
from tiny_model.corpus.extras_more import EMPLOYER, MARRIED, RESOLVED
from tiny_model.corpus.kinds import Drawn, Kind, lines
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw, article

TEMPLATES = sections_of("kinds_of_people")


def draw_person(draw: Draw) -> Drawn:
    name, job = draw.full_name(), draw.slot(lex.JOBS, lex.HELD_JOBS)
    record: Record = {
        "name": name, "age": draw.number(18, 89), "job": job, "city": draw.place_name(),
        "hobby": draw.slot(lex.HOBBIES, lex.HELD_HOBBIES),
    }  # fmt: skip
    first = name.split()[-1] if "." in name else name.split()[0]
    return record, {"first": first, "a_job": article(job)}


person = Kind(
    "person", words("person|profile|introduction", "|"), draw_person,
    lines(TEMPLATES['person']) + lines_of("person"),
    lines(TEMPLATES['person 2']),
    (MARRIED, EMAIL, PHONE, EMPLOYER),
    sentences=lines(TEMPLATES['person.sentences']),
    first_person=lines(TEMPLATES['person.first_person']),
    aliases={"a_job": "job", "first": ""},
    clauses=PERSON + clauses_more_of_life.PERSON,
)  # fmt: skip


def draw_ticket(draw: Draw) -> Drawn:
    problem = draw.slot(lex.PROBLEMS, lex.HELD_PROBLEMS, 0.0)
    if draw.chance(0.3):
        problem = draw.pick(
            ("shows the error {}", "has {} problems", "lost its {}", "needs a new {}", "says {}")
        ).format(draw.made_up())
    ticket_id = draw.number(100, 99999)
    record: Record = {
        "ticket": ticket_id if draw.chance(0.7) else draw.any_code(), "reporter": draw.full_name(),
        "device": draw.slot(lex.DEVICES, lex.HELD_DEVICES), "problem": problem,
        "room": draw.code() if draw.chance(0.7) else draw.number(1, 999), "priority": draw.pick(("low", "medium", "high")),
    }  # fmt: skip
    return record, {"Priority": str(record["priority"]).capitalize()}


ticket = Kind(
    "ticket", words("ticket|support ticket|problem report", "|"), draw_ticket,
    lines(TEMPLATES['ticket']) + lines_of("ticket"),
    lines(TEMPLATES['ticket 2']),
    (URGENT, PHONE, EMAIL, RESOLVED),
    sentences=lines(TEMPLATES['ticket.sentences']),
    first_person=lines(TEMPLATES['ticket.first_person']),
    aliases={"Priority": "priority"},
    clauses=TICKET + clauses_more_of_life.TICKET,
)  # fmt: skip
