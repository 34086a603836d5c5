"""Corpus task: a list of tools, a request, and the call that serves it, as `{"name": ..., "arguments": {...}}`."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.extras import Record, Value
from rtlang.model.embedded.instructions import type_name
from rtlang.model.embedded.kinds import lines
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.words import Draw, Messages, plural

TIMER_LABELS = words("tea pasta laundry homework bread nap meeting exercise")
NOTES = words(
    "I will be late|dinner is ready|the train is late|the meeting is canceled|I am home|the key is under the mat|"
    "we need milk|the car is fixed|I found the book|lunch is at noon|the plan has changed|nobody is here",
    "|",
)
HELD_NOTES = words("the bus broke down|our cat is back|the paint is dry", "|")
LANGUAGES = words("French Spanish German Italian Japanese Arabic Polish Dutch Korean Turkish Swedish Greek")
ROOMS = words("kitchen|bedroom|bathroom|office|garage|hall|living room|cellar", "|")
UNITS = words("meters feet miles kilometers inches yards centimeters")
RESULT_KEYS = words("status price temperature code number result answer time total name")
TICKERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# What a parameter can be filled with, by the word after the colon in a tool's line.
FILLS: dict[str, Callable[[Draw], Value]] = {
    "minutes": lambda d: d.number(1, 90),
    "count": lambda d: d.number(2, 60),
    "percent": lambda d: d.number(0, 100),
    "label": lambda d: d.slot(TIMER_LABELS),
    "city": lambda d: d.place_name(),
    "day": lambda d: d.pick(lex.DAYS),
    "date": lambda d: d.any_date(),
    "time": lambda d: d.any_time(),
    "person": lambda d: d.full_name(),
    "first": lambda d: d.first_name(),
    "note": lambda d: d.slot(NOTES, HELD_NOTES, 0.15),
    "venue": lambda d: d.capital(),
    "goods": lambda d: plural(d.goods()),
    "item": lambda d: d.goods(),
    "word": lambda d: d.made_up(),
    "phrase": lambda d: f"{d.made_up()} {d.slot(lex.ITEMS)}",
    "language": lambda d: d.slot(LANGUAGES, (), 0.2),
    "room": lambda d: d.slot(ROOMS),
    "code": lambda d: d.any_code(),
    "email": lambda d: d.email(),
    "phone": lambda d: d.phone(),
    "url": lambda d: d.url(),
    "title": lambda d: d.title(),
    "street": lambda d: d.street(),
    "company": lambda d: d.company(),
    "dish": lambda d: d.slot(lex.DISHES, lex.HELD_DISHES),
    "hobby": lambda d: d.slot(lex.HOBBIES, lex.HELD_HOBBIES),
    "device": lambda d: d.slot(lex.DEVICES, lex.HELD_DEVICES),
    "color": lambda d: d.pick(lex.COLORS),
    "currency": lambda d: d.pick(("EUR", "USD", "GBP", "CHF", "JPY", "SEK", "INR", "CAD")),
    "unit": lambda d: d.pick(UNITS),
    "decimal": lambda d: d.number(1, 999) + d.pick((0.5, 0.25, 0.75, 0.1)),
    "degrees": lambda d: d.number(5, 30),
    "ticker": lambda d: "".join(d.pick(TICKERS) for _ in range(d.number(2, 4))),
    "event": lambda d: d.slot(lex.EVENTS, lex.HELD_EVENTS),
}


@dataclass(frozen=True)
class Tool:
    """A tool: its name, its parameters with what fills each, what it does, and requests that call it."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    about: str
    known: tuple[str, ...]
    held: tuple[str, ...]


def tool(line: str) -> Tool:
    """A tool from its line: `name(parameter:fill, ...) # what it does # known|requests # held-out|requests`."""
    head, about, known, held = words(line, " # ")
    name, parameters = head.rstrip(")").split("(")
    pairs = tuple((part.split(":")[0].strip(), part.split(":")[1].strip()) for part in parameters.split(","))
    return Tool(name, pairs, about, words(known, "|"), words(held, "|"))


_TOOL_LINES = """
set_timer(minutes:minutes, label:label) # start a timer # Set a timer for {minutes} minutes called {label}.|Start a {minutes} minute timer for {label}.|Timer please: {label}, {minutes} minutes. # I want a {label} timer that rings in {minutes} minutes.
get_weather(city:city, day:day) # weather forecast # What is the weather in {city} on {day}?|Will it rain in {city} on {day}?|How warm will {city} be on {day}? # Do I need an umbrella in {city} this {day}?
send_message(to:person, text:note) # send a message # Tell {to} that {text}.|Send {to} a message: {text}.|Message {to}: {text} # Let {to} know that {text}.
book_table(place:venue, people:count, time:time) # reserve a table # Book a table for {people} at {place} at {time}.|We need a table at {place}, {people} people, {time}.|Reserve {place} for {people} people at {time}. # Dinner for {people} at {place}, say {time}.
play_music(artist:person, volume:percent) # play songs # Play {artist} at volume {volume}.|Put on some {artist}, volume {volume}.|I want to hear {artist}, volume {volume}. # Blast {artist} with the volume at {volume}.
add_item(item:goods, count:count) # add to the shopping list # Add {count} {item} to the list.|I need {count} {item}, put them on the list.|Put {count} {item} on my shopping list. # The list should also have {count} {item}.
set_alarm(time:time, label:label) # set an alarm # Wake me at {time} for {label}.|Set an alarm for {time} called {label}.|Alarm at {time}, name it {label}. # I must be up by {time} because of {label}.
create_event(title:event, date:date, time:time) # add to the calendar # Add {title} to my calendar on {date} at {time}.|Schedule {title} for {date}, {time}.|Put {title} in the calendar: {date}, {time}. # Block {date} at {time} for {title}.
translate(text:phrase, language:language) # translate text # Translate "{text}" to {language}.|How do you say "{text}" in {language}?|What is "{text}" in {language}? # I need "{text}" put into {language}.
convert_currency(amount:decimal, source:currency, target:currency) # convert money # Convert {amount} {source} to {target}.|How much is {amount} {source} in {target}?|Change {amount} {source} into {target}. # What do I get in {target} for {amount} {source}?
convert_units(value:decimal, source:unit, target:unit) # convert units # Convert {value} {source} to {target}.|How many {target} are {value} {source}?|{value} {source} in {target}, please. # Express {value} {source} as {target}.
set_temperature(room:room, degrees:degrees) # heating # Set the {room} to {degrees} degrees.|Make the {room} {degrees} degrees warm.|Heat the {room} to {degrees} degrees. # I would like {degrees} degrees in the {room}.
set_light(room:room, color:color, brightness:percent) # control lamps # Make the light in the {room} {color} at {brightness} percent.|Light in the {room}: {color}, {brightness} percent.|Turn the {room} light {color}, brightness {brightness}. # The {room} should glow {color} at {brightness} percent.
send_email(to:email, subject:phrase) # write an email # Email {to} with the subject {subject}.|Write an email to {to}, subject {subject}.|Send mail to {to} about {subject}. # Drop a line to {to}, titled {subject}.
call_number(number:phone) # make a call # Call {number}.|Dial {number}.|Please ring {number} for me. # Get me {number} on the line.
open_website(url:url) # open a page # Open {url}|Go to {url}|Show me {url} in the browser. # Take me to {url}
track_parcel(code:code) # where a parcel is # Where is parcel {code}?|Track {code}.|What happened to my parcel {code}? # Has {code} been delivered already?
find_recipe(dish:dish, people:count) # look up a recipe # Find a recipe for {dish} for {people} people.|How do I cook {dish} for {people} people?|Recipe: {dish}, {people} people. # I have to feed {people} people with {dish}, what is the recipe?
buy_tickets(film:title, count:count, day:day) # cinema tickets # Buy {count} tickets for {film} on {day}.|Get {count} tickets to {film}, {day}.|We want to see {film} on {day}, {count} tickets. # {count} of us will watch {film} on {day}, get the seats.
find_route(start:city, end:city) # directions # How do I get from {start} to {end}?|Route from {start} to {end}, please.|Show the way from {start} to {end}. # I drive from {start} to {end}, which way?
book_flight(origin:city, destination:city, date:date) # book a flight # Book a flight from {origin} to {destination} on {date}.|I need to fly from {origin} to {destination} on {date}.|Flight please: {origin} to {destination}, {date}. # Get me on a plane to {destination} from {origin}, {date}.
book_hotel(city:city, nights:count, date:date) # book a room # Book a hotel in {city} for {nights} nights from {date}.|I need a room in {city}, {nights} nights, starting {date}.|Find a hotel in {city}: {nights} nights from {date}. # I stay {nights} nights in {city} as of {date}, get me a room.
get_stock(symbol:ticker) # stock price # What is the price of {symbol}?|How does {symbol} stand?|Stock price of {symbol}. # What does a share of {symbol} cost?
order_taxi(address:street, time:time) # order a taxi # Send a taxi to {address} at {time}.|I need a cab at {address}, {time}.|Taxi please: {address}, {time}. # Pick me up by taxi from {address} at {time}.
define_word(word:word) # look up a word # What does {word} mean?|Define {word}.|Look up the word {word}. # Explain the meaning of {word}.
find_contact(name:person) # address book # What is the number of {name}?|Find {name} in my contacts.|Look up {name} in the address book. # How can I reach {name}?
cancel_order(code:code, reason:note) # cancel an order # Cancel order {code} because {reason}.|Please stop order {code}, since {reason}.|Order {code} must be canceled: {reason} # I no longer want {code}, as {reason}.
check_price(item:item) # price of goods # How much is the {item}?|What does a {item} cost?|Price of the {item}, please. # Tell me what I would pay for a {item}.
find_course(title:hobby, city:city) # search courses # Find a course on {title} in {city}.|Where in {city} can I learn {title}?|Courses in {title}, {city}. # I want lessons in {title} near {city}.
restart_device(device:device, delay:minutes) # restart a device # Restart the {device} in {delay} minutes.|Reboot the {device}, wait {delay} minutes first.|In {delay} minutes, restart the {device}. # Power cycle the {device} {delay} minutes from now.
pay_bill(company:company, amount:decimal) # pay money # Pay {amount} to {company}.|Transfer {amount} to {company}.|Send {company} {amount} from my account. # {company} should get {amount} from me.
search_books(title:title, author:person) # search the library # Find the book {title} by {author}.|Do you have {title} by {author}?|Search for {title}, author {author}. # I am after {title}, written by {author}.
add_contact(name:person, phone:phone) # save a contact # Save {name} with the number {phone}.|Add {name}, {phone}, to my contacts.|New contact: {name}, {phone} # Remember that {name} can be called at {phone}.
"""  # noqa: E501
TOOLS = tuple(tool(line) for line in lines(_TOOL_LINES))
REQUESTS = (
    "Use {name} with {pairs}.",
    "Call {name}: {pairs}.",
    "Please run {name}, {pairs}.",
    "{name} {pairs}",
    "I need {name} with {pairs}.",
)
HELD_REQUESTS = ("Trigger {name} where {pairs}.", "Let {name} do its work: {pairs}.")


def invented(draw: Draw) -> tuple[Tool, Record]:
    """A tool with made-up names, and arguments for it, requested by name."""
    name = (
        f"{draw.pick(('get', 'set', 'find', 'make', 'run', 'send', 'do'))}_{draw.made_up()}"
        if draw.chance(0.6)
        else draw.made_up()
    )
    keys: dict[str, str] = {}
    for _ in range(draw.number(1, 4)):
        kind = draw.pick(("word", "count", "percent", "city", "person", "code", "decimal", "color", "item"))
        keys[draw.made_up() if draw.chance(0.5) else kind] = kind
    arguments = {key: FILLS[kind](draw) for key, kind in keys.items()}
    joint = draw.pick((" ", " = ", "=", " is ", ": "))
    pairs = ", ".join(f"{key}{joint}{value}" for key, value in arguments.items())
    request = draw.wording(REQUESTS, HELD_REQUESTS).format(name=name, pairs=pairs)
    return Tool(
        name, tuple(keys.items()), f"{draw.made_up()} {draw.slot(lex.ITEMS)}", (request,), (request,)
    ), arguments


def described(draw: Draw, tools: list[tuple[Tool, Record]]) -> str:
    """The list of tools in one of several formats."""
    style, found = draw.random.random(), []
    for each, values in tools:
        typed = {key: type_name(values[key]) for key, _ in each.parameters}
        signature = f"{each.name}({', '.join(typed)})"
        if style < 0.45:
            found.append(f"- {signature}")
        elif style < 0.6:
            found.append(f"- {signature}: {each.about}")
        elif style < 0.72:
            found.append(f"- {each.name}({', '.join(f'{key}: {name}' for key, name in typed.items())})")
        elif style < 0.84:
            found.append(json.dumps({"name": each.name, "description": each.about, "parameters": typed}))
        else:
            found.append(f"{each.name}: {each.about}. Parameters: {', '.join(typed)}")
    heads = (
        "Tools:",
        "Tools:",
        "You can call these tools:",
        "Available functions:",
        "Answer with a call of one of these tools:",
    )
    return ("Tools:" if style < 0.3 else draw.pick(heads)) + "\n" + "\n".join(found)


def tool_call(draw: Draw) -> Messages:
    """A system message that lists tools, a request, and the call that serves it; now and then a second request."""
    pairs: list[tuple[Tool, Record]] = []
    for each in draw.sample(TOOLS, draw.number(2, 6)):
        pairs.append(
            invented(draw) if draw.chance(0.25) else (each, {key: FILLS[fill](draw) for key, fill in each.parameters})
        )
    messages: Messages = []
    listed = described(draw, pairs)
    for each, arguments in draw.sample(pairs, 2 if draw.chance(0.2) else 1):
        request = draw.wording(each.known, each.held)
        request = request.format_map(arguments) if each in TOOLS else request
        messages += [
            ("user", request),
            ("assistant", json.dumps({"name": each.name, "arguments": arguments}, ensure_ascii=False)),
        ]
    if draw.chance(0.1):
        key = draw.made_up() if draw.chance(0.5) else draw.pick(RESULT_KEYS)
        value: str | int = draw.number(0, 999) if draw.chance(0.4) else draw.pick((draw.any_code(), draw.capital()))
        shown = draw.pick(("Tool result: ", "Result: ", "The tool returned: ")) + json.dumps(
            {key: value}, ensure_ascii=False
        )
        messages += [("user", shown), ("assistant", f"The {key} is {value}.")]
    if draw.chance(0.12):
        return [("user", f"{listed}\n\n{messages[0][1]}"), *messages[1:]]
    return [("system", listed), *messages]
