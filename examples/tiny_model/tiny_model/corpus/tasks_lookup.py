"""Corpus task: a table of keys and values, and many lookups in it.

The values are random, so that nothing but reading the table gives the answer.
"""

from collections.abc import Callable

from tiny_model.corpus.words import Draw, Messages

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
WRITERS: tuple[Callable[[Draw], str], ...] = (
    lambda draw: draw.made_up(),
    lambda draw: draw.made_up(),
    lambda draw: draw.item(0),
    lambda draw: draw.first_name(),
    lambda draw: draw.city(),
    lambda draw: str(draw.number(0, 99)),
    lambda draw: str(draw.number(100, 9999)),
    lambda draw: draw.code(),
)
LAYOUTS = ("{key}: {value}", "{key} = {value}", "- {key}: {value}", "{key} -> {value}", "{key} | {value}")


def distinct(draw: Draw, write: Callable[[Draw], str], count: int, taken: frozenset[str] = frozenset()) -> list[str]:
    """Different words of one kind, none of them taken."""
    found: dict[str, None] = {}
    while len(found) < count:
        word = write(draw)
        if word not in taken:
            found[word] = None
    return list(found)


def lookup(draw: Draw) -> Messages:
    """A table and three to ten questions: the value of a key, the key of a value, a line by its place, several at once."""
    count = draw.number(3, 10)
    write = draw.pick(WRITERS)
    keys = distinct(draw, write, count + 1)
    absent = keys.pop()
    values = distinct(draw, draw.pick(WRITERS), count, frozenset([*keys, absent]))
    layout = draw.pick(LAYOUTS)
    lines = [layout.format(key=key, value=value) for key, value in zip(keys, values, strict=True)]
    table = "\n".join(lines)
    if draw.chance(0.2):
        order = draw.shuffled(range(count))
        ask = draw.wording(
            ("{table}\nValues of {keys}?", "Table:\n{table}\nGive the values of {keys}."),
            ("{table}\nPlease look up the values of {keys}.",),
        )
        return [
            ("user", ask.format(table=table, keys=", ".join(keys[index] for index in order))),
            ("assistant", "\n".join(f"{keys[index]}: {values[index]}" for index in order)),
        ]
    turns: Messages = []
    is_short = draw.chance(0.3)
    for _ in range(draw.number(3, 10)):
        index, kind = int(draw.random.random() * count), draw.random.random()
        key, value = keys[index], values[index]
        if kind < (1.0 if is_short else 0.45):
            ask = (
                draw.wording(("{key}?",), ("{key}:",))
                if is_short
                else draw.wording(
                    ("What is the value of {key}?", "Value of {key}?", "Look up {key}.", "What belongs to {key}?"),
                    ("What is the value for {key}?", "Look up the value of {key}."),
                )
            )
            turn = ask.format(key=key), value
        elif kind < 0.7:
            ask = draw.wording(
                ("Which key has {value}?", "Key of {value}?", "Which key has the value {value}?"),
                ("What is the key of {value}?",),
            )
            turn = ask.format(value=value), key
        elif kind < 0.8 and count > 1:
            place = draw.pick((ORDINALS[index], "last" if index == count - 1 else ORDINALS[index]))
            ask = draw.wording(("Repeat the {place} line.", "Copy the {place} line."), ("Give the {place} line.",))
            turn = ask.format(place=place), lines[index]
        elif kind < 0.88:
            is_there = draw.chance(0.5)
            ask = draw.wording(("Is {key} in the table?", "Is there a key {key}?"), ("Is the key {key} in the table?",))
            turn = ask.format(key=key if is_there else absent), "yes" if is_there else "no"
        elif kind < 0.94 and index + 1 < count:
            ask = draw.wording(
                ("Which key comes after {key}?", "Which key follows {key}?"), ("Which is the key after {key}?",)
            )
            turn = ask.format(key=key), keys[index + 1]
        else:
            told = draw.pick(values) if draw.chance(0.5) else value
            ask = draw.wording(("Is the value of {key} {value}?",), ("Does {key} have the value {value}?",))
            turn = ask.format(key=key, value=told), "yes" if told == value else "no"
        turns += [("user", turn[0]), ("assistant", turn[1])]
    opening = draw.pick(("", "Table:\n", "Data:\n"))
    if draw.chance(0.5):
        return [("system", opening + table), *turns]
    return [("user", f"{opening}{table}\n{turns[0][1]}"), *turns[1:]]
