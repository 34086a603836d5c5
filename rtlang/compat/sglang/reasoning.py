"""Divides a text into reasoning and answer, by the marks that kinds of models use."""

from __future__ import annotations

from rtlang.contract.errors import ParameterError

_THINK = ("<think>", "</think>")
_MARKS = {
    "deepseek-r1": _THINK,
    "deepseek-v3": _THINK,
    "glm45": _THINK,
    "kimi": ("◁think▷", "◁/think▷"),
    "kimi_k2": _THINK,
    "qwen3": _THINK,
    "qwen3-thinking": _THINK,
    "step3": _THINK,
}
_ALWAYS_REASON = ("deepseek-r1", "qwen3-thinking", "step3")
"""Models whose prompt already has the opening mark, so that their text begins with reasoning."""


def divided(text: str, model_type: str) -> tuple[str, str]:
    """The reasoning and the answer in a text, without the marks.

    A text that does not close its reasoning is all reasoning.

    Raises:
        ParameterError: the kind of model is unknown.
    """
    marks = _MARKS.get(model_type.lower())
    if marks is None:
        raise ParameterError("model_type", model_type, f"expected one of {', '.join(_MARKS)}")
    begin, end = marks
    if begin not in text and model_type.lower() not in _ALWAYS_REASON:
        return "", text
    reasoning, _, answer = text.replace(begin, "", 1).partition(end)
    return reasoning.strip(), answer.strip()
