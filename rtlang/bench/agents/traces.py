"""Traces of agents with the statistics of published ones, from a seed.

A task of a coding agent takes about 43 turns. Its last prompt has about 142,000 tokens, of which 12,000 are a system text and tools that
all tasks of one kind share, and a turn generates about 444. Tools take from 0.2 to 60 seconds. Some calls start a sub-agent: a conversation
that begins as its parent's so far, and whose final text is the result of the call.

Sizes are scaled down by one factor, so that a small model on a processor computes a trace in minutes; shares of tokens stay as they are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

MEAN_TURNS = 43
LAST_PROMPT_TOKENS = 142_000
SYSTEM_TOKENS = 12_000
OUTPUT_TOKENS = 444
NUM_KINDS = 3
"""System prompts, each with its own tools."""
DELAY_S = (0.2, 60.0)
_MEDIAN_DELAY_S, _DELAY_SIGMA = 2.0, 1.3
_TURNS_SIGMA, _RESULT_SIGMA = 0.3, 1.0
_TASK_SHARE = 0.1  # of the tokens that are not of the system prompt: the text of the user
_FORK_SHARE = 0.05  # of the calls
_FORK_TURNS = 5
_LEAST_RESULT, _LEAST_TURNS = 8, 2
MIN_OUTPUT_TOKENS = 96
"""A call of a tool takes about 40 tokens of a small vocabulary, whatever the scale."""
_CHARS_PER_TOKEN = 1.55
_VERBS = ("read", "list", "find", "write", "test", "diff")
_NOUNS = ("file", "folder", "symbol", "branch")


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that ends in a call, and what follows it.

    Attributes:
        delay_s: seconds that the tool takes.
        result: the text that it returns; of a sub-agent, the text that asks it.
        fork: the turns of the sub-agent that the call starts; empty for none.
    """

    delay_s: float
    result: str
    fork: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """One conversation. Its last turn, after all of `turns`, is an answer without a call.

    Attributes:
        system, tools: shared by all tasks of the same kind.
        text: of the user.
        max_tokens: of each reply.
    """

    system: str
    tools: tuple[dict[str, Any], ...]
    text: str
    turns: tuple[Turn, ...]
    max_tokens: int

    @property
    def num_chars(self) -> int:
        """Characters of the last prompt that are the task's own, without replies."""
        return len(self.text) + sum(len(each.result) for each in self.turns)


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Sizes of a trace.

    Attributes:
        num_tasks: conversations, without sub-agents.
        mean_turns: turns of a task.
        scale: factor of all texts. Results keep their size if there are fewer turns, so the last prompt is then shorter.
        seed: of everything.
    """

    num_tasks: int = 30
    mean_turns: int = MEAN_TURNS
    scale: float = 1 / 40
    seed: int = 0


def make_tasks(options: TraceOptions) -> list[Task]:
    """The tasks of a trace; the same for the same options."""
    return list(_tasks(options, random.Random(options.seed)))


def _tasks(options: TraceOptions, rng: random.Random) -> Iterator[Task]:
    kinds = [_kind(index, options.scale, rng) for index in range(NUM_KINDS)]
    max_tokens = max(MIN_OUTPUT_TOKENS, round(OUTPUT_TOKENS * options.scale))
    own = (LAST_PROMPT_TOKENS - SYSTEM_TOKENS) * options.scale * options.mean_turns / MEAN_TURNS
    per_turn = max(_LEAST_RESULT, own * (1 - _TASK_SHARE) / options.mean_turns)
    for index in range(options.num_tasks):
        system, tools = kinds[index % NUM_KINDS]
        num_turns = max(_LEAST_TURNS, round(options.mean_turns * _log_normal(rng, _TURNS_SIGMA)))
        turns = tuple(_turn(per_turn, rng, may_fork=True) for _ in range(num_turns - 1))
        yield Task(system, tools, _text(own * _TASK_SHARE, rng), turns, max_tokens)


def _turn(num_tokens: float, rng: random.Random, *, may_fork: bool) -> Turn:
    low, high = DELAY_S
    delay_s = min(high, max(low, rng.lognormvariate(math.log(_MEDIAN_DELAY_S), _DELAY_SIGMA)))
    result = _text(max(_LEAST_RESULT, num_tokens * _log_normal(rng, _RESULT_SIGMA)), rng)
    turn = Turn(delay_s, result)
    if may_fork and rng.random() < _FORK_SHARE:
        fork = tuple(_turn(num_tokens, rng, may_fork=False) for _ in range(_FORK_TURNS - 1))
        turn = replace(turn, fork=fork)
    return turn


def _kind(index: int, scale: float, rng: random.Random) -> tuple[str, tuple[dict[str, Any], ...]]:
    names = [f"{verb}_{noun}" for verb in _VERBS for noun in _NOUNS]
    tools = tuple(_tool(name) for name in rng.sample(names, 3))
    return f"You are agent {index}. " + _text(SYSTEM_TOKENS * scale, rng), tools


def _tool(name: str) -> dict[str, Any]:
    # Letters and blanks only, so that no template writes the arguments in another way than the model did.
    path = {"type": "string", "pattern": "^[a-z]{4,12}$"}
    parameters = {
        "type": "object",
        "properties": {"path": path},
        "required": ["path"],
        "additionalProperties": False,
    }
    # In the order in which every door gives them to the template, so that all prompts of a kind have one text.
    function = {"name": name, "parameters": parameters, "description": f"Runs {name.replace('_', ' ')}."}
    return {"type": "function", "function": function}


def _log_normal(rng: random.Random, sigma: float) -> float:
    """A log-normal factor whose mean is 1."""
    return rng.lognormvariate(-sigma * sigma / 2, sigma)


def _text(num_tokens: float, rng: random.Random) -> str:
    """Words of about this number of tokens."""
    rng = random.Random(rng.getrandbits(64))  # one draw, whatever the size: scale changes nothing but texts
    words: list[str] = []
    left = num_tokens * _CHARS_PER_TOKEN
    while left > 0:
        words.append("".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(rng.randint(1, 3))))
        left -= len(words[-1]) + 1
    return " ".join(words)
