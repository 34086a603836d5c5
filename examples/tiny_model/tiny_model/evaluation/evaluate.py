"""Measure a checkpoint of the embedded model, task by task, as a program would use it.

    python -m tiny_model.evaluation.evaluate [--checkpoint FOLDER] [--count 200] [--tasks extraction sum] [--markdown] [--json FILE]

Every question is one small program on the runtime, answered greedily, first freely and then, where an answer has a form, held to it:
records by a JSON schema of their keys and types, labels and yes or no by `select`, numbers and steps by a pattern. All questions of a
task run in one batch. Word problems of four to six steps are answered once more by votes of `VOTES` samples, at several temperatures.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import rtlang as rt
from rtlang.bench.machine import package_versions, this_machine
from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.contract.errors import ConfigError, ModelLoadError
from tiny_model.evaluation.scores import Judge, Row, Score, fields_right, is_right, markdown, result_of, vote
from tiny_model.evaluation.tasks import ALL, HARD, TASKS, Question, Task, questions

logger = logging.getLogger(__name__)

VOTES = 9
VOTE_TEMPERATURES = (0.7, 1.0, 1.3)  # 1.0 is the distribution of the model itself
VOTE_SEED = 17
ROLES = {"system": rt.system, "user": rt.user, "assistant": rt.assistant}


@rt.program
def answer(s: rt.State, question: Question, max_tokens: int, is_constrained: bool) -> object:
    """Put one question; the answer is text, whatever it is held to."""
    form = question.form if is_constrained else None
    is_text = question.prompt[0][0] == "text"
    if form is not None and form.options is not None:
        reply = rt.select("answer", list(form.options))
    elif form is not None and form.schema is not None:
        reply = rt.gen("answer", schema=json.dumps(form.schema), max_tokens=max_tokens)
    elif form is not None:
        reply = rt.gen("answer", regex=form.regex, max_tokens=max_tokens)
    else:
        reply = rt.gen("answer", max_tokens=max_tokens, stop="\n" if is_text else None)
    _put(s, question, reply)
    return s.text("answer")


@rt.program
def samples(s: rt.State, question: Question, max_tokens: int, temperature: float, seed: int) -> object:
    """Several answers to one question."""
    _put(s, question, rt.gen("answer", max_tokens=max_tokens, n=VOTES, temperature=temperature, seed=seed))
    return s.text("answer")


def _put(s: rt.State, question: Question, reply: Any) -> None:
    for role, content in question.prompt:
        s += rt.text(content) if role == "text" else ROLES[role](content)
    s += reply if question.prompt[0][0] == "text" else rt.assistant(reply)


def answers(runtime: rt.Target, task: Task, asked: Sequence[Question], *, is_constrained: bool) -> list[str]:
    """One answer for each question, all in one batch; empty, with a warning, where a question is refused (too long, say)."""
    inputs = [
        {"question": question, "max_tokens": task.max_tokens, "is_constrained": is_constrained} for question in asked
    ]
    return [_text(result, "") for result in answer.run_batch(inputs, runtime=runtime)]


def _text(result: rt.Result, missing: Any) -> Any:
    """The text or texts that a question got."""
    if result.error is None:
        return result.value
    logger.warning("counted as wrong: %s", result.error)
    return missing


def passes(task: Task, question: Question, text: str) -> bool:
    """Whether the answer `text` is right by the task's judge."""
    return is_right(task.judge, text, question.expected, question.prompt[-1][1])


def score(task: Task, asked: Sequence[Question], given: Sequence[str]) -> Score:
    """How many of the answers are right, and of records how many fields."""
    expected = [question.expected for question in asked]
    num_right = sum(passes(task, question, text) for question, text in zip(asked, given, strict=True))
    return Score(num_right, len(asked), fields_right(given, expected) if task.judge is Judge.RECORD else None)


def rows_of(runtime: rt.Target, task: Task, count: int, show: int = 0) -> list[Row]:
    """A row for each kind of draws of a task; logs each, with the first `show` wrong answers."""
    rows = []
    for draws in task.draws:
        asked = questions(task, draws, count)
        has_form = all(question.form is not None for question in asked)
        free = answers(runtime, task, asked, is_constrained=False)
        held = answers(runtime, task, asked, is_constrained=True) if has_form else None
        row = Row(task.name, draws, score(task, asked, free), None if held is None else score(task, asked, held))
        logger.info("%-44s %-18s free %s   constrained %s", row.task, draws, row.free, row.constrained or "-")
        _show_wrong(task, asked, free, show)
        rows.append(row)
    return rows


def _show_wrong(task: Task, asked: Sequence[Question], given: Sequence[str], show: int) -> None:
    wrong = [(question, text) for question, text in zip(asked, given, strict=True) if not passes(task, question, text)]
    for question, text in wrong[:show]:
        logger.info(
            "    asked    %r\n    expected %r\n    answer   %r", question.prompt[-1][1], question.expected, text
        )


@dataclass(frozen=True, slots=True)
class Vote:
    """One sample of each question, and a vote over several samples of the same temperature."""

    temperature: float
    one_sample: Score
    vote: Score


@dataclass(frozen=True, slots=True)
class Votes:
    """Hard word problems: one greedy answer, and votes at several temperatures."""

    greedy: Score
    by_temperature: tuple[Vote, ...]
    num_samples: int

    def __str__(self) -> str:
        rows = [f"| {voted.temperature} | {voted.one_sample} | {voted.vote} |" for voted in self.by_temperature]
        return "\n".join(
            (
                f"Word problems of four to six steps, all held out: one greedy answer {self.greedy} %; one sample, and a vote of "
                f"{self.num_samples} such samples:",
                "",
                "| temperature | one sample | vote |",
                "|---:|---:|---:|",
                *rows,
            )
        )


def votes(runtime: rt.Target, count: int) -> Votes:
    """The same problems answered once and by a vote, at each of the temperatures; logs each vote."""
    task = next(task for task in TASKS if task.ask is HARD)
    asked = questions(task, ALL, count)
    greedy = score(task, asked, answers(runtime, task, asked, is_constrained=False))
    by_temperature = tuple(_voted(runtime, task, asked, temperature) for temperature in VOTE_TEMPERATURES)
    return Votes(greedy, by_temperature, VOTES)


def _voted(runtime: rt.Target, task: Task, asked: Sequence[Question], temperature: float) -> Vote:
    inputs = [
        {
            "question": question,
            "max_tokens": task.max_tokens,
            "temperature": temperature,
            "seed": VOTE_SEED + VOTES * index,  # the same at every temperature
        }
        for index, question in enumerate(asked)
    ]
    drawn = [_text(result, [""] * VOTES) for result in samples.run_batch(inputs, runtime=runtime)]
    wanted = [result_of(question.expected) for question in asked]
    num_right = sum(vote(texts) == result for texts, result in zip(drawn, wanted, strict=True))
    row = Vote(temperature, score(task, asked, [texts[0] for texts in drawn]), Score(num_right, len(asked)))
    logger.info("word problems at temperature %s: one sample %s   vote %s", temperature, row.one_sample, row.vote)
    return row


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything that was measured, and on what."""

    checkpoint: str
    dtype: str
    count: int
    machine: str
    versions: dict[str, str | None]
    total_s: float
    rows: tuple[Row, ...]
    votes: Votes | None

    def markdown(self) -> str:
        """The table and the vote, for the model card."""
        return "\n\n".join([markdown(self.rows), *([str(self.votes)] if self.votes else [])])


def evaluate(runtime: rt.Runtime, tasks: Sequence[Task], count: int, show: int = 0) -> Evaluation:
    """Ask `count` questions of every kind. Deterministic up to rounding: same checkpoint, same figures."""
    start, rows = perf_counter(), []
    for task in tasks:
        rows += rows_of(runtime, task, count, show)
    voted = votes(runtime, count) if any(task.ask is HARD for task in tasks) else None
    config = runtime.config
    return Evaluation(
        checkpoint=Path(config.model).name,
        dtype=config.dtype,
        count=count,
        machine=str(this_machine()),
        versions=package_versions(),
        total_s=perf_counter() - start,
        rows=tuple(rows),
        votes=voted,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; without `arguments`, with those of the process."""
    keys = [task.key for task in TASKS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default=EMBEDDED_MODEL, help="directory of a checkpoint; default: %(default)s")
    parser.add_argument("--count", type=int, default=200, help="questions of each kind")
    parser.add_argument("--tasks", nargs="+", choices=keys, default=keys, metavar="TASK", help=", ".join(keys))
    parser.add_argument("--dtype", default="float32", help="float32 or bfloat16")
    parser.add_argument("--threads", type=int, default=None, help="CPU threads; default: the cores at hand")
    parser.add_argument("--show", type=int, default=0, help="wrong free answers to print of each kind")
    parser.add_argument("--markdown", action="store_true", help="print the table of the model card")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args(arguments)
    if given.count < 1:
        parser.error("--count is at least 1")
    if given.json is not None and (given.json.is_dir() or not given.json.absolute().parent.is_dir()):
        parser.error(f"--json {given.json}: no file can be there")  # said now, not after all the work
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    chosen = [task for task in TASKS if task.key in given.tasks]
    try:
        with rt.Runtime(model=given.checkpoint, dtype=given.dtype, num_threads=given.threads) as runtime:
            evaluation = evaluate(runtime, chosen, given.count, given.show)
    except (ConfigError, ModelLoadError) as error:
        parser.exit(1, f"error: {error}\n")
    logger.info("%.0f s", evaluation.total_s)
    if given.json is not None:
        given.json.write_text(json.dumps(asdict(evaluation), indent=2) + "\n", encoding="utf-8")
    if given.markdown:
        print(evaluation.markdown())


if __name__ == "__main__":
    main()
