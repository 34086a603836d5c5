"""More ways to lead in the value of an optional field, which stands first, in the middle or last: sentences, a line each."""

from tiny_model.corpus.corpus_data import sections_of

TEMPLATES = sections_of("extras_lead_ins")

PHONE = TEMPLATES["PHONE"]
EMAIL = TEMPLATES["EMAIL"]
WEBSITE = TEMPLATES["WEBSITE"]
REFERENCE = TEMPLATES["REFERENCE"]
DEPARTMENT = TEMPLATES["DEPARTMENT"]
COLOR = TEMPLATES["COLOR"]
PUBLISHER = TEMPLATES["PUBLISHER"]
GUESTS = TEMPLATES["GUESTS"]
EMPLOYER = TEMPLATES["EMPLOYER"]
AUTHOR = TEMPLATES["AUTHOR"]
DIFFICULTY = TEMPLATES["DIFFICULTY"]
