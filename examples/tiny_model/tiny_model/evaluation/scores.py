"""When an answer of the embedded model is right, and what many answers amount to.

Everything here is plain text and arithmetic: no model, no runtime. Records are compared as JSON values, so their spelling is free;
what a prompt leaves open (a motto, which colors) is checked for its form alone.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tiny_model.corpus.tasks_chat import LISTS, TIPS
from tiny_model.corpus.words import sentence

POOLS = [
    *(frozenset(members) for members in LISTS.values()),
    *(frozenset(f"{sentence(tip)}." for tip in tips) for tips in TIPS.values()),
]
STORY_SENTENCES = range(5, 21)


class Judge(StrEnum):
    """How an answer is compared with the one that the corpus would give."""

    EXACT = "exact"  # the same text
    RECORD = "record"  # the same JSON value
    SHEET = "sheet"  # the keys in order, the types, and what the prompt told: name, role, home
    RESULT = "result"  # the same number after `answer:`
    LIST = "list"  # as many members, none twice, all of the kind asked for
    STORY = "story"  # of five or more whole sentences, none twice, about whoever the prompt names


def is_right(judge: Judge, answer: str, expected: str, prompt: str = "") -> bool:
    """Whether an answer is right by the judge of its task; `prompt` is the last message before it."""
    match judge:
        case Judge.EXACT:
            return answer == expected
        case Judge.RECORD:
            return answer_equals(parsed(answer), json.loads(expected))
        case Judge.SHEET:
            return sheet_fits(answer, expected)
        case Judge.RESULT:
            return result_of(answer) is not None and result_of(answer) == result_of(expected)
        case Judge.LIST:
            return list_fits(answer, expected)
        case Judge.STORY:
            hero = hero_of(expected)
            return story_fits(answer, hero if hero in prompt else "")


def parsed(text: str) -> Any:
    """The JSON value of a text, None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def answer_equals(found: Any, wanted: Any) -> bool:
    """Equal as JSON: 34 is 34.0, and true is not 1."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(answer_equals(found[key], wanted[key]) for key in wanted)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(answer_equals, found, wanted))
    return type(found) is not dict and type(found) is not list and bool(found == wanted)


def sheet_fits(answer: str, expected: str) -> bool:
    """The keys asked for in their order, values of their types, and what the prompt told copied; the rest is free."""
    found, wanted = parsed(answer), json.loads(expected)
    if not isinstance(found, dict) or list(found) != list(wanted):
        return False
    told = all(found[key] == wanted[key] for key in ("name", "role", "home") if key in wanted)
    return told and all(type(found[key]) is type(wanted[key]) for key in wanted)


def result_of(text: str) -> int | None:
    """The number after `answer:` on the last line."""
    found = re.search(r"answer: (-?\d+)$", text)
    return int(found[1]) if found else None


def members_of(text: str) -> list[str]:
    """The members of a list in one of the forms of the corpus: JSON, numbered, with bullets, or in a line."""
    if text.startswith("["):
        value = parsed(text)
        return [str(member) for member in value] if isinstance(value, list) else []
    if re.match(r"(1\.|-) ", text):
        lines = text.split("\n")
        numbers = [line.split(".")[0] for line in lines]
        if text[0] == "1" and numbers != [str(index) for index in range(1, len(lines) + 1)]:
            return []
        return [re.sub(r"^(\d+\.|-) ", "", line) for line in lines]
    return [text] if text.endswith(".") else text.split(", ")


def list_fits(answer: str, expected: str) -> bool:
    """As many members as expected, in the same form, none twice, all of one kind that the expected ones are of."""
    found, wanted = members_of(answer), members_of(expected)
    if len(found) != len(wanted) or len(set(found)) != len(found):
        return False
    if answer[:1] != expected[:1] and (answer[:1] in "[-1" or expected[:1] in "[-1"):
        return False
    return any(pool.issuperset(wanted) and pool.issuperset(found) for pool in POOLS)


def story_fits(answer: str, hero: str) -> bool:
    """A story of whole sentences, none twice, that names its hero."""
    sentences = re.findall(r"[^.?!]+[.?!]+\"?", answer)
    is_whole = answer.endswith((".", "!", "?", '"')) and len(sentences) in STORY_SENTENCES
    return is_whole and len(set(sentences)) == len(sentences) and hero in answer


def hero_of(story: str) -> str:
    """Who a story of the corpus is about: the name that its first sentence ends or begins with."""
    first = story.split(".")[0]
    named = re.search(r"(?:named|called) (.+)$", first)
    return named[1] if named else first.split(" was ")[0]


def fields_right(answers: Sequence[str], expected: Sequence[str]) -> float:
    """The share of fields that are there with the right value, over the records of all questions."""
    right = total = 0
    for answer, text in zip(answers, expected, strict=True):
        found, wanted = dict(fields_of(parsed(answer))), dict(fields_of(json.loads(text)))
        total += len(wanted)
        right += sum(key in found and answer_equals(found[key], value) for key, value in wanted.items())
    return right / total


def fields_of(value: Any) -> Iterable[tuple[tuple[int, str], Any]]:
    """The fields of a record, or of each record of a list."""
    for index, record in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(record, dict):
            yield from (((index, key), field) for key, field in record.items())


def vote(samples: Sequence[str]) -> int | None:
    """The result that most samples give, the first given of those that tie; None where no sample gives one."""
    results = [result for result in map(result_of, samples) if result is not None]
    return Counter(results).most_common(1)[0][0] if results else None


@dataclass(frozen=True, slots=True)
class Score:
    """How many answers to the questions of one kind were right.

    Attributes:
        num_right, num_asked: answers right in full, and all.
        fields: share of the right fields, for records; else None.
    """

    num_right: int
    num_asked: int
    fields: float | None = None

    @property
    def share(self) -> float:
        """Of the right answers, 0 to 1."""
        return self.num_right / self.num_asked

    @property
    def standard_error(self) -> float:
        """Of `share`, from the binomial distribution."""
        return math.sqrt(self.share * (1 - self.share) / self.num_asked)

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} ± {100 * self.standard_error:.1f}"


@dataclass(frozen=True, slots=True)
class Row:
    """One task on draws of one kind, answered freely and, where there is a constraint for it, under that."""

    task: str
    draws: str
    free: Score
    constrained: Score | None = None


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a table; shares and their standard errors in percent."""

    def fields(score: Score | None) -> str:
        return "" if score is None or score.fields is None else f"{100 * score.fields:.1f}"

    lines = [
        "| task | draws | free: right | fields | constrained: right | fields |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        constrained = "" if row.constrained is None else str(row.constrained)
        lines.append(
            f"| {row.task} | {row.draws} | {row.free} | {fields(row.free)} | {constrained} | {fields(row.constrained)} |"
        )
    return "\n".join(lines)
