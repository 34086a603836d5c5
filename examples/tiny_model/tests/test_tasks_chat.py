"""Chats: what was told is recalled, lists do not repeat, words are copied letter for letter."""

import json
import re
from collections.abc import Callable

from tiny_model.corpus.documents import tasks_chat
from tiny_model.corpus.words import Draw


def test_what_is_recalled_was_told() -> None:
    draw = Draw(1)
    for _ in range(300):
        messages = tasks_chat.told(draw)
        asked = [index for index, (role, _) in enumerate(messages) if role == "user"][-1]
        value = re.fullmatch(r"You(?:r .* is| like| live in| are)(?: called)? (.*?)(?: years old)?\.", messages[-1][1])
        assert value is not None, messages
        assert value[1] in " ".join(content for role, content in messages[:asked] if role == "user")


def test_lists_and_tips_have_the_length_asked_for_and_no_repetition() -> None:
    draw, sizes = Draw(2), {word: number for number, word in tasks_chat.NUMBERS.items()}
    for _ in range(400):
        ((_, ask), (_, answer)) = draw.pick((tasks_chat.listed, tasks_chat.tips))(draw)
        size = re.search(rf"\b({'|'.join(sizes)}|\d)\b", ask.lower())
        count = 1 if size is None else sizes.get(size[1]) or int(size[1])
        if answer.startswith("["):
            members = json.loads(answer)
        elif count == 1:
            members = [answer]
        else:
            members = re.split(r"\n|, ", re.sub(r"(?m)^(\d\. |- )", "", answer))
        assert len(members) == len(set(members)) == count, (ask, answer)


def test_copies_are_exact() -> None:
    draw = Draw(3)
    for _ in range(200):
        ((_, ask), (_, answer)) = tasks_chat.copy(draw)
        assert ask.endswith(answer)


def test_work_on_words_is_right() -> None:
    operations: dict[str, Callable[[list[str]], str]] = {
        "reverse": lambda w: " ".join(reversed(w)),
        "last": lambda w: w[-1],
        "first": lambda w: w[0],
        "count": lambda w: str(len(w)),
        "upper": lambda w: " ".join(x.upper() for x in w),
        "json": json.dumps,
    }
    for kind, expected in operations.items():
        _, done = tasks_chat.WORK[kind]
        assert done(["red", "lamp", "Tok"]) == expected(["red", "lamp", "Tok"])


def test_a_spelled_word_gives_its_letters() -> None:
    draw, num_spelled = Draw(4), 0
    for _ in range(300):
        ((_, ask), (_, answer)) = tasks_chat.word_work(draw)
        letters = answer.split(" ")
        if len(letters) > 1 and all(len(letter) == 1 for letter in letters):
            num_spelled += 1
            assert "".join(letters) in ask.replace(" ", "")
    assert num_spelled > 30
