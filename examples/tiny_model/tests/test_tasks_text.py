"""Classification tasks: labels that the prompt offers, and answers that are true to the phrase."""

import re
from collections.abc import Callable

import pytest
from spoken import occurs_in
from tiny_model.corpus import tasks_text
from tiny_model.corpus.classes_of_text import FAMILIES
from tiny_model.corpus.opinions import OPINIONS
from tiny_model.corpus.words import Draw, Messages, Split

LABELS = {label for family in FAMILIES for label in family.labels}
# The sentences of facts and claims, wherever they stand.
SENTENCES = (
    r"\S+ (?:(?:lives in|comes from|works in) \S+?|is \d+ years old|(?:is|has) an? [\w'-]+(?: [\w'-]+)*?|"
    r"(?:likes|loves) [\w' -]+?)(?=[.?])"
)
SPLITS: tuple[Split, ...] = ("train", "test")


def chats(task: object, draw: Draw, count: int) -> list[Messages]:
    found: list[Messages] = []
    while len(found) < count:
        messages: Messages = task(draw)  # type: ignore[operator]
        if messages[-1][0] == "assistant":
            found.append(messages)
    return found


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("task", [tasks_text.routing, tasks_text.choice, tasks_text.sentiment])
def test_an_answer_is_one_of_the_options_that_the_prompt_names(task: object, split: Split) -> None:
    for messages in chats(task, Draw(18, split), 400):
        prompt, answer = " ".join(content for _, content in messages[:-1]), messages[-1][1]
        if "\n" in answer or re.search(r"\. (?:yes|no)$", answer):
            continue  # claims that are judged by the line, or with the fact that decides them
        if re.fullmatch("[A-H]", answer):
            assert re.search(rf"^{answer}[.):] \w", prompt, re.MULTILINE)
        elif answer not in ("positive", "negative", "yes", "no", "true", "false"):  # these may go without saying
            assert answer in prompt


@pytest.mark.parametrize(
    "task", [tasks_text.labelled_routing, tasks_text.labelled_choice, tasks_text.labelled_sentiment]
)
def test_the_answer_is_one_of_the_options(task: Callable[[Draw], tasks_text.Labelled]) -> None:
    draw = Draw(19)
    for _ in range(400):
        messages, options = task(draw)
        answer = messages[-1][1].rstrip("\n").rsplit(": ", 1)[-1]
        assert answer in options
        assert 2 <= len(options) == len(set(options))


def labels_of(sentence: str) -> set[str]:
    """The labels whose phrases occur in a text."""
    return {
        label
        for family in FAMILIES
        for label, options in family.labels.items()
        if occurs_in(sentence, (*options.known, *options.held))
    }


def test_a_label_belongs_to_a_phrase_of_the_text() -> None:
    for messages in chats(tasks_text.routing, Draw(4), 300):
        if messages[-1][1] in LABELS:
            assert messages[-1][1] in labels_of(messages[-2][1].lower())


def test_no_phrase_has_two_labels_of_a_family_and_none_is_both_known_and_held() -> None:
    for family in [*[family.labels for family in FAMILIES], OPINIONS]:
        every = [phrase for options in family.values() for phrase in (*options.known, *options.held)]
        assert len(every) == len(set(every))
        assert all(len(options.held) >= 2 for options in family.values())


def test_a_followed_claim_stands_in_the_facts_and_another_does_not() -> None:
    draw, answers = Draw(6), set()
    for _ in range(600):
        ((_, ask), (_, answer)) = tasks_text.entailment(draw).messages
        answers.add(answer)
        told = re.findall(SENTENCES, ask)
        assert len(told) in (2, 3, 4), ask
        repeated = len(told) > len(set(told))
        assert repeated == (answer in ("yes", "true")), ask
    assert answers == {"yes", "no", "true", "false"}


@pytest.mark.parametrize("split", SPLITS)
def test_labels_in_a_row_fit_once_at_most(split: Split) -> None:
    draw = Draw(8, split)
    for _ in range(300):
        messages = tasks_text.labels_in_a_row(draw)
        said = [content for role, content in messages if role == "assistant"]
        assert said.count("yes") == 1
        assert set(said) <= {"yes", "no"}
        asked = [content.split("\n")[-1] for role, content in messages if role == "user"]
        assert len(set(asked)) == len(asked)
