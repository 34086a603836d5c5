"""What the execution of a graph uses of its runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rtlang.contract.process.current_work import CurrentWork
from rtlang.contract.request_graph import Call, Generate, Select, Text
from rtlang.contract.runs.known import KnownOutcome
from rtlang.engine.program_pages import ProgramPages
from rtlang.engine.requests.request import Request, RequestSpec
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.nodes.work_slices import Later, Offload
from rtlang.runtime.process.turn_work import TurnWork
from rtlang.runtime.texts.token_sequence import TokenSequence

Answer = Callable[[Text | Generate | Select | Call, TokenSequence, Callable[[KnownOutcome], None]], bool]
"""Ends nodes instead of the engine: called with each text, generate, select and call node that starts, its prompt and a function that ends
it. Returns whether it ends the node, now or later."""


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
        offload: does long work on another thread; None does it here.
        reserve: counts bytes of values, and gives negative ones back; raises ValueMemoryError if there is no room.
        work: the record of the engine thread's work.
        worked: called with the seconds that this thread has worked on nodes.
        turn: the work of the engine thread's present turn.
        has_states: whether the model goes on only from states that were kept, so that places where sequences branch must be found.
        call_at: calls a function at a time of the clock, and returns what cancels that; None has no timers.
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
    reserve: Callable[[int], None] = lambda num_bytes: None
    work: CurrentWork = field(default_factory=CurrentWork)
    worked: Callable[[float], None] = lambda seconds: None
    turn: TurnWork = field(default_factory=TurnWork)
    call_at: Callable[[float, Callable[[], None]], Callable[[], None]] | None = None
    has_states: bool = False
