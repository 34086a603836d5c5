"""Measure a checkpoint of the embedded model, task by task.

    python -m rtlang.model.embedded.evaluate [--checkpoint FOLDER] [--count 200] [--show 2]

Answers are generated greedily by `transformers` in float32, without any constraint. Words come from the test split, whose
`HELD_*` lists training never draws from; every document is new, since the seed is none of training's. The wordings of
`UNSEEN_INSTRUCTIONS` occur nowhere in the corpus. A score is the share of answers that are right in full; for records also
the share of fields.
"""

import argparse
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rtlang.model.embedded import tasks_extraction, tasks_reasoning, tasks_sheet, tasks_text
from rtlang.model.embedded.words import Draw, Messages, Split

logger = logging.getLogger(__name__)

SEED = 90_210
MAX_NEW_TOKENS = 160
BATCH = 50
UNSEEN_INSTRUCTIONS = (
    "I need the following as structured data: {keys}.\n{text}",
    "Look at what follows and tell me {keys}, please use JSON.\n---\n{text}\n---",
    "Parse: {text}\nKeys wanted -> {keys}",
    "Convert to a record having {keys}:\n\n{text}",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, the answer that the corpus would give, and how the two are compared."""

    prompt: Messages
    expected: str
    is_right: Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Score:
    """What a checkpoint reached on one task."""

    name: str
    num_right: int
    num_asked: int
    fields_right: float | None


def same(answer: str, expected: str) -> bool:
    return answer == expected


def same_record(answer: str, expected: str) -> bool:
    """Equal as JSON, whatever the spelling."""
    return bool(parsed(answer) == json.loads(expected))


def sheet_fits(answer: str, expected: str) -> bool:
    """The keys asked for in their order, and what the prompt told is copied; the rest is the model's to invent."""
    found, wanted = parsed(answer), json.loads(expected)
    if not isinstance(found, dict) or list(found) != list(wanted):
        return False
    told = all(found[key] == wanted[key] for key in ("name", "role", "home") if key in wanted)
    return told and all(type(found[key]) is type(wanted[key]) for key in wanted)


def same_result(answer: str, expected: str) -> bool:
    """The number after `answer:` agrees."""
    found, wanted = (re.search(r"answer: (-?\d+)$", text) for text in (answer, expected))
    return found is not None and wanted is not None and found[1] == wanted[1]


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def last_turn(task: Callable[[Draw], Messages], draw: Draw, is_right: Callable[[str, str], bool]) -> Question:
    """The last answer of the next conversation that is a chat."""
    while True:
        messages = task(draw)
        if messages[-1][0] == "assistant":
            return Question(messages[:-1], messages[-1][1], is_right)


def kept(pattern: str, task: Callable[[Draw], Messages]) -> Callable[[Draw], Messages]:
    """The task, limited to conversations whose last question matches."""

    def limited(draw: Draw) -> Messages:
        while True:
            messages = task(draw)
            if len(messages) > 1 and re.search(pattern, messages[-2][1]):
                return messages

    return limited


def named_extraction(draw: Draw) -> Messages:
    """Extraction whose prompt names every field of the answer; without, the choice of fields is the corpus' whim."""
    while True:
        messages = tasks_extraction.extraction(draw)
        prompt = " ".join(content for _, content in messages[:-1])
        if all(re.search(rf"\b{key}\b", prompt) for key in json.loads(messages[-1][1])):
            return messages


def unseen_extraction(draw: Draw) -> Messages:
    """Extraction asked for in words that training never used; names of fields as in the corpus, all fields asked for."""
    record_kinds = (tasks_extraction.order, tasks_extraction.event, tasks_extraction.person, tasks_extraction.ticket)
    _, text, record = draw.pick(record_kinds)(draw)
    ask = draw.pick(UNSEEN_INSTRUCTIONS).format(keys=", ".join(record), text=text)
    return [("user", ask), ("assistant", json.dumps(record))]


def explicit_sheet(draw: Draw) -> Messages:
    """A character sheet in the wording of the README's first example."""
    while True:
        messages = tasks_sheet.sheet(draw)
        if re.search(r"from .*JSON.* with ", messages[-2][1]) and not re.search(r" and \w+\.$", messages[-2][1]):
            return messages


STEPS = r"step by step"
TASKS: tuple[tuple[str, Split, Callable[[Draw], Messages], Callable[[str, str], bool]], ...] = (
    (
        "extraction, new draws of the training words",
        "train",
        named_extraction,
        same_record,
    ),
    ("extraction, held-out words", "test", named_extraction, same_record),
    ("extraction, held-out words, unseen wording", "test", unseen_extraction, same_record),
    ("character sheet, fields named", "test", explicit_sheet, sheet_fits),
    ("tool call", "test", tasks_sheet.tool_call, same_record),
    ("sentiment", "test", tasks_text.sentiment, same),
    ("intent or topic", "test", tasks_text.routing, same),
    ("question about given facts, last turn", "test", tasks_reasoning.facts, same),
    ("shop catalogue, last turn", "test", tasks_reasoning.catalogue, same),
    ("word problem in steps, result", "test", kept(STEPS, tasks_reasoning.word_problem), same_result),
    ("word problem, next step", "test", kept(r"step\?$|next step\.$", tasks_reasoning.word_problem), same),
    ("word problem, is this step right", "test", kept(r"Is this step right", tasks_reasoning.word_problem), same),
    ("sum or product, and is it right", "test", tasks_reasoning.arithmetic, same),
)


class Answerer:
    """A checkpoint that answers prompts greedily."""

    def __init__(self, checkpoint: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(checkpoint, padding_side="left")
        self._model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()

    def answers(self, prompts: list[Messages]) -> list[str]:
        """One answer for each prompt, without the end token."""
        order = sorted(range(len(prompts)), key=lambda index: sum(len(content) for _, content in prompts[index]))
        found = [""] * len(prompts)
        for start in range(0, len(order), BATCH):
            indices = order[start : start + BATCH]
            texts = [
                self._tokenizer.apply_chat_template(
                    [{"role": role, "content": content} for role, content in prompts[index]],
                    tokenize=False,
                    add_generation_prompt=True,
                )
                for index in indices
            ]
            encoded = self._tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
            with torch.inference_mode():
                output = self._model.generate(
                    input_ids=encoded["input_ids"],
                    attention_mask=encoded["attention_mask"],
                    max_new_tokens=MAX_NEW_TOKENS,
                    do_sample=False,
                )
            new = output[:, encoded["input_ids"].shape[1] :]
            for index, text in zip(indices, self._tokenizer.batch_decode(new, skip_special_tokens=True), strict=True):
                found[index] = text
        return found


def field_share(answers: list[str], expected: list[str]) -> float:
    """The share of expected fields that are there with the right value."""
    right = total = 0
    for answer, text in zip(answers, expected, strict=True):
        found, wanted = parsed(answer), json.loads(text)
        total += len(wanted)
        if isinstance(found, dict):
            right += sum(found.get(key) == value for key, value in wanted.items())
    return right / total


def evaluate(checkpoint: Path, count: int, show: int = 0) -> list[Score]:
    """Scores of a checkpoint on every task, `count` questions each; logs each, with the first `show` wrong answers."""
    answerer, scores = Answerer(checkpoint), []
    for index, (name, split, task, is_right) in enumerate(TASKS):
        draw = Draw(SEED + index, split)
        questions = [last_turn(task, draw, is_right) for _ in range(count)]
        answers = answerer.answers([question.prompt for question in questions])
        pairs = list(zip(questions, answers, strict=True))
        wrong = [(q, a) for q, a in pairs if not q.is_right(a, q.expected)]
        share = field_share(answers, [q.expected for q in questions]) if is_right is same_record else None
        scores.append(Score(name, count - len(wrong), count, share))
        fields = "" if share is None else f"   fields {share:.1%}"
        logger.info("%-48s %6.1f%% of %d%s", name, 100 * scores[-1].num_right / count, count, fields)
        for question, answer in wrong[:show]:
            logger.info("    asked    %r", question.prompt[-1][1])
            logger.info("    expected %r\n    answer   %r", question.expected, answer)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, default=Path(__file__).parent / "tiny")
    parser.add_argument("--count", type=int, default=200, help="questions per task")
    parser.add_argument("--show", type=int, default=0, help="wrong answers to print per task")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    evaluate(arguments.checkpoint, arguments.count, arguments.show)


if __name__ == "__main__":
    main()
