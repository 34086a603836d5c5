"""The document stream: framing, seeds, and answers that are true to their prompts."""

import json
import re
from itertools import islice

import jinja2
import pytest

from rtlang.model.embedded import corpus, tasks_extraction, tasks_reasoning, tasks_sheet, tasks_text
from rtlang.model.embedded.corpus import CHAT_TEMPLATE, END, TASKS, documents, pieces
from rtlang.model.embedded.words import Draw, Messages


def test_the_shares_of_the_tasks_are_percent_and_cover_more_than_the_first_tasks() -> None:
    assert all(share > 0 for _, share in TASKS)
    assert {task for task, _ in TASKS} >= {
        tasks_extraction.extraction,
        tasks_sheet.sheet,
        tasks_text.story,
        tasks_reasoning.facts,
    }


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


def strings_in(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in strings_in(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings_in(part)]
    return [str(value)]


def test_every_extracted_value_stands_in_the_text() -> None:
    draw = Draw(11)
    for _ in range(400):
        messages = tasks_extraction.extraction(draw)
        text = " ".join(content for _, content in messages[:-1]).lower()
        for value in strings_in(json.loads(messages[-1][1])):
            number = re.fullmatch(r"-?[\d.]+", value)
            found = value.lower() in text or value.lower().removesuffix("y") in text
            assert found or (number and f"{float(value):.2f}" in text), (value, text)


def test_a_character_sheet_copies_what_the_prompt_tells() -> None:
    draw = Draw(12)
    for _ in range(200):
        messages = tasks_sheet.sheet(draw)
        record = json.loads(messages[-1][1])
        for key in ("name", "role"):
            assert key not in record or record[key] in messages[-2][1]


def test_a_tool_call_names_a_listed_tool_and_its_parameters() -> None:
    draw = Draw(13)
    for _ in range(200):
        messages = tasks_sheet.tool_call(draw)
        call = json.loads(messages[-1][1])
        assert f"- {call['name']}({', '.join(call['arguments'])})" in messages[0][1].split("\n")


def holds(equation: str) -> bool:
    left, right = equation.split(" = ")
    a, sign, b = left.split()
    return {"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b)}[sign] == int(right)


def test_the_steps_of_a_word_problem_hold_and_follow_each_other() -> None:
    draw = Draw(14)
    for _ in range(300):
        text, steps, result = tasks_reasoning.sum_steps(draw)
        value = int(re.findall(r"\d+", text)[0])
        for step in steps:
            assert holds(step)
            assert step.startswith(f"{value} ")
            value = int(step.split(" = ")[1])
        assert value == result


def test_sums_are_judged_as_arithmetic_judges_them() -> None:
    draw, num_judged = Draw(15), 0
    for _ in range(400):
        messages = tasks_reasoning.arithmetic(draw)
        equation = re.search(r"-?\d+ [-+*] -?\d+ = -?\d+", messages[0][1])
        if messages[-1][1] in ("yes", "no") and equation:
            num_judged += 1
            assert holds(equation[0]) == (messages[-1][1] == "yes")
    assert num_judged > 50


def test_a_proposed_step_is_right_exactly_when_it_continues_the_problem() -> None:
    draw, verdicts = Draw(16), set()
    for _ in range(600):
        messages = tasks_reasoning.word_problem(draw)
        proposed = re.search(r"Proposed step: (.*)\n", messages[0][1])
        if proposed:
            verdicts.add(messages[-1][1])
            assert messages[-1][1] == "no" or holds(proposed[1])
    assert verdicts == {"yes", "no"}


def test_a_catalogue_answer_agrees_with_the_list() -> None:
    draw = Draw(17)
    for _ in range(200):
        messages = tasks_reasoning.catalogue(draw)
        prices = dict(re.findall(r"- (\w+): (\d+) dollars", messages[0][1]))
        for role, content in messages:
            costs = re.fullmatch(r"(?:Yes, the|The) (\w+) costs (\d+) dollars\.", content)
            if role == "assistant" and costs:
                assert prices[costs[1]] == costs[2]


def test_some_chats_are_long() -> None:
    draw = Draw(19)
    lengths = [len(corpus.conversation(draw)) for _ in range(400)]
    assert max(lengths) >= 10
