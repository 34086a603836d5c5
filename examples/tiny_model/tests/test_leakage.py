"""What the test split holds back does not occur in training documents: words, phrases, texts, wordings, whole prompts."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import pytest
from tiny_model.corpus import documents as corpus_module
from tiny_model.corpus import opinions, stories, tasks_chat, tasks_extraction, tasks_text
from tiny_model.corpus.corpus_data import TEXTS, lines_of
from tiny_model.corpus.phrases import Phrases
from tiny_model.corpus.words import Draw
from tiny_model.evaluation.tasks import TASKS, questions
from tiny_support import HELD_WORDS, expansions

NUM_DOCUMENTS = 10_000


class Recorder(Draw):
    """A draw that notes what it was offered, known and held."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, "test")
        self.known: set[str] = set()
        self.held: set[str] = set()

    def template(self, known: Sequence[str], held: Sequence[str]) -> str:
        self._note(known, held)
        return super().template(known, held)

    def wording(self, known: Sequence[str], held: Sequence[str]) -> str:
        self._note(known, held)
        return super().wording(known, held)

    def _note(self, known: Sequence[str], held: Sequence[str]) -> None:
        if tuple(known) == tuple(held):  # a request made up on the spot
            return
        self.known.update(known)
        self.held.update(held)


@pytest.fixture(scope="module")
def documents() -> str:
    """Ten thousand training documents, each between two zero bytes."""
    drawn = islice(corpus_module.documents(123), NUM_DOCUMENTS)
    return "\0".join("".join(piece.text + "\n" for piece in document) for document in drawn)


@pytest.fixture(scope="module")
def offered() -> Recorder:
    draw = Recorder(5)
    for task in (*[task for task, _ in corpus_module.TASKS], tasks_text.choice, tasks_chat.word_work):
        for _ in range(800):
            task(draw)
    return draw


GAP = re.compile(r"\{[^}]*\}|\[[^\[\]]*/[^\[\]]*\]")  # a field, or a choice of ways to say something


def literal(template: str) -> str:
    """The longest stretch of a template that is the same wherever it is used, in lower case."""
    return max(GAP.split(template), key=len).strip().lower()


def pattern(template: str) -> re.Pattern[str]:
    """Matches the lower-case texts that a template makes, with fields and choices of a line at most.

    No field goes beyond the end of a sentence.
    """
    lower = template.lower()
    gaps = [r"[^\n]{0,80}?" if gap[0] == "[" else r"(?:[^\n](?<![a-z]{3}\. )){0,80}?" for gap in GAP.findall(lower)]
    parts = map(re.escape, GAP.split(lower))
    return re.compile("".join(part + gap for part, gap in zip(parts, [*gaps, ""], strict=True)))


def occurs(template: str, text: str) -> bool:
    """Whether the lower-case text holds something that the template makes."""
    fragment, start = literal(template), 0
    while (start := text.find(fragment, start)) >= 0:
        around = text[max(0, start - 200) : start + len(template) + 600]
        # "prefer to" does not say "refer to", nor "cotton dressers" "cotton dress".
        end = start + len(fragment)
        rest = text[end : end + 3] if fragment == template.lower() and fragment[-1].isalpha() else ""
        before = text[start - 1 : start] if template.lower().startswith(fragment) and fragment[0].isalpha() else ""
        is_inside = before.isalpha() or (rest[:1].isalpha() and not re.match(r"e?s\b", rest))
        if not is_inside and pattern(template).search(around):
            return True
        start += len(fragment)
    return False


def test_a_held_text_is_found_by_the_pattern_of_its_template() -> None:
    draw, found = Draw(6, "test"), 0
    for _ in range(2000):
        kind = draw.pick(tasks_extraction.PROSE)
        text = kind(draw)[1].lower()
        found += any(pattern(template).search(text) for template in kind.held)
    assert found >= 0.98 * 2000


def test_no_held_word_is_in_a_training_document(documents: str) -> None:
    assert len(HELD_WORDS) > 30
    seen = set(re.findall(r"\w+", documents))
    leaked = [
        word for word in HELD_WORDS if set(word.split()) <= seen and re.search(rf"\b{re.escape(word)}\b", documents)
    ]
    assert leaked == []


def test_held_and_known_texts_differ_and_no_held_text_is_in_a_training_document(
    documents: str, offered: Recorder
) -> None:
    assert len(offered.held) > 300
    assert not offered.held & offered.known
    lower = documents.lower()
    held = sorted(template for template in offered.held if len(literal(template)) >= 8)  # shorter ones say too little
    assert len(held) > 0.8 * len(offered.held)
    assert [template for template in held if occurs(template, lower)] == []


@pytest.mark.parametrize("name", sorted(path.stem for path in TEXTS.glob("*.txt") if path.stem != "words"))
def test_no_line_of_a_text_file_says_what_a_held_text_says(name: str, offered: Recorder) -> None:
    held = [template for template in offered.held if len(literal(template)) >= 8]
    everything = "\n".join(text for line in lines_of(name) for text in set(expansions(line, 20))).lower()
    found = [template for template in held if literal(template) in everything and occurs(template, everything)]
    assert found == []


def all_phrases() -> Iterator[Phrases]:
    for module in (opinions, stories, tasks_chat, tasks_text):
        for value in vars(module).values():
            if isinstance(value, Phrases):
                yield value
            elif isinstance(value, dict):
                yield from (options for options in value.values() if isinstance(options, Phrases))
    for family in tasks_text.FAMILIES:
        yield from (family.frames, *family.labels.values())


def test_no_held_phrase_is_part_of_a_known_one() -> None:
    known = "\0".join(text for options in all_phrases() for text in options.known).lower()
    held = {text for options in all_phrases() for text in options.held if "{" not in text}
    assert [text for text in held if re.search(rf"\b{re.escape(text.lower())}\b", known)] == []
    assert len(held) > 250


def test_no_prompt_of_the_test_split_is_a_training_prompt() -> None:
    """Single sums and questions about two numbers are few, and all of them are trained."""
    tasks = [task for task, _ in corpus_module.TASKS if task.__name__ not in ("arithmetic", "comparison")]
    train, test = Draw(9), Draw(10, "test")
    for task in tasks:
        seen = {str(messages[:-1]) for messages in (task(train) for _ in range(1200)) if len(messages) > 1}
        asked = {str(messages[:-1]) for messages in (task(test) for _ in range(500)) if len(messages) > 1}
        assert not seen & asked, task.__name__


def test_no_question_of_the_evaluation_is_a_training_conversation(documents: str) -> None:
    """Short sums, comparisons and lists have few prompts; those are trained."""
    asked = {
        question.prompt[-1][1]
        for task in TASKS
        for draws in task.draws
        if draws != "known"
        for question in questions(task, draws, 20)
    }
    long = [text for text in asked if len(text) > 80]
    assert len(long) > 200
    assert [text for text in long if text in documents] == []
