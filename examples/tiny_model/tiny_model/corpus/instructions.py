"""Wordings that ask for a record of a text as JSON: how fields are listed and how the request is put."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from tiny_model.corpus.corpus_data import blocks_of, sections_of
from tiny_model.corpus.extras import Value
from tiny_model.corpus.framing import HELD_LABELS, LABELS
from tiny_model.corpus.lexicon import lines, words
from tiny_model.corpus.words import Draw, listing

TEMPLATES = sections_of("instructions")

MORE = blocks_of("asks")

VERBS = words(
    TEMPLATES["VERBS"],
    "|",
)
DESCRIPTIONS = {
    "customer": "who buys", "item": "what is bought", "quantity": "how many", "price": "price of one", "city": "name of the city",
    "items": "what is bought and how many", "event": "kind of event", "place": "where it is", "date": "day of it",
    "time": "when it starts", "host": "who organizes it", "name": "full name", "age": "age in years", "job": "the profession",
    "hobby": "what is done for fun", "ticket": "ticket number", "reporter": "who has the problem", "device": "the device concerned",
    "problem": "what is wrong", "room": "where the device is", "priority": "low, medium or high", "dish": "what is cooked",
    "minutes": "time in minutes", "servings": "for how many people", "ingredients": "what is needed", "phone": "phone number",
    "email": "email address", "urgent": "whether it is urgent", "reference": "reference code", "color": "the color",
}  # fmt: skip

ASKS = lines(TEMPLATES["ASKS"]) + MORE["fields"]
HELD_ASKS = lines(TEMPLATES["HELD_ASKS"])
BLOCK_ASKS = lines(TEMPLATES["BLOCK_ASKS"]) + MORE["heading"]
HELD_BLOCK_ASKS = lines(TEMPLATES["HELD_BLOCK_ASKS"])
BARE_ASKS = lines(TEMPLATES["BARE_ASKS"]) + MORE["bare"]
HELD_BARE_ASKS = lines(TEMPLATES["HELD_BARE_ASKS"])
AS_JSON = words(
    TEMPLATES["AS_JSON"],
    "|",
)
AS_ARRAY = words("as a JSON array|as a JSON list|as a JSON array of objects|as a list of JSON objects", "|")


BOOLEAN_KEYS = frozenset(words(
    TEMPLATES['BOOLEAN_KEYS']
))  # fmt: skip
NUMBER_KEYS = frozenset(words("price cost unit_price unitPrice total rent temperature"))


def type_name(value: Value, key: str = "") -> str:
    """The JSON schema type of a value; a null has the type that its key has elsewhere."""
    if isinstance(value, bool) or (value is None and key in BOOLEAN_KEYS):
        return "boolean"
    if key in NUMBER_KEYS and not isinstance(value, str):
        return "number"
    if value is None and key in ("guests", "rooms", "pages"):
        return "integer"
    if isinstance(value, list):
        return "array"
    if isinstance(value, dict):
        return "object"
    return "string" if isinstance(value, str) or value is None else "integer" if isinstance(value, int) else "number"


def inline_fields(draw: Draw, record: Mapping[str, Value]) -> str:
    """The fields of a record in one line, in one of many styles."""
    keys = list(record)
    if draw.wordings == "test" and draw.chance(0.5):
        return draw.pick((" / ".join(keys), "; ".join(keys), " + ".join(keys), " | ".join(f"<{key}>" for key in keys)))
    style = draw.random.random()
    if style < 0.3:
        return ", ".join(keys)
    if style < 0.4:
        return listing(keys)
    if style < 0.55:
        return other_inline(draw, keys)
    if style < 0.6:
        return other_typed(draw, record)
    if style < 0.66:
        return ", ".join(f"{key} ({type_name(value, key)})" for key, value in record.items())
    if style < 0.71:
        return ", ".join(f"{key}: {type_name(value, key)}" for key, value in record.items())
    if style < 0.79:
        return json.dumps({key: type_name(value, key) for key, value in record.items()})
    if style < 0.84:
        return json.dumps(keys)
    if style < 0.9:
        quote = draw.pick(('"', "'", "`"))
        return listing([f"{quote}{key}{quote}" for key in keys])
    if style < 0.95:
        return "{" + ", ".join(keys) + "}"
    return json.dumps(schema(record))


# The held-out joints are " / ", "; ", " + " and " | " with "<" and ">"; the held-out numbers end in ")".
JOINTS = (
    " & ", "|", " - ", " ", ",", " * ", " and ", " \u00b7 ", " > ", ":", ", and ", " , ", " ~ ", " :: ", " -> ", " \u2022 ", "  ", " = ",
    " plus ", ", then ", " \u2013 ", " # ", ",  ", " . ", ". ", " @ ", " ^ ", " .. ", " ... ", "\t", " -- ", " || ", ", also ", " with ",
)  # fmt: skip
ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
NUMBERS = (
    ("", ". "),
    ("", ": "),
    ("", " - "),
    ("#", " "),
    ("[", "] "),
    ("", " "),
    ("No. ", ": "),
    ("", "= "),
    ("<", "> "),
)


def other_inline(draw: Draw, keys: list[str]) -> str:
    """Names of fields in one line, joined or marked in ways that are less usual."""
    joint = draw.pick(JOINTS)
    start, end = draw.pick(
        (("[", "]"), ("*", "*"), ("**", "**"), ("$", ""), ("@", ""), ("(", ")"), ("", "=?"), ("", ": ..."), ("_", "_"))
    )
    if draw.chance(0.5):
        return joint.join(keys)
    if draw.chance(0.3):
        return draw.pick((", ", ", ", " ", joint)).join(numbered(draw, keys))
    return draw.pick((", ", " ", joint)).join(f"{start}{key}{end}" for key in keys)


def numbered(draw: Draw, keys: Collection[str]) -> list[str]:
    """Each name with its number or letter before it, in one of many ways."""
    left, right = draw.pick(NUMBERS)
    marks: Iterable[str] = map(str, range(1, len(keys) + 1))
    if len(keys) <= len(ROMAN) and draw.chance(0.5):
        marks = draw.pick((ROMAN, "abcdefghi", "ABCDEFGHI"))
    return [f"{left}{mark}{right}{key}" for mark, key in zip(marks, keys, strict=False)]


def other_typed(draw: Draw, record: Mapping[str, Value]) -> str:
    """Names of fields in one line, with types or as an empty object."""
    blank = draw.pick(('"..."', "...", '""', "null", "?"))
    if draw.chance(0.4):
        return "{" + ", ".join(f'"{key}": {blank}' for key in record) + "}"
    left, right = draw.pick(((" [", "]"), (" as ", ""), ("=", ""), (" - ", ""), (":", ""), (" {", "}")))
    return ", ".join(f"{key}{left}{type_name(value, key)}{right}" for key, value in record.items())


def schema(record: Mapping[str, Value]) -> dict[str, object]:
    """A JSON schema that the record meets."""
    properties: dict[str, object] = {}
    for key, value in record.items():
        if isinstance(value, list):
            first = value[0] if value else ""
            items = schema(first) if isinstance(first, dict) else {"type": type_name(first)}
            properties[key] = {"type": "array", "items": items}
        elif isinstance(value, dict):
            properties[key] = schema(value)
        else:
            name = type_name(value, key)
            properties[key] = {"type": [name, "null"] if value is None else name}
    return {"type": "object", "properties": properties, "required": list(record)}


def block_fields(draw: Draw, record: Mapping[str, Value]) -> str:
    """The fields of a record on lines of their own, with types or descriptions."""
    if draw.wordings == "test" and draw.chance(0.5):
        return "\n".join(f"{index}) {key}" for index, key in enumerate(record, 1))
    style, mark = draw.random.random(), draw.pick(("- ", "* ", "- ", ""))
    if draw.chance(0.25):
        return other_block(draw, record)
    if style < 0.35:
        described = [f"{mark}{key}: {DESCRIPTIONS.get(key, type_name(value, key))}" for key, value in record.items()]
        return "\n".join(described)
    if style < 0.6:
        return "\n".join(f"{mark}{key} ({type_name(value, key)})" for key, value in record.items())
    if style < 0.75:
        return "\n".join(f"{mark}{key}" for key in record)
    if style < 0.85:
        return json.dumps(schema(record))
    if style < 0.93:
        return json.dumps({key: type_name(value, key) for key, value in record.items()}, indent=2)
    return "{ " + "; ".join(f"{key}: {type_name(value, key)}" for key, value in record.items()) + " }"


def other_block(draw: Draw, record: Mapping[str, Value]) -> str:
    """The fields of a record on lines of their own, in ways that are less usual."""
    typed = {key: type_name(value, key) for key, value in record.items()}
    mark = draw.pick(
        ("\u2022 ", "\u2013 ", "> ", "# ", "~ ", "@", "$", "\t", "  ", "o ", "-> ", "* ", "_", "** ", "=> ", ". ", "[]")
    )
    end = draw.pick((",", ":", ";", " ...", " =", ".", "?", ": ____", " |", ": null", " ->"))
    return draw.pick(
        (
            "\n".join(numbered(draw, typed)),
            "\n".join(numbered(draw, typed)),
            "\n".join(f"{mark}{key}" for key in typed),
            "\n".join(f"{mark}{key}{end}" for key in typed),
            "\n".join(f"{key} =" for key in typed),
            "\n".join(f"{key}: ..." for key in typed),
            "\n".join(f"[ ] {key}" for key in typed),
            "| field | type |\n" + "\n".join(f"| {key} | {name} |" for key, name in typed.items()),
            "{\n" + ",\n".join(f'  "{key}": "..."' for key in typed) + "\n}",
            "class Record:\n" + "\n".join(f"    {key}: {name}" for key, name in typed.items()),
            "interface Record {\n" + "\n".join(f"  {key}: {name};" for key, name in typed.items()) + "\n}",
            "\n".join(f"+ {key}" for key in typed),
            "\n".join(f"{key} <- {name}" for key, name in typed.items()),
        )
    )


@cache
def for_arrays(asks: tuple[str, ...]) -> tuple[str, ...]:
    """The requests that do not speak of one object, and say `as an array` where any of them do."""
    fitting = tuple(ask for ask in asks if not re.search(r"\b(object|record|form)\b", ask))
    return tuple(ask for ask in fitting if "{json}" in ask.lower()) or fitting


def ask_for(draw: Draw, kind: str, record: Mapping[str, Value], *, array: bool = False, named: float = 0.9) -> str:
    """The request for a record, without the text. `named` is how often the fields are listed."""
    verb = draw.pick(VERBS)
    json_words = draw.pick(AS_ARRAY if array else AS_JSON)
    parts = {"verb": verb, "vb": verb.lower(), "kind": kind, "json": json_words, "Json": json_words.capitalize()}
    parts["label"] = draw.wording(LABELS, HELD_LABELS).lower()
    if draw.chance(1 - named):
        return draw.wording(BARE_ASKS, HELD_BARE_ASKS).format_map(parts)
    if draw.chance(0.25):
        blocks = (for_arrays(BLOCK_ASKS), for_arrays(HELD_BLOCK_ASKS)) if array else (BLOCK_ASKS, HELD_BLOCK_ASKS)
        return draw.wording(*blocks).format_map(parts) + "\n" + block_fields(draw, record)
    parts["keys"] = inline_fields(draw, record)
    asks = (for_arrays(ASKS), for_arrays(HELD_ASKS)) if array else (ASKS, HELD_ASKS)
    return draw.wording(*asks).format_map(parts)
