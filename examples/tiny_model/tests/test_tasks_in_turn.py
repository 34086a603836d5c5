"""Chats of many texts under one instruction: every answer is that of its own text."""

import json
import re
from typing import Literal

import pytest
from tiny_model.corpus import tasks_in_turn
from tiny_model.corpus.words import Draw, Messages
from tiny_model.evaluation.tasks import tools_in

Split = Literal["train", "test"]


def pairs_of(messages: Messages) -> list[tuple[str, str]]:
    """What the user said and what was answered."""
    turns = [message for message in messages if message[0] != "system"]
    assert [role for role, _ in turns] == ["user", "assistant"] * (len(turns) // 2)
    return [(said, answer) for (_, said), (_, answer) in zip(turns[::2], turns[1::2], strict=True)]


def texts_of(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts_of(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts_of(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("split", ["train", "test"])
def test_each_record_has_the_same_fields_and_the_values_of_its_own_text(split: Split) -> None:
    draw = Draw(31, split)
    for _ in range(300):
        pairs = pairs_of(tasks_in_turn.texts(draw))
        assert 3 <= len(pairs) <= 5
        records = [json.loads(answer) for _, answer in pairs]
        assert all(list(record) == list(records[0]) for record in records)
        for (text, _), record in zip(pairs, records, strict=True):
            for value in texts_of(record):
                stem = value.lower().removesuffix("y")  # one of several things is told as many: "party", "parties"
                assert stem in text.lower(), (value, text)


@pytest.mark.parametrize("split", ["train", "test"])
def test_each_label_is_one_of_those_listed_and_that_of_its_text(split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_in_turn, "opinion", lambda draw, label: f"told as {label}")
    monkeypatch.setattr(tasks_in_turn, "message", lambda draw, family, label: f"told as {label}")
    draw, lengths = Draw(32, split), set()
    for _ in range(300):
        messages = tasks_in_turn.labels(draw)
        (role, system), pairs = messages[0], pairs_of(messages)
        assert role == "system"
        assert all(re.search(rf"\b{re.escape(label)}\b", system) for _, label in pairs)
        assert all(text == f"told as {label}" for text, label in pairs)
        lengths.add(len(pairs))
    assert lengths == set(range(5, 10))


@pytest.mark.parametrize("split", ["train", "test"])
def test_each_request_is_served_by_a_listed_tool_that_was_not_asked_before(split: Split) -> None:
    draw, unasked = Draw(33, split), 0
    for _ in range(300):
        messages = tasks_in_turn.requests(draw)
        tools = tools_in(messages[0][1])
        served = [(said, json.loads(answer)) for said, answer in pairs_of(messages) if answer.startswith("{")]
        assert len({call["name"] for _, call in served}) == len(served) >= len(tools) / 2
        for said, call in served:
            assert sorted(tools[call["name"]]) == sorted(call["arguments"])
            assert all(str(value) in said for value in call["arguments"].values()), (said, call)
        unasked += len(tools) > len(served)
    assert 100 < unasked < 250  # what is left over does not tell the tool
