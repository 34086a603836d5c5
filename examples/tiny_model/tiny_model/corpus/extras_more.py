"""More optional fields: those of orders, events, people, tickets and recipes."""

from tiny_model.corpus import extras_lead_ins
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.extras import told, yes_no
from tiny_model.corpus.words import Draw

TEMPLATES = sections_of("extras_more")

EXPRESS = yes_no(
    "express",
    TEMPLATES["EXPRESS.1"],
    TEMPLATES["EXPRESS.2"],
    "It should go by express mail.",
    "Regular mail will do, no express.",
    block="express",
)
GIFT = yes_no(
    "gift",
    TEMPLATES["GIFT.1"],
    TEMPLATES["GIFT.2"],
    "It will be given as a gift.",
    "It is no gift.",
    block="gift",
)
FREE = yes_no(
    "free",
    TEMPLATES["FREE.1"],
    TEMPLATES["FREE.2"],
    "Nobody has to pay.",
    "Visitors have to pay.",
    block="free",
)
GUESTS = told(
    "guests",
    lambda d: d.number(5, 400),
    TEMPLATES["GUESTS"] + extras_lead_ins.GUESTS,
    TEMPLATES["GUESTS 2"],
)
MARRIED = yes_no(
    "married",
    TEMPLATES["MARRIED.1"],
    TEMPLATES["MARRIED.2"],
    "Has been married for years.",
    "A wedding ring was never bought.",
    block="married",
)
EMPLOYER = told(
    "employer",
    Draw.company,
    TEMPLATES["EMPLOYER"] + extras_lead_ins.EMPLOYER,
    TEMPLATES["EMPLOYER 2"],
)
RESOLVED = yes_no(
    "resolved",
    TEMPLATES["RESOLVED.1"],
    TEMPLATES["RESOLVED.2"],
    "All fine again by now, resolved.",
    "Nobody has resolved it so far.",
    block="resolved",
)
VEGAN = yes_no(
    "vegan",
    TEMPLATES["VEGAN.1"],
    TEMPLATES["VEGAN.2"],
    "Suits vegan guests.",
    "Unfit for vegan guests.",
    block="vegan",
)
AUTHOR = told(
    "author",
    Draw.full_name,
    TEMPLATES["AUTHOR"] + extras_lead_ins.AUTHOR,
    TEMPLATES["AUTHOR 2"],
)
DIFFICULTY = told(
    "difficulty",
    lambda d: d.pick(("easy", "medium", "hard")),
    TEMPLATES["DIFFICULTY"] + extras_lead_ins.DIFFICULTY,
    TEMPLATES["DIFFICULTY 2"],
)
