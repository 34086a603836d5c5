"""Reasoning that a request asks for: whether the model may think, for how many tokens, and where the thought goes in the response.

The fields come from the OpenAI API (`reasoning_effort`, `reasoning`) and from other servers and hosts: vLLM, SGLang, llama.cpp,
OpenRouter, and the services of model makers. Chat templates get the same wishes in the variables that they read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeVar

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import MAX_MAX_TOKENS
from rtlang.serve.openai.fields import check_inner, read_bool
from rtlang.serve.openai.template_options import read_variables

_T = TypeVar("_T")
SHARES = {"minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 0.95, "max": 0.95}
"""The part of `max_tokens` that a thought of each effort may use."""
EFFORTS = ("none", *SHARES)
_BUDGETS = ("thinking_budget", "thinking_token_budget", "max_thinking_tokens", "thinking_budget_tokens")
_SWITCHES = ("enable_thinking", "thinking", "reasoning")
"""Variables in `chat_template_kwargs` that turn the thought on or off."""
FIELDS = frozenset(
    (
        *_BUDGETS,
        "reasoning",
        "reasoning_effort",
        "enable_thinking",
        "thinking",
        "include_reasoning",
        "separate_reasoning",
        "stream_reasoning",
        "chat_template_kwargs",
    )
)
"""The fields that `read_reasoning` reads."""


class ThoughtPlace(Enum):
    """Where the thought stands in the response."""

    APART = auto()  # in `reasoning_content` and `reasoning`
    IN_CONTENT = auto()  # at the beginning of the content, with its marks
    NOWHERE = auto()


@dataclass(frozen=True, slots=True)
class ReasoningRequest:
    """The fields of a request about the thought.

    Attributes:
        effort: one of `EFFORTS`; None if the request names none.
        budget: maximum number of tokens of the thought; 0 for none, None if the request names no number.
        place: where the thought stands in the response.
        controls: wishes for the chat template that follow from fields other than `chat_template_kwargs`; see `TemplateOptions`.
    """

    effort: str | None = None
    budget: int | None = None
    place: ThoughtPlace = ThoughtPlace.APART
    controls: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_off(self) -> bool:
        """Whether the model shall not think."""
        return self.budget == 0

    def max_tokens(self, max_tokens: int) -> int | None:
        """The maximum number of tokens of a thought in a reply of `max_tokens`; None for no limit."""
        if self.budget is not None or self.effort is None:
            return self.budget
        return int(SHARES[self.effort] * max_tokens)


class _Reader:
    """Collects the values of the fields; several fields may give one value, but not contradict each other."""

    def __init__(self) -> None:
        self.effort: tuple[str, str] | None = None
        self.budget: tuple[str, int] | None = None
        self.is_on: tuple[str, bool] | None = None
        self.controls_template = False

    def read_effort(self, where: str, value: Any) -> None:
        if value not in EFFORTS:
            raise ParameterError(where, value, f"expected one of {', '.join(EFFORTS)}")
        self.effort = _agreed(self.effort, where, value)
        self.switch(where, value != "none")

    def read_budget(self, where: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= MAX_MAX_TOKENS:
            raise ParameterError(where, value, f"expected a number of tokens from 0 to {MAX_MAX_TOKENS}, or -1 for any")
        self.budget = _agreed(self.budget, where, value)
        if value == 0:
            self.switch(where, False)

    def switch(self, where: str, is_on: bool, *, controls_template: bool = True) -> None:
        """Attributes: `controls_template`: whether the field also sets a variable of the chat template."""
        self.is_on = _agreed(self.is_on, where, is_on)
        self.controls_template |= controls_template

    def read_switch(self, where: str, value: Any) -> None:
        """`thinking` is true or false, or an object with `type` and `budget_tokens`."""
        if isinstance(value, bool):
            self.switch(where, value)
            return
        inner = check_inner(where, value, ("type", "budget_tokens"), ("keep", "clear_thinking", "display"))
        kind = inner.get("type", "enabled")
        if kind not in ("enabled", "disabled", "adaptive", "auto"):
            raise ParameterError(f"{where}.type", kind, "expected enabled, disabled, adaptive or auto")
        if kind in ("enabled", "disabled"):
            self.switch(where, kind == "enabled")
        if "budget_tokens" in inner:
            self.read_budget(f"{where}.budget_tokens", inner["budget_tokens"])

    def read_object(self, where: str, value: Any) -> bool:
        """`reasoning`; returns whether the thought is left out of the response."""
        inner = check_inner(
            where, value, ("effort", "max_tokens", "enabled", "exclude"), ("summary", "generate_summary")
        )
        if "effort" in inner:
            self.read_effort(f"{where}.effort", inner["effort"])
        if "max_tokens" in inner:
            self.read_budget(f"{where}.max_tokens", inner["max_tokens"])
        if "enabled" in inner:
            self.switch(f"{where}.enabled", read_bool(inner, "enabled", where=f"{where}."))
        return read_bool(inner, "exclude", where=f"{where}.")


def _agreed(known: tuple[str, _T] | None, where: str, value: _T) -> tuple[str, _T]:
    """The value of a field, if no field before it has another one."""
    if known is not None and known[1] != value:
        raise ParameterError(where, value, f"contradicts {known[0]}; give one of them")
    return known or (where, value)


def read_reasoning(given: Mapping[str, Any]) -> ReasoningRequest:
    """Read the fields of a request about the thought.

    Args:
        given: the accepted fields of the body, without nulls.
    Raises:
        ParameterError: a field is malformed, or two fields contradict each other; names it.
    """
    reader = _Reader()
    kwargs = read_variables(given)
    is_left_out = False
    if "reasoning" in given:
        is_left_out = reader.read_object("reasoning", given["reasoning"])
    if "reasoning_effort" in given:
        reader.read_effort("reasoning_effort", given["reasoning_effort"])
    for name in _BUDGETS:
        if name in given:
            reader.read_budget(name, given[name])
    if "enable_thinking" in given:
        reader.switch("enable_thinking", read_bool(given, "enable_thinking"))
    if "thinking" in given:
        reader.read_switch("thinking", given["thinking"])
    for name in _SWITCHES:
        if isinstance(kwargs.get(name), bool):
            reader.switch(f"chat_template_kwargs.{name}", kwargs[name], controls_template=False)
    budget = None if reader.budget is None or reader.budget[1] < 0 else reader.budget[1]
    if reader.is_on is not None and not reader.is_on[1]:
        if budget:
            raise ParameterError(reader.budget[0], budget, f"contradicts {reader.is_on[0]}; give one of them")  # type: ignore[index]
        budget = 0
    effort = None if reader.effort is None else reader.effort[1]
    return ReasoningRequest(effort, budget, _place(given, is_left_out), _controls(reader, budget))


def _place(given: Mapping[str, Any], is_left_out: bool) -> ThoughtPlace:
    read_bool(given, "stream_reasoning", True)  # the thought is always streamed as it arrives
    if is_left_out or not read_bool(given, "include_reasoning", True):
        return ThoughtPlace.NOWHERE
    return ThoughtPlace.APART if read_bool(given, "separate_reasoning", True) else ThoughtPlace.IN_CONTENT


def _controls(reader: _Reader, budget: int | None) -> dict[str, Any]:
    """The wishes for the chat template that follow from fields other than `chat_template_kwargs`."""
    found: dict[str, Any] = {}
    if reader.is_on is not None and reader.controls_template:
        found["thinks"] = reader.is_on[1]
    if reader.effort is not None and reader.effort[1] != "none":
        found["effort"] = reader.effort[1]
    if budget is not None and (reader.budget is not None or found):
        found["budget"] = budget
    return found
