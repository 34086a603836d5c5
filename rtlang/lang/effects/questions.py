"""Questions to people: `rt.ask` is a node whose value somebody gives, seconds or days later."""

from __future__ import annotations

import time
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.process.call_context import ASK, Question, current_call
from rtlang.contract.request_graph import Const, Ref
from rtlang.lang.control import running_state
from rtlang.lang.lazy_values.operations import Lazy
from rtlang.lang.lazy_values.static_types import AnyValue
from rtlang.lang.lazy_values.values import Value
from rtlang.lang.output_types.answers import answer_type
from rtlang.lang.output_types.kinds import STR
from rtlang.lang.recordings.operands import operand_for

MAX_TIMEOUT_S = 10 * 365 * 24 * 3600.0


def ask(question: Any, schema: Any = None, timeout_s: float | None = None) -> AnyValue:
    """Ask a person, and return the answer, lazily. The rest of the graph goes on; only what uses the answer waits.

    The function that was given to the run (`program.run(ask=...)`) answers; `rtlang run` asks in the terminal. With a journal, anybody may
    answer later: `rtlang answer`, `rtlang questions`. A process that waits takes the answer at once; else the program goes on when it is
    run again.

    Args:
        question: text, which may be generated.
        schema: the type of the answer: a Python type such as bool, int, Literal or a model, or a JSON schema. None: text.
        timeout_s: seconds within which it must be answered, counted from the first time that it is asked.
    Raises:
        TraceError: outside of a program. ParameterError: an argument is invalid.
        UnansweredError: when the value is read; nobody is there to answer, or nobody has answered yet and the run may not wait.
        QuestionError: when the value is read; nobody answered in time, or the answer of a function does not fit.
    """
    state = running_state("rt.ask")
    if timeout_s is not None and (
        isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not 0 < timeout_s <= MAX_TIMEOUT_S
    ):
        raise ParameterError("timeout_s", timeout_s, f"expected seconds above 0 and up to {MAX_TIMEOUT_S:g}, or None")
    recording, answers = state.recording, answer_type(schema)
    operands = (operand_for(question, recording, "the question of rt.ask()"), Const(answers.schema), Const(timeout_s))

    def run(plain: tuple[Any, ...]) -> Any:
        context = current_call()
        asked_at = time.time() if context.begun_at is None else context.begun_at
        return context.ask(
            Question(str(plain[0]), context.path, answers.schema, timeout_s, asked_at, check=answers.check)
        )

    path = recording.nodes.new_path(recording.nodes.place_of(operands, state.place), "ask")
    node_id = recording.add_call(ASK, operands, run, path)
    lazy = None if answers.kind is None else Lazy(answers.kind, Ref(node_id))
    return Value(
        recording,
        (node_id,),
        (Ref(node_id),),
        lambda: answers.read(recording.outcomes.plain_value(node_id)),
        "the answer of rt.ask()",
        is_text=answers.kind is STR,
        lazy=lazy,
    )
