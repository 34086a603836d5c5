"""Wordings that ask for a record of a text as JSON: how fields are listed and how the request is put."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from rtlang.model.embedded.extras import Value
from rtlang.model.embedded.framing import HELD_LABELS, LABELS
from rtlang.model.embedded.kinds import lines
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.text_files import blocks_of
from rtlang.model.embedded.words import Draw, listing

MORE = blocks_of("asks")

VERBS = words(
    "Extract|Pull out|Find|Get|Read|Collect|Give me|Return|Write down|Note|Output|Take|Identify|List|Show|Gather|Provide|"
    "Report|Capture|Pick out|Fetch|Determine|Select|Tell me|Print|Copy|Hand over|Send back|Store|Save|Enter|Put down",
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

ASKS = (
    lines("""
{verb} {keys} {json}.
{verb} [the fields/the values of/these fields:/the keys] {keys} {json}.
{verb} the {kind} {json} with [the fields /the keys /]{keys}.
{verb} {keys} [from/out of/of] [the/this] {label} {json}.
{verb} [the/this] {kind} {json}. [Fields/Keys/The fields/I need]: {keys}.
{verb} a JSON object with [the keys /the fields /]{keys}.
[Turn/Make/Change/Rewrite] this {kind} into JSON with {keys}.
Fill in the {kind} form with {keys}.
[Make/Build/Write/Create] a JSON record of the {kind}: {keys}.
JSON [fields/keys/object with]: {keys}.
{Json}: {keys}.
What [are/is said about] {keys}? [Answer/Reply] {json}.
Please {vb} {keys} {json}.
Could you {vb} {keys} from this {label}? [Answer/Reply/Please answer] {json}.
Can you {vb} {keys} {json}?
I would like [to have /]{keys} {json}[, please/].
I [want/need/have to know] {keys} from the {label} [below/here], {json}.
[Write/Give me/Return/Print] JSON with {keys}.
JSON with {keys}, please.
[keys/fields/json]: {keys}
[Keys/Fields]: {keys}. [Output/Format/Answer]: JSON
Fields to [fill/find/copy]: {keys}
Return only JSON with [these keys/these fields]: {keys}.
Answer {json} and nothing else. [Keys/Fields/It has]: {keys}.
[Read/Scan/Look at/Go through] the {label} and {vb} {keys} {json}.
From the following {label}, {vb} {keys} {json}.
[Given/For] [the/this] {label}, [return/print/give me] {keys} {json}.
Summarize the {kind} {json} with the fields {keys}.
[Represent/Express/Describe] the {kind} {json} using the keys {keys}.
The {label} tells [about/of] a {kind}. {verb} {keys} {json}.
You get a {label}. Your [task/job]: {vb} {keys} {json}.
[Create/Build] a JSON object from the {label}. It [has/holds/consists of/contains] the fields {keys}.
Use this [schema/template/structure]: {keys}
[Schema/Template/Structure]: {keys}. {verb} the {kind} {json}.
Which {keys} does the {label} [mention/tell/name]? Reply {json}.
[Transform/Convert/Parse] the {label} to JSON. [Required/Needed/Expected]: {keys}.
Complete the form ({keys}) {json}.
{keys} [->/=>/to/as] JSON
Task: extraction. Fields: {keys}. Format: JSON.
[Save/Store] the {kind} {json} ({keys}).
[Structured data/Structured output/Machine-readable data] with [the fields /]{keys}, please.
Data that a [program/machine/computer] can read: {keys}, {json}.
[My program/The computer/Our system] [reads/takes/needs/wants] {keys} {json}.
[A record/The record] [has/having/holding/with] {keys} is [expected/wanted/what I need], {json}.
[Wanted/Expected/Needed]: {keys}. [Use JSON/Format: JSON/Please use JSON].
Would you [enter/put/write] {keys} into [one JSON object/the JSON record/a JSON form]?
[Entering/Putting] {keys} into the form is [the task/your job]. Answer {json}.
[Do you mind/Would you mind] [finding/reading/looking up] {keys}? {Json}, please.
[Let's/Let us] [extract/find/collect] {keys} {json}.
First [read/scan] the {label}; {keys} [come/follow] afterwards, {json}.
Print {json}, [once/as soon as] the {label} is read, {keys}.
[Hand me/Give me back/Send me] a JSON object [having/holding] {keys}.
Tell me {keys} of [what follows/the {kind}/the {label}], {json}.
[Look at/Look into/Check] [the/this] {label}: {keys}? [Please use JSON/Use JSON/JSON].
[Populate/Fill/Complete] a JSON [template/form/record] with {keys}.
[I expect/We expect/My program expects] JSON with {keys}[, so copy them from the {label}/ back/].
[Parse/Convert/Read] the {kind} into a record [of/with] {keys}[, as JSON/].
The [following/wanted] keys: {keys}. [Hand over/Send back/Print] a JSON object.
The facts [I want/needed/to find] are {keys}. Answer {json}.
[No text, just/Only/Just] JSON, [please: /with ]{keys}.
[Who, what, when? I mean/I ask for/I look for/I am interested in] {keys}, {json}.
One JSON object[, please/]; its keys are {keys}.
[In the {label} you find/The {label} tells/Somewhere in the {label} stand] {keys}. {verb} them {json}.""")
    + MORE["fields"]
)
HELD_ASKS = lines("""
I need the following as structured data: {keys}.
Look at what follows and tell me {keys}, please use JSON.
Keys wanted -> {keys}
Convert to a record having {keys}:
My program expects {keys}, so hand them over {json}.
Scan this {label}; afterwards print {keys} {json}.
Would you mind entering {keys} into a JSON object for me?
Let's have {keys} as machine-readable JSON.""")
BLOCK_ASKS = (
    lines("""
{verb} [these/the following/the] fields {json}:
{verb} the {kind} {json}. [Fields/Keys/Template/Structure]:
Return JSON with [these keys/these fields/the following keys]:
Fill in the {kind} form:
Please {vb} the following [fields/keys/values] {json}:
JSON [fields/keys/template]:
[Fields/Wanted fields/Expected fields/The fields]:
[Keys/Wanted keys/Keys of the record]:
Turn this {kind} into JSON with:
I want these [fields/values/facts] of the {kind} {json}:
Use this [schema/template/structure/format]:
The answer is a JSON object [with/holding/that holds]:
Answer {json} with this [structure/template/schema]:
Output [format/structure/template]:
[Structured output/Structured answer/Data], {json}[, please/]:
[Build/Make/Create] a JSON record which [consists of/is built from/has]:
[Populate/Complete/Fill in] [the/a] JSON template [below/with these fields]:
[I expect/My program expects/We want] [back /]a JSON object with:
A record of the {kind} [consists of/has these parts]. {verb} it {json}:
[Read the {label} and populate/Scan the {label} and fill in] these fields:
What the [answer/record/object] [has to hold/should hold/consists of]:
[Machine-readable/Structured] {kind}, {json}:
[Could/Would] you {vb} [this/the following] {json}?""")
    + MORE["heading"]
)
HELD_BLOCK_ASKS = lines("""
What I expect back is one JSON object holding:
Structured data, please:
The record to build consists of:
Populate this template:""")
BARE_ASKS = (
    lines("""
{verb} [the/this] {kind} {json}.
[Turn/Make/Change] this {kind} into JSON.
Give me the {kind} {json}.
{kind} [to/as/in] JSON
Fill in the form.
[Extract/Collect/Parse] the [data/facts/details] {json}.
[Read/Scan/Parse] the {label} and answer {json}.
What does the {label} say? [Answer/Reply] {json}.
JSON, please.
Convert this {label} to JSON.
Parse the {label} to JSON.
[The facts/All facts/All details] of [the/this] {kind} {json}[, please/].
[I need/I want] [a machine-readable/a structured] {kind}: {json}.
[Make/Build/Write] [a JSON record/a record in JSON] from this {label}.
[Express/Say/Repeat] [it/that] {json}.
[Could you parse/Please parse] the {kind}? I [want/expect] JSON.
A [program/machine] has to read this {kind}, so answer {json}.""")
    + MORE["bare"]
)
HELD_BARE_ASKS = lines("""
Make this machine-readable.
Express the facts of this {label} {json}.
Parse this {kind}.""")
AS_JSON = words(
    "as JSON|as JSON|as JSON|in JSON|as a JSON object|to JSON|as one JSON object|in JSON format|as valid JSON|"
    "as a JSON record|in the form of JSON|as structured JSON",
    "|",
)
AS_ARRAY = words("as a JSON array|as a JSON list|as a JSON array of objects|as a list of JSON objects", "|")


BOOLEAN_KEYS = frozenset(words(
    "urgent is_urgent gift express free married resolved vegan remote paid in_stock injured breakfast window_seat furnished pets"
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
