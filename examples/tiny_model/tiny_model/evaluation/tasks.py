"""What the embedded model is asked: tasks, the draws they come from, and the constraint that suits each answer.

A question is the last turn of a conversation that the corpus would draw, with the turns before it as they should have been. `DRAWS`
says what is held out: nothing (new draws like those of training), words, texts, wordings, or all of them. Training sees nothing that is
held out. About half of the words of a draw with held-out words are such, and half of the wordings of sums and word problems;
of other tasks, all texts and wordings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tiny_model.corpus import (
    stories,
    tasks_arithmetic,
    tasks_catalogue,
    tasks_chat,
    tasks_extraction,
    tasks_facts,
    tasks_lookup,
    tasks_reasoning,
    tasks_sheet,
    tasks_text,
    tasks_tools,
)
from tiny_model.corpus.words import Draw, Messages
from tiny_model.evaluation import everyday_texts
from tiny_model.evaluation.scores import Judge

STEP = r"\d+ [-+*/] \d+ = \d+"
YES_NO = ("yes", "no")
SEED = 90_210
KNOWN, WORDS, ALL = "known", "held-out words", "all held out"
TEXTS, WORDINGS = "held-out texts", "held-out wordings"
DRAWS: dict[str, Callable[[int], Draw]] = {
    KNOWN: lambda seed: Draw(seed),
    WORDS: lambda seed: Draw(seed, "test", templates="train", wordings="train"),
    TEXTS: lambda seed: Draw(seed, "train", templates="test"),
    WORDINGS: lambda seed: Draw(seed, "train", wordings="test"),
    ALL: lambda seed: Draw(seed, "test"),
}


@dataclass(frozen=True, slots=True)
class Form:
    """What the answer is held to, one of three: a JSON schema, a choice by likelihood, or a pattern."""

    schema: dict[str, Any] | None = None
    options: tuple[str, ...] | None = None
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt that ends before the answer, the answer of the corpus, and the form to hold it to.

    A prompt of one message with the role `text` is a plain text that the answer continues to the end of its line.
    """

    prompt: Messages
    expected: str
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of question.

    Attributes:
        key: for `--tasks`.
        ask: one question from a draw.
        draws: names of `DRAWS` that make a row each.
    """

    key: str
    name: str
    ask: Callable[[Draw], Question]
    judge: Judge
    draws: tuple[str, ...] = (KNOWN, ALL)
    max_tokens: int = 200


def type_schema(value: Any, *, is_nullable: bool = False) -> dict[str, Any]:
    """The JSON schema of values of the type of `value`: its keys, all required, and the types of its members."""
    if isinstance(value, dict):
        # Which of the fields are missing is for the model to say.
        fields_nullable = is_nullable or None in value.values()
        return {
            "type": "object",
            "properties": {key: type_schema(member, is_nullable=fields_nullable) for key, member in value.items()},
            "required": list(value),
            "additionalProperties": False,
        }
    if isinstance(value, list):
        members: list[dict[str, Any]] = []
        for schema in map(type_schema, value):
            if schema not in members:
                members.append(schema)
        items = {"anyOf": members} if len(members) > 1 else members[0] if members else {"type": "string"}
        return {"type": "array", "items": items}
    if value is None:
        return {"type": ["string", "number", "boolean", "null"]}
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": [names[type(value)], "null"] if is_nullable else names[type(value)]}


def tools_in(text: str) -> dict[str, list[str]]:
    """The tools that a prompt lists, in any format of the corpus, with the names of their parameters."""
    found = {}
    for line in text.split("\n"):
        if line.startswith("{") and '"parameters"' in line:
            listed = json.loads(line)
            function = listed.get("function", listed)
            parameters = function["parameters"]
            found[function["name"]] = list(parameters.get("properties", parameters))
        elif signature := re.match(r"(?:- |\d+\. |)(\w+)\(([^)]*)\)", line):
            found[signature[1]] = [part.split(":")[0].strip() for part in signature[2].split(",") if part.strip()]
        elif spelled := re.match(r"(\w+): .* Parameters: (.*)$", line):
            found[spelled[1]] = [part.strip() for part in spelled[2].split(",")]
    return found


def call_schema(tools: dict[str, list[str]]) -> dict[str, Any]:
    """A call of any of the tools, with all of its parameters."""
    value = {"type": ["string", "number", "boolean"]}

    def one(name: str, parameters: Sequence[str]) -> dict[str, Any]:
        arguments = {
            "type": "object",
            "properties": dict.fromkeys(parameters, value),
            "required": list(parameters),
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "properties": {"name": {"const": name}, "arguments": arguments},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }

    return {"anyOf": [one(name, parameters) for name, parameters in tools.items()]}


def last_turn(messages: Messages) -> Question | None:
    """The question of a conversation's last answer; None for a plain text."""
    return Question(messages[:-1], messages[-1][1]) if messages[-1][0] == "assistant" else None


def asking(
    task: Callable[[Draw], Messages],
    form: Callable[[Question], Form | None] = lambda question: None,
    keep: Callable[[Question], bool] = lambda question: True,
) -> Callable[[Draw], Question]:
    """The next kept question of a task, with its form."""

    def ask(draw: Draw) -> Question:
        while True:
            question = last_turn(task(draw))
            if question is not None and keep(question):
                return Question(question.prompt, question.expected, form(question))

    return ask


def labelled(task: Callable[[Draw], tasks_text.Labelled]) -> Callable[[Draw], Question]:
    """Questions whose answer is one of some labels; of a plain text, the last label is asked for."""

    def ask(draw: Draw) -> Question:
        messages, options = task(draw)
        if messages[0][0] != "text":
            return Question(messages[:-1], messages[-1][1], Form(options=options))
        before, label = messages[0][1].rstrip("\n").rsplit(": ", 1)
        return Question([("text", before + ": ")], label, Form(options=options))

    return ask


def names_fields(question: Question) -> bool:
    """Whether the prompt names every field of the answer; without, the choice of fields is the corpus' whim."""
    prompt = " ".join(content for _, content in question.prompt)
    rows = json.loads(question.expected)
    rows = rows if isinstance(rows, list) else [rows]
    return all(re.search(rf"\b{re.escape(key)}\b", prompt) for row in rows for key in row)


def names_sheet_fields(question: Question) -> bool:
    """A character sheet in the wording of the README's example."""
    prompt = question.prompt[-1][1]
    return bool(re.search(r"from .*JSON.* with ", prompt)) and not re.search(r" and \w+\.$", prompt)


def is_call(question: Question) -> bool:
    """Whether a tool is to be called, not its result to be told."""
    return question.expected.startswith('{"name"')


def typed(question: Question) -> Form:
    """A record of the keys and types of the expected one."""
    return Form(schema=type_schema(json.loads(question.expected)))


def call(question: Question) -> Form:
    """A call of one of the tools that the prompt lists."""
    return Form(schema=call_schema(tools_in("\n".join(content for _, content in question.prompt))))


def one_step(question: Question) -> bool:
    """Whether the answer is a single step or the result."""
    return re.fullmatch(STEP + r"|answer: \d+", question.expected) is not None


def is_number(question: Question) -> bool:
    """Whether the answer is a number and nothing else."""
    return question.expected.isdigit()


def says_yes_or_no(question: Question) -> bool:
    """Whether the answer is yes or no."""
    return question.expected in YES_NO


def says_neither(question: Question) -> bool:
    """Whether the answer is neither yes nor no."""
    return question.expected not in YES_NO


def is_determined(question: Question) -> bool:
    """Whether only one rewriting is right; a sentence from notes may be put in several ways."""
    return "entence " not in question.prompt[-1][1]


def regex(pattern: str) -> Callable[[Question], Form]:
    """The same pattern for every question."""
    return lambda question: Form(regex=pattern)


def yes_no(question: Question) -> Form:
    """The likelier of yes and no."""
    return Form(options=YES_NO)


def list_or_tips(draw: Draw) -> Messages:
    """Some members of a kind, or some tips."""
    return draw.pick((tasks_chat.listed, tasks_chat.tips))(draw)


def everyday_text(draw: Draw) -> Messages:
    """One short text of `everyday_texts`."""
    return tasks_extraction.short_text(draw, everyday_texts.KINDS)


EXTRACTION_DRAWS = (KNOWN, WORDS, TEXTS, WORDINGS, ALL)
CHAIN = rf"(thought: {STEP}\n){{1,10}}answer: \d+"
HARD = asking(tasks_reasoning.hard_word_problem, regex(CHAIN))
TASKS = (
    Task(
        "extraction",
        "extraction to JSON",
        asking(tasks_extraction.extraction, typed, names_fields),
        Judge.RECORD,
        draws=EXTRACTION_DRAWS,
        max_tokens=400,
    ),
    Task(
        "sheet",
        "character sheet as JSON",
        asking(tasks_sheet.sheet, typed, names_sheet_fields),
        Judge.SHEET,
        draws=(KNOWN, WORDS),
    ),
    Task("tools", "tool call", asking(tasks_tools.tool_call, call, is_call), Judge.RECORD),
    Task("sentiment", "sentiment", labelled(tasks_text.labelled_sentiment), Judge.EXACT),
    Task("routing", "team, intent or topic", labelled(tasks_text.labelled_routing), Judge.EXACT),
    Task("choice", "any label, label fits, claim follows", labelled(tasks_text.labelled_choice), Judge.EXACT),
    Task("facts", "question about given facts", asking(tasks_facts.facts, keep=says_neither), Judge.EXACT),
    Task("facts-yes-no", "given facts, yes or no", asking(tasks_facts.facts, yes_no, says_yes_or_no), Judge.EXACT),
    Task("lookup", "table lookup", asking(tasks_lookup.lookup), Judge.EXACT),
    Task("catalogue", "shop catalogue", asking(tasks_catalogue.catalogue), Judge.EXACT),
    Task("problem", "word problem in steps", asking(tasks_reasoning.chained, regex(CHAIN)), Judge.RESULT),
    Task("hard-problem", "word problem of four to six steps", HARD, Judge.RESULT),
    Task(
        "next-step",
        "next step of a word problem",
        asking(tasks_reasoning.next_steps, regex(rf"{STEP}|answer: \d+"), one_step),
        Judge.EXACT,
    ),
    Task("sum", "sum, product or quotient", asking(tasks_arithmetic.arithmetic, regex(r"\d+"), is_number), Judge.EXACT),
    Task("compare", "order and parity of numbers", asking(tasks_arithmetic.comparison), Judge.EXACT),
    Task("told", "what was told in the chat", asking(tasks_chat.told), Judge.EXACT),
    Task("copy", "repeat a text", asking(tasks_chat.copy), Judge.EXACT),
    Task("words", "spell, count, reverse words", asking(tasks_chat.word_work), Judge.EXACT),
    Task("rewriting", "rewrite a sentence", asking(tasks_chat.rewriting, keep=is_determined), Judge.EXACT),
    Task("lists", "lists and tips without repetition", asking(list_or_tips), Judge.LIST),
    Task("story", "story: whole, about its hero, nothing twice", asking(stories.story), Judge.STORY, max_tokens=300),
    Task("letters", "label by its letter", labelled(tasks_text.labelled_lettered_choice), Judge.EXACT),
    Task(
        "short-texts",
        "one order, event, person, ticket or recipe as JSON",
        asking(tasks_extraction.short_text, typed),
        Judge.RECORD,
        draws=EXTRACTION_DRAWS,
    ),
    Task(
        "everyday-texts",
        "one record of an everyday text by another author as JSON",
        asking(everyday_text, typed),
        Judge.RECORD,
        draws=(TEXTS, ALL),
    ),
)


def questions(task: Task, draws: str, count: int) -> list[Question]:
    """The same questions at every call; the seed is none of training's."""
    seed = SEED + 1000 * TASKS.index(task) + list(DRAWS).index(draws)
    draw = DRAWS[draws](seed)
    return [task.ask(draw) for _ in range(count)]
