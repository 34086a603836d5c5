"""Kinds of records about work: job ads, invoices, contacts, and visits to a doctor."""

from tiny_model.corpus import clauses_more
from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.clauses_of_work import CONTACT, INVOICE, VACANCY, VISIT
from tiny_model.corpus.corpus_data import lines_of, sections_of
from tiny_model.corpus.extras import DEPARTMENT, EMAIL, PAID, PHONE, REMOTE, URGENT_OF_CASE, WEBSITE, Value
from tiny_model.corpus.kinds import Drawn, Kind, lines, money
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw, article, listing

TEMPLATES = sections_of("kinds_of_work")


def draw_vacancy(draw: Draw) -> Drawn:
    job = draw.slot(lex.JOBS, lex.HELD_JOBS)
    skills: list[str] = []
    for _ in range(draw.number(1, 4)):
        skill = draw.slot(lex.SKILLS)
        if skill not in skills:
            skills.append(skill)
    return {
        "company": draw.company(), "title": job, "city": draw.place_name(), "salary": draw.number(18, 180) * draw.pick((100, 1000, 500)),
        "skills": [*skills],
    }, {"a_job": article(job), "needs": listing(skills), "comma": ", ".join(skills)}  # fmt: skip


vacancy = Kind(
    "job ad", words("job ad|vacancy|job offer", "|"), draw_vacancy,
    lines(TEMPLATES['vacancy']) + lines_of("vacancy"),
    lines(TEMPLATES['vacancy 2']),
    (EMAIL, PHONE, WEBSITE, REMOTE),
    lines(TEMPLATES['vacancy 3']),
    aliases={"a_job": "title", "needs": "skills", "comma": "skills"},
    clauses=VACANCY + clauses_more.VACANCY,
)  # fmt: skip


def draw_invoice(draw: Draw) -> Drawn:
    total, spelled = money(draw)
    company, city = draw.company(), draw.place_name()
    currency = draw.pick(("EUR", "USD", "GBP", "CHF", "JPY"))
    return {
        "number": draw.any_code(), "vendor": {"name": company, "city": city}, "total": total, "currency": currency,
        "due": draw.any_date(),
    }, {"company": company, "city": city, "total": spelled}  # fmt: skip


invoice = Kind(
    "invoice", words("invoice|bill", "|"), draw_invoice,
    lines(TEMPLATES['invoice']) + lines_of("invoice"),
    lines(TEMPLATES['invoice 2']),
    (EMAIL, PHONE, PAID),
    lines(TEMPLATES['invoice 3']),
    aliases={"company": "vendor", "city": "vendor"},
    clauses=INVOICE + clauses_more.INVOICE,
)  # fmt: skip


def draw_contact(draw: Draw) -> Drawn:
    street, city, zip_code = draw.street(), draw.place_name(), str(draw.number(10000, 99999))
    return {
        "name": draw.full_name(), "company": draw.company(), "phone": draw.phone(), "email": draw.email(),
        "address": {"street": street, "zip": zip_code, "city": city},
    }, {"street": street, "city": city, "zip": zip_code}  # fmt: skip


contact = Kind(
    "contact", words("contact|address|business card", "|"), draw_contact,
    lines(TEMPLATES['contact']) + lines_of("contact"),
    lines(TEMPLATES['contact 2']),
    (WEBSITE, DEPARTMENT),
    lines(TEMPLATES['contact 3']),
    first_person=lines(TEMPLATES['contact.first_person']),
    aliases={"street": "address", "zip": "address", "city": "address"},
    clauses=CONTACT + clauses_more.CONTACT,
)  # fmt: skip


def draw_visit(draw: Draw) -> Drawn:
    symptom = draw.pick(lex.SYMPTOMS)
    values: dict[str, Value] = {
        "patient": draw.full_name(), "age": draw.number(1, 95), "doctor": f"Dr. {draw.family_name()}", "date": draw.any_date(),
        "complaint": symptom.removeprefix("a ").removeprefix("an "), "medicine": draw.slot(lex.MEDICINES),
    }  # fmt: skip
    return values, {"symptom": symptom}


visit = Kind(
    "visit", words("visit|appointment note|medical note", "|"), draw_visit,
    lines(TEMPLATES['visit']) + lines_of("visit"),
    lines(TEMPLATES['visit 2']),
    (PHONE, URGENT_OF_CASE),
    lines(TEMPLATES['visit 3']),
    first_person=lines(TEMPLATES['visit.first_person']),
    aliases={"symptom": "complaint"},
    clauses=VISIT + clauses_more.VISIT,
)  # fmt: skip
