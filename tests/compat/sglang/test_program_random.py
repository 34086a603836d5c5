"""Random programs against a plain interpreter of the frontend's semantics: each statement at once, on text.

A program is a tree of statements, which both execute. A generated text is a function of the text before it and of the name, so any
statement in the wrong place, and any variable of another state, shows.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, field
from typing import Any

import pytest

import rtlang.compat.sglang as sgl
from rtlang.compat.sglang import execution
from rtlang.contract.request_graph import Select
from rtlang.testing import ScriptedRuntime, SeenRequest
from tests.support.long_tests import sized
from tests.support.programs.sglang_programs import CHOICES, NAMES, execute, statements

NUM_PROGRAMS = sized(150)


def word(prompt: str, name: str) -> str:
    return f"<{zlib.crc32(f'{name}|{prompt}'.encode()) % 9973}>"


def number(prompt: str, name: str) -> str:
    return str(zlib.crc32(f"{name}|{prompt}".encode()) % 997)


def choice(prompt: str, name: str) -> str:
    return CHOICES[zlib.crc32(prompt.encode()) % len(CHOICES)]  # equal selects are one node, whatever their names


def scripted() -> ScriptedRuntime:
    def answer(prompt: str, request: SeenRequest) -> str:
        name = str(request.name).split(" ")[0]
        if isinstance(request.node, Select):
            return choice(prompt, name)
        if request.node.constraint is not None:
            return number(prompt, name) + "\n"
        return word(prompt, name)

    unnamed = [f"{kind} #{n}" for kind in ("gen", "select") for n in range(1, 60)]
    return ScriptedRuntime(dict.fromkeys([*NAMES, *unnamed], answer), checks=False)


# -- the plain interpreter


@dataclass
class Plain:
    prompt: str = ""  # with the marks of messages
    text: str = ""  # without
    variables: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, str]] = field(default_factory=list)
    role_start: int | None = None
    fork_start: tuple[int, int] = (0, 0)
    log: list[tuple[str, str]] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.prompt += text
        self.text += text
        self.log.append(("text", text))

    def generate(self, name: str | None, function: Any, kind: str, count: dict[str, int]) -> None:
        shown = name if name is not None else kind
        value = function(self.prompt, shown)
        self.add(value)
        if name is not None:
            self.variables[name] = value

    def begin(self, role: str) -> None:
        self.prompt += f"{role.capitalize()}: "
        self.role_start = len(self.text)
        self.log.append(("begin", role))

    def end(self, role: str) -> None:
        assert self.role_start is not None
        self.prompt += "\n"
        self.messages.append({"role": role, "content": self.text[self.role_start :].lstrip()})
        self.role_start = None
        self.log.append(("end", role))

    def branch(self) -> Plain:
        return Plain(
            self.prompt,
            self.text,
            dict(self.variables),
            list(self.messages),
            self.role_start,
            (len(self.log), 0),
            list(self.log),
        )


def interpret(s: Plain, program: list[tuple[Any, ...]]) -> None:
    functions = {"gen": word, "number": number, "select": choice}
    for statement in program:
        match statement:
            case "text", text:
                s.add(text)
            case ("gen" | "number" | "select") as kind, name, is_wrapped:
                s.add("(" if is_wrapped else "")
                s.generate(name, functions[kind], "select" if kind == "select" else "gen", {})
                s.add(")" if is_wrapped else "")
            case "read", name:
                s.add(f"[{s.variables[name]}]" if name in s.variables else "[]")
            case "set", name, value:
                s.variables[name] = value
            case "scope", name, inner:
                start = len(s.text)
                interpret(s, inner)
                s.variables[name] = s.text[start:]
            case "role", role, _, inner:
                s.begin(role)
                interpret(s, inner)
                s.end(role)
            case "fork", bodies, mode:
                forks = [s.branch() for _ in bodies]
                for fork, body in zip(forks, bodies, strict=True):
                    interpret(fork, body)
                if mode is not None:
                    join(s, forks, mode)
            case "copy", body:
                aside = s.branch()
                interpret(aside, body)
                join(s, [aside], "gather_variable")


def join(s: Plain, forks: list[Plain], mode: str) -> None:
    if mode == "gather_variable":
        before = set(s.variables)
        for fork in forks:
            for name in fork.variables:
                if name not in before:
                    s.variables.setdefault(name, []).append(fork.variables[name])
        return
    for fork in forks:
        for kind, item in fork.log[fork.fork_start[0] :]:
            {"text": s.add, "begin": s.begin, "end": s.end}[kind](item)


@pytest.mark.parametrize("how", ["run", "stream", "batch", "early"])
def test_random_programs_give_what_a_plain_interpreter_gives(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "early":  # another thread submits after every generation
        monkeypatch.setattr(execution, "EARLY_S", 0.0)
    for seed in range(NUM_PROGRAMS):
        program = [("text", "Begin. "), *statements(random.Random(seed), 2)]
        expected = Plain()
        interpret(expected, program)

        @sgl.function
        def body(s: Any, program: list[tuple[Any, ...]] = program) -> None:
            execute(s, program)

        if how == "batch":
            state = body.run_batch([{}, {}], backend=scripted())[1]
        else:
            state = body.run(backend=scripted(), stream=how == "stream")
        if how == "stream":
            assert "".join(state.text_iter()) == expected.text, seed
        assert state.error() is None, seed
        assert state.text() == expected.text, seed
        assert state.messages() == expected.messages, seed
        assert {name: state[name] for name in NAMES if name in state} == expected.variables, seed
