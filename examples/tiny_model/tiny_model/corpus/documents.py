"""The training corpus of the embedded model: an endless, seeded stream of small synthetic conversations.

    python -m tiny_model.corpus.documents --count 1000 --seed 5 --output corpus.jsonl

A document is a conversation of one task, several of them in one chat (which teaches longer contexts), or a plain
completion. No text is taken from anywhere; every document is drawn from the templates of the `tasks_*` modules and of `stories`.
The same seed gives the same stream.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from tiny_model.corpus import (
    stories,
    tasks_arithmetic,
    tasks_catalogue,
    tasks_chat,
    tasks_extraction,
    tasks_facts,
    tasks_in_turn,
    tasks_lookup,
    tasks_reasoning,
    tasks_sheet,
    tasks_text,
    tasks_tools,
)
from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.words import Draw, Messages

TEMPLATES = sections_of("documents")

END = "<|end|>"
ROLE_TOKENS = {"system": "<|system|>", "user": "<|user|>", "assistant": "<|assistant|>"}
PAD = "<|pad|>"
SPECIAL_TOKENS = (PAD, END, *ROLE_TOKENS.values())

# Chat turns are framed as <|role|>content<|end|>, without any other character.
CHAT_TEMPLATE = TEMPLATES["CHAT_TEMPLATE"]

# Task functions, each with its weight among the conversations.
TASKS: tuple[tuple[Callable[[Draw], Messages], int], ...] = (
    (tasks_extraction.short_text, 34),
    (tasks_extraction.extraction, 32),
    (tasks_in_turn.texts, 3),
    (tasks_in_turn.labels, 5),
    (tasks_in_turn.requests, 6),
    (tasks_sheet.sheet, 1),
    (tasks_tools.tool_call, 10),
    (tasks_text.sentiment, 5),
    (tasks_text.routing, 3),
    (tasks_text.lettered_choice, 1),
    (tasks_text.choice, 2),
    (tasks_lookup.lookup, 2),
    (tasks_facts.facts, 2),
    (tasks_catalogue.catalogue, 4),
    (tasks_catalogue.list_questions, 20),
    (tasks_arithmetic.arithmetic, 2),
    (tasks_arithmetic.drill, 1),
    (tasks_arithmetic.comparison, 1),
    (tasks_reasoning.chained, 4),
    (tasks_reasoning.next_steps, 1),
    (stories.story, 1),
    (tasks_chat.chat, 2),
)
_WHEEL = tuple(task for task, share in TASKS for _ in range(share))
LONG_CHAT_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a document: text, the special token before it if any, and whether it is what the model should say."""

    special: str | None
    text: str
    is_answer: bool


def conversation(draw: Draw) -> Messages:
    """One conversation of a task drawn by its share, or several in one chat."""
    messages = draw.pick(_WHEEL)(draw)
    if draw.chance(LONG_CHAT_SHARE):
        for _ in range(draw.number(1, 4)):
            turn = draw.pick(_WHEEL)(draw)
            if turn[0][0] == "user" and messages[0][0] != "text":
                messages = [*messages, *turn]
    return messages


def pieces(messages: Messages) -> list[Piece]:
    """The document of a conversation; every turn ends with `END`, written here as the special token of the next piece."""
    if messages[0][0] == "text":
        return [*completion(messages[0][1]), Piece(END, "", False)]
    document = []
    for role, content in messages:
        document += [Piece(ROLE_TOKENS[role], content, role == "assistant"), Piece(END, "", role == "assistant")]
    return document


LAST_NAME = re.compile(r"^(\w+(?: \w+){0,3}): (?=[^\n]*\n?\Z)", re.MULTILINE)


def completion(text: str) -> list[Piece]:
    """The parts of a plain text. Where its last line is `Name: answer`, what follows that name is the answer, there and above.

    Above, a first line is none (it lists the labels), nor is JSON: cut after the name, it would be other tokens than in any text.
    Of anything else, a story say, all is the answer. Words that nobody can foretell would otherwise be most of what training is about.
    """
    last = LAST_NAME.search(text)
    if last is None:
        return [Piece(None, text, True)]
    parts, start = [], 0
    for named in re.finditer(rf"^{last[1]}: ", text, re.MULTILINE):
        is_last = named.end() == last.end()
        if not is_last and (named.start() == 0 or not text[named.end()].isalnum()):
            continue
        end = len(text) if is_last else text.index("\n", named.end())
        parts += [Piece(None, text[start : named.end()], False), Piece(None, text[named.end() : end], True)]
        start = end
    return parts


def documents(seed: int) -> Iterator[list[Piece]]:
    """The endless stream of training documents for a seed."""
    draw = Draw(seed)
    while True:
        yield pieces(conversation(draw))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write documents as JSON lines: one document per line, as a list of its pieces."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="number of documents (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the stream (default: %(default)s)")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    given = parser.parse_args(arguments)
    if given.count < 1:
        parser.error(f"--count = {given.count}: at least 1")
    try:
        with given.output.open("w", encoding="utf-8") as file:
            for document in islice(documents(given.seed), given.count):
                file.write(json.dumps([asdict(piece) for piece in document], ensure_ascii=False) + "\n")
    except OSError as error:
        parser.exit(1, f"{given.output} cannot be written: {error.strerror}\n")


if __name__ == "__main__":
    main()
