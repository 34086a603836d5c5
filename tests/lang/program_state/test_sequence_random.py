"""Random programs with failures that they catch, against a model of their sequences in plain Python.

A program appends text and generations, opens messages, forks and calls programs, and reads values whose generations may have failed. The
oracle keeps each sequence as a list of items and the steps in it, and cuts it where the language says.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import RequestError
from rtlang.testing import ScriptedRuntime
from tests.support.long_tests import sized

Op = tuple[Any, ...]
ROLES = ("user", "assistant")
HARD = (235, 331)
"""Forks, and messages opened again, of a sequence that went back before."""


def ops_of(random: Random, names: list[str], depth: int, *, in_message: bool) -> list[Op]:
    """A random list of operations; `names` are the generations so far in this state."""
    found: list[Op] = []
    for _ in range(random.randint(1, 6 if depth == 0 else 3)):
        kinds = ["text", "gen", "gen", "read", "read", "look", "call", "fork"] + (
            [] if in_message else ["message", "with"] * 2
        )
        kind = random.choice(kinds)
        number = random.randrange(1_000_000)
        if kind in ("call", "fork", "with") and depth >= 3:
            kind = "text"
        if kind == "read" and not names:
            kind = "gen"
        match kind:
            case "text" | "look":
                found.append((kind, number))
            case "gen":
                found.append(("gen", f"g{number}", random.random() < 0.5))
                names.append(f"g{number}")
            case "message":
                name = f"g{number}" if random.random() < 0.7 else None
                found.append(("message", random.choice(ROLES), number, name))
                names.extend([name] if name else [])
            case "read":
                found.append(("read", random.choice(names)))
            case "with":
                found.append(("with", random.choice(ROLES), ops_of(random, names, depth + 1, in_message=True)))
            case "call":
                found.append(("call", ops_of(random, [], depth + 1, in_message=in_message)))
            case "fork":
                branches = [
                    ops_of(random, list(names), depth + 1, in_message=in_message) for _ in range(random.randint(1, 2))
                ]
                found.append(("fork", branches))
    return found


class Run:
    """Runs operations on states; `log` has what they read."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    def all(self, s: Any, ops: list[Op]) -> None:
        for op in ops:
            match op:
                case ("text", number):
                    s += f"t{number} "
                case ("gen", name, has_suffix):
                    s += f"p{name} " + rt.gen(name, 40) + (" s " if has_suffix else "")
                case ("message", role, number, name):
                    made = rt.user if role == "user" else rt.assistant
                    s += made(f"m{number} ", rt.gen(name, 40)) if name else made(f"m{number} ")
                case ("read", name):
                    try:
                        self.log.append(str(s[name]))
                    except RequestError as error:
                        self.log.append(error.message.partition(" ")[0])
                case ("look", _):
                    try:
                        self.log.append(str(s.text()))
                    except RequestError as error:
                        self.log.append(error.message.partition(" ")[0])
                case ("with", role, inner):
                    with getattr(s, role)():
                        self.all(s, inner)
                case ("call", inner):

                    @rt.program
                    def called(s: rt.State, inner: list[Op] = inner) -> None:
                        self.all(s, inner)

                    s += called.bind()
                case ("fork", branches):
                    forks = s.fork(len(branches))
                    for fork, inner in zip(forks, branches, strict=True):
                        self.all(fork, inner)
                    for fork in forks:
                        self.end(fork)

    def end(self, s: Any) -> None:
        for read in (s.text, s.messages):
            try:
                self.log.append(rt.value(read()))
            except RequestError as error:
                self.log.append(error.message.partition(" ")[0])


class Sequence:
    """The oracle's sequence: items are texts, generations and marks of messages; steps are ranges of items."""

    def __init__(
        self, items: list[Op] = (), steps: list[list[int]] = (), role: str | None = None, opened: int = -1
    ) -> None:  # type: ignore[assignment]
        self.items, self.steps, self.role, self.opened = list(items), [list(each) for each in steps], role, opened
        self.open_steps: list[int] = []
        self.is_kept = False  # whether something else continues the mark of the open message

    def branch(self) -> Sequence:
        return Sequence(self.items, self.steps, self.role, self.opened)

    def cut(self, at: int) -> None:
        del self.items[at:]
        self.steps = [each for each in self.steps if each[1] <= at]
        self.open_steps = [min(each, at) for each in self.open_steps]

    def begin(self) -> None:
        self.open_steps.append(len(self.items))

    def end(self) -> None:
        start = self.open_steps.pop()
        self.steps = [each for each in self.steps if each[0] < start]
        if len(self.items) > start:
            self.steps.append([start, len(self.items)])


class Oracle(Run):
    """The same in plain Python."""

    def __init__(self, failing: set[str]) -> None:
        super().__init__()
        self.failing, self.seen, self.roots = failing, set[str](), dict[str, str | None]()

    def root(self, sequence: Sequence) -> str | None:
        return next((each[1] for each in sequence.items if each[0] == "gen" and each[1] in self.failing), None)

    def settle(self, sequence: Sequence) -> None:
        root = self.root(sequence)
        if root is None or root not in self.seen:
            return
        at = next(index for index, each in enumerate(sequence.items) if each[:2] == ("gen", root))
        start = min((each[0] for each in sequence.steps if each[0] <= at < each[1]), default=at)
        opened, role = sequence.opened, sequence.role
        sequence.cut(start)
        if role is not None and opened >= start:
            sequence.opened = len(sequence.items)
            sequence.items.append(("open", role))
        sequence.is_kept = sequence.is_kept or sequence.opened == len(sequence.items) - 1

    def generate(self, sequence: Sequence, name: str) -> None:
        sequence.items.append(("gen", name))
        self.roots[name] = self.root(sequence)

    def all(self, s: Any, ops: list[Op]) -> None:
        for op in ops:
            match op:
                case ("read", name):
                    self.read(self.roots[name], f"<{name}>")
                    continue
                case ("look", _):
                    self.settle(s)
                    self.read(self.root(s), self.text(s))
                    continue
            self.settle(s)
            match op:
                case ("text", number):
                    s.begin()
                    s.items.append(("text", f"t{number} "))
                    s.end()
                case ("gen", name, has_suffix):
                    s.begin()
                    s.items.append(("text", f"p{name} "))
                    self.generate(s, name)
                    s.items += [("text", " s ")] if has_suffix else []
                    s.end()
                case ("message", role, number, name):
                    s.begin()
                    s.items += [("open", role), ("text", f"m{number} ")]
                    if name:
                        self.generate(s, name)
                    s.items.append(("close",))
                    s.end()
                case ("with", role, inner):
                    s.role, s.opened, s.is_kept = role, len(s.items), False
                    s.items.append(("open", role))
                    self.all(s, inner)
                    self.settle(s)
                    if s.opened == len(s.items) - 1 and s.is_kept:  # nothing was left of it
                        s.cut(s.opened)
                    else:
                        s.items.append(("close",))
                        s.open_steps.append(s.opened)
                        s.end()
                    s.role = None
                case ("call", inner):
                    s.begin()
                    self.all(s, inner)
                    s.end()
                case ("fork", branches):
                    s.is_kept = s.is_kept or s.opened == len(s.items) - 1
                    states = [s.branch() for _ in branches]
                    for state, inner in zip(states, branches, strict=True):
                        self.all(state, inner)
                    for state in states:
                        self.end(state)

    def read(self, root: str | None, value: Any) -> None:
        if root is not None:
            self.seen.add(root)
        self.log.append(value if root is None else root)

    def end(self, s: Any) -> None:
        for value in (self.text, self.messages):
            self.settle(s)
            self.read(self.root(s), value(s))

    def text(self, s: Sequence) -> str:
        return "".join(
            f"<{each[1]}>" if each[0] == "gen" else each[1] for each in s.items if each[0] in ("gen", "text")
        )

    def messages(self, s: Sequence) -> list[dict[str, str]]:
        found: list[dict[str, str]] = []
        is_inside = False
        for each in s.items:
            if each[0] == "open":
                found.append({"role": each[1], "content": ""})
                is_inside = True
            elif each[0] == "close":
                is_inside = False
            elif is_inside:
                found[-1]["content"] += f"<{each[1]}>" if each[0] == "gen" else each[1]
        return found


@pytest.mark.parametrize("passes", [True, False])
def test_random_programs_go_on_as_the_oracle(passes: bool) -> None:
    for seed in [*range(sized(1_500, usual=100)), *HARD]:
        random = Random(seed)
        ops = [("text", 0), *ops_of(random, [], 0, in_message=False)]
        failing = {name for name in names_in(ops) if random.random() < 0.35}
        oracle, run = Oracle(failing), Run()
        sequence = Sequence()
        oracle.all(sequence, ops)
        oracle.end(sequence)

        @rt.program
        def program(s: rt.State, run: Run = run, ops: list[Op] = ops) -> None:
            run.all(s, ops)
            run.end(s)

        answers = {name: RequestError(f"{name} failed") if name in failing else f"<{name}>" for name in names_in(ops)}
        with ScriptedRuntime(answers) as runtime:
            program.run(runtime=runtime, passes=passes, on_error="result")
        assert run.log == oracle.log, (seed, failing, ops)


def names_in(ops: list[Op]) -> list[str]:
    """The generations of operations."""
    found: list[str] = []
    for op in ops:
        match op:
            case ("gen", name, _) | ("message", _, _, str(name)):
                found.append(name)
            case ("with", _, inner) | ("call", inner):
                found += names_in(inner)
            case ("fork", branches):
                found += [name for inner in branches for name in names_in(inner)]
    return found
