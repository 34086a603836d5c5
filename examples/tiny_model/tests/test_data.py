"""The data files: each is read, well-formed and used, and none contains a held-out word."""

import re
from pathlib import Path

import pytest
from tiny_model.corpus import lexicon, opinions, tasks_tools
from tiny_model.corpus.corpus_data import TEMPLATES, TEXTS, blocks_of, lines_of, sections_of
from tiny_model.corpus.kinds import Kind
from tiny_model.corpus.tasks_extraction import PROSE
from tiny_model.corpus.tasks_text import FAMILIES
from tiny_model.corpus.words import Draw
from tiny_support import HELD_WORDS, expansions

FILES = sorted(path.stem for path in TEXTS.glob("*.txt"))
WITH_BLOCKS = ("asks", "catalogue", "chat", "labels", "opinions", "requests", "words", "yes_no")
SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for path in (Path(__file__).parents[1] / "tiny_model").rglob("*.py")
)
HELD = {word.lower() for word in HELD_WORDS}


def test_lines_blocks_and_sections_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiny_model.corpus.corpus_data.TEXTS", tmp_path)
    monkeypatch.setattr("tiny_model.corpus.corpus_data.TEMPLATES", tmp_path)
    (tmp_path / "some.txt").write_text("one\nÄ [b/c]\\nd\n\ntwo\nd\n", encoding="utf-8")
    assert lines_of("some") == ("one", "Ä [b/c]\\nd", "", "two", "d")
    assert blocks_of("some") == {"one": ("Ä [b/c]\nd",), "two": ("d",)}
    for wrong in ("one\na\n\none\nb\n", "one\na\n\n\ntwo\n"):
        (tmp_path / "some.txt").write_text(wrong, encoding="utf-8")
        with pytest.raises(ValueError, match=r"some\.txt has a block"):
            blocks_of("some")
    (tmp_path / "some.txt").write_text("=== A ===\none\ntwo\n=== B 2 ===\nthree\n", encoding="utf-8")
    assert sections_of("some") == {"A": "one\ntwo", "B 2": "three"}


@pytest.mark.parametrize("name", sorted(path.stem for path in TEMPLATES.glob("*.txt")))
def test_every_template_section_has_text_and_one_heading_and_is_used(name: str) -> None:
    source = (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")
    sections = sections_of(name)
    assert len(sections) == len(re.findall(r"^=== .* ===$", source, re.MULTILINE)) > 0
    assert all(text.strip() for text in sections.values())
    assert f'sections_of("{name}")' in SOURCES


@pytest.mark.parametrize("name", FILES)
def test_no_line_is_repeated_and_every_line_expands(name: str) -> None:
    lists = list(blocks_of(name).values()) if name in WITH_BLOCKS else [lines_of(name)]
    for lines in lists:
        assert len(lines) > 0
        assert len(set(lines)) == len(lines)
        for line in lines:
            assert line == line.strip() != ""
            assert not [text for text in expansions(line, 3) if re.search(r"[\[\]]|  |\w [.,?!](?!\.)", text)]


@pytest.mark.parametrize("name", [name for name in FILES if name not in WITH_BLOCKS])
def test_every_text_of_a_kind_has_all_fields_of_its_record(name: str) -> None:
    texts = lines_of(name)
    kind = next(kind for kind in PROSE if isinstance(kind, Kind) and texts[-1] in kind.known)
    fields = set(kind.draw(Draw(1))[0])
    for text in texts:
        assert text in kind.known
        assert text not in kind.held
        assert fields <= kind.told_by(text), text


def test_every_block_belongs_to_a_tool_a_label_or_an_opinion() -> None:
    parameters = {tool.name: sorted(name for name, _ in tool.parameters) for tool in tasks_tools.TOOLS}
    assert set(blocks_of("requests")) == set(parameters)
    for name, requests in blocks_of("requests").items():
        for request in requests:
            assert sorted(re.findall(r"{(\w+)}", request)) == parameters[name], request
    labels = {f"{family.noun}: {label}" for family in FAMILIES for label in family.labels}
    assert set(blocks_of("labels")) == labels
    fields = set(re.findall(r'block="(\w+)"', SOURCES))
    assert set(blocks_of("yes_no")) == {f"{name} {side}" for name in fields for side in ("yes", "no")}
    wanted = {f"{label}{part}" for label in opinions.JUDGEMENTS for part in ("", " frames", " words")} | {"turns"}
    assert set(blocks_of("opinions")) == wanted


def test_yes_and_no_share_no_sentence() -> None:
    sentences = blocks_of("yes_no")
    for field in {name.rsplit(" ", 1)[0] for name in sentences}:
        yes, no = (
            {text for line in sentences[f"{field} {side}"] for text in expansions(line, 3)} for side in ("yes", "no")
        )
        assert not yes & no


@pytest.mark.parametrize("name", FILES)
def test_no_file_has_a_held_out_word(name: str) -> None:
    text = "\n".join(lines_of(name)).lower()
    assert re.findall(rf"\b(?:{'|'.join(map(re.escape, sorted(HELD)))})(?:e?s)?\b", text) == []


def test_word_lists_have_no_repeated_or_held_out_word() -> None:
    for name in blocks_of("words"):
        listed = lexicon.further(name)
        assert set(listed) <= set(getattr(lexicon, name.upper()))
        assert len(set(listed)) == len(listed)
        assert not HELD & {word.lower() for word in listed}
