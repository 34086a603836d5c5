"""Kills an agent with six effects at the boundaries of its nodes, again and again, and counts what its effects did.

    python -m tests.support.programs.kill_trial --kills 1000

The agent runs in a process of its own, which ends with SIGKILL at a boundary: before or after a record of its journal is written or
synchronized, or before or after an effect takes place. It is started again until it ends. The receiver of the effects is a file: each is
appended and synchronized, with the idempotency key of its call; it takes a key once. Where it is unknown whether an effect took place, the
policies of the calls decide: `retry` relies on the receiver; for `once` and `ask` a person, who is played here, looks at the file.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import rtlang as rt
from rtlang.cassette import records
from rtlang.cassette.answers import AnswersFile
from rtlang.testing import ScriptedRuntime
from tests.support.schemas.tool_templates import render

UNDECIDED = 75
SEED = 11


class Boundaries:
    """Counts the boundaries that a process passes, and kills it at one."""

    def __init__(self) -> None:
        self.count, self.deadly = 0, 0

    def arm(self, deadly: int) -> None:
        """Count from 0, and die at this boundary; 0 for none."""
        self.count, self.deadly = 0, deadly
        if not hasattr(records.RecordFile.append, "is_watched"):
            for name in ("append", "sync"):
                setattr(records.RecordFile, name, self._watched(getattr(records.RecordFile, name)))

    def passed(self) -> None:
        """Another boundary."""
        self.count += 1
        if self.count == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)

    def _watched(self, method: Any) -> Any:
        def watched(file: Any, *args: Any) -> Any:
            self.passed()
            found = method(file, *args)
            self.passed()
            return found

        watched.is_watched = True  # type: ignore[attr-defined]
        return watched


BOUNDARIES = Boundaries()
LEDGER = Path()
"""The receiver of effects, in the process of the agent."""


def receive(key: str, what: str) -> str:
    """Let an effect take place, unless the receiver has its key; returns its receipt. Each attempt is a line, too."""
    BOUNDARIES.passed()
    with open(LEDGER, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        lines = [json.loads(line) for line in file]
        is_new = not any(line["key"] == key and line["is_new"] for line in lines)
        file.write(json.dumps({"key": key, "what": what, "is_new": is_new}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    BOUNDARIES.passed()
    return f"receipt of {what}"


@rt.effect(on_unknown="retry")
def pay(amount: int, at: str) -> str:
    return receive(rt.idempotency_key(), f"pay {amount} at {at}")


def post(text: str) -> str:
    return receive(rt.idempotency_key(), f"post {text}")


@rt.effect(on_unknown="ask")
def ship(item: str, number: float) -> str:
    return receive(rt.idempotency_key(), f"ship {item} {number}")


def book(room: int) -> str:
    return receive(rt.idempotency_key(), f"book {room}")


@rt.program
def agent(s: rt.State) -> dict[str, Any]:
    """Two calls of functions, two of tools, a question and an emitted value, with generations between them."""
    s += "Order:"
    s += rt.gen("first", temperature=1.0)
    paid = rt.call(pay, 5, str(rt.now()))
    s += rt.text(" ", paid)
    s += rt.gen("tool", type=rt.tools([book], choice="required", reasoning="forbidden", format="hermes"))
    booked = [call.run() for call in s["tool"].calls]
    s.emit({"booked": booked})
    s += rt.text(" ", rt.call(post, s["first"]))
    s += rt.gen("second", temperature=1.0)
    shipped = rt.call(ship, s["second"], rt.random())
    s += rt.text(" ", shipped, rt.ask(rt.format("Send {}?", s["second"]), bool))
    s += rt.gen("last")
    return rt.value({"paid": paid, "booked": booked, "shipped": shipped, "last": s["last"], "text": s.text()})


def script() -> ScriptedRuntime:
    text = render("hermes", "", "", [("book", {"room": 7})])
    return ScriptedRuntime({"tool": text, "first": "a hat", "second": "two hats", "last": "done"})


def work(folder: str, deadly: int) -> None:
    """Run the agent in this process, whose journal and receiver are in the folder, until its end or until a boundary."""
    global LEDGER
    LEDGER = Path(folder) / "ledger"
    BOUNDARIES.arm(deadly)
    try:
        with script() as runtime, rt.journal(Path(folder) / "journal", runtime, seed=SEED, wait_s=0) as durable:
            stream = agent.stream(runtime=durable)
            for event in stream:
                if isinstance(event, rt.EmitEvent):
                    receive(event.path, f"emit {json.dumps(event.value)}")
            value = stream.result().value
    except (rt.UnansweredError, rt.UnknownOutcomeError) as error:
        (Path(folder) / "open").write_text(json.dumps([type(error).__name__, error.path, BOUNDARIES.count]))
        os._exit(UNDECIDED)
    (Path(folder) / "out").write_text(json.dumps([value, BOUNDARIES.count]))
    os._exit(0)


@dataclass
class Counts:
    """What a trial has seen.

    Attributes:
        kills: processes that were killed; `points` counts them by boundary.
        runs: agents that came to their end.
        twice: effects that took place again; `lost`: effects that did not; `ends`: other ends than the undisturbed one.
        attempts: attempts whose key the receiver had already: the process had died between the effect and its outcome.
        unknown: times that a person had to look whether an effect had taken place.
        asked: times that a run ended with an open question.
    """

    kills: int = 0
    runs: int = 0
    twice: int = 0
    lost: int = 0
    ends: int = 0
    attempts: int = 0
    unknown: int = 0
    asked: int = 0
    points: Counter[int] = field(default_factory=Counter)

    @property
    def is_right(self) -> bool:
        return not (self.twice or self.lost or self.ends)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills at {len(self.points)} boundaries, {self.runs} runs to the end: {self.twice} effects twice, "
            f"{self.lost} lost, {self.ends} other ends; {self.attempts} attempts that the receiver had already, "
            f"{self.unknown} decided by a person, {self.asked} runs that ended with a question"
        )


def decide(folder: str) -> str:
    """Play the person: answer what the run has left open, after a look at the receiver."""
    kind, path, _ = json.loads((Path(folder) / "open").read_text())
    answers = AnswersFile(str(Path(folder) / "journal"))
    if kind == "UnansweredError" and path == "ask":
        answers.add(path, True)
        return kind
    word = {"post()": "post", "ship()": "ship", "tool/book()": "book"}[path]
    ledger = Path(folder) / "ledger"
    lines = [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []
    done = [line["what"] for line in lines if line["what"].startswith(word)]
    answers.add(path, {"outcome": "done", "value": f"receipt of {done[0]}"} if done else {"outcome": "retry"})
    return "unknown"


def one_run(context: BaseContext, counts: Counts, boundaries: list[int]) -> tuple[list[str], dict[str, Any], int]:
    """Run an agent to its end, killed at these boundaries in turn; returns its effects, its end and the number of boundaries."""
    most = 0
    with tempfile.TemporaryDirectory() as folder:
        while True:
            deadly = boundaries.pop(0) if boundaries else 0
            process: Any = context.Process  # type: ignore[attr-defined]
            child = process(target=work, args=(folder, deadly), daemon=True)
            child.start()
            child.join()
            if child.exitcode == -signal.SIGKILL:
                counts.kills += 1
                counts.points[deadly] += 1
            elif child.exitcode == UNDECIDED:
                most = max(most, json.loads((Path(folder) / "open").read_text())[2])
                if decide(folder) == "unknown":
                    counts.unknown += 1
                else:
                    counts.asked += 1
            else:
                assert child.exitcode == 0, child.exitcode
                break
        counts.runs += 1
        value, count = json.loads((Path(folder) / "out").read_text())
        lines = [json.loads(line) for line in (Path(folder) / "ledger").read_text().splitlines()]
        counts.attempts += sum(not line["is_new"] for line in lines)
        return [line["what"] for line in lines if line["is_new"]], value, max(most, count)


def without_time(effects: list[str]) -> list[str]:
    """The effects by their words, without the time of the payment, sorted."""
    return sorted(each.partition(" at ")[0] for each in effects)


def warm() -> None:
    """Compile what the agent needs, so that processes that are forked from this one start quickly."""
    global LEDGER
    with tempfile.TemporaryDirectory() as folder, script() as runtime:
        LEDGER = Path(folder) / "ledger"
        agent.run(runtime=runtime, ask=lambda question: True)


def trial(context: BaseContext, num_kills: int, seed: int = 0) -> Counts:
    """Kill agents this often: first at each boundary once, then at random ones, several times in a run.

    Args:
        context: starts the processes.
    """
    counts, choose = Counts(), random.Random(seed)
    effects, end, num_boundaries = one_run(context, Counts(), [])
    assert len(effects) == 5, "five effects take place at the receiver, and a person answers a question"
    paid = "receipt of pay 5 at "
    order = list(range(1, num_boundaries + 1))
    choose.shuffle(order)
    while counts.kills < num_kills:
        first = order.pop() if order else choose.randint(1, num_boundaries)
        again = [choose.randint(1, num_boundaries) for _ in range(choose.choice((0, 0, 1, 2)))]
        found, value, _ = one_run(context, counts, [first, *again])
        words = Counter(without_time(found))
        counts.twice += sum(count - 1 for count in words.values() if count > 1)
        counts.lost += len(Counter(without_time(effects)) - words)
        time_of = [each for each in found if each.startswith("pay")]
        same = {**value, "paid": "", "text": ""} == {**end, "paid": "", "text": ""}
        told = value["paid"] == f"receipt of {time_of[0]}" if time_of else False
        counts.ends += not (same and told and value["paid"].startswith(paid) and value["paid"] in value["text"])
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill an agent at the boundaries of its nodes, and count its effects.")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.monotonic()
    warm()
    counts = trial(multiprocessing.get_context("fork"), options.kills, options.seed)  # this process has one thread
    print(f"{counts} ({time.monotonic() - started:.0f} s)")
    sys.exit(0 if counts.is_right else 1)


if __name__ == "__main__":
    main()
