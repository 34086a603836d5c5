"""Scores of choices against whole forward passes of `transformers`: every method, any prompt, with and without a start token."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import rtlang as rt
from rtlang.contract.params import SelectMethod
from tests.support.models.tiny_models import BOS_TOKEN_ID, VOCAB_SIZE, make_checkpoint

CHOICES = [["a", "b", "Z"], ["yes", "no", "maybe"], ["a", "ab", "abc", "b"], ["no"], ["0", "zero", "é"]]
PROMPTS = ["", "x", "Is it? "]


class Scorer:
    """What the stock model gives to a choice: whole sequences, one at a time, no cache. Every token is a byte."""

    def __init__(self, path: Path, start: list[int]) -> None:
        import transformers

        self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.start = start

    @torch.inference_mode()
    def logprob(self, before: Sequence[int], token: int) -> float:
        if not before:
            return -math.log(VOCAB_SIZE)
        logits = self.model(input_ids=torch.tensor([list(before)]), use_cache=False).logits[0, -1]
        return float(logits.double().log_softmax(-1)[token])

    def logprobs(self, prompt: str, choice: str) -> list[float]:
        tokens = [*self.start, *prompt.encode(), *choice.encode()]
        first = len(tokens) - len(choice.encode())
        return [self.logprob(tokens[:at], tokens[at]) for at in range(first, len(tokens))]

    def scores(self, prompt: str, choices: list[str], method: SelectMethod) -> list[float]:
        given = [self.logprobs(prompt, choice) for choice in choices]
        match method:
            case SelectMethod.FULL_LIKELIHOOD:
                return [sum(each) for each in given]
            case SelectMethod.TOKEN_LENGTH_NORMALIZED:
                return [sum(each) / len(each) for each in given]
            case SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED:
                prior = [self.logprobs("", choice) for choice in choices]
                return [
                    sum(a - b for a, b in zip(each, alone, strict=True)) / len(each)
                    for each, alone in zip(given, prior, strict=True)
                ]
            case SelectMethod.GREEDY_TOKEN_SELECTION:
                chosen = self.walk(prompt, [choice.encode() for choice in choices])
                return [float(choice.encode() == chosen) for choice in choices]

    def walk(self, prompt: str, choices: list[bytes]) -> bytes:
        """One byte after the other, the likeliest of those that lead to a choice; a whole choice wins against bytes below one half."""
        said = b""
        while True:
            before = [*self.start, *prompt.encode(), *said]
            options = list(dict.fromkeys(c[len(said)] for c in choices if c.startswith(said) and len(c) > len(said)))
            if sum(c.startswith(said) for c in choices) == 1:
                return next(c for c in choices if c.startswith(said))
            byte = max(options, key=lambda option: self.logprob(before, option))
            if said in choices and self.logprob(before, byte) < math.log(0.5):
                return said
            said += bytes([byte])


@pytest.fixture(scope="module", params=["start token", "no start token"])
def world(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[rt.Runtime, Scorer]]:
    path = make_checkpoint(tmp_path_factory.mktemp("select"), "llama", seed=3)
    start = [BOS_TOKEN_ID]
    if request.param == "no start token":
        start = []
        content = json.loads((path / "tokenizer.json").read_text()) | {"post_processor": None}
        (path / "tokenizer.json").write_text(json.dumps(content))
        settings = json.loads((path / "tokenizer_config.json").read_text()) | {"add_bos_token": False}
        del settings["bos_token"]
        (path / "tokenizer_config.json").write_text(json.dumps(settings))
    with rt.Runtime(str(path), device="cpu", dtype="float32", num_pages=256) as runtime:
        assert runtime.tokenizer.start_ids() == start
        yield runtime, Scorer(path, start)


@rt.program
def choose(s: Any, prompt: str, choices: list[str], method: str) -> None:
    s += prompt
    s += rt.select("choice", choices, method=method)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("method", list(SelectMethod))
def test_scores_are_those_of_the_stock_model(
    method: SelectMethod, prompt: str, world: tuple[rt.Runtime, Scorer]
) -> None:
    runtime, scorer = world
    for choices in CHOICES:
        result = choose.run(prompt=prompt, choices=choices, method=method, runtime=runtime)
        expected = scorer.scores(prompt, choices, method)
        meta = result.meta("choice")
        assert list(meta.scores) == choices
        assert list(meta.scores.values()) == pytest.approx(expected, abs=1e-4)
        assert result["choice"] == choices[expected.index(max(expected))]
        sums = torch.tensor([sum(scorer.logprobs(prompt, choice)) for choice in choices])
        assert list(meta.probabilities.values()) == pytest.approx(sums.softmax(-1).tolist(), abs=1e-4)
        chosen = result["choice"]
        assert [each.logprob for each in meta.logprobs] == pytest.approx(scorer.logprobs(prompt, chosen), abs=1e-4)
        assert bytes(each.token_id for each in meta.logprobs).decode() == chosen
        assert meta.choice_logprobs[chosen] == meta.logprobs
        is_compared = method is SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED
        assert (meta.unconditional_logprobs is not None) == is_compared
        for choice in choices:
            given = [each.logprob for each in meta.choice_logprobs[choice]]
            assert given == pytest.approx(scorer.logprobs(prompt, choice), abs=1e-4)
            if is_compared:
                alone = [each.logprob for each in meta.unconditional_logprobs[choice]]
                assert alone == pytest.approx(scorer.logprobs("", choice), abs=1e-4)


def test_text_goes_on_after_a_choice_that_begins_the_sequence(world: tuple[rt.Runtime, Scorer]) -> None:
    runtime, scorer = world

    @rt.program
    def body(s: Any) -> None:
        s += rt.select("choice", ["a", "b"])
        s += rt.gen("rest", max_tokens=4, ignore_eos=True)

    result = body.run(runtime=runtime)
    tokens = [*scorer.start, *result["choice"].encode()]
    for token in result.meta("rest").token_ids:
        with torch.inference_mode():
            logits = scorer.model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1]
        assert int(logits.argmax()) == token
        tokens.append(token)


def test_a_choice_streams_its_text_once(world: tuple[rt.Runtime, Scorer]) -> None:
    runtime, _ = world
    events = list(choose.stream(prompt="x", choices=["one", "two"], method="full_likelihood", runtime=runtime))
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["TextEvent", "ValueEvent", "EndEvent"]
    assert events[0].name == "choice"
    assert events[0].text == events[1].text in ("one", "two")
