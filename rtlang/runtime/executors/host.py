"""What the execution of a graph uses of its runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from rtlang.contract.process.current_work import CurrentWork
from rtlang.contract.request_graph import Call, Generate, Select, Text
from rtlang.contract.runs.known import KnownOutcome
from rtlang.engine.program_pages import ProgramPages
from rtlang.engine.requests.request import Request, RequestSpec
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.nodes.work_slices import Later
from rtlang.runtime.texts.token_sequence import TokenSequence

Encoded = TokenSequence | Exception
Answer = Callable[[Text | Generate | Select | Call, TokenSequence, Callable[[KnownOutcome], None]], bool]
"""Ends nodes instead of the engine: called with each text, generate, select and call node that starts, its prompt and a function that ends
it. Returns whether it ends the node, now or later."""


class Offload(Protocol):
    """Runs a function on another thread, and then another one with its result or its exception on the engine thread."""

    def __call__(self, size: int, work: Callable[[], TokenSequence], then: Callable[[Encoded], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class Host:
    """The services of a runtime for one graph, all used on the engine thread.

    Attributes:
        max_model_len: maximum sequence length in tokens.
        submit, abort: add a request to the engine, and end it.
        clock: returns seconds.
        answer: ends nodes instead of the engine; None leaves all to the engine.
        pages: keeps the pages of sequences that are continued later; None keeps nothing.
        later: calls a function in a later turn of the engine thread; None does everything at once.
        offload: encodes long texts on another thread; None encodes them here.
        work: the record of the engine thread's work.
    """

    tokenizer: Tokenizer
    max_model_len: int
    submit: Callable[[RequestSpec], Request]
    abort: Callable[[Request], None]
    clock: Callable[[], float]
    answer: Answer | None = None
    pages: ProgramPages | None = None
    later: Later | None = None
    offload: Offload | None = None
    work: CurrentWork = field(default_factory=CurrentWork)
