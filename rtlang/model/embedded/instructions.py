"""Wordings that ask for a record of a text as JSON: how fields are listed, how the request is put, where the text stands."""

import json
from collections.abc import Mapping

from rtlang.model.embedded.extras import Value
from rtlang.model.embedded.kinds import lines
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.words import Draw, listing

VERBS = words(
    "Extract|Pull out|Find|Get|Read|Collect|Give me|Return|Write down|Note|Output|Take|Identify|List|Show|Gather|Provide|"
    "Report|Capture|Pick out|Fetch|Determine|Select",
    "|",
)
LABELS = words("Text Message Note Input Document Sentence Mail Source Content Passage Paragraph Email Letter Data")
HELD_LABELS = words("Snippet Transcript Excerpt Memo")
DESCRIPTIONS = {
    "customer": "who buys", "item": "what is bought", "quantity": "how many", "price": "price of one", "city": "name of the city",
    "items": "what is bought and how many", "event": "kind of event", "place": "where it is", "date": "day of it",
    "time": "when it starts", "host": "who organizes it", "name": "full name", "age": "age in years", "job": "the profession",
    "hobby": "what is done for fun", "ticket": "ticket number", "reporter": "who has the problem", "device": "the device concerned",
    "problem": "what is wrong", "room": "where the device is", "priority": "low, medium or high", "dish": "what is cooked",
    "minutes": "time in minutes", "servings": "for how many people", "ingredients": "what is needed", "phone": "phone number",
    "email": "email address", "urgent": "whether it is urgent", "reference": "reference code", "color": "the color",
}  # fmt: skip

ASKS = lines("""
{verb} {keys} {json}.
{verb} the fields {keys} {json}.
{verb} the {kind} {json} with {keys}.
{verb} {keys} from the {label} {json}.
{verb} the {kind} {json}. Fields: {keys}.
{verb} a JSON object with the keys {keys}.
Turn this {kind} into JSON with {keys}.
Fill in the {kind} form with {keys}.
Make a JSON record of the {kind}: {keys}.
JSON fields: {keys}.
{Json}: {keys}.
What are {keys}? Answer {json}.
Please {vb} {keys} {json}.
Could you {vb} {keys} from this {label}? Answer {json}.
Can you {vb} {keys} {json}?
I would like {keys} {json}.
I want {keys} from the {label} below, {json}.
Write JSON with {keys}.
JSON with {keys}, please.
keys: {keys}
Keys: {keys}. Output: JSON
Fields to fill: {keys}
Return only JSON with these keys: {keys}.
Answer {json} and nothing else. Keys: {keys}.
Read the {label} and {vb} {keys} {json}.
From the following {label}, {vb} {keys} {json}.
Given the {label}, return {keys} {json}.
Summarize the {kind} {json} with the fields {keys}.
Represent the {kind} {json} using the keys {keys}.
The {label} tells about a {kind}. {verb} {keys} {json}.
You get a {label}. Your task: {vb} {keys} {json}.
Create a JSON object from the {label}. It has the fields {keys}.
Use this schema: {keys}
Schema: {keys}. {verb} the {kind} {json}.
Which {keys} does the {label} mention? Reply {json}.
Transform the {label} to JSON. Required: {keys}.
Complete the form ({keys}) {json}.
{keys} -> JSON
Task: extraction. Fields: {keys}. Format: JSON.
Save the {kind} {json} ({keys}).""")
HELD_ASKS = lines("""
I need the following as structured data: {keys}.
Look at what follows and tell me {keys}, please use JSON.
Keys wanted -> {keys}
Convert to a record having {keys}:
My program expects {keys}, so hand them over {json}.
Scan this {label}; afterwards print {keys} {json}.
Would you mind entering {keys} into a JSON object for me?
Let's have {keys} as machine-readable JSON.""")
BLOCK_ASKS = lines("""
{verb} these fields {json}:
{verb} the {kind} {json}. Fields:
Return JSON with these keys:
Fill in the {kind} form:
Please {vb} the following fields {json}:
JSON fields:
Fields:
Keys:
Turn this {kind} into JSON with:
I want these fields of the {kind} {json}:
Use this schema:
The answer is a JSON object with:
Answer {json} with this structure:
Output format:""")
HELD_BLOCK_ASKS = lines("""
What I expect back is one JSON object holding:
Structured data, please:
The record to build consists of:
Populate this template:""")
BARE_ASKS = lines("""
{verb} the {kind} {json}.
Turn this {kind} into JSON.
Give me the {kind} {json}.
{kind} to JSON
Fill in the form.
Extract the data {json}.
Read the {label} and answer {json}.
What does the {label} say? Answer {json}.
JSON, please.
Convert this {label} to JSON.""")
HELD_BARE_ASKS = lines("""
Make this machine-readable.
Express the facts of this {label} {json}.
Parse this {kind}.""")
FRAMES = (
    "{ask}\n{Label}: {text}", "{ask}\n{Label}: {text}", "{ask}\n{text}", "{ask}\n\n{text}", "{Label}: {text}\n{ask}", "{text}\n{ask}",
    "{text}\n\n{ask}", "{ask} {text}", '{ask} "{text}"', '{ask}\n"{text}"', "{ask}\n\n{Label}:\n{text}", "{ask}\n{Label}: {text}\nJSON:",
    "{Label}:\n{text}\n\n{ask}", "{ask}\n```\n{text}\n```", "<{label}>{text}</{label}>\n{ask}", "{ask}\n<{label}>\n{text}\n</{label}>",
    '{Label}: "{text}"\n\n{ask}', "# {Label}\n{text}\n\n# Task\n{ask}", "{Label} = {text}\n{ask}",
)  # fmt: skip
HELD_FRAMES = (
    "{ask}\n---\n{text}\n---", "{ask}\n\n== {Label} ==\n{text}", "Here it comes: {text}\n{ask}", "{text} ### {ask}", "({text}) {ask}",
)  # fmt: skip
AS_JSON = words(
    "as JSON|as JSON|as JSON|in JSON|as a JSON object|to JSON|as one JSON object|in JSON format|as valid JSON", "|"
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
    if style < 0.45:
        return ", ".join(keys)
    if style < 0.58:
        return listing(keys)
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


def ask_for(draw: Draw, kind: str, record: Mapping[str, Value], *, array: bool = False, named: float = 0.9) -> str:
    """The request for a record, without the text. `named` is how often the fields are listed."""
    verb = draw.pick(VERBS)
    json_words = draw.pick(AS_ARRAY if array else AS_JSON)
    parts = {"verb": verb, "vb": verb.lower(), "kind": kind, "json": json_words, "Json": json_words.capitalize()}
    parts["label"] = draw.wording(LABELS, HELD_LABELS).lower()
    if draw.chance(1 - named):
        return draw.wording(BARE_ASKS, HELD_BARE_ASKS).format_map(parts)
    if draw.chance(0.25):
        return draw.wording(BLOCK_ASKS, HELD_BLOCK_ASKS).format_map(parts) + "\n" + block_fields(draw, record)
    parts["keys"] = inline_fields(draw, record)
    return draw.wording(ASKS, HELD_ASKS).format_map(parts)


def framed(draw: Draw, ask: str, text: str) -> str:
    """The request and the text in one message."""
    label = draw.wording(LABELS, HELD_LABELS)
    return draw.wording(FRAMES, HELD_FRAMES).format_map(
        {"ask": ask, "text": text, "Label": label, "label": label.lower()}
    )
