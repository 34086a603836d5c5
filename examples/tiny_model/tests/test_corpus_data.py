"""The text files of the corpus: each is used, each line can be said, and says what it is there for."""

import inspect
import re
from pathlib import Path

import pytest
from held_words import HELD_WORDS
from spoken import some_ways
from tiny_model.corpus import (
    extras,
    extras_more,
    instructions,
    lexicon,
    opinions,
    stories,
    tasks_chat,
    tasks_tools,
)
from tiny_model.corpus.classes_of_text import FAMILIES
from tiny_model.corpus.corpus_data import TEXTS, blocks_of, lines_of
from tiny_model.corpus.kinds import Kind
from tiny_model.corpus.tasks_extraction import PROSE
from tiny_model.corpus.words import Draw

FILES = sorted(path.stem for path in TEXTS.glob("*.txt"))
SHARED = ("asks", "catalogue", "chat", "labels", "opinions", "requests", "words", "yes_no")  # of more than one list


def test_the_lines_of_a_file_and_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiny_model.corpus.corpus_data.TEXTS", tmp_path)
    (tmp_path / "some.txt").write_text("one\nÄ [b/c]\n\ntwo\nd\n", encoding="utf-8")
    assert lines_of("some") == ("one", "Ä [b/c]", "", "two", "d")
    assert blocks_of("some") == {"one": ("Ä [b/c]",), "two": ("d",)}
    for wrong in ("one\na\n\none\nb\n", "one\na\n\n\ntwo\n"):
        (tmp_path / "some.txt").write_text(wrong, encoding="utf-8")
        with pytest.raises(ValueError, match=r"some\.txt has a block"):
            blocks_of("some")


@pytest.mark.parametrize("name", FILES)
def test_no_line_is_there_twice_and_each_can_be_said(name: str) -> None:
    lists = list(blocks_of(name).values()) if name in SHARED else [lines_of(name)]
    for lines in lists:
        assert len(lines) > 0
        assert len(set(lines)) == len(lines)
        for line in lines:
            assert line == line.strip() != ""
            assert not [text for text in some_ways(line, 3) if re.search(r"[\[\]]|  |\w [.,?!](?!\.)", text)]


@pytest.mark.parametrize("name", [name for name in FILES if name not in SHARED])
def test_every_whole_text_tells_the_whole_record(name: str) -> None:
    texts = lines_of(name)
    kind = next(kind for kind in PROSE if isinstance(kind, Kind) and texts[-1] in kind.known)
    fields = set(kind.draw(Draw(1))[0])
    for text in texts:
        assert text in kind.known
        assert fields <= kind.told_by(text), text
        assert text not in kind.held


def test_every_request_names_each_parameter_of_its_tool_once() -> None:
    parameters = {tool.name: sorted(name for name, _ in tool.parameters) for tool in tasks_tools.TOOLS}
    for name, requests in blocks_of("requests").items():
        for request in requests:
            assert sorted(re.findall(r"{(\w+)}", request)) == parameters[name], request


def test_requests_of_records_and_opinions_are_drawn_from() -> None:
    asks = blocks_of("asks")
    assert set(asks["fields"]) <= set(instructions.ASKS)
    assert set(asks["heading"]) <= set(instructions.BLOCK_ASKS)
    assert set(asks["bare"]) <= set(instructions.BARE_ASKS)
    said_of = blocks_of("opinions")
    for label, judgements in opinions.JUDGEMENTS.items():
        assert set(said_of[label]) <= set(opinions.OPINIONS[label].known)
        assert set(said_of[f"{label} frames"]) <= set(opinions.FRAMES[label].known)
        assert set(said_of[f"{label} words"]) <= set(judgements.known)
    assert set(said_of["turns"]) <= set(opinions.TURNS.known)


def test_every_block_is_of_something_that_is_drawn() -> None:
    labels = {f"{family.noun}: {label}" for family in FAMILIES for label in family.labels}
    assert set(blocks_of("labels")) == labels
    assert set(blocks_of("requests")) == {tool.name for tool in tasks_tools.TOOLS}
    used = {
        name for source in (extras, extras_more) for name in re.findall(r'block="(\w+)"', inspect.getsource(source))
    }
    assert set(blocks_of("yes_no")) == {f"{name} {side}" for name in used for side in ("yes", "no")}
    wanted = {f"{label}{part}" for label in opinions.JUDGEMENTS for part in ("", " frames", " words")} | {"turns"}
    assert set(blocks_of("opinions")) == wanted
    chat = inspect.getsource(tasks_chat) + inspect.getsource(stories)
    named = set(re.findall(r'(?:MORE|blocks_of\("chat"\))\["([\w ]+)"\]', chat))
    tables = (("tell", tasks_chat.TELL), ("recall", tasks_chat.RECALL), ("work", tasks_chat.WORK))
    assert set(blocks_of("chat")) == named | {f"{table} {key}" for table, keys in tables for key in keys}


# Words by which a whole text would tell what an optional sentence may tell otherwise.
TELLING = {
    "invoice": r"\bunpaid\b|(?:not|n't)(?: been)? paid\b",
    "flight": r"\bwindow\b|\baisle\b",
    "hotel": r"\bbreakfast\b",
    "house": r"\bpets?\b|\bdogs?\b|\bcats?\b|furnished",
    "event": r"\btickets?\b|\bfree (?:entry|to)\b|\bfee\b",
    "person": r"\bmarried\b|\bdivorced\b|\bwidowed\b",
    "order": r"\burgent|\bexpress|\brush\b",
    "basket": r"\burgent|\bexpress|\bgift\b|\brush\b|\bbirthday\b",
    "vacancy": r"\bremote\b",
    "product": r"\bsold out\b|\bin stock\b",
}


@pytest.mark.parametrize("name", TELLING)
def test_no_whole_text_tells_what_an_optional_sentence_tells(name: str) -> None:
    told = [text for text in lines_of(name) if re.search(TELLING[name], text, re.IGNORECASE)]
    assert told == []


def test_yes_and_no_share_no_sentence() -> None:
    sentences = blocks_of("yes_no")
    for field in {name.rsplit(" ", 1)[0] for name in sentences}:
        yes, no = (
            {text for line in sentences[f"{field} {side}"] for text in some_ways(line, 3)} for side in ("yes", "no")
        )
        assert not yes & no


HELD = {word.lower() for word in HELD_WORDS}


@pytest.mark.parametrize("name", FILES)
def test_no_file_has_a_held_out_word(name: str) -> None:
    text = "\n".join(lines_of(name)).lower()
    assert [word for word in HELD if re.search(rf"\b{re.escape(word)}(?:e?s)?\b", text)] == []


def test_words_have_no_held_out_one_among_them() -> None:
    for name in blocks_of("words"):
        listed = lexicon.further(name)
        assert set(listed) <= set(getattr(lexicon, name.upper()))
        assert len(set(listed)) == len(listed)
        assert not HELD & {word.lower() for word in listed}
