"""Records what is appended to a state: into a state of this language (`inner`), and as pieces and variables beside it.

Names may be used again, and the later value wins. Expressions without a counterpart in the language (a constrained text that is cut at a
stop, a method that chooses in Python) are generated beside the sequence and then appended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rtlang.compat.sglang import meta_info
from rtlang.compat.sglang.choices import engine_method, token_length_normalized, unconditional_likelihood_normalized
from rtlang.compat.sglang.execution import Execution
from rtlang.compat.sglang.expressions import (
    Expression,
    Gen,
    Reasoning,
    RoleBegin,
    RoleEnd,
    Select,
    Series,
    Text,
    Tokens,
)
from rtlang.compat.sglang.options import LogprobWish, Request, request_of
from rtlang.compat.sglang.pieces import (
    Drop,
    Generated,
    Known,
    Lazy,
    LoggedPiece,
    Many,
    Mark,
    Own,
    Piece,
    Variable,
    kept,
    meta_info_of,
    value_of,
)
from rtlang.compat.sglang.reasoning import divided
from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.graph.nodes import RoleStart
from rtlang.lang.lazy_values.values import Value, needs_of, source_of, user_location
from rtlang.lang.output_types import forms
from rtlang.lang.program_state import expr as exprs
from rtlang.lang.program_state.state import State, record_of
from rtlang.lang.recordings.meta import Meta


class Recorder:
    """One sequence and its variables.

    Attributes:
        execution: the run that it belongs to.
        inner: the state of this language that it records into.
        variables: by name.
        log: the parts of the sequence, in the order in which they were appended.
        fork_start: index of the first piece after the fork that made it.
    """

    def __init__(self, execution: Execution, inner: State) -> None:
        self.execution, self.inner = execution, inner
        self.variables: dict[str, Variable] = {}
        self.log: list[LoggedPiece] = []
        self.fork_start = 0
        self._roles: tuple[str, ...] = ()  # those of finished messages
        self._open_role: str | None = None
        self._num_unnamed = 0

    def branch(self, inner: State) -> Recorder:
        """A recorder that continues from here in another state."""
        branch = Recorder(self.execution, inner)
        branch.variables, branch.log = dict(self.variables), list[LoggedPiece](self.pieces)
        branch.fork_start = len(branch.log)
        branch._roles, branch._open_role = self._roles, self._open_role
        return branch

    @property
    def pieces(self) -> list[Piece]:
        """The parts of the sequence as it is now."""
        return kept(self.log)

    def append(self, expression: Expression) -> None:
        """Append an expression."""
        match expression:
            case Series():
                for each in expression.items:
                    self.append(each)
            case Text():
                self._append_text(expression.value)
            case Tokens():
                self._append_tokens(expression.token_ids)
            case Gen():
                self._generate(expression)
            case Select():
                self._select(expression)
            case RoleBegin():
                self._begin_role(expression.role)
            case RoleEnd():
                self._end_role(expression.role)
            case Reasoning():
                self._append_reasoned(expression.expression, expression.model_type)
            case _:
                raise AssertionError(f"{expression!r} is not a known expression")

    def _append_text(self, text: str | Value) -> None:
        if isinstance(text, Value) and source_of(text) not in (None, self.execution.recording):
            text = str(text)
        if isinstance(text, str) and not text:
            return
        self.inner += text
        self._note(text if isinstance(text, str) else Lazy(self.execution, text))

    def append_piece(self, piece: Piece) -> None:
        """Append a piece of another state of the run."""
        match piece:
            case str():
                self._append_text(piece)
            case Mark():
                self.append(RoleBegin(piece.role) if piece.is_begin else RoleEnd(piece.role))
            case _:
                self.inner += piece.value
                self._note(piece)

    def _append_tokens(self, token_ids: tuple[int, ...]) -> None:
        """Append exactly these tokens: a generation constrained to them."""
        form = forms.sequence(*map(forms.token, token_ids))
        expression = exprs.gen(self._graph_name(None, "tokens"), len(token_ids), type=form, temperature=0.0)
        (recorded,) = _record(self.inner, expression)
        self._note(self._generated(recorded, (), None))

    def _begin_role(self, role: str) -> None:
        record_of(self.inner).sequence.open_role(RoleStart(role))
        self._open_role = role
        self._note(Mark(self._roles, role, is_begin=True))

    def _end_role(self, role: str) -> None:
        if self._open_role != role:
            raise TraceError(
                f"a {role} message cannot end here, where {self._open_role or 'no'} message is open", user_location()
            )
        record_of(self.inner).sequence.close_role()
        self._note(Mark(self._roles, role, is_begin=False))
        self._roles, self._open_role = (*self._roles, role), None

    def drop_role(self) -> None:
        """Drop the open message: the sequence continues from the place before it."""
        if self._open_role is not None:
            record_of(self.inner).sequence.drop_role()
            start = max(index for index, piece in enumerate(self.pieces) if isinstance(piece, Mark))
            self.log.append(Drop(start))
            self._open_role = None

    def _generate(self, gen: Gen) -> None:
        request = request_of({**self.execution.defaults, **gen.options})
        if request.logprobs is not None and request.logprobs.has_text and not self.execution.has_vocabulary:
            raise ParameterError(
                "return_text_in_logprobs",
                True,
                "this backend knows no texts of tokens; leave it out and read the token ids",
            )
        expression = exprs.gen(self._graph_name(gen.name, "gen"), **request.options)
        if request.is_empty:
            self._score_next(gen.name, expression, request)
            return
        # A text that is cut is generated beside the sequence, and then appended.
        side = self.inner.copy() if request.cuts else self.inner
        made = [self._generated(each, request.cuts, request.logprobs) for each in _record(side, expression)]
        if request.cuts or len(made) > 1:  # with n > 1 the sequence continues from before the generation
            self.inner += made[0].value
        if gen.name is not None:
            self.variables[gen.name] = made[0] if len(made) == 1 else Many(tuple(made))
        self._note(made[0])

    def _generated(self, recorded: Recorded, cuts: tuple[str, ...], wish: LogprobWish | None) -> Generated:
        token_text, name = self.execution.token_text, recorded.name
        cut = recorded.text
        for end in cuts:
            cut = cut.split(end)[0]

        def describe(meta: Meta) -> dict[str, Any]:
            if wish is not None and wish.has_text:
                self.execution.learn_texts(meta_info.token_ids_of(meta))
            return meta_info.of_generation(meta, wish, token_text, name)

        return Generated(self.execution, cut, recorded.meta, describe, source=recorded.text, cuts=cuts)

    def _score_next(self, name: str | None, expression: exprs.Expr, request: Request) -> None:
        """Generate nothing: one token beside the sequence gives the log-probabilities of what would come next."""
        (recorded,) = _record(self.inner.copy(), expression)
        scored = self._generated(recorded, (), request.logprobs)
        self.execution.appended([scored.node_id])

        def info() -> dict[str, Any]:
            return scored.meta_info() | {"completion_tokens": 0, "finish_reason": {"type": "length", "length": 0}}

        if name is not None:
            self.define(name, Known("", info))

    def _select(self, select: Select) -> None:
        name, engine_name = self._graph_name(select.name, "select"), engine_method(select.method, select.choices)
        choices, method, token_text = select.choices, select.method, self.execution.token_text

        def describe(meta: Meta) -> dict[str, Any]:
            self.execution.learn_texts(meta_info.token_ids_of(meta))
            scores = meta_info.scores_of(meta, choices, token_text)
            return {} if scores is None else method(**scores).meta_info or {}

        if engine_name is not None:
            (recorded,) = _record(self.inner, exprs.select(name, choices, method=engine_name))
            made = Generated(self.execution, recorded.text, recorded.meta, describe)
            if select.name is not None:
                self.variables[select.name] = made
            self._note(made)
            return
        # The engine scores the choices, and the method chooses here, so the body waits.
        scoring = (
            unconditional_likelihood_normalized if method.requires_unconditional_logprobs else token_length_normalized
        )
        scored_by = engine_method(scoring)
        assert scored_by is not None
        (recorded,) = _record(self.inner.copy(), exprs.select(name, choices, method=scored_by))
        self.execution.appended(needs_of(recorded.text))
        meta = self.execution.real(recorded.meta)
        self.execution.learn_texts(meta_info.token_ids_of(meta))
        scores = meta_info.scores_of(meta, choices, token_text)
        if scores is None:
            raise ParameterError("choices_method", method, "the runtime reports no log-probabilities of choices")
        decision = method(**scores)
        if decision.decision not in choices:
            raise ParameterError("decision", decision.decision, f"expected one of the choices {', '.join(choices)}")
        self._append_text(decision.decision)
        if select.name is not None:
            self.define(select.name, Known(decision.decision, lambda: decision.meta_info or {}))

    def _append_reasoned(self, expression: Expression, model_type: str) -> None:
        """Append an expression whose generations are divided. The body waits for each."""
        divided("", model_type)  # refuses an unknown model before anything runs
        match expression:
            case Series():
                for each in expression.items:
                    self._append_reasoned(each, model_type)
            case Gen():
                self._generate_reasoned(expression, model_type)
            case _:
                self.append(expression)

    def _generate_reasoned(self, gen: Gen, model_type: str) -> None:
        side = self.branch(self.inner.copy())
        side.append(gen if gen.name is not None else Gen("reasoned", gen.options))
        made = side.variables[gen.name or "reasoned"]
        text = value_of(made)
        if not isinstance(text, str):
            raise ParameterError("n", len(text), "expected 1 for a generation with separate reasoning")
        reasoning, answer = divided(text, model_type)
        self._append_text(answer)
        if gen.name is not None:
            self.define(gen.name, Known(answer, lambda: meta_info_of(made)))
            self.define(f"{gen.name}_reasoning_content", Own(reasoning))

    def _note(self, piece: Piece) -> None:
        self.log.append(piece)
        self.execution.appended([piece.node_id] if isinstance(piece, Generated) else [])

    def define(self, name: str, variable: Variable) -> None:
        """Set a variable."""
        self.variables[name] = variable
        self.execution.appended([])

    def _graph_name(self, name: str | None, kind: str) -> str:
        """The name of a generation in the graph, which errors show."""
        if name is not None:
            return name
        self._num_unnamed += 1
        return f"{kind} #{self._num_unnamed}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A text that was recorded, and its metadata, both lazy."""

    name: str
    text: Value
    meta: Value


def _record(state: State, expression: exprs.Expr) -> list[Recorded]:
    """Record a generation or a choice; returns its texts. Its name is free again afterwards."""
    state += expression
    variables = record_of(state).variables
    name = next(reversed(variables))
    text: Any = state.text(name)
    meta: Any = state.meta(name)
    del variables[name]
    pairs = zip(text, meta, strict=True) if isinstance(text, list) else ((text, meta),)
    return [Recorded(name, *pair) for pair in pairs]
