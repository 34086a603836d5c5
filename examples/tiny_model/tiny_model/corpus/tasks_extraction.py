"""Corpus task: extraction of JSON records from short texts.

A text is drawn from the templates of a kind of record, with sentences for optional fields and sentences that nobody asks
about around it. Answers are written by `json.dumps` with its default separators, a spelling that a JSON schema constraint
of the runtime lets through; compact or indented only where the prompt asks for that.
"""

import json
from collections.abc import Callable, Sequence

from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.extras import Record, Value
from tiny_model.corpus.framing import framed
from tiny_model.corpus.instructions import ask_for, inline_fields
from tiny_model.corpus.kinds import Kind
from tiny_model.corpus.lexicon import lines, words
from tiny_model.corpus.listings import listing_of
from tiny_model.corpus.other_verbs import with_other_verbs
from tiny_model.corpus.record_kinds import LONG_KINDS, basket, event, order, person, recipe, ticket
from tiny_model.corpus.words import Draw, Messages

TEMPLATES = sections_of("tasks_extraction")

LISTED_KEYS = words(
    TEMPLATES["LISTED_KEYS"],
)

# One field is asked for under several names; the model then takes the name from the prompt or from the grammar.
SYNONYMS = {
    "customer": ("customer", "customer", "buyer", "client", "name", "customer_name"),
    "item": ("item", "item", "product", "article"),
    "items": ("items", "items", "products", "order_lines"),
    "quantity": ("quantity", "quantity", "count", "amount"),
    "price": ("price", "price", "unit_price", "cost", "unitPrice"),
    "city": ("city", "city", "city", "town", "location"),
    "event": ("event", "event", "kind", "event_type"),
    "place": ("place", "place", "venue", "location"),
    "host": ("host", "host", "organizer"),
    "job": ("job", "job", "occupation", "profession"),
    "hobby": ("hobby", "hobby", "interest"),
    "reporter": ("reporter", "reporter", "name", "user", "reported_by"),
    "problem": ("problem", "problem", "issue"),
    "email": ("email", "email", "mail", "email_address"),
    "phone": ("phone", "phone", "phone_number", "tel"),
    "urgent": ("urgent", "urgent", "is_urgent"),
    "ticket": ("ticket", "ticket", "ticket_id", "id"),
    "dish": ("dish", "dish", "name", "recipe"),
}
DISTRACTORS = lines(TEMPLATES["DISTRACTORS"])
HELD_DISTRACTORS = lines(TEMPLATES["HELD_DISTRACTORS"])
NULL_HINTS = words(
    TEMPLATES["NULL_HINTS"],
    "|",
)
HELD_NULL_HINTS = words("Put null whenever a detail is absent.|null stands for anything left out.", "|")
COMPACT_HINTS = words(
    TEMPLATES["COMPACT_HINTS"],
    "|",
)
PRETTY_HINTS = words(
    TEMPLATES["PRETTY_HINTS"],
    "|",
)
SYSTEM_EXTRACT = (
    "You extract data.", "You turn text into JSON.", "Answer with one JSON object.", "Answer only in JSON.",
    "You read short texts and fill in forms.", "You are a helpful assistant.", "Reply with JSON and nothing else.",
    "You are a careful clerk who copies every word exactly.", "You are an extraction engine.", "You read a text and answer with a record.",
    "You fill in records for a program.", "Copy values exactly as the text spells them.", "You only speak JSON.", "Be exact and brief.",
    "Your answers are read by a machine.", "You parse texts.", "Say what the text says, in JSON.",
)  # fmt: skip


def listed(draw: Draw) -> tuple[str, str, Record]:
    """Any keys with any values: nothing to know, everything to copy."""
    keys = [draw.made_up() if draw.chance(0.2) else key for key in draw.sample(LISTED_KEYS, draw.number(2, 7))]
    record: Record = {}
    makers: tuple[Callable[[], Value], ...] = (
        draw.made_up, draw.capital, draw.full_name, draw.item, draw.any_code, draw.place_name, draw.company, draw.title,
        lambda: draw.number(0, 9999), lambda: draw.number(0, 99), lambda: draw.number(0, 10**6), lambda: draw.number(1, 999) + 0.5,
        lambda: f"{draw.made_up()} {draw.made_up()}", lambda: draw.pick(lex.COLORS), draw.any_date, draw.any_time, draw.email,
        draw.phone, draw.street,
    )  # fmt: skip
    for key in keys:
        record[key] = draw.pick(makers)()
    return "record", listing_of(draw, record), record


SHORT = (order, basket, event, person, ticket, recipe)
PROSE = (
    order, order, order, event, event, person, person, person,
    ticket, ticket, recipe, basket, basket, *LONG_KINDS,
)  # fmt: skip


def renamed(draw: Draw, record: Record) -> Record:
    """The record under other names for its keys, of which no two become the same."""
    found: Record = {}
    for key, value in record.items():
        name = draw.pick(SYNONYMS.get(key, (key,)))
        found[key if name in found or (name != key and name in record) else name] = value
    return found


def told_by(draw: Draw, kind: Kind) -> tuple[str, Record]:
    """A text of a kind, with optional sentences, and all that it tells; keys of what it leaves open are null."""
    _, text, record = kind(draw)
    if not draw.chance(0.55):
        return text, record
    sentences = []
    for extra in draw.sample(kind.extras, min(len(kind.extras), draw.pick((1, 1, 2, 3)))):
        key, value, sentence = extra(draw)
        if draw.chance(0.3):
            record[key] = None
        else:
            record[key] = value
            sentences.append(sentence)
    if draw.chance(0.25):
        parts = {"name": draw.full_name(), "condition": draw.pick(lex.CONDITIONS[:7]), "thing": draw.goods()}
        aside = with_other_verbs(draw, draw.template(DISTRACTORS, HELD_DISTRACTORS))
        sentences.insert(draw.number(0, len(sentences)), aside.format_map(parts))
    return " ".join([ended(text), *sentences]), record


def ended(text: str) -> str:
    """The text with a full stop where it ends in a word, so that no value runs on into what follows."""
    return text + "." if text[-1].isalnum() else text


def chosen(draw: Draw, record: Record) -> Record:
    """Some of the fields, in any order, or all of them."""
    keys = list(record)
    if draw.chance(0.5):
        keys = draw.sample(keys, draw.number(min(2, len(keys)), len(keys)))
    return {key: record[key] for key in keys}


def spelled(answer: object, indent: int | None = None) -> str:
    """JSON with default separators, letters with accents as they are."""
    return json.dumps(answer, ensure_ascii=False, indent=indent)


def joined(ask: str, hint: str) -> str:
    """A request with one more sentence; on a line of its own after anything but a sentence."""
    return f"{ask} {hint}" if ask[-1] in ".?!" and "\n" not in ask else f"{ask}\n{hint}"


def several(draw: Draw) -> Messages:
    """Two or three records in one text, answered by an array, or by an object that holds it."""
    kind: Kind = draw.pick((order, person, event, ticket, *LONG_KINDS))
    pairs = [kind(draw) for _ in range(draw.pick((2, 2, 3)))]
    first = renamed(draw, pairs[0][2])
    names = dict(zip(pairs[0][2], first, strict=True))
    keys = draw.sample(list(names), draw.number(2, min(4, len(names))))
    rows = [{names[key]: record[key] for key in keys} for _, _, record in pairs]
    text = draw.pick(("\n", "\n", " ", "\n- ")).join(ended(text) for _, text, _ in pairs)
    ask = ask_for(draw, draw.pick(kind.names) + "s", rows[0], array=True, named=1)
    answer: object = rows
    if draw.chance(0.4):
        key = draw.pick(("items", "records", "entries", "list", f"{kind.name}s", "results"))
        hint = draw.pick((f'Put the array under the key "{key}".', f"Wrap the list in an object with the key {key}."))
        ask = joined(ask, hint)
        answer = {key: rows}
    return [("user", framed(draw, ask, text)), ("assistant", spelled(answer))]


def few_shot(draw: Draw) -> Messages:
    """Examples of texts and records, then one more text: as a chat, in one message, or as plain text."""
    kind: Kind = draw.pick(PROSE)
    told = [kind(draw) for _ in range(3)]
    names = renamed(draw, told[0][2])
    pairs = list(zip(told[0][2], names, strict=True))
    pairs = draw.sample(pairs, draw.number(2, len(pairs)))
    texts = [text for _, text, _ in told]
    answers = [spelled({name: record[key] for key, name in pairs}) for _, _, record in told]
    shape = draw.random.random()
    if shape < 0.35:
        turns: Messages = [("system", ask_for(draw, kind.name, json.loads(answers[0])))] if draw.chance(0.6) else []
        for text, answer in zip(texts, answers, strict=True):
            turns += [("user", text), ("assistant", answer)]
        return turns
    left, right = draw.pick((("Text", "JSON"), ("Input", "Output"), ("Message", "Record"), ("Q", "A")))
    shots = "\n".join(f"{left}: {text}\n{right}: {answer}" for text, answer in zip(texts[:2], answers[:2], strict=True))
    if shape < 0.75:
        ask = ask_for(draw, kind.name, json.loads(answers[0])) + "\n" if draw.chance(0.6) else ""
        return [("user", f"{ask}{shots}\n{left}: {texts[2]}\n{right}:"), ("assistant", answers[2])]
    return [("text", f"{shots}\n{left}: {texts[2]}\n{right}: {answers[2]}")]


def short_text(draw: Draw, kinds: Sequence[Kind] = SHORT) -> Messages:
    """One record of one of `kinds`, told by one text with nothing besides: the plain case of `extraction`."""
    kind = draw.pick(kinds)
    _, text, told = kind(draw)
    record = chosen(draw, renamed(draw, told))
    ask = ask_for(draw, draw.pick(kind.names), record, named=1)
    return [("user", framed(draw, ask, text)), ("assistant", spelled(record))]


def extraction(draw: Draw) -> Messages:
    """A short text, the names of some of its fields, and the JSON object that holds them."""
    shape = draw.random.random()
    if shape < 0.07:
        return several(draw)
    if shape < 0.14:
        return few_shot(draw)
    if shape < 0.26:
        name, text, full = listed(draw)
        names: tuple[str, ...] = (name, "entry", "form")
    else:
        kind = draw.pick(PROSE)
        text, told = told_by(draw, kind)
        names, full = kind.names, renamed(draw, told)
    record: Record
    if draw.chance(0.08):
        # Nobody says which fields: all that the text tells.
        record = {key: value for key, value in full.items() if value is not None}
        ask = ask_for(draw, draw.pick(names), record, named=0)
    else:
        record = chosen(draw, full)
        ask = ask_for(draw, draw.pick(names), record, named=1)
    missing = any(value is None for value in record.values())
    if draw.chance(0.7 if missing else 0.04):
        ask = joined(ask, draw.wording(NULL_HINTS, HELD_NULL_HINTS))
    answer, spelling = spelled(record), draw.random.random()
    if spelling < 0.04:
        ask = joined(ask, draw.spoken(draw.pick(COMPACT_HINTS)))
        answer = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    elif spelling < 0.07:
        ask = joined(ask, draw.spoken(draw.pick(PRETTY_HINTS)))
        answer = spelled(record, 2)
    place = draw.random.random()
    if place < 0.12:
        # The instruction stands in the system message, the text alone in the user's.
        keys = inline_fields(draw, record)
        systems = (
            f"Extract {keys} as JSON.",
            f"Turn each message into JSON with {keys}.",
            f"JSON fields: {keys}.",
            f"For each message, answer with a JSON object that holds {keys}.",
            f"You parse what users write. Fields: {keys}.",
            f"Your output is one JSON record per message: {keys}.",
            f"Whatever the user sends, reply in JSON with {keys}.",
            f"Read {keys} from every text you get and print JSON.",
        )
        if spelling >= 0.07 and draw.wordings == "train" and draw.chance(0.5):
            ask = draw.pick(systems)
        return [("system", ask), ("user", text), ("assistant", answer)]
    turns: Messages = [("user", framed(draw, ask, text)), ("assistant", answer)]
    if place < 0.35:
        turns.insert(0, ("system", draw.pick(SYSTEM_EXTRACT)))
    return turns
