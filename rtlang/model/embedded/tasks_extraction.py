"""Corpus task: extraction of a JSON record from a short text.

Answers are written by `json.dumps` with its default separators, a spelling that a JSON schema constraint of the runtime
lets through. Instructions are put together from parts instead of being listed, so that the model meets many wordings.
"""

import json
from collections.abc import Callable

from rtlang.model.embedded.words import (
    COLORS,
    DEVICES,
    DISHES,
    EVENTS,
    HOBBIES,
    INGREDIENTS,
    JOBS,
    PROBLEMS,
    VENUES,
    Draw,
    Messages,
    article,
    listing,
    plural,
    words,
)

Value = str | int | float | list[str] | list[dict[str, str | int]]
Record = dict[str, Value]

VERBS = words("Extract|Pull out|Find|Get|Read|Collect|Give me|Return|Write down|Note|Output|Take", "|")
LABELS = words("Text Message Note Input Document Sentence Mail Source")
LISTED_KEYS = words(
    "name age city item price color time place room code owner date day note number title author team size brand",
)

# One field is asked for under several names; the model then takes the name from the prompt or from the grammar.
SYNONYMS = {
    "customer": ("customer", "customer", "buyer", "client", "name"),
    "item": ("item", "item", "product", "article"),
    "quantity": ("quantity", "quantity", "count", "amount"),
    "price": ("price", "price", "unit_price", "cost"),
    "city": ("city", "city", "city", "town", "location"),
    "event": ("event", "event", "title", "kind"),
    "place": ("place", "place", "venue", "location"),
    "host": ("host", "host", "organizer"),
    "job": ("job", "job", "occupation", "profession"),
    "hobby": ("hobby", "hobby", "interest"),
    "reporter": ("reporter", "reporter", "name", "user"),
    "problem": ("problem", "problem", "issue"),
}


def number(text: str) -> int | float:
    """The JSON number that a price in a text stands for."""
    value = float(text)
    return int(value) if value == int(value) else value


def order(draw: Draw) -> tuple[str, str, Record]:
    person, quantity, item, price, city = draw.person(), draw.number(2, 90), draw.item(), draw.price(), draw.city()
    items = plural(item)
    text = draw.pick(
        (
            f"{person} ordered {quantity} {items} for {price} dollars each, to be shipped to {city}.",
            f"Please send {quantity} {items} to {person} in {city}. The price is {price} dollars each.",
            f"New order from {city}: {person} wants {quantity} {items} at {price} dollars.",
            f"{person}, who lives in {city}, bought {quantity} {items}. Each one costs {price} dollars.",
            f"At {price} dollars each, {person} will take {quantity} {items}. Ship them to {city}.",
            f"Hello, this is {person} from {city}. I would like {quantity} {items} at {price} dollars each, please.",
            f"We got an order for {quantity} {items}. The customer is {person} and the city is {city}. Unit price: {price} dollars.",
            f"{person} from {city} ordered {quantity} {items} at {price} dollars each.",
            f"{quantity} {items} go to {city} for {person}, {price} dollars apiece.",
        )
    )
    return "order", text, {"customer": person, "item": item, "quantity": quantity, "price": number(price), "city": city}


def basket(draw: Draw) -> tuple[str, str, Record]:
    person, city = draw.person(), draw.city()
    lines = [(draw.item(0.2), draw.number(2, 40)) for _ in range(draw.pick((2, 2, 3)))]
    goods = listing([f"{count} {plural(item)}" for item, count in lines])
    text = draw.pick(
        (
            f"{person} from {city} wants {goods}.",
            f"Please ship {goods} to {person} in {city}.",
            f"Order by {person}: {goods}. Deliver to {city}.",
            f"Hi, {person} here. I need {goods}, sent to {city}.",
        )
    )
    items: list[dict[str, str | int]] = [{"item": item, "quantity": count} for item, count in lines]
    return "order", text, {"customer": person, "city": city, "items": items}


def event(draw: Draw) -> tuple[str, str, Record]:
    kind, place, date, time, host = draw.pick(EVENTS), draw.pick(VENUES), draw.date(), draw.time(), draw.person()
    text = draw.pick(
        (
            f"The {kind} takes place at the {place} on {date} at {time}, hosted by {host}.",
            f"{host} is organizing {article(kind)} on {date}. Come to the {place} at {time}.",
            f"Join us at the {place} for {article(kind)} with {host}. It starts at {time} on {date}.",
            f"On {date} at {time} there will be {article(kind)} in the {place}. Ask {host} for details.",
            f"Reminder: the {kind} by {host} begins at {time}, {date}, at the {place}.",
            f"{host} invites you to {article(kind)} at the {place}, {date}, {time}.",
        )
    )
    return "event", text, {"event": kind, "place": place, "date": date, "time": time, "host": host}


def person(draw: Draw) -> tuple[str, str, Record]:
    name, age, job, city, hobby = draw.person(), draw.number(18, 79), draw.pick(JOBS), draw.city(), draw.pick(HOBBIES)
    first = name.split()[0]
    text = draw.pick(
        (
            f"{name} is a {age} year old {job} from {city} who enjoys {hobby}.",
            f"My name is {name}. I am {age} and I work as {article(job)} in {city}. I like {hobby}.",
            f"Meet {name}, {article(job)} living in {city}. At {age}, {first} still loves {hobby}.",
            f"In {city} there is {article(job)} called {name}, aged {age}, whose hobby is {hobby}.",
            f"{name} lives in {city}. Job: {job}. Age: {age}. Free time: {hobby}.",
            f"{name}, {age}, is {article(job)} in {city} and spends the weekends on {hobby}.",
        )
    )
    return "person", text, {"name": name, "age": age, "job": job, "city": city, "hobby": hobby}


def ticket(draw: Draw) -> tuple[str, str, Record]:
    name, device, problem, room = draw.person(), draw.pick(DEVICES), draw.pick(PROBLEMS), draw.code()
    ticket_id, priority = draw.number(1000, 9999), draw.pick(("low", "medium", "high"))
    text = draw.pick(
        (
            f"Ticket {ticket_id}: {name} in room {room} says the {device} {problem}. Priority is {priority}.",
            f"{name} reported that a {device} {problem} in room {room}. This is ticket {ticket_id} with {priority} priority.",
            f"The {device} in {room} {problem}. Reported by {name}, ticket number {ticket_id}, priority {priority}.",
            f"{priority.capitalize()} priority ticket {ticket_id} from {name}: {device} {problem}, room {room}.",
            f"Room {room}: the {device} {problem}, says {name}. Ticket {ticket_id}, {priority} priority.",
        )
    )
    record: Record = {"ticket": ticket_id, "reporter": name, "device": device, "problem": problem, "room": room}
    return "ticket", text, {**record, "priority": priority}


def recipe(draw: Draw) -> tuple[str, str, Record]:
    kind = draw.pick(DISHES)
    dish = f"{draw.pick(INGREDIENTS).rstrip('s')} {kind}" if draw.chance(0.5) else kind
    minutes, servings = draw.pick((10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 75, 90)), draw.number(2, 8)
    ingredients = draw.sample(INGREDIENTS, draw.pick((2, 3, 3, 4)))
    needs = listing(ingredients)
    text = draw.pick(
        (
            f"This {dish} needs {needs}. It takes {minutes} minutes and serves {servings}.",
            f"To make {dish} for {servings} people, use {needs} and cook for {minutes} minutes.",
            f"{dish.capitalize()}: cook {needs} for {minutes} minutes. Serves {servings} people.",
            f"In {minutes} minutes you can cook {dish} with {needs}. Enough for {servings}.",
        )
    )
    return "recipe", text, {"dish": dish, "minutes": minutes, "servings": servings, "ingredients": ingredients}


def listed(draw: Draw) -> tuple[str, str, Record]:
    """Any keys with any values: nothing to know, everything to copy."""
    keys = draw.sample(LISTED_KEYS, draw.number(2, 6))
    values: list[Value] = []
    for _ in keys:
        options: tuple[Value, ...] = (
            draw.made_up(),
            draw.made_up().capitalize(),
            f"{draw.made_up()} {draw.made_up()}",
            draw.person(),
            draw.number(0, 9999),
            draw.pick(COLORS),
            draw.item(),
            draw.code(),
        )
        values.append(draw.pick(options))
    joint, end = draw.pick(((": ", ", "), (": ", "\n"), (" is ", ", "), ("=", "; "), (" is ", ". The "), (" - ", "\n")))
    text = end.join(f"{key}{joint}{value}" for key, value in zip(keys, values, strict=True))
    if end == ". The ":
        text = f"The {text}."
    return "record", text, dict(zip(keys, values, strict=True))


def renamed(draw: Draw, record: Record) -> Record:
    return {draw.pick(SYNONYMS.get(key, (key,))): value for key, value in record.items()}


def type_name(value: Value) -> str:
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else "integer" if isinstance(value, int) else "number"


def field_list(draw: Draw, record: Record) -> str:
    keys = list(record)
    style = draw.random.random()
    if style < 0.55:
        return ", ".join(keys)
    if style < 0.7:
        return listing(keys)
    if style < 0.8:
        return ", ".join(f"{key} ({type_name(value)})" for key, value in record.items())
    if style < 0.9:
        return json.dumps({key: type_name(value) for key, value in record.items()})
    return json.dumps(keys)


def instruction(draw: Draw, kind: str, text: str, record: Record) -> str:
    """One wording of `turn this text into this record`, put together from parts."""
    keys, verb, label = field_list(draw, record), draw.pick(VERBS), draw.pick(LABELS)
    as_json = draw.pick(("as JSON", "as JSON", "in JSON", "as a JSON object", "to JSON", "as one JSON object"))
    ask = draw.pick(
        (
            f"{verb} {keys} {as_json}.",
            f"{verb} the fields {keys} {as_json}.",
            f"{verb} the {kind} {as_json} with {keys}.",
            f"{verb} {keys} from the {label.lower()} {as_json}.",
            f"{verb} the {kind} {as_json}. Fields: {keys}.",
            f"{verb} a JSON object with the keys {keys}.",
            f"Turn this {kind} into JSON with {keys}.",
            f"Fill in the {kind} form with {keys}.",
            f"Make a JSON record of the {kind}: {keys}.",
            f"JSON fields: {keys}.",
            f"{as_json.capitalize()}: {keys}.",
            f"What are {keys}? Answer {as_json}.",
            f"{verb} the {kind} {as_json}.",
        )
    )
    return draw.pick(
        (
            f"{ask}\n{label}: {text}",
            f"{ask}\n{text}",
            f"{ask}\n\n{text}",
            f"{label}: {text}\n{ask}",
            f"{text}\n{ask}",
            f"{text}\n\n{ask}",
            f"{ask} {text}",
            f'{ask} "{text}"',
        )
    )


RECORDS: tuple[Callable[[Draw], tuple[str, str, Record]], ...] = (
    order,
    order,
    event,
    person,
    person,
    ticket,
    recipe,
    listed,
    basket,
)
SYSTEM_EXTRACT = (
    "You extract data.",
    "You turn text into JSON.",
    "Answer with one JSON object.",
    "Answer only in JSON.",
    "You read short texts and fill in forms.",
    "You are a helpful assistant.",
)


def extraction(draw: Draw) -> Messages:
    """A short text, the names of some of its fields, and the JSON object that holds them."""
    kind, text, full = draw.pick(RECORDS)(draw)
    record = renamed(draw, full)
    keys = list(record)
    if draw.chance(0.5):
        keys = draw.sample(keys, draw.number(min(2, len(keys)), len(keys)))
    record = {key: record[key] for key in keys}
    answer = json.dumps(record, ensure_ascii=False)
    ask = instruction(draw, kind, text, record)
    if draw.chance(0.3):
        return [("system", draw.pick(SYSTEM_EXTRACT)), ("user", ask), ("assistant", answer)]
    if draw.chance(0.15):
        # The instruction stands in the system message, the text alone in the user's.
        keys_text = field_list(draw, record)
        system = draw.pick(
            (
                f"Extract {keys_text} as JSON.",
                f"Turn each message into JSON with {keys_text}.",
                f"JSON fields: {keys_text}.",
            )
        )
        return [("system", system), ("user", text), ("assistant", answer)]
    return [("user", ask), ("assistant", answer)]
