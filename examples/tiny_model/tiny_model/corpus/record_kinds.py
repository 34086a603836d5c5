"""The kinds of records: how each is drawn, its texts, and its optional fields."""

from tiny_model.corpus import extras
from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.clauses import clauses_of
from tiny_model.corpus.corpus_data import lines_of, sections_of
from tiny_model.corpus.extras import Record, Value
from tiny_model.corpus.kinds import Drawn, Kind, money
from tiny_model.corpus.lexicon import lines, words
from tiny_model.corpus.words import Draw, article, listing, plural

TEMPLATES = sections_of("record_kinds")


def draw_order(draw: Draw) -> Drawn:
    item, (price, spelled) = draw.goods(), money(draw)
    record: Record = {
        "customer": draw.full_name(), "item": item, "quantity": draw.number(2, 90), "price": price, "city": draw.place_name(),
    }  # fmt: skip
    return record, {
        "items": plural(item),
        "price": spelled,
        "money": draw.pick(lex.CURRENCIES) if draw.chance(0.3) else "dollars",
    }


order = Kind(
    "order", words("order|purchase|request", "|"), draw_order,
    lines(TEMPLATES['order']) + lines_of("order"),
    lines(TEMPLATES['order 2']),
    (extras.URGENT, extras.PHONE, extras.EMAIL, extras.NOTE_CODE, extras.EXPRESS, extras.GIFT),
    sentences=lines(TEMPLATES['order.sentences']),
    first_person=lines(TEMPLATES['order.first_person']),
    aliases={"items": "item", "money": ""},
    clauses=clauses_of("ORDER"),
)  # fmt: skip


def draw_basket(draw: Draw) -> Drawn:
    pairs = [(draw.goods(), draw.number(2, 60)) for _ in range(draw.pick((1, 2, 2, 2, 3, 3, 4)))]
    if draw.chance(0.2):
        goods = [f"{count} x {noun}" for noun, count in pairs]
    else:
        pairs = [(plural(noun), count) for noun, count in pairs]
        goods = [f"{count} {noun}" for noun, count in pairs]
    items: list[dict[str, str | int]] = [{"item": noun, "quantity": count} for noun, count in pairs]
    return {"customer": draw.full_name(), "city": draw.place_name(), "items": items}, {"goods": listing(goods)}


basket = Kind(
    "order", words("order|purchase|shopping list", "|"), draw_basket,
    lines(TEMPLATES['basket']) + lines_of("basket"),
    lines(TEMPLATES['basket 2']),
    (extras.URGENT, extras.PHONE, extras.NOTE_CODE, extras.EXPRESS, extras.GIFT),
    sentences=lines(TEMPLATES['basket.sentences']),
    first_person=lines(TEMPLATES['basket.first_person']),
    aliases={"goods": "items"},
    clauses=clauses_of("BASKET"),
)  # fmt: skip


def draw_flight(draw: Draw) -> Drawn:
    return {
        "passenger": draw.full_name(), "origin": draw.place_name(), "destination": draw.place_name(), "flight": draw.any_code(),
        "date": draw.any_date(), "seat": f"{draw.number(1, 40)}{draw.pick('ABCDEF')}",
    }, {}  # fmt: skip


flight = Kind(
    "flight", words("flight|booking|ticket", "|"), draw_flight,
    lines(TEMPLATES['flight']) + lines_of("flight"),
    lines(TEMPLATES['flight 2']),
    (extras.PHONE, extras.EMAIL, extras.NOTE_CODE, extras.WINDOW_SEAT),
    lines(TEMPLATES['flight 3']),
    first_person=lines(TEMPLATES['flight.first_person']),
    clauses=clauses_of("FLIGHT"),
    verbs_tell_roles=True,
)  # fmt: skip


def draw_hotel(draw: Draw) -> Drawn:
    price, spelled = money(draw)
    return {
        "guest": draw.full_name(), "hotel": f"Hotel {draw.capital()}" if draw.chance(0.5) else draw.company(), "city": draw.place_name(),
        "nights": draw.number(1, 21), "check_in": draw.any_date(), "price": price,
    }, {"price": spelled, "money": draw.pick(lex.CURRENCIES)}  # fmt: skip


hotel = Kind(
    "hotel booking", words("hotel booking|reservation|booking", "|"), draw_hotel,
    lines(TEMPLATES['hotel']) + lines_of("hotel"),
    lines(TEMPLATES['hotel 2']),
    (extras.PHONE, extras.EMAIL, extras.NOTE_CODE, extras.BREAKFAST),
    lines(TEMPLATES['hotel 3']),
    first_person=lines(TEMPLATES['hotel.first_person']),
    aliases={"money": ""},
    clauses=clauses_of("HOTEL"),
    verbs_tell_roles=True,
)  # fmt: skip


def draw_weather(draw: Draw) -> Drawn:
    low = draw.number(-20, 25)
    return {
        "city": draw.place_name(), "day": draw.pick(lex.DAYS), "condition": draw.slot(lex.CONDITIONS, (), 0.1),
        "high": low + draw.number(1, 15),
        "low": low, "wind": draw.number(1, 120),
    }, {}  # fmt: skip


weather = Kind(
    "weather report", words("weather report|forecast|weather", "|"), draw_weather,
    lines(TEMPLATES['weather']) + lines_of("weather"),
    lines(TEMPLATES['weather 2']),
    (),
    lines(TEMPLATES['weather 3']),
    clauses=clauses_of("WEATHER"),
    verbs_tell_roles=True,
)  # fmt: skip


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
    (extras.EMAIL, extras.PHONE, extras.WEBSITE, extras.REMOTE),
    lines(TEMPLATES['vacancy 3']),
    aliases={"a_job": "title", "needs": "skills", "comma": "skills"},
    clauses=clauses_of("VACANCY"),
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
    (extras.EMAIL, extras.PHONE, extras.PAID),
    lines(TEMPLATES['invoice 3']),
    aliases={"company": "vendor", "city": "vendor"},
    clauses=clauses_of("INVOICE"),
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
    (extras.WEBSITE, extras.DEPARTMENT),
    lines(TEMPLATES['contact 3']),
    first_person=lines(TEMPLATES['contact.first_person']),
    aliases={"street": "address", "zip": "address", "city": "address"},
    clauses=clauses_of("CONTACT"),
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
    (extras.PHONE, extras.URGENT_OF_CASE),
    lines(TEMPLATES['visit 3']),
    first_person=lines(TEMPLATES['visit.first_person']),
    aliases={"symptom": "complaint"},
    clauses=clauses_of("VISIT"),
)  # fmt: skip


def draw_event(draw: Draw) -> Drawn:
    kind = draw.slot(lex.EVENTS, lex.HELD_EVENTS)
    record: Record = {
        "event": kind, "place": draw.slot(lex.VENUES, lex.HELD_VENUES), "date": draw.any_date(), "time": draw.any_time(),
        "host": draw.full_name(),
    }  # fmt: skip
    return record, {"an_event": article(kind)}


event = Kind(
    "event", words("event|invitation|announcement", "|"), draw_event,
    lines(TEMPLATES['event']) + lines_of("event"),
    lines(TEMPLATES['event 2']),
    (extras.FREE, extras.PHONE, extras.EMAIL, extras.WEBSITE, extras.GUESTS),
    sentences=lines(TEMPLATES['event.sentences']),
    first_person=lines(TEMPLATES['event.first_person']),
    aliases={"an_event": "event"},
    clauses=clauses_of("EVENT"),
)  # fmt: skip


def draw_recipe(draw: Draw) -> Drawn:
    kind = draw.slot(lex.DISHES, lex.HELD_DISHES)
    prefix = draw.pick(lex.INGREDIENTS).rstrip("s") if draw.chance(0.8) else draw.made_up()
    dish = f"{prefix} {kind}" if draw.chance(0.5) else kind
    needs: list[str] = []
    for _ in range(draw.number(2, 6)):
        name = draw.slot(lex.INGREDIENTS, lex.HELD_INGREDIENTS, 0.25)
        if name not in needs:
            needs.append(name)
    record: Record = {
        "dish": dish,
        "minutes": draw.number(5, 120),
        "servings": draw.number(2, 12),
        "ingredients": [*needs],
    }
    return record, {"needs": listing(needs), "comma": ", ".join(needs), "Dish": dish.capitalize()}


recipe = Kind(
    "recipe", words("recipe|dish|cooking note", "|"), draw_recipe,
    lines(TEMPLATES['recipe']) +  lines_of("recipe"),
    lines(TEMPLATES['recipe 2']),
    (extras.VEGAN, extras.AUTHOR, extras.DIFFICULTY),
    sentences=lines(TEMPLATES['recipe.sentences']),
    aliases={"needs": "ingredients", "comma": "ingredients", "Dish": "dish"},
    clauses=clauses_of("RECIPE"),
)  # fmt: skip


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
    (extras.MARRIED, extras.EMAIL, extras.PHONE, extras.EMPLOYER),
    sentences=lines(TEMPLATES['person.sentences']),
    first_person=lines(TEMPLATES['person.first_person']),
    aliases={"a_job": "job", "first": ""},
    clauses=clauses_of("PERSON"),
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
    (extras.URGENT, extras.PHONE, extras.EMAIL, extras.RESOLVED),
    sentences=lines(TEMPLATES['ticket.sentences']),
    first_person=lines(TEMPLATES['ticket.first_person']),
    aliases={"Priority": "priority"},
    clauses=clauses_of("TICKET"),
)  # fmt: skip


def draw_product(draw: Draw) -> Drawn:
    (price, spelled), item = money(draw), draw.item(0)
    return {
        "product": item, "brand": draw.capital(), "material": draw.slot(lex.MATERIALS), "price": price,
        "weight": draw.number(1, 9000),
        "code": draw.any_code(),
    }, {"price": spelled, "a_product": article(item), "money": draw.pick(lex.CURRENCIES)}  # fmt: skip


product = Kind(
    "product", words("product|article|product description", "|"), draw_product,
    lines(TEMPLATES['product']) + lines_of("product"),
    lines(TEMPLATES['product 2']),
    (extras.WEBSITE, extras.COLOR, extras.IN_STOCK),
    lines(TEMPLATES['product 3']),
    aliases={"a_product": "product", "money": ""},
    clauses=clauses_of("PRODUCT"),
)  # fmt: skip


def draw_match(draw: Draw) -> Drawn:
    goals = draw.number(0, 99 if draw.chance(0.4) else 7)
    return {
        "winner": draw.team(), "loser": draw.team(), "winner_score": goals + draw.number(1, 5), "loser_score": goals,
        "sport": draw.slot(lex.SPORTS), "date": draw.any_date(),
    }, {}  # fmt: skip


match = Kind(
    "match", words("match|result|game", "|"), draw_match,
    lines(TEMPLATES['match']) + lines_of("match"),
    lines(TEMPLATES['match 2']),
    (),
    lines(TEMPLATES['match 3']),
    clauses=clauses_of("MATCH"),
    verbs_tell_roles=True,
)  # fmt: skip


def draw_book(draw: Draw) -> Drawn:
    genre = draw.slot(lex.GENRES, (), 0.15)
    return {
        "title": draw.title(), "author": draw.full_name(), "year": draw.number(1890, 2030), "genre": genre,
        "pages": draw.number(40, 1200),
    }, {"a_genre": article(genre)}  # fmt: skip


book = Kind(
    "book", words("book|title|book review", "|"), draw_book,
    lines(TEMPLATES['book']) + lines_of("book"),
    lines(TEMPLATES['book 2']),
    (extras.WEBSITE, extras.PUBLISHER),
    lines(TEMPLATES['book 3']),
    aliases={"a_genre": "genre"},
    clauses=clauses_of("BOOK"),
)  # fmt: skip


def draw_house(draw: Draw) -> Drawn:
    kind = draw.pick(("house", "flat", "apartment", "studio", "cottage", "villa"))
    return {
        "kind": kind, "address": draw.street(),
        "city": draw.place_name(),
        "rooms": draw.number(1, 9), "area": draw.number(18, 400), "rent": draw.number(20, 500) * 10,
    }, {"a_kind": article(kind)}  # fmt: skip


house = Kind(
    "listing", words("listing|house ad|offer", "|"), draw_house,
    lines(TEMPLATES['house']) + lines_of("house"),
    lines(TEMPLATES['house 2']),
    (
        extras.PHONE, extras.EMAIL,
        extras.FURNISHED,
        extras.PETS,
    ),
    lines(TEMPLATES['house 3']),
    aliases={"a_kind": "kind"},
    clauses=clauses_of("HOUSE"),
)  # fmt: skip

LONG_KINDS: tuple[Kind, ...] = (flight, hotel, vacancy, invoice, contact, product, weather, visit, match, book, house)
