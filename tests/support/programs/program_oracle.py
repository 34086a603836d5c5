"""Random programs as data, recorded through the language and interpreted naively.

A program is a list of operations. `record` performs them on a state; `interpret` performs them on plain strings, knowing only what a
generation of the fake runtime is (a hash of the sequence before it). Both give the variables by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import rtlang as rt
from rtlang.contract.request_graph import Select
from tests.support.programs.fake_target import Call, answer, pick

CHOICES = ("red", "green", "blue")


@dataclass(frozen=True)
class Write:
    text: str


@dataclass(frozen=True)
class Generate:
    n: int = 1


@dataclass(frozen=True)
class Choose:
    pass


@dataclass(frozen=True)
class Quote:
    """Append the text of an earlier variable: the `index`-th, modulo how many there are."""

    index: int


@dataclass(frozen=True)
class Look:
    """Need the real text of an earlier variable, and append it reversed: a graph break."""

    index: int


@dataclass(frozen=True)
class Say:
    """A chat message; `is_block` says whether by `with s.user():` or by `s += rt.user(...)`."""

    role: str
    is_block: bool
    inner: tuple[Any, ...]


@dataclass(frozen=True)
class Fork:
    branches: tuple[tuple[Any, ...], ...]
    is_joined: bool


@dataclass(frozen=True)
class Scope:
    inner: tuple[Any, ...]


@dataclass(frozen=True)
class CallProgram:
    """Run operations as a called program, on the same sequence or a new one."""

    inner: tuple[Any, ...]
    on_same_sequence: bool


def programs(*, breaks: bool, max_leaves: int = 14) -> st.SearchStrategy[tuple[Any, ...]]:
    """Random programs, with or without graph breaks."""
    leaves: list[st.SearchStrategy[Any]] = [
        st.builds(Write, st.text("ab \n", min_size=0, max_size=4)),
        st.builds(Generate, st.just(1)),
        st.builds(Generate, st.integers(1, 3)),
        st.builds(Choose),
        st.builds(Quote, st.integers(0, 7)),
    ]
    if breaks:
        leaves.append(st.builds(Look, st.integers(0, 7)))
    leaf = st.one_of(leaves)
    said = st.builds(Say, st.sampled_from(("user", "assistant")), st.booleans(), st.lists(leaf, max_size=3).map(tuple))

    def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        some = st.lists(inner, max_size=4).map(tuple)
        return st.one_of(
            st.builds(Fork, st.lists(some, min_size=1, max_size=3).map(tuple), st.booleans()),
            st.builds(Scope, some),
            st.builds(CallProgram, some, st.booleans()),
        )

    operation = st.recursive(st.one_of(leaf, said), deeper, max_leaves=max_leaves)
    return st.lists(operation, max_size=6).map(tuple)


@dataclass
class _Names:
    """Fresh names, the same in both readings. Branches of a fork use the same ones."""

    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"


def script(call: Call) -> str:
    """The fake runtime's texts: a function of the sequence and the name without its scopes."""
    name = call.name.rpartition(".")[2] if call.name is not None else None
    if isinstance(call.node, Select):
        return pick(call.prompt, name, call.node.choices)
    return answer(call.prompt, name, call.choice)


def record(operations: tuple[Any, ...], s: Any, names: _Names | None = None, known: list[Any] | None = None) -> None:
    """Perform the operations on a state."""
    names = _Names() if names is None else names
    known = [] if known is None else known
    for operation in operations:
        match operation:
            case Write(text):
                s += text
            case Generate(n):
                name = names.fresh()
                s += rt.gen(name, n=n)
                known.extend(s[name] if n > 1 else [s[name]])
            case Choose():
                name = names.fresh()
                s += rt.select(name, CHOICES)
                known.append(s[name])
            case Quote(index) if known:
                s += known[index % len(known)]
            case Look(index) if known:
                s += str(known[index % len(known)])[::-1]
            case Say(role, True, inner):
                with getattr(s, role)():
                    record(inner, s, names, known)
            case Say(role, False, inner):
                s += getattr(rt, role)(*_pieces(inner, names, known))
            case Fork(branches, is_joined):
                forks = s.fork(len(branches))
                counts = []
                for branch, state in zip(branches, forks, strict=True):
                    own = _Names(names.count)
                    record(branch, state, own, list(known))
                    counts.append(own.count)
                names.count = max(counts)
                if is_joined:
                    forks.join()
            case Scope(inner):
                with s.scope(names.fresh()):
                    record(inner, s, names, known)
            case CallProgram(inner, True):
                _called(s, inner, names, known)
            case CallProgram(inner, False):
                _called(inner, names, known)


@rt.program
def _called(s: Any, inner: tuple[Any, ...], names: _Names, known: list[Any]) -> None:
    record(inner, s, names, list(known))


def _pieces(operations: tuple[Any, ...], names: _Names, known: list[Any]) -> list[Any]:
    """Expressions of leaf operations. What they generate is not known to later ones, as it is not recorded yet."""
    pieces: list[Any] = []
    for operation in operations:
        match operation:
            case Write(text):
                pieces.append(text)
            case Generate(n):
                pieces.append(rt.gen(names.fresh(), n=n))
            case Choose():
                pieces.append(rt.select(names.fresh(), CHOICES))
            case Quote(index) if known:
                pieces.append(known[index % len(known)])
            case Look(index) if known:
                pieces.append(str(known[index % len(known)])[::-1])
    return pieces


class Oracle:
    """The naive reading: a string per sequence. `texts` are all generated texts with their names, in the order of recording."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def run(
        self,
        operations: tuple[Any, ...],
        sequence: str = "",
        names: _Names | None = None,
        known: list[str] | None = None,
    ) -> str:
        """Perform the operations; the sequence behind them."""
        names = _Names() if names is None else names
        known = [] if known is None else known
        for operation in operations:
            match operation:
                case Write(text):
                    sequence += text
                case Generate() | Choose():
                    made = self._make(operation, sequence, names)
                    known.extend(made)
                    sequence += made[0] if len(made) == 1 else ""
                case Quote(index) if known:
                    sequence += known[index % len(known)]
                case Look(index) if known:
                    sequence += known[index % len(known)][::-1]
                case Say(role, is_block, inner):
                    sequence = self._say(role, inner, sequence, names, known if is_block else None, known)
                case Fork(branches, _):
                    counts = []
                    for branch in branches:
                        own = _Names(names.count)
                        self.run(branch, sequence, own, list(known))
                        counts.append(own.count)
                    names.count = max(counts)
                case Scope(inner):
                    names.fresh()
                    sequence = self.run(inner, sequence, names, known)
                case CallProgram(inner, on_same_sequence):
                    ended = self.run(inner, sequence if on_same_sequence else "", names, list(known))
                    sequence = ended if on_same_sequence else sequence
        return sequence

    def _say(
        self,
        role: str,
        inner: tuple[Any, ...],
        before: str,
        names: _Names,
        learns: list[str] | None,
        known: list[str],
    ) -> str:
        """A message; one of nothing but side branches leaves nothing. Only a block's inner operations see each other's texts."""
        sequence = start = f"{before}<{role}>"
        for operation in inner:
            sequence = self.run((operation,), sequence, names, list(known) if learns is None else learns)
        has_branches = any(isinstance(operation, Generate) and operation.n > 1 for operation in inner)
        return before if sequence == start and has_branches else sequence + "</>"

    def _make(self, operation: Generate | Choose, sequence: str, names: _Names) -> list[str]:
        name = names.fresh()
        if isinstance(operation, Choose):
            made = [pick(sequence, name, CHOICES)]
        else:
            made = [answer(sequence, name, choice) for choice in range(operation.n)]
        self.texts.extend((name, text) for text in made)
        return made
