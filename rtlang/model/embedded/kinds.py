"""Kinds of records that texts of the corpus tell: how each is drawn, and the texts that tell it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.extras import (
    AUTHOR,
    DIFFICULTY,
    EMAIL,
    EMPLOYER,
    EXPRESS,
    FREE,
    GIFT,
    GUESTS,
    MARRIED,
    NOTE_CODE,
    PHONE,
    RESOLVED,
    URGENT,
    VEGAN,
    WEBSITE,
    Extra,
    Record,
)
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.words import Draw, article, listing, plural

SENTENCES_SHARE = 0.5  # of the texts of a kind that has sentences
SLOT = re.compile(r"{(\w+)}")
Drawn = tuple[Record, dict[str, str]]  # a record, and the words of the text that spell it otherwise than its values


def lines(text: str) -> tuple[str, ...]:
    """The lines of a text, without the empty ones around it."""
    return words(text.strip(), "\n")


@dataclass(frozen=True)
class Kind:
    """Records of one kind. Called with a draw, it gives its name, a text and the record that the text tells."""

    name: str
    names: tuple[str, ...]
    draw: Callable[[Draw], Drawn]
    known: tuple[str, ...]
    held: tuple[str, ...]
    extras: tuple[Extra, ...] = field(default=())
    sentences: tuple[str, ...] = field(default=())  # each tells one field or a few
    aliases: Mapping[str, str] = field(default_factory=dict)  # other names of fields in texts; "" tells no field

    def __call__(self, draw: Draw) -> tuple[str, str, Record]:
        record, spelled = self.draw(draw)
        values = {**record, **spelled}
        if draw.templates == "test" or not self.sentences or not draw.chance(SENTENCES_SHARE):
            return self.name, draw.template(self.known, self.held).format_map(values), record
        return self.name, self.in_sentences(draw, record).format_map(values), record

    def in_sentences(self, draw: Draw, record: Record) -> str:
        """Sentences in random order which together tell every field once."""
        left, told = set(record), []
        for sentence in draw.shuffled(self.sentences):
            told_here = {self.aliases.get(name, name) for name in SLOT.findall(sentence)} - {""}
            if told_here and told_here <= left:
                left -= told_here
                told.append(draw.spoken(sentence))
        assert not left, f"no sentence of {self.name} tells {left} alone"
        shape = draw.random.random()
        if shape < 0.7:
            return " ".join(told)
        if shape < 0.85:
            return draw.pick(("\n", "\n", "\n- ", "\n* ", "\n\n")).join(told)
        return draw.pick(("; ", ", ", " / ", " - ")).join(sentence.rstrip(".") for sentence in told)


def money(draw: Draw) -> tuple[int | float, str]:
    """A JSON number and its spelling in a text."""
    cents = draw.cents()
    whole, rest = divmod(cents, 100)
    if rest == 0:
        return whole, f"{whole}.00" if draw.chance(0.1) else str(whole)
    return cents / 100, f"{whole}.{rest:02d}"


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
    lines("""
{customer} ordered {quantity} {items} for {price} {money} each, to be shipped to {city}.
Please send {quantity} {items} to {customer} in {city}. The price is {price} {money} each.
New order from {city}: {customer} wants {quantity} {items} at {price} {money}.
{customer}, who lives in {city}, bought {quantity} {items}. Each one costs {price} {money}.
At {price} {money} each, {customer} will take {quantity} {items}. Ship them to {city}.
Hello, this is {customer} from {city}. I would like {quantity} {items} at {price} {money} each, please.
We got an order for {quantity} {items}. The customer is {customer} and the city is {city}. Unit price: {price} {money}.
{customer} from {city} ordered {quantity} {items} at {price} {money} each.
{quantity} {items} go to {city} for {customer}, {price} {money} apiece.
Hello, this is {customer} from {city}. I would like {quantity} {items} at {price} {money} each, please.
Order: {quantity} x {item}, {price} {money} per piece. Ship to {customer}, {city}.
Hi there, my name is {customer}. Could you deliver {quantity} {items} to {city}? I saw them for {price} {money} each.
Yesterday {customer} called from {city} and asked for {quantity} {items}. We agreed on {price} {money} for each.
I want to buy {quantity} {items}. My address is in {city}. I will pay {price} {money} for each one. Thanks, {customer}
{city}, {customer}: {quantity} {items} @ {price}
The {items} cost {price} {money} each and {customer} needs {quantity} of them in {city}.
Can I get {quantity} {items} for {price} {money} a piece? Send them to {city}. Regards, {customer}
Customer {customer} in {city} has placed an order. Item: {item}. Quantity: {quantity}. Price: {price}."""),
    lines("""
Our client {customer} is based in {city} and has requested {quantity} {items}, priced at {price} {money} per unit.
Dear shop, {quantity} {items} should reach {city} soon. Bill {price} {money} for every single one to {customer}.
A parcel with {quantity} {items} leaves for {city}; the buyer, {customer}, paid {price} {money} for each.
Sold to {customer}: {quantity} {items}, {price} {money} each, destination {city}."""),
    (URGENT, PHONE, EMAIL, NOTE_CODE, EXPRESS, GIFT),
)  # fmt: skip


def draw_basket(draw: Draw) -> Drawn:
    rows = [(draw.goods(), draw.number(2, 60)) for _ in range(draw.pick((1, 2, 2, 2, 3, 3, 4)))]
    goods = (
        [f"{count} x {item}" for item, count in rows]
        if draw.chance(0.2)
        else [f"{n} {plural(item)}" for item, n in rows]
    )
    items: list[dict[str, str | int]] = [{"item": item, "quantity": count} for item, count in rows]
    return {"customer": draw.full_name(), "city": draw.place_name(), "items": items}, {"goods": listing(goods)}


basket = Kind(
    "order", words("order|purchase|shopping list", "|"), draw_basket,
    lines("""
{customer} from {city} wants {goods}.
Please ship {goods} to {customer} in {city}.
Order by {customer}: {goods}. Deliver to {city}.
Hi, {customer} here. I need {goods}, sent to {city}.
{customer} ordered {goods}. The city is {city}.
Deliver {goods} to {city}. Ordered by {customer}.
New order from {city}. {customer} takes {goods}.
{customer} in {city} bought {goods} this morning.
This is {customer}. Could I get {goods}? I live in {city}.
Send {goods} to {city}, please. Thanks, {customer}
For {customer}, {city}: {goods}
The customer {customer} asked us for {goods}. They go to {city}.
Our shop in {city} sold {goods} to {customer}.
We have packed {goods} for {customer}. The parcel goes to {city}."""),
    lines("""
The shopping cart of {customer} holds {goods}; destination {city}.
{city} is where {customer} is waiting for {goods}.
Sold to {customer}: {goods}. Destination: {city}."""),
    (URGENT, PHONE, NOTE_CODE, EXPRESS, GIFT),
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
    lines("""
The {event} takes place at the {place} on {date} at {time}, hosted by {host}.
{host} is organizing {an_event} on {date}. Come to the {place} at {time}.
Join us at the {place} for {an_event} with {host}. It starts at {time} on {date}.
On {date} at {time} there will be {an_event} in the {place}. Ask {host} for details.
Reminder: the {event} by {host} begins at {time}, {date}, at the {place}.
{host} invites you to {an_event} at the {place}, {date}, {time}.
Come to the {event} of {host}! Date: {date}. Time: {time}. Place: {place}.
You are invited to {an_event}. It is held in the {place} on {date} and starts at {time}. Your host is {host}.
Do not miss the {event} on {date}. {host} opens the doors of the {place} at {time}.
{date}, {time}: {event} at the {place}, organized by {host}
The {place} hosts {an_event} on {date}. {host} will welcome the guests at {time}.
We meet at {time} in the {place}. The {event} is on {date}, and {host} is in charge.
{host} here. My {event} is planned for {date}, {time}. See you at the {place}!
Save the date: {date}. {host} plans {an_event} at the {place}, starting at {time}.
This year {host} runs the {event}. It will be at the {place} on {date} from {time}."""),
    lines("""
Everybody is welcome when {host} puts on {an_event}: {place}, {date}, doors at {time}.
Mark your calendar for {date}; at {time} the {event} kicks off in the {place} under the lead of {host}.
The {place} has been rented by {host} for {an_event} ({date}, {time})."""),
    (FREE, PHONE, EMAIL, WEBSITE, GUESTS),
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
    lines("""
{name} is a {age} year old {job} from {city} who enjoys {hobby}.
My name is {name}. I am {age} and I work as {a_job} in {city}. I like {hobby}.
Meet {name}, {a_job} living in {city}. At {age}, {first} still loves {hobby}.
In {city} there is {a_job} called {name}, aged {age}, whose hobby is {hobby}.
{name} lives in {city}. Job: {job}. Age: {age}. Free time: {hobby}.
{name}, {age}, is {a_job} in {city} and spends the weekends on {hobby}.
{name} ({age}) works as {a_job} in {city}. Hobby: {hobby}.
This is {name} from {city}. After work as {a_job}, {first} goes in for {hobby}. Age: {age}.
I met {name} in {city}. {first} is {a_job}, {age} years old, and interested in {hobby}.
At the age of {age}, {name} moved to {city} to work as {a_job}. {first} has always been fond of {hobby}.
Hi! I'm {name}, {age} years old. I live in {city}, my job is {job} and my hobby is {hobby}.
Our new colleague {name} is {a_job}. {first} is {age}, comes from {city} and likes {hobby}.
{city} is the home of {name}, {a_job} of {age} years. The hobby of {first} is {hobby}.
Name: {name}, age: {age}, lives in {city}, works as {job}, likes {hobby}
People in {city} know {name} as {a_job}. {first} turned {age} this year and enjoys {hobby}."""),
    lines("""
Born {age} years ago, {name} earns a living as {a_job} in {city}; {hobby} fills the evenings.
Ask anyone in {city} about {name}: {age} years of age, {a_job} by trade, and mad about {hobby}.
When not busy with {hobby}, {name} ({age}) can be found in {city}, employed as {a_job}."""),
    (
        MARRIED,
        EMAIL, PHONE,
        EMPLOYER,
    ),
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
    lines("""
Ticket {ticket}: {reporter} in room {room} says the {device} {problem}. Priority is {priority}.
{reporter} reported that a {device} {problem} in room {room}. This is ticket {ticket} with {priority} priority.
The {device} in room {room} {problem}. Reported by {reporter}, ticket number {ticket}, priority {priority}.
{Priority} priority ticket {ticket} from {reporter}: {device} {problem}, room {room}.
Room {room}: the {device} {problem}, says {reporter}. Ticket {ticket}, {priority} priority.
Support ticket {ticket} has {priority} priority. According to {reporter}, the {device} in room {room} {problem}.
{reporter} here, room {room}. My {device} {problem}. Ticket {ticket}, priority {priority}.
Please look at ticket {ticket}. The {device} of {reporter} {problem}. Room: {room}. Priority: {priority}.
Ticket: {ticket}. Reporter: {reporter}. Room {room}. Problem: the {device} {problem}. Priority: {priority}.
We received ticket {ticket} ({priority} priority): "My {device} {problem}." It came from {reporter} in room {room}.
Hello, the {device} in my room ({room}) {problem}. I think this has {priority} priority. Ticket {ticket}. {reporter}
[{ticket}] {reporter}, room {room}: {device} {problem} - priority {priority}
A {device} {problem}. It stands in room {room} and {reporter} opened ticket {ticket} with {priority} priority.
Since this morning the {device} in room {room} {problem}. {reporter} needs help. Ticket {ticket}, {priority} priority."""),
    lines("""
Logged as {ticket} with {priority} priority: {reporter} complains that the {device} in room {room} {problem}.
Somebody should visit room {room}, where the {device} {problem}; {reporter} filed it as {ticket}, priority {priority}.
Case {ticket}, opened by {reporter}. Priority {priority}. In room {room}, the {device} {problem}."""),
    (URGENT, PHONE, EMAIL, RESOLVED),
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
    lines("""
This {dish} needs {needs}. It takes {minutes} minutes and serves {servings}.
To make {dish} for {servings} people, use {needs} and cook for {minutes} minutes.
{dish}: cook {needs} for {minutes} minutes. Serves {servings} people.
In {minutes} minutes you can cook {dish} with {needs}. Enough for {servings}.
Our {dish} is made of {needs}. Time: {minutes} minutes. Servings: {servings}.
You need {needs} for this {dish}. It feeds {servings} people and is ready after {minutes} minutes.
Recipe for {dish}. Ingredients: {comma}. Minutes: {minutes}. Servings: {servings}.
My favorite {dish} takes {minutes} minutes. I use {needs}, and it is enough for {servings} people.
For {servings} servings of {dish}, mix {needs}. Wait {minutes} minutes.
Take {needs} and let everything cook for {minutes} minutes. Now the {dish} is ready for {servings} people.
How to cook {dish}: buy {needs}, plan {minutes} minutes, and invite enough friends for {servings} servings.
Grandma's {dish} ({minutes} minutes, {servings} servings): {comma}
Today we cook {dish}. Get {needs}. After {minutes} minutes you can serve {servings} people.
{dish} for {servings}: you only need {needs} and {minutes} minutes of time."""),
    lines("""
A pot of {dish} fills {servings} plates. Combine {needs} and leave it on the stove for {minutes} minutes.
Within {minutes} minutes, {needs} turn into {dish} for a table of {servings}.
The cook prepares {dish} ({servings} portions) out of {needs}; that is done in {minutes} minutes."""),
    (
        VEGAN,
        AUTHOR,
        DIFFICULTY,
    ),
)  # fmt: skip
