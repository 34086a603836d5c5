"""Tables: every answer is read from the table again."""

import re

import pytest
from tiny_model.corpus.tasks_lookup import LAYOUTS, ORDINALS, lookup
from tiny_model.corpus.words import Draw, Split

SIGNS = [layout.removeprefix("- ").removeprefix("{key}").removesuffix("{value}") for layout in LAYOUTS]


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_answer_stands_in_the_table(split: Split) -> None:
    draw, kinds = Draw(1, split), set()
    for _ in range(800):
        messages = lookup(draw)
        lines = [line for line in messages[0][1].split("\n") if any(sign in line for sign in SIGNS)]
        if messages[0][0] == "user" and not messages[-1][1].count("\n"):
            lines = lines[: len(lines) - (lines[-1] == messages[0][1].split("\n")[-1])]
        sign = next(sign for sign in reversed(SIGNS) if all(sign in line for line in lines))
        table = dict(line.removeprefix("- ").split(sign) for line in lines)
        keys, values = list(table), list(table.values())
        turns = messages[1:] if messages[0][0] == "system" else messages
        for (_, content), (_, said) in zip(turns[::2], turns[1::2], strict=True):
            ask = content.split("\n")[-1]
            words = re.findall(r"[^\s?,:.][^?,:.\n]*?(?=[\s?,:.]|$)", ask)
            if "alues of" in content.split("\n")[-1]:
                wanted = ask.split("alues of ")[1].rstrip("?.").split(", ")
                assert said == "\n".join(f"{key}: {table[key]}" for key in wanted)
                kinds.add("several")
            elif re.search(r"the \w+ line", ask):
                place = re.search(r"the (\w+) line", ask)[1]  # type: ignore[index]
                assert said == lines[-1 if place == "last" else ORDINALS.index(place)]
                kinds.add("line")
            elif match := re.fullmatch(r"Is the value of (.+)\?|Does (.+) have the value (.+)\?", ask):
                told = match[0]
                rows = [
                    f" {key} {value}?" in told or f" {key} have the value {value}?" in told
                    for key, value in table.items()
                ]
                assert (said == "yes") == any(rows)
                kinds.add("is it")
            elif there := re.fullmatch(
                r"Is there a key (.+)\?|Is the key (.+) in the table\?|Is (.+) in the table\?", ask
            ):
                assert (said == "yes") == any(key in there.groups() for key in keys)
                kinds.add("there")
            elif re.search(r"comes after|follows|key after", ask):
                key = re.split(r"after |follows ", ask)[1].rstrip("?")
                assert said == keys[keys.index(key) + 1]
                kinds.add("after")
            elif re.match(r"Which key|Key of|What is the key of", ask):
                assert said in table
                assert ask.rstrip("?").endswith(table[said])
                kinds.add("key")
            else:
                (key,) = [key for key in keys if re.search(rf"(?:^|\s){re.escape(key)}[?:.]?$", ask)][-1:]
                assert said == table[key], words
                kinds.add("value")
        assert len(set(values)) == len(values)
    assert kinds == {"several", "line", "is it", "there", "after", "key", "value"}


def test_held_wordings_stay_out_of_training() -> None:
    known, evaluation = Draw(2), Draw(2, "test")
    held = r"Look up the value|\bvalue for\b|\bkey of\b|\bkey after\b"
    assert not [1 for _ in range(1000) if re.search(held, str(lookup(known)))]
    assert [1 for _ in range(300) if re.search(held, str(lookup(evaluation)))]
