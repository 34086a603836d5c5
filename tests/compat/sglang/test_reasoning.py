"""Reasoning and answers."""

from __future__ import annotations

import pytest

import rtlang as rt
import rtlang.compat.sglang as sgl
from rtlang.compat.sglang.reasoning import divided
from rtlang.testing import ScriptedRuntime


@pytest.mark.parametrize(
    ("text", "model_type", "expected"),
    [
        ("<think> a </think> b ", "qwen3", ("a", "b")),
        ("no marks", "qwen3", ("", "no marks")),
        ("a</think>b", "deepseek-r1", ("a", "b")),
        ("never closed", "deepseek-r1", ("never closed", "")),
        ("<think>never closed", "qwen3", ("never closed", "")),
        ("◁think▷a◁/think▷b", "kimi", ("a", "b")),
        ("<think>a</think>b</think>c", "Qwen3", ("a", "b</think>c")),
    ],
)
def test_a_text_is_divided_at_the_marks(text: str, model_type: str, expected: tuple[str, str]) -> None:
    assert divided(text, model_type) == expected


def test_an_unknown_kind_of_model_is_refused_before_anything_runs() -> None:
    scripted = ScriptedRuntime({})

    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += "a" + sgl.separate_reasoning(sgl.gen("x"), model_type="other")

    with pytest.raises(rt.ParameterError, match="model_type = 'other': expected one of deepseek-r1"):
        body.run(backend=scripted)
    assert scripted.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_goes_on_and_the_reasoning_is_a_variable(stream: bool) -> None:
    scripted = ScriptedRuntime({"answer": "<think>short\n</think>\n\nYes.", "more": "ok"}, checks=False)

    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += sgl.user("Is it?")
        s += sgl.assistant(sgl.separate_reasoning("I say: " + sgl.gen("answer"), model_type="qwen3"))
        s += sgl.user("Sure?")
        s += sgl.assistant(sgl.gen("more"))

    state = body.run(backend=scripted, stream=stream)
    assert (state["answer"], state["answer_reasoning_content"]) == ("Yes.", "short")
    assert state.messages()[1] == {"role": "assistant", "content": "I say: Yes."}
    assert "short" not in scripted.prompts("more")[0]
    assert state.get_meta_info("answer")["finish_reason"]["type"] == "stop"
