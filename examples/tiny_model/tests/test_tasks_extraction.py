"""Extraction: answers are told by their prompts, and held-out words, texts and wordings stay out of training."""

import json
import re
from collections.abc import Iterator

import jsonschema
import pytest
from tiny_model.corpus import instructions, kinds_more, spelling, tasks_extraction
from tiny_model.corpus.kinds import SLOT, Kind
from tiny_model.corpus.kinds_of_occasions import event, recipe
from tiny_model.corpus.kinds_of_people import person, ticket
from tiny_model.corpus.kinds_of_trade import basket, order
from tiny_model.corpus.tasks_extraction import extraction, listed, spelled
from tiny_model.corpus.words import Draw, Messages

ALL_KINDS = (order, basket, event, person, ticket, recipe, *kinds_more.KINDS)


def chats(draw: Draw, count: int) -> Iterator[Messages]:
    for _ in range(count):
        messages = extraction(draw)
        if messages[-1][0] == "assistant":
            yield messages


def leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    if isinstance(value, list):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def is_told(value: object, text: str) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        return value.lower() in text.lower()
    return re.search(rf"(?<![\d.]){re.escape(str(value))}0*(?!\d)", text) is not None


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_value_stands_in_the_prompt(split: str) -> None:
    for messages in chats(Draw(11, split), 3000):  # type: ignore[arg-type]
        prompt = "\n".join(content for _, content in messages[:-1])
        for value in leaves(json.loads(messages[-1][1])):
            assert is_told(value, prompt), (value, prompt)


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.known[0][:30])
def test_every_template_of_a_kind_tells_the_whole_record(kind: Kind) -> None:
    assert len(set(kind.known)) >= 14
    assert len(set(kind.held)) >= 3
    assert not set(kind.known) & set(kind.held)
    draw = Draw(5)
    for template in (*kind.known, *kind.held):
        for _ in range(20 if "[" in template else 1):
            record, words = kind.draw(draw)
            text, record = kind.filled(draw.spoken(template), record, words)
            assert all(is_told(value, text) for value in leaves(record)), (text, record)


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.known[0][:30])
def test_texts_of_sentences_tell_the_whole_record(kind: Kind) -> None:
    draw = Draw(5)
    for voice in filter(None, (kind.sentences, kind.first_person)):
        told = [{kind.aliases.get(name, name) for name in SLOT.findall(line)} - {""} for line in voice]
        for name in kind.draw(draw)[0]:
            assert sum(each == {name} for each in told) >= 3, name
    for _ in range(300 if kind.sentences else 0):
        record, words = kind.draw(draw)
        text, record = kind.filled(kind.in_sentences(draw, record), record, words)
        assert all(is_told(value, text) for value in leaves(record)), (text, record)


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.known[0][:30])
def test_texts_of_clauses_tell_the_whole_record(kind: Kind) -> None:
    assert kind.clauses is not None
    draw = Draw(6)
    texts = []
    for _ in range(300):
        record, words = kind.draw(draw)
        text, record = kind.filled(kind.in_clauses(draw, record), record, words)
        texts.append(text)
        assert all(is_told(value, text) for value in leaves(record)), (text, record)
        assert ",," not in text.replace(", ,", ",,"), text
    assert len({tuple(re.findall(r"[a-z]+", text)) for text in texts}) > 290  # hardly two of one build


@pytest.mark.parametrize("kind", [order, basket, event, person, ticket, recipe], ids=lambda kind: kind.known[0][:30])
def test_held_texts_are_new_but_their_words_are_known(kind: Kind) -> None:
    """No run of five words or fields of a held text is in a training text; each word is in one."""

    def grams(text: str, size: int) -> set[tuple[str, ...]]:
        tokens = re.findall(r"\{\w+\}|\w+", text.lower())
        return {tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)}

    assert kind.clauses is not None
    draw = Draw(3)
    known = [
        draw.spoken(line)
        for line in (*kind.known, *kind.sentences, *kind.first_person, *kind.clauses.cores, *kind.clauses.adjuncts)
        for _ in range(200 if "[" in line else 1)
    ]
    words, runs = ({gram for text in known for gram in grams(text, size)} for size in (1, 5))
    for line in kind.held:
        assert not grams(line, 5) & runs, line
        assert not grams(line, 1) - words, line


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.known[0][:30])
def test_a_record_meets_its_own_schema(kind: Kind) -> None:
    draw = Draw(6)
    for _ in range(20):
        _, record = tasks_extraction.told_by(draw, kind)
        jsonschema.validate(record, instructions.schema(record))


def test_an_article_is_copied_in_the_number_that_the_text_has() -> None:
    draw = Draw(4)
    told = [kind(draw)[1:] for kind in (order, basket) for _ in range(300)]
    pairs = [(text, record["item"]) for text, record in told if "item" in record]
    for text, record in told:
        pairs += [(text, row["item"]) for row in record.get("items") or ()]  # type: ignore[union-attr, index]
    assert all(re.search(rf"\b{re.escape(str(item))}\b", text) for text, item in pairs)
    endings = [str(item)[-1] == "s" for _, item in pairs]
    assert 0.6 < sum(endings) / len(endings) < 0.95  # the plural, mostly


def test_most_answers_are_spelled_with_default_separators() -> None:
    answers = [messages[-1][1] for messages in chats(Draw(7), 2000)]
    usual = [answer for answer in answers if answer == spelled(json.loads(answer))]
    assert 0.88 < len(usual) / len(answers) < 1


def test_a_listed_record_of_the_same_seed_is_the_same() -> None:
    one, two = Draw(9), Draw(9)
    assert [listed(one) for _ in range(50)] == [listed(two) for _ in range(50)]


def fixed_parts(templates: tuple[str, ...]) -> set[str]:
    """The longest stretch of fixed text of each template, outside its fields and choices."""
    return {max(re.split(r"\{\w+\}|\[[^\[\]]*/[^\[\]]*\]", template), key=len) for template in templates}


def test_training_never_shows_held_out_words_texts_or_wordings() -> None:
    draw = Draw(8)
    text = "\n".join(content for _ in range(8000) for _, content in extraction(draw))
    words = set(re.findall(r"(?<![a-z0-9])[a-z]+(?![a-z0-9])", text.lower()))  # not the letters of codes
    assert not words & {word for word in spelling.HELD if word.isalpha()}
    held = [*instructions.HELD_ASKS, *instructions.HELD_BLOCK_ASKS, *instructions.HELD_BARE_ASKS]
    for template in (*held, *(line for kind in ALL_KINDS for line in kind.held)):
        long_parts = [part for part in fixed_parts((template,)) if len(re.findall(r"\w+", part)) > 4]
        assert not [part for part in long_parts if part in text], template


def test_the_three_axes_are_held_out_one_by_one() -> None:
    new_text = Draw(3, "train", templates="test")
    new_wording = Draw(3, "train", wordings="test")
    texts = [order(new_text)[1] for _ in range(50)]
    assert all(any(part in text for part in fixed_parts(order.held)) for text in texts)
    asks = [instructions.ask_for(new_wording, "order", {"a": 1, "b": 2}) for _ in range(200)]
    known = fixed_parts(instructions.ASKS)
    assert not [ask for ask in asks if max(known, key=len) in ask]
    assert len({ask.split()[0] for ask in asks}) > 5


def test_lists_of_keys_are_never_joined_as_held_out_ones() -> None:
    held, known = Draw(4, "train", wordings="test"), Draw(4)
    record = dict.fromkeys(("alpha", "beta", "gamma"), "x")
    styles = {instructions.inline_fields(held, record) for _ in range(500)}
    joints = (" / ", "; ", " + ", "> | <")
    assert all(any(f"alpha{joint}" in style or f"<alpha{joint}" in style for style in styles) for joint in joints)
    listed_keys = {instructions.other_inline(known, list(record)) for _ in range(5000)}
    assert len(listed_keys) > 300
    assert not [style for style in listed_keys if any(joint in style for joint in joints)]
    numbers = {"".join(instructions.numbered(known, list(record))) for _ in range(2000)}
    assert len(numbers) > 25
    assert not [style for style in numbers if ")" in style]


def test_there_are_many_wordings() -> None:
    assert len(set(instructions.ASKS)) >= 30
    assert len(set(instructions.HELD_ASKS)) >= 6
