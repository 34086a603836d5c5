"""Corpus task: a list of tools, a request, and the call that serves it, as `{"name": ..., "arguments": {...}}`."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.corpus_data import blocks_of, sections_of
from tiny_model.corpus.extras import Record, Value
from tiny_model.corpus.instructions import type_name
from tiny_model.corpus.lexicon import lines, words
from tiny_model.corpus.tools_requests import WORDINGS, Run, request_by, request_for, runs_of
from tiny_model.corpus.words import Draw, Messages, listing, plural, sentence

TEMPLATES = sections_of("tasks_tools")
CATALOGUE = sections_of("tools_catalogue")  # of each theme, the tools with known and held-out requests

TIMER_LABELS = words("tea pasta laundry homework bread nap meeting exercise")
NOTES = words(
    TEMPLATES["NOTES"],
    "|",
)
HELD_NOTES = words("the bus broke down|our cat is back|the paint is dry", "|")
LANGUAGES = words("French Spanish German Italian Japanese Arabic Polish Dutch Korean Turkish Swedish Greek")
ROOMS = words("kitchen|bedroom|bathroom|office|garage|hall|living room|cellar", "|")
UNITS = words("meters feet miles kilometers inches yards centimeters")
FILE_ENDS = words(".txt .pdf .csv .md .docx .png .json .log -2.txt _old.txt _final.pdf")
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
    "switch": lambda d: d.pick(("on", "off")),
    "file": lambda d: f"{d.made_up()}{d.pick(FILE_ENDS)}",
    "problem": lambda d: d.slot(lex.PROBLEMS, lex.HELD_PROBLEMS, 0),
    "job": lambda d: d.slot(lex.JOBS, lex.HELD_JOBS),
    "team": lambda d: d.team(),
    "big": lambda d: d.number(100, 9999),
}


@dataclass(frozen=True)
class Tool:
    """A tool: its names, its parameters with what fills each, what it does, and requests that call it.

    Placeholders of requests are the names in `parameters`; `others` are further names of each of them.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    about: str
    known: tuple[str, ...]
    held: tuple[str, ...]
    other_names: tuple[str, ...] = ()
    others: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Call:
    """A tool under the names that one prompt gives it, with arguments, and a request that asks for just this call."""

    name: str
    about: str
    arguments: Record
    request: str


MORE = blocks_of("requests")  # more requests of each tool, by its name


def tool(block: str) -> Tool:
    """A tool from its lines: `name/other(parameter/other:fill, ...): what it does`, requests, `held: ` held-out requests."""
    head, *requests = block.split("\n")
    signature, about = head.split("): ")
    names, parameters = signature.split("(")
    name, *other_names = names.split("/")
    parts = [part.split(":") for part in parameters.split(", ")]
    keys = [spelled.split("/") for spelled, _ in parts]
    return Tool(
        name,
        tuple((key[0], fill) for key, (_, fill) in zip(keys, parts, strict=True)),
        about,
        (*(request for request in requests if not request.startswith("held: ")), *MORE[name]),
        tuple(request.removeprefix("held: ") for request in requests if request.startswith("held: ")),
        tuple(other_names),
        tuple(tuple(key[1:]) for key in keys),
    )


THEMES: tuple[tuple[Tool, ...], ...] = tuple(
    tuple(tool(block) for block in words(theme.strip(), "\n\n")) for theme in CATALOGUE.values()
)
TOOLS = tuple(each for theme in THEMES for each in theme)
HELD_RUNS = set[Run]().union(*(runs_of(request) for each in TOOLS for request in each.held))
COMPOSED_SHARE = 0.45  # of the requests in training
LEADS = lines(TEMPLATES["LEADS"])
TRAILS = lines(TEMPLATES["TRAILS"])
REQUESTS = lines(TEMPLATES["REQUESTS"])
HELD_REQUESTS = lines(TEMPLATES["HELD_REQUESTS"])
DEEDS = lines(TEMPLATES["DEEDS"])
HELD_DEEDS = lines(TEMPLATES["HELD_DEEDS"])
VERBS = words(TEMPLATES["VERBS"])
QUALIFIERS = words("first last new old home start end main work next other best my user total min max")
KEYED = words(TEMPLATES["KEYED"])


def keys_of(draw: Draw) -> dict[str, str]:
    """Names of parameters, with what fills each."""
    keys: dict[str, str] = {}
    for _ in range(draw.pick((1, 1, 2, 2, 3, 4))):
        kind, shape = draw.pick(KEYED), draw.random.random()
        if shape < 0.35:
            keys[kind] = kind
        elif shape < 0.6:
            keys[f"{draw.pick(QUALIFIERS)}_{kind}"] = kind
        elif shape < 0.7:
            keys[f"{draw.made_up()}_{kind}"] = kind
        else:
            keys[draw.made_up()] = kind
    return keys


def identifier(text: str) -> str:
    """The text as the name of a tool."""
    return text.replace(" ", "_").replace("-", "_")


def invented(draw: Draw, verbs: list[str], things: list[str]) -> Call:
    """A call of a tool with a made-up name, or with one made of a verb and a thing, requested by that name or in words."""
    verb, thing, shape = draw.pick(verbs), draw.pick(things), draw.random.random()
    name, about = identifier(f"{verb} {thing}"), f"{verb} the {thing}"
    if shape < 0.2:
        name, about = draw.made_up(), f"{draw.made_up()} {thing}"
    elif shape < 0.4:
        verb, thing = draw.pick(VERBS), draw.made_up()
        name, about = f"{verb}_{thing}", f"{verb} the {thing}"
    elif shape < 0.5:
        name = identifier(f"{thing} {verb}")
    arguments: Record = {key: FILLS[kind](draw) for key, kind in keys_of(draw).items()}
    spaces, joint = draw.chance(0.5), draw.pick((" ", " ", " = ", "=", " is ", ": "))
    pairs = [f"{key.replace('_', ' ') if spaces else key}{joint}{value}" for key, value in arguments.items()]
    if joint == " is ":
        pairs = [f"{draw.pick(('the ', ''))}{pair}" for pair in pairs]
    told = (
        listing(draw.shuffled(pairs)) if draw.chance(0.4) else draw.pick((", ", ", ", "; ")).join(draw.shuffled(pairs))
    )
    parts = {"name": name, "pairs": told, "deed": about}
    by_deed = shape >= 0.5 or (shape >= 0.4 and draw.chance(0.7))
    if draw.wordings == "train" and draw.chance(COMPOSED_SHARE):
        return Call(name, about, arguments, request_by(draw, name, about if by_deed else None, arguments))
    request = draw.wording(DEEDS, HELD_DEEDS) if by_deed else draw.wording(REQUESTS, HELD_REQUESTS)
    request = request.format_map(parts).strip()
    return Call(name, about, arguments, sentence(request) if by_deed else request)


def listed_call(draw: Draw, each: Tool, renamed: bool) -> Call:
    """A call of a tool of the catalogue, under other names where `renamed`."""
    values: Record = {key: FILLS[fill](draw) for key, fill in each.parameters}
    names = {key: key for key, _ in each.parameters}
    if renamed:
        for (key, _), others in zip(each.parameters, each.others, strict=True):
            name = draw.pick((key, *others))
            names[key] = key if name in names.values() else name
    if draw.wordings == "train" and draw.chance(COMPOSED_SHARE):
        spellings = {key: (key, *others) for (key, _), others in zip(each.parameters, each.others, strict=True)}
        request = request_for(draw, WORDINGS[each.name], spellings, dict(each.parameters), HELD_RUNS)
    else:
        request = draw.wording(each.known, each.held)
    if not request.startswith("{"):  # values stay as they are
        request = sentence(request) if draw.chance(0.92) else request[0].lower() + request[1:]
    request = request.format_map(values)
    if draw.chance(0.08):
        request = request.rstrip(".!") if request[-1] in ".!" else request
    if draw.chance(0.12):
        request = f"{draw.spoken(draw.pick(LEADS))} {request}"
    if draw.chance(0.12) and request[-1] in ".?!":
        request = f"{request} {draw.spoken(draw.pick(TRAILS))}"
    keys = draw.shuffled(list(names)) if renamed and draw.chance(0.3) else list(names)
    arguments: Record = {names[key]: values[key] for key in keys}
    return Call(draw.pick((each.name, *each.other_names)) if renamed else each.name, each.about, arguments, request)


def calls(draw: Draw) -> list[Call]:
    """Calls of a few tools: of one theme, of any, of invented ones, or mixed."""
    count, shape = draw.number(2, 6), draw.random.random()
    renamed = draw.chance(0.5)
    if shape < 0.35:
        chosen = draw.sample(draw.pick(THEMES), count)
    else:
        chosen = draw.sample(TOOLS, count)
    share = 1.0 if shape > 0.85 else 0.25 if shape > 0.2 else 0
    verbs, things = draw.sample(VERBS, 3), [draw.item(0.25) for _ in range(3)]
    found: dict[str, Call] = {}
    for each in chosen:
        made = invented(draw, verbs, things) if draw.chance(share) else listed_call(draw, each, renamed)
        if made.about not in [other.about for other in found.values()]:
            found.setdefault(made.name, made)
    return list(found.values())


def camel(name: str) -> str:
    """`set_timer` as `setTimer`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def described(draw: Draw, tools: list[Call]) -> str:
    """The list of tools in one of several formats."""
    style, found = draw.random.random(), []
    for index, each in enumerate(tools, 1):
        typed = {key: type_name(value) for key, value in each.arguments.items()}
        signature = f"{each.name}({', '.join(typed)})"
        with_types = f"{each.name}({', '.join(f'{key}: {name}' for key, name in typed.items())})"
        if style < 0.38:
            found.append(f"- {signature}")
        elif style < 0.52:
            found.append(f"- {signature}: {each.about}")
        elif style < 0.6:
            found.append(f"- {with_types}")
        elif style < 0.68:
            found.append(f"- {with_types}: {each.about}")
        elif style < 0.73:
            found.append(f"{index}. {signature}")
        elif style < 0.82:
            found.append(json.dumps({"name": each.name, "description": each.about, "parameters": typed}))
        elif style < 0.87:
            properties = {key: {"type": name} for key, name in typed.items()}
            parameters = {"type": "object", "properties": properties, "required": list(typed)}
            function = {"name": each.name, "description": each.about, "parameters": parameters}
            found.append(json.dumps({"type": "function", "function": function}))
        elif style < 0.92:
            found.append(f"{with_types} -> {each.about}")
        else:
            found.append(f"{each.name}: {each.about}. Parameters: {', '.join(typed)}")
    heads = (
        "Tools:",
        "Tools:",
        "You can call these tools:",
        "Available functions:",
        "Answer with a call of one of these tools:",
        "Call one of these functions:",
        "Choose the right tool and fill in its arguments.",
        "These are your tools. Answer with JSON.",
        "You have these tools:",
    )
    return ("Tools:" if style < 0.25 else draw.pick(heads)) + "\n" + "\n".join(found)


def tool_call(draw: Draw) -> Messages:
    """A system message that lists tools, a request, and the call that serves it; now and then a second request."""
    return conversation(draw)


def conversation(draw: Draw, *, asks_most: bool = False) -> Messages:
    """`tool_call`; if it `asks_most`, with requests for at least half of the tools."""
    found = calls(draw)
    if draw.chance(0.1):
        found = [
            Call(
                camel(each.name), each.about, {camel(key): value for key, value in each.arguments.items()}, each.request
            )
            if each.name not in each.request
            else each
            for each in found
        ]
    messages: Messages = []
    listed = described(draw, found)
    count = 2 if len(found) > 1 and draw.chance(0.2) else 1
    if asks_most:
        count = len(found) - draw.number(0, min(2, len(found) // 2))
    for each in draw.sample(found, count):
        answer = json.dumps({"name": each.name, "arguments": each.arguments}, ensure_ascii=False)
        messages += [("user", each.request), ("assistant", answer)]
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
