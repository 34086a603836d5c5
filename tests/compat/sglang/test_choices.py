"""The three methods of choice, on numbers computed by hand, and own methods."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rtlang as rt
import rtlang.compat.sglang as sgl
from rtlang.compat.sglang.choices import checked_method, engine_method
from rtlang.contract.params import SelectMethod


def entries(*values: float | None) -> list[Any]:
    return [(value, 7, None) for value in values]


# Two tokens, three tokens, one token.
GIVEN = [entries(-1.0, -3.0), entries(-1.0, -2.0, -0.5), entries(-2.0)]
FACTS: dict[str, Any] = {
    "choices": ["a", "b", "c"],
    "normalized_prompt_logprobs": [-2.0, -3.5 / 3, -2.0],
    "input_token_logprobs": GIVEN,
    "output_token_logprobs": [[], [], []],
}


def test_the_largest_mean_wins() -> None:
    decision = sgl.token_length_normalized(**FACTS)
    assert decision.decision == "b"
    assert decision.meta_info == {name: value for name, value in FACTS.items() if name != "choices"}


def test_of_equal_means_the_first_wins() -> None:
    assert sgl.token_length_normalized(**FACTS | {"normalized_prompt_logprobs": [-2.0, -3.0, -2.0]}).decision == "a"


def test_greedy_goes_column_by_column_and_fills_short_options_with_their_mean() -> None:
    decision = sgl.greedy_token_selection(**FACTS)
    assert decision.decision == "b"  # column 0: a and b; column 1: b
    assert decision.meta_info is not None
    assert decision.meta_info["greedy_logprob_matrix"] == [[-1.0, -3.0, -2.0], [-1.0, -2.0, -0.5], [-2.0, -2.0, -2.0]]
    # The mean of a is lower, but its first token is likelier.
    given = [entries(-0.5, -9.0), entries(-0.6)]
    facts = FACTS | {"choices": ["a", "b"], "input_token_logprobs": given, "normalized_prompt_logprobs": [-4.75, -0.6]}
    assert sgl.greedy_token_selection(**facts).decision == "a"


def test_unconditional_subtracts_the_likelihood_without_the_prompt() -> None:
    alone = [entries(None, -3.0), entries(-1.5, -2.0, -1.0), entries(-9.0)]
    decision = sgl.unconditional_likelihood_normalized(**FACTS, unconditional_token_logprobs=alone)
    assert decision.decision == "c"
    assert decision.meta_info is not None
    gains = decision.meta_info["normalized_unconditional_prompt_logprobs"]
    assert gains == pytest.approx([-0.5, (0.5 + 0.0 + 0.5) / 3, 7.0])
    assert decision.meta_info["unconditional_token_logprobs"] == alone


def test_unconditional_needs_the_numbers_of_the_same_tokens() -> None:
    with pytest.raises(ValueError, match="needs unconditional_token_logprobs"):
        sgl.unconditional_likelihood_normalized(**FACTS)
    with pytest.raises(ValueError, match="2 log-probabilities with the prompt, but 1 without it"):
        sgl.unconditional_likelihood_normalized(**FACTS, unconditional_token_logprobs=[entries(-1.0)] * 3)


def test_the_engine_knows_the_three_methods_and_no_subclass() -> None:
    class Own(type(sgl.token_length_normalized)):  # type: ignore[misc]
        pass

    assert engine_method(sgl.token_length_normalized) is SelectMethod.TOKEN_LENGTH_NORMALIZED
    assert engine_method(sgl.greedy_token_selection) is SelectMethod.GREEDY_TOKEN_SELECTION
    assert engine_method(sgl.unconditional_likelihood_normalized) is SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED
    assert engine_method(Own()) is None
    assert engine_method(sgl.greedy_token_selection, ["a", "b"]) is SelectMethod.GREEDY_TOKEN_SELECTION
    assert engine_method(sgl.greedy_token_selection, ["a", "b", "ab"]) is None  # the engine compares these otherwise
    assert engine_method(sgl.token_length_normalized, ["a", "ab"]) is SelectMethod.TOKEN_LENGTH_NORMALIZED
    assert sgl.unconditional_likelihood_normalized.requires_unconditional_logprobs
    assert not sgl.token_length_normalized.requires_unconditional_logprobs


def test_only_instances_are_methods() -> None:
    for wrong in ("token_length_normalized", sgl.ChoicesSamplingMethod, None):
        with pytest.raises(rt.ParameterError, match="choices_method"):
            checked_method(wrong)


@pytest.mark.parametrize(
    "method",
    [sgl.token_length_normalized, sgl.greedy_token_selection, sgl.unconditional_likelihood_normalized],
    ids=lambda method: type(method).__name__,
)
def test_the_numbers_of_a_choice_are_in_its_meta_information(method: Any, backend: sgl.Runtime) -> None:
    choices = ["red", "a dark green", "blue", "blue or red"]

    @sgl.function
    def color(s: sgl.ProgramState) -> None:
        s += "The color of the lamp is " + sgl.select("color", choices, choices_method=method)

    state = color.run()
    info = state.get_meta_info("color")
    assert state["color"] in choices
    given = info["input_token_logprobs"]
    for choice, option, mean in zip(choices, given, info["normalized_prompt_logprobs"], strict=True):
        assert "".join(text for _, _, text in option) == choice
        assert all(logprob <= 0 for logprob, _, _ in option)
        assert math.isclose(mean, sum(logprob for logprob, _, _ in option) / len(option))
    # The method itself, on these numbers, finds what the engine found.
    facts = {
        "choices": choices,
        "normalized_prompt_logprobs": info["normalized_prompt_logprobs"],
        "input_token_logprobs": given,
        "output_token_logprobs": info["output_token_logprobs"],
        "unconditional_token_logprobs": info.get("unconditional_token_logprobs"),
    }
    assert method(**facts).decision == state["color"]


def test_an_own_method_decides_with_the_numbers_of_the_model(backend: sgl.Runtime) -> None:
    class LeastLikely(sgl.ChoicesSamplingMethod):
        @property
        def requires_unconditional_logprobs(self) -> bool:
            return True

        def __call__(self, *, choices: list[str], **facts: Any) -> sgl.ChoicesDecision:
            means = facts["normalized_prompt_logprobs"]
            assert [len(option) for option in facts["unconditional_token_logprobs"]] == [
                len(option) for option in facts["input_token_logprobs"]
            ]
            return sgl.ChoicesDecision(choices[means.index(min(means))], {"means": means})

    @sgl.function
    def both(s: sgl.ProgramState) -> None:
        s += "The lamp is "
        forks = s.fork(2)
        forks[0] += sgl.select("best", ["red", "xylophone"])
        forks[1] += sgl.select("worst", ["red", "xylophone"], choices_method=LeastLikely()) + "!"
        s["best"], s["worst"] = forks[0]["best"], forks[1]["worst"]
        s["info"], s["text"] = forks[1].get_meta_info("worst"), forks[1].text()

    state = both.run()
    assert {state["best"], state["worst"]} == {"red", "xylophone"}
    assert state["text"] == f"The lamp is {state['worst']}!"
    assert len(state["info"]["means"]) == 2


def test_a_function_is_a_method(backend: sgl.Runtime) -> None:
    def last(*, choices: list[str], **facts: Any) -> sgl.ChoicesDecision:
        return sgl.ChoicesDecision(choices[-1], {"means": facts["normalized_prompt_logprobs"]})

    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += "x" + sgl.select("y", ["a", "b"], choices_method=last)  # type: ignore[arg-type]

    state = body.run()
    assert (state["y"], len(state.get_meta_info("y")["means"])) == ("b", 2)


def test_an_own_method_must_choose_a_choice(backend: sgl.Runtime) -> None:
    class Wrong(sgl.ChoicesSamplingMethod):
        def __call__(self, **facts: Any) -> sgl.ChoicesDecision:
            return sgl.ChoicesDecision("other")

    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += "x" + sgl.select("y", ["a", "b"], choices_method=Wrong())

    with pytest.raises(rt.ParameterError, match="'other': expected one of the choices a, b"):
        body.run()
