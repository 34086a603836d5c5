"""Random programs as data, performed through the language, lazily or eagerly.

`perform` with `is_eager=False` leaves every value lazy: pure functions, branches, loops, host calls and votes become nodes of
the graph. With `is_eager=True` the same operations are plain Python on plain values: each value is forced at once, a branch is an
`if`, a loop a `for`. Both must give the same text, messages and variables. Programs are made from a seed and can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

import rtlang as rt
from rtlang.lang.output_types.checks import PLAIN_TURN
from rtlang.lang.program_state.state import record_of
from tests.support.programs.program_oracle import CallProgram, Fork, Look, Quote, Say, Scope, Write

TEXTS = (
    "Hello",
    " and ",
    "\n",
    "a  b ",
    "é",
    "e\u0301",
    "😀",
    "👩\u200d🚀",
    "\u00a0",
    "ß\r\n",
    "𝒳",
    "<|user|>",
    "{x}",
    '"',
    "\\",
    "0",
    "ﬁ",
    "日本",
    "-",
)
CHOICES = ("red", "green", "blue")


class Thing(BaseModel):
    """A small object."""

    size: int = Field(ge=0, le=99)
    color: Literal["red", "green", "blue"]


class Note(BaseModel):
    """An object with fields that need not be there."""

    color: Literal["red", "green", "blue"]
    unit: Literal["m", "km"] = "m"
    size: int | None = Field(default=None, ge=0, le=9)


PLAIN = {
    "type": "object",
    "properties": {"color": {"enum": ["red", "green"]}, "size": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["color"],
    "additionalProperties": False,
}


def measure(color: Literal["red", "green", "blue"], times: Annotated[int, Field(ge=1, le=9)] = 2) -> dict[str, Any]:
    """Measure a color."""
    return {"color": color, "times": times}


def greet(loudly: bool) -> str:
    """Say hello."""
    return "HELLO" if loudly else "hello"


def refuse(color: Literal["red", "green", "blue"]) -> str:
    """Refuse a color."""
    raise ValueError(f"{color} is refused")


TOOLS = [measure, greet, refuse]

KINDS: dict[str, dict[str, Any]] = {
    "text": {"max_tokens": 5},
    "stopped": {"max_tokens": 6, "stop": "e"},
    "integer": {"type": int, "max_tokens": 6},
    "boolean": {"type": bool, "max_tokens": 6},
    "literal": {"type": Literal["small", "large"], "max_tokens": 8},
    "regex": {"regex": "[a-c]{1,3}x?", "max_tokens": 6},
    "sampled": {"max_tokens": 5, "temperature": 1.0, "seed": 7},
    "object": {"schema": Thing, "max_tokens": 40},
    "note": {"schema": Note, "max_tokens": 60},
    "plain": {"schema": PLAIN, "max_tokens": 50},
}


@dataclass(frozen=True)
class Generate:
    kind: str
    n: int
    is_named: bool = True


@dataclass(frozen=True)
class Again:
    """Generate one name several times, in a loop of Python."""

    kind: str
    times: int


@dataclass(frozen=True)
class Checked:
    """Generate a text that a check accepts, in up to three attempts."""

    kind: Literal["text", "regex", "literal"]


@dataclass(frozen=True)
class Choose:
    method: str


@dataclass(frozen=True)
class Compute:
    """Append a pure function of the text of an earlier value."""

    function: str
    index: int


@dataclass(frozen=True)
class ReadField:
    """Append a field of the latest generated object."""

    name: str


@dataclass(frozen=True)
class Call:
    """Append what a host function returns for the text of an earlier value."""

    index: int


@dataclass(frozen=True)
class Switch:
    """Select a choice, then go on with its branch."""

    branches: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Repeat:
    """Generate until the text is in `until`, at most `at_most` times."""

    inner: tuple[Any, ...]
    at_most: int


@dataclass(frozen=True)
class Vote:
    """The most frequent of several sampled texts."""

    n: int


@dataclass(frozen=True)
class UseTool:
    """Generate one call of a tool, or several, and append what they return, or how they failed."""

    is_parallel: bool


@dataclass(frozen=True)
class Decide:
    """The first of several equal values, or the longest of the known texts."""

    how: Literal["first", "best"]


@dataclass(frozen=True)
class SwitchTyped:
    """Select a choice; its branch returns a typed value, which is read later."""

    kind: Literal["object", "note", "plain", "integer"]


Operations = tuple[Any, ...]

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "strip": lambda value: value.strip(),
    "upper": lambda value: value.upper(),
    "lower": lambda value: value.lower(),
    "replace": lambda value: value.replace("e", "3"),
    "first": lambda value: (value + " .").split(" ")[0],
    "slice": lambda value: value[1:4],
}


def random_program(seed: int, *, depth: int = 3, breaks: bool = True) -> Operations:
    """A program of some 5 to 40 operations; the same for the same seed."""
    random = Random(seed)
    return tuple(_operation(random, depth, breaks) for _ in range(random.randint(1, 6)))


def edited(operations: Operations, seed: int) -> Operations:
    """A program with one of its operations replaced or left out, or with one more."""
    random = Random(seed)
    at = random.randrange(len(operations))
    new = _operation(random, 1, True)
    return random.choice(
        [
            (*operations[:at], new, *operations[at:]),
            (*operations[:at], *operations[at + 1 :]),
            (*operations[:at], new, *operations[at + 1 :]),
            (*operations, new),
        ]
    )


def _leaf(random: Random, breaks: bool) -> Any:
    index = random.randrange(8)
    makers: list[Callable[[], Any]] = [
        lambda: Write("".join(random.choices(TEXTS, k=random.randint(0, 3)))),
        lambda: Write(random.choice(TEXTS)),
        lambda: Generate(random.choice(list(KINDS)), 1, random.random() < 0.85),
        lambda: Generate("text", random.randint(2, 3)),
        lambda: Again(random.choice(("text", "sampled", "integer")), random.randint(2, 3)),
        lambda: Checked(random.choice(("text", "regex", "literal"))),
        lambda: Choose(random.choice([str(method) for method in rt.SelectMethod])),
        lambda: Quote(index),
        lambda: Compute(random.choice(list(FUNCTIONS)), index),
        lambda: ReadField(random.choice(("size", "color", "unit"))),
        lambda: UseTool(random.random() < 0.4),
        lambda: Decide(random.choice(("first", "best"))),
        lambda: Call(index),
        *([lambda: Look(index)] if breaks else []),
    ]
    return random.choice(makers)()


def _some(random: Random, depth: int, breaks: bool, most: int = 3) -> Operations:
    return tuple(_operation(random, depth, breaks) for _ in range(random.randint(0, most)))


def _operation(random: Random, depth: int, breaks: bool) -> Any:
    if depth == 0 or random.random() < 0.55:
        return _leaf(random, breaks)
    deeper = depth - 1
    role = random.choice(("user", "assistant"))
    makers: list[Callable[[], Any]] = [
        lambda: Say(role, random.random() < 0.5, tuple(_leaf(random, breaks) for _ in range(random.randint(0, 3)))),
        lambda: Fork(tuple(_some(random, deeper, breaks) for _ in range(random.randint(1, 3))), random.random() < 0.6),
        lambda: Scope(_some(random, deeper, breaks)),
        lambda: CallProgram(_some(random, deeper, breaks), random.random() < 0.5),
        # Within branches and loops nothing breaks: their bodies are recorded before anything runs.
        lambda: Switch(tuple(_some(random, deeper, False, 2) for _ in CHOICES)),
        lambda: Repeat(_some(random, deeper, False, 2), random.randint(1, 3)),
        lambda: Vote(random.randint(2, 5)),
        lambda: SwitchTyped(random.choice(("object", "note", "plain", "integer"))),
    ]
    return random.choice(makers)()


def _field(kind: str, value: Any, name: str) -> Any:
    """A field of an object as a part of text. One that may be None is compared only."""
    if kind == "plain":
        return value["color"]
    if kind == "object":
        return getattr(value, "size" if name == "unit" else name)
    return (value.size == None) if name == "size" else getattr(value, name)  # noqa: E711


def host_function(text: str) -> str:
    """What `Call` calls: a pure function, so that runs are comparable."""
    return f"<{len(text)}>"


def refused(text: str) -> str | None:
    """What the check of `Checked` says."""
    return f"it ends with {text[-1]}" if text[-1:] in tuple("aeionrst ") else None


class Performer:
    """Performs operations on states, with fresh names. One per run."""

    def __init__(self, is_eager: bool) -> None:
        self.is_eager = is_eager
        self.known: list[Any] = []
        self.typed: list[Any] = []
        self._objects: list[tuple[str, Any]] = []
        self._prefix, self._num_names = "v", 0

    def perform(self, operations: Sequence[Any], s: Any) -> None:
        """Append the operations to a state; `known` grows by the texts that later operations may use."""
        for operation in operations:
            self._one(operation, s)

    def _fresh(self) -> str:
        self._num_names += 1
        return f"{self._prefix}{self._num_names}"

    @contextmanager
    def _within(self, prefix: str) -> Iterator[None]:
        """Names, known texts and objects of an inner block are its own, so both ways of performing give the same names afterwards."""
        outer = self._prefix, self._num_names, self.known, self._objects, self.typed
        self._prefix, self._num_names = f"{prefix}_", 0
        self.known, self._objects, self.typed = list(self.known), list(self._objects), list(self.typed)
        try:
            yield
        finally:
            self._prefix, self._num_names, self.known, self._objects, self.typed = outer

    def _know(self, value: Any) -> None:
        self.known.append(str(value) if self.is_eager else value)

    def _chosen(self, index: int) -> Any:
        return self.known[index % len(self.known)]

    def _one(self, operation: Any, s: Any) -> None:
        match operation:
            case Write(text):
                s += text
            case Generate(kind, n, is_named):
                self._generate(s, kind, n, is_named)
            case Again(kind, times):
                name = self._fresh()
                for _ in range(times):
                    s += rt.text("& ", rt.gen(name, **KINDS[kind]))
                    self._know(s.text(name))
                s += rt.text(*s.all(name))
            case Checked(kind) if record_of(s).sequence.role is None:
                self._checked(s, kind)
            case Choose(method):
                name = self._fresh()
                s += rt.text("> ", rt.select(name, CHOICES, method=method))
                self._know(s.text(name))
            case Quote(index) if self.known:
                s += self._chosen(index)
            case Compute(function, index) if self.known:
                s += rt.text(FUNCTIONS[function](self._chosen(index)))
            case ReadField(name) if self._objects:
                s += rt.text(_field(*self._objects[-1], name))
            case Look(index) if self.known:
                s += str(self._chosen(index))[::-1]
            case Call(index) if self.known:
                chosen = self._chosen(index)
                s += host_function(chosen) if self.is_eager else rt.call(host_function, chosen)
            case Say(role, True, inner):
                with getattr(s, role)():
                    self.perform(inner, s)
            case Say(role, False, inner):
                s += getattr(rt, role)(*self._pieces(inner))
            case Fork(branches, is_joined):
                self._fork(s, branches, is_joined)
            case Scope(inner):
                with s.scope(self._fresh()):
                    self.perform(inner, s)
            case CallProgram(inner, True):
                _sub(s, self, inner)
            case CallProgram(inner, False):
                _sub(self, inner)
            case Switch(branches):
                self._switch(s, branches)
            case Repeat(inner, at_most):
                self._repeat(s, inner, at_most)
            case Vote(n):
                self._vote(s, n)
            case UseTool(is_parallel):
                self._use_tool(s, is_parallel)
            case Decide(how) if self.known:
                self._decide(s, how)
            case SwitchTyped(kind):
                self._switch_typed(s, kind)

    def _generate(self, s: Any, kind: str, n: int, is_named: bool) -> None:
        if not is_named:
            s += rt.gen(**KINDS[kind])
            return
        name = self._fresh()
        s += rt.text("= ", rt.gen(name, n=n, **KINDS[kind]))
        if n > 1:
            for text in s.text(name):
                self._know(text)
            return
        self._know(s.text(name))
        if kind in ("object", "note", "plain"):
            self._objects.append((kind, rt.value(s[name]) if self.is_eager else s[name]))

    def _checked(self, s: Any, kind: str) -> None:
        name = self._fresh()
        s += "~ "
        if not self.is_eager:
            s += rt.gen(name, check=refused, repair=2, **KINDS[kind])
            self._know(s.text(name))
            return
        side = s.copy()
        for attempt in range(3):
            side += rt.gen(f"{name}_{attempt}", **KINDS[kind])
            text = str(side.text(f"{name}_{attempt}"))
            message = refused(text)
            if message is None:
                break
            side += PLAIN_TURN.format(message=message)
        else:
            raise rt.CheckError(name, text, message or "", 3)
        s += rt.gen(name, **KINDS[kind]) if attempt == 0 else text
        self._know(text)

    def _pieces(self, operations: Sequence[Any]) -> list[Any]:
        """Expressions of leaf operations; what they generate is known to later ones only once it is recorded."""
        pieces: list[Any] = []
        for operation in operations:
            match operation:
                case Write(text):
                    pieces.append(text)
                case Generate(kind, n, is_named):
                    pieces.append(rt.gen(self._fresh() if is_named else None, n=n, **KINDS[kind]))
                case Choose(method):
                    pieces.append(rt.select(self._fresh(), CHOICES, method=method))
                case Quote(index) if self.known:
                    pieces.append(self._chosen(index))
                case Compute(function, index) if self.known:
                    pieces.append(rt.text(FUNCTIONS[function](self._chosen(index))))
        return pieces

    def _fork(self, s: Any, branches: Sequence[Operations], is_joined: bool) -> None:
        forks, prefix = s.fork(len(branches)), self._fresh()
        for branch, state in zip(branches, forks, strict=True):
            with self._within(prefix):
                self.perform(branch, state)
        if is_joined:
            forks.join()

    def _switch(self, s: Any, branches: Sequence[Operations]) -> None:
        name, prefix = self._fresh(), self._fresh()
        s += rt.text("> ", rt.select(name, CHOICES))

        def branch(inner: Operations) -> Callable[[Any], None]:
            def body(state: Any) -> None:
                with self._within(prefix):
                    self.perform(inner, state)
                    # Text at the end of a branch is tokenized apart from text behind it, so a branch ends with a generation.
                    state += rt.text("; ", rt.gen(self._fresh(), max_tokens=1))

            return body

        bodies = {choice: branch(inner) for choice, inner in zip(CHOICES, branches, strict=True)}
        if self.is_eager:
            bodies[str(s[name])](s)
        else:
            rt.switch(s[name], bodies, state=s)

    def _repeat(self, s: Any, inner: Operations, at_most: int) -> None:
        prefix, chosen = self._fresh(), list[Any]()

        def body(state: Any) -> Any:
            with self._within(prefix):
                self.perform(inner, state)
                name = self._fresh()
                state += rt.text("? ", rt.select(name, CHOICES))
                chosen.append(state.text(name))
                return chosen[-1]

        if self.is_eager:
            s.copy()  # text in the body of a loop is tokenized apart from text before the loop
            for number in range(at_most):
                with s.scope(f"{prefix}_{number}"):
                    last: Any = str(body(s))
                if last == "green":
                    break
        else:
            last = rt.repeat(body, state=s, until=lambda state: chosen[-1] == "green", at_most=at_most)
        self.known.append(last)

    def _vote(self, s: Any, n: int) -> None:
        name = self._fresh()
        s += rt.gen(name, n=n, max_tokens=2, temperature=1.0, seed=3)
        if self.is_eager:
            texts = [str(text) for text in s.text(name)]
            winner: Any = max(dict.fromkeys(texts), key=texts.count)
        else:
            winner = rt.vote(s.text(name))
        s += rt.text("vote: ", winner)
        self.known.append(winner)

    def _use_tool(self, s: Any, is_parallel: bool) -> None:
        name = self._fresh()
        s += rt.text("! ", rt.gen(name, 120, tools=TOOLS, parallel=is_parallel))
        if not self.is_eager:
            found = rt.call(s[name], on_error="text")
            s += rt.text(rt.length(found), found[0]) if is_parallel else rt.text(s[name].name, found)
            return
        calls = rt.value(s[name])
        results = [_run(call) for call in (calls if is_parallel else [calls])]
        s += rt.text(len(results), str(results[0])) if is_parallel else rt.text(calls.name, str(results[0]))

    def _decide(self, s: Any, how: str) -> None:
        latest = self.known[-4:]
        if self.is_eager:
            winner: Any = latest[-1] if how == "first" else max(latest, key=len)
        elif how == "first":
            winner = rt.first([latest[-1]] * 2)
        else:
            winner = rt.best(latest, by=[rt.length(text) for text in latest])
        s += rt.text("best: ", winner)
        self.known.append(winner)

    def _switch_typed(self, s: Any, kind: str) -> None:
        name, inner = self._fresh(), self._fresh()
        s += rt.text("> ", rt.select(name, CHOICES))

        def branch(prefix: str) -> Callable[[Any], Any]:
            def body(state: Any) -> Any:
                state += rt.text(prefix, rt.gen(f"{inner}_{prefix}", **KINDS[kind]))
                return state[f"{inner}_{prefix}"]

            return body

        bodies = {choice: branch(choice) for choice in CHOICES}
        value: Any = rt.value(bodies[str(s[name])](s)) if self.is_eager else rt.switch(s[name], bodies, state=s)
        self.typed.append(value)
        if kind != "integer":
            self._objects.append((kind, value))
            s += rt.text(_field(kind, value, "color"))
        else:
            s += rt.text(value * 2)


def _run(call: Any) -> Any:
    """The result of a call in plain Python, as `rt.call(..., on_error="text")` gives it."""
    try:
        return call.run()
    except rt.ToolError as error:
        return f"Error: {error.reason}"


@rt.program
def _sub(s: Any, performer: Performer, inner: Operations) -> None:
    s += "["  # a model without a start token needs text before it generates
    with performer._within(performer._fresh()):
        performer.perform(inner, s)


@rt.program
def performed(s: Any, operations: Operations, is_eager: bool) -> Any:
    """Performs a random program; returns its known texts, the whole text and the messages."""
    performer = Performer(is_eager)
    s += "Start: "
    performer.perform(operations, s)
    found = {"known": list(performer.known), "typed": list(performer.typed)}
    return {**found, "text": s.text(), "messages": s.messages()}
