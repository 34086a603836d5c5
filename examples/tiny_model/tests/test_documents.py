"""The document stream: framing, seeds, expanded templates, and the command that writes it."""

import json
import re
from itertools import islice
from pathlib import Path

import jinja2
import pytest
from tiny_model.corpus import documents as corpus
from tiny_model.corpus.documents import CHAT_TEMPLATE, END, TASKS, documents, pieces
from tiny_model.corpus.words import Draw, Messages


def test_the_same_seed_gives_the_same_documents_and_another_seed_others() -> None:
    first, again, other = (list(islice(documents(seed), 40)) for seed in (5, 5, 6))
    assert first == again
    assert first != other


@pytest.mark.parametrize("task", [task for task, _ in TASKS], ids=lambda task: task.__name__)
def test_a_document_spells_what_the_chat_template_renders(task: object) -> None:
    template = jinja2.Template(CHAT_TEMPLATE)
    draw = Draw(8)
    for _ in range(30):
        messages: Messages = task(draw)  # type: ignore[operator]
        document = "".join((piece.special or "") + piece.text for piece in pieces(messages))
        if messages[0][0] == "text":
            assert document == messages[0][1] + END
        else:
            turns = [{"role": role, "content": content} for role, content in messages]
            assert document == template.render(messages=turns, add_generation_prompt=False)


def test_the_generation_prompt_opens_an_assistant_turn() -> None:
    rendered = jinja2.Template(CHAT_TEMPLATE).render(
        messages=[{"role": "user", "content": "Hi"}], add_generation_prompt=True
    )
    assert rendered == "<|user|>Hi<|end|><|assistant|>"


def test_only_assistant_turns_and_their_ends_are_answers() -> None:
    document = pieces([("system", "a"), ("user", "b"), ("assistant", "c")])
    assert [(piece.special, piece.is_answer) for piece in document] == [
        ("<|system|>", False),
        (END, False),
        ("<|user|>", False),
        (END, False),
        ("<|assistant|>", True),
        (END, True),
    ]


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("Text: It is fine: good.\nLabel: good\n\nText: bad\nLabel: bad\n", ["good", "bad\n"]),
        ('Q: a tea\nA: {"item": "tea"}\nQ: a bun\nA: {"item": "bun"}', ['{"item": "bun"}']),
        ("Lamine has a duck.\nQuestion: Whose duck? Label: none\nAnswer: Lamine's\n", ["Lamine's\n"]),
        ("Intent: timer or news.\nQ: wake me\nIntent: timer\nQ: what is on\nIntent: news\n", ["timer", "news\n"]),
        ("Text: Wie geht es?\nKind of sentence: question\n", ["question\n"]),
        ("One day it worked.\nThe end.\n", ["One day it worked.\nThe end.\n"]),
        ("2 * 2 = 4\n10 + 84 = 94\n", ["2 * 2 = 4\n10 + 84 = 94\n"]),
    ],
)
def test_of_a_plain_text_the_named_answers_count(text: str, answers: list[str]) -> None:
    document = pieces([("text", text)])
    assert "".join(piece.text for piece in document) == text
    assert [piece.text for piece in document if piece.is_answer] == answers
    assert document[-1].special == END


def test_some_chats_are_long() -> None:
    draw = Draw(19)
    lengths = [len(corpus.conversation(draw)) for _ in range(400)]
    assert max(lengths) >= 10


TYPE_NAMES = {
    "integer",
    "number",
    "string",
    "boolean",
    "array",
    "object",
    "text",
    "list",
}  # prompts write them in braces


def test_documents_have_no_unfilled_field_or_alternative() -> None:
    for document in islice(documents(3), 3000):
        text = "".join(piece.text for piece in document)
        fields = set(re.findall(r"\{(\w*)\}", text)) - TYPE_NAMES
        assert not fields, text
        assert not re.search(r"\[[a-z ]+/[a-z /]+\]", text), text


def test_the_command_writes_one_document_per_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "corpus.jsonl"
    corpus.main(["--count", "7", "--seed", "5", "--output", str(file)])
    written = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    expected = [[(piece.special, piece.text, piece.is_answer) for piece in each] for each in islice(documents(5), 7)]
    assert [[tuple(piece.values()) for piece in document] for document in written] == expected
    for wrong, code in ((["--count", "0", "--output", str(file)], 2), (["--output", str(tmp_path)], 1)):
        with pytest.raises(SystemExit) as ended:
            corpus.main(wrong)
        assert ended.value.code == code
    assert "cannot be written" in capsys.readouterr().err
